"""Penalties with other weights, or other groups, than :class:`~edgegraft.objective.Penalty`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.errors import SettingError
from edgegraft.kernels.solver.penalty import group_norms
from edgegraft.objective.noise_weight import NoiseWeights, noise_weights
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import Groups, Penalty

GroupWeight = Literal["sqrt", "states", "noise"]
_HOLD = 1e12  # a strength that no gradient of a mean loss overcomes


@dataclass(frozen=True)
class StatesPenalty(Penalty):
    """Group-l1 with ``d_e = s_i s_j``: tables of many cells enter later."""

    group_weight: ClassVar[str] = "states"

    def _size_weights(self, cells: Integers) -> Floats:
        return cells.astype(np.float64)


@dataclass(frozen=True)
class NoisePenalty(Penalty):
    """Group-l1 with weights by which chance gives every pair of the data the same score.

    `noise` are the weights of some data: :meth:`bound` finds them.

    Examples
    --------
    >>> from edgegraft.table import PackedTable
    >>> from edgegraft.objective.pseudolikelihood import Pseudolikelihood
    >>> table = PackedTable.from_codes([[0, 0], [1, 0], [0, 0], [1, 1]] * 50)
    >>> penalty = NoisePenalty(0.1).bound(Pseudolikelihood(table))
    >>> penalty.edge_weights(np.array([(0, 1)]), np.array([4])).round(3)
    array([0.838])
    """

    noise: NoiseWeights | None = field(default=None, repr=False, compare=False)

    group_weight: ClassVar[str] = "noise"

    def bound(self, objective: Objective, *, anew: bool = False) -> NoisePenalty:
        """Return the penalty with the weights that the margins of the data ask for."""
        if self.noise is not None and not anew:
            return self
        return replace(self, noise=noise_weights(objective))

    def edge_weights(self, edges: Edges, cells: Integers) -> Floats:
        """Return what chance does to the score of each pair."""
        return self._bound_noise.of(edges)

    def least_factors(self, states: Integers) -> Floats:
        """Return a factor per variable; no weight is below the product of those of its ends."""
        return self._bound_noise.least_factors()

    @property
    def _bound_noise(self) -> NoiseWeights:
        if self.noise is None:
            raise ValueError("noise weights need data: call bound(objective) first")
        return self.noise

    def groups(self, layout: Layout) -> Groups:
        """Return the groups; a pair of ordered columns has its linear weight as one of its own."""
        whole, noise = super().groups(layout), self._bound_noise
        split = noise.split(layout.edges) & (np.diff(layout.edge_offset) > 1)
        if not split.any():
            return whole
        after = layout.n_variables + 1 + np.flatnonzero(split)
        rest = self.penalty * noise.of_rest(layout.edges[split])
        return Groups(
            np.insert(whole.offsets, after, layout.edge_offset[:-1][split] + 1),
            np.insert(whole.strength, after, rest),
            np.insert(whole.ridge, after, self.ridge),
        )

    def _scores(self, values: Floats, offsets: Integers, edges: Edges) -> Floats:
        noise = self._bound_noise
        split = noise.split(edges)
        if not split.any():
            return super()._scores(values, offsets, edges)
        whole = np.empty(len(edges))
        group_norms(values, offsets, whole)
        first = np.abs(values[offsets[:-1]])
        rest = np.sqrt(np.maximum(whole**2 - first**2, 0.0)) / noise.of_rest(edges)
        weights = self.edge_weights(edges, np.diff(offsets))
        return np.where(split, np.maximum(first / weights, rest), whole / weights)


@dataclass(frozen=True, eq=False)
class FeaturePenalty(Penalty):
    """Plain l1 over single parameters; `allowed` are those that may leave zero, all by default.

    Examples
    --------
    >>> FeaturePenalty(1.0).groups(Layout([2, 2], [(0, 1)])).offsets
    array([0, 2, 4, 5, 6, 7, 8])
    """

    allowed: Mask | None = field(default=None, repr=False)

    kind: ClassVar[str] = "l1"

    def edge_weights(self, edges: Edges, cells: Integers) -> Floats:
        """Return ones: single parameters have no size."""
        return np.ones(len(edges))

    def least_factors(self, states: Integers) -> Floats:
        """Return ones: the largest parameter of a table is at most its norm."""
        return np.ones(len(states))

    def groups(self, layout: Layout) -> Groups:
        """Return the groups; parameters that are not allowed are held at zero."""
        first, last = int(layout.edge_offset[0]), int(layout.edge_offset[-1])
        nodes = np.arange(first + 1) if self.penalize_nodes else layout.node_offset
        offsets = np.concatenate((nodes, np.arange(first, last) + 1))
        groups = self._laid_out(offsets, np.ones(len(offsets) - 1), layout.n_variables)
        if self.allowed is not None:
            groups.strength[len(nodes) - 1 :][~self.allowed[first:]] = _HOLD
        return groups

    def _scores(self, values: Floats, offsets: Integers, edges: Edges) -> Floats:
        return np.maximum.reduceat(np.abs(values), offsets[:-1]) if len(edges) else np.empty(0)


PENALTIES: tuple[type[Penalty], ...] = (Penalty, StatesPenalty, NoisePenalty, FeaturePenalty)
"""The library's own penalties, which files can name."""


def make_penalty(
    penalty: float = 0.0,
    ridge: float = 0.0,
    *,
    kind: str = "group",
    group_weight: str = "sqrt",
    **settings: Any,
) -> Penalty:
    """Return the penalty that names stand for.

    Parameters
    ----------
    penalty, ridge : float
    kind : {"group", "l1"}
        Whole edge tables vanish together, or single parameters, which know no `group_weight`.
    group_weight : {"sqrt", "states", "noise"}
        ``d_e`` is the square root of the number of cells of a table, or that number, or such
        that chance gives every pair of the data the same score.
    **settings
        Further arguments of the class, such as `penalize_nodes`.

    Examples
    --------
    >>> make_penalty(0.1, group_weight="noise")
    NoisePenalty(penalty=0.1, ridge=0.0, penalize_nodes=False)
    """
    if kind not in ("group", "l1"):
        raise SettingError("kind", f"must be 'group' or 'l1', found {kind!r}")
    named = {form.group_weight: form for form in PENALTIES if form.kind == "group"}
    if group_weight not in named:
        raise SettingError(
            "group_weight", f"must be one of {', '.join(named)}, found {group_weight!r}"
        )
    form = FeaturePenalty if kind == "l1" else named[group_weight]
    return form(penalty, ridge, **settings)


def allowing(penalty: Penalty, allowed: Mask) -> FeaturePenalty:
    """Return `penalty` over single parameters, restricted to those `allowed`."""
    return FeaturePenalty(penalty.penalty, penalty.ridge, penalty.penalize_nodes, allowed)
