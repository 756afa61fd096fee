"""Noise weights: what chance does to the score of a pair, and weights that undo it.

They ask the same evidence of every pair, whatever its states and their shares:

    d_ij^2 = v_i v_j q(k_i k_j),   v_i = 1 - sum_a p_i(a)^2,   k_i = v_i^2 / tr(C_i^2)

Under independence the gradient of a pair's table has covariance ``C_i x C_j / N`` (four times that
in the pseudolikelihood, where a pair counts twice), ``C_i = diag(p_i) - p_i p_i'``: its squared
norm has the mean ``v_i v_j / N`` and is roughly chi-squared with ``k_i k_j`` degrees of freedom
(Satterthwaite). ``q(k)`` is the quantile of a chi-squared over ``k`` that chance passes once per
variable, by the formula of Wilson and Hilferty. So with ``penalty = 1 / sqrt(N)`` (twice that in
the pseudolikelihood) about ``n / 2`` of the ``n (n - 1) / 2`` pairs of independent columns pass the
activation test, be they even or nearly constant, of two states or of twenty. With
``d_e = sqrt(s_i s_j)`` a nearly constant column could never pass it, whatever depends on it.

Rows in which a cell is missing add nothing to the gradient, nor to its noise: ``v_i`` is multiplied
by the share of the rows that know the column.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtri

from edgegraft.core import Layout
from edgegraft.core.types import Edges, Floats, Mask
from edgegraft.objective.objective import Objective

MIN_ROWS = 20.0  # off the most common state: with fewer, chance is no longer Gaussian
_MAX_RATE = 0.05
#: What chance may do to the further weights of a pair of ordered columns, as a share of the linear.
REST = 0.1


@dataclass(frozen=True, eq=False)
class NoiseWeights:
    """What chance does to the score of a pair, variable by variable."""

    spread: Floats  # (n,), sqrt(v_i)
    dof: Floats  # (n,), k_i: the number of states less one if they are equally common, less if not
    z: float  # standard normal quantile of the rate at which chance may pass
    #: (n,) or empty: variables with scores instead of states; pairs of them have two groups
    scored: Mask = field(default_factory=lambda: np.zeros(0, bool))
    z_rest: float = 0.0  # as `z`, for the second group

    def of(self, edges: Edges) -> Floats:
        """Return ``d_e`` of pairs: of their first group, if they have two."""
        i, j = edges[:, 0], edges[:, 1]
        quantile = _quantile(self.dof[i] * self.dof[j], self.z)
        weights = self.spread[i] * self.spread[j] * np.sqrt(quantile)
        split = self.split(edges)
        if split.any():
            weights[split] = self._part(edges[split], np.ones(int(split.sum())), self.z)
        return np.asarray(weights)

    def of_rest(self, edges: Edges) -> Floats:
        """Return the weight of the second group of pairs that have two."""
        size = self.dof[edges[:, 0]] * self.dof[edges[:, 1]] - 1.0
        return self._part(edges, np.maximum(size, 1.0), self.z_rest)

    def split(self, edges: Edges) -> Mask:
        """Return which pairs have their linear weight as a group of its own."""
        if not self.scored.any():
            return np.zeros(len(edges), bool)
        return np.asarray(self.scored[edges].all(axis=1))

    def _part(self, edges: Edges, size: Floats, z: float) -> Floats:
        """Return the weight of a group of `size` features of pairs of scored variables."""
        i, j = edges[:, 0], edges[:, 1]
        quantile = _quantile(size, z)
        variance = (self.spread[i] * self.spread[j]) ** 2 / (self.dof[i] * self.dof[j])
        return np.asarray(np.sqrt(variance * size * quantile))


def _quantile(dof: Any, z: float) -> Any:
    """Return the quantile of a chi-squared over its degrees of freedom (Wilson and Hilferty)."""
    small = 2.0 / (9.0 * dof)
    return (1.0 - small + z * np.sqrt(small)) ** 3


def noise_weights(objective: Objective, left: Floats | float = 1.0) -> NoiseWeights:
    """Return the weights that the margins of an objective's data ask for.

    `left` is the share of each variable's variance that a model leaves unexplained.

    >>> from edgegraft.table import PackedTable
    >>> from edgegraft.objective.pseudolikelihood import Pseudolikelihood
    >>> table = PackedTable.from_codes([[0, 0], [1, 0], [2, 0], [3, 1]] * 50)
    >>> noise = noise_weights(Pseudolikelihood(table))
    >>> noise.spread.round(3), noise.dof.round(3)
    (array([0.866, 0.612]), array([3., 1.]))
    """
    layout = Layout(objective.schema.n_states)
    p, first = objective.margins(), layout.node_offset[:-1]
    squares, cubes = np.add.reduceat(p * p, first), np.add.reduceat(p**3, first)
    least = min(0.5, MIN_ROWS / objective.n_rows)
    spread = np.maximum(1.0 - squares, least)
    dof = spread**2 / np.maximum(squares - 2.0 * cubes + squares**2, least**2)
    spread = np.maximum(spread * objective.known_shares(), least)
    rate = min(_MAX_RATE, 1.0 / max(1, len(layout.states) - 1))
    scored = objective.layout().scored
    if scored.any():  # features of variance 1, without correlation
        widths = objective.layout().widths
        spread, dof = np.where(scored, widths, spread), np.where(scored, widths, dof)
    spread = np.maximum(spread * left, least)
    z, z_rest = (float(-ndtri(share)) for share in (rate, REST * rate))
    return NoiseWeights(np.sqrt(spread), np.maximum(dof, 1.0), z, scored, z_rest)
