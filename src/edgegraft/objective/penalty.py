"""Penalties that shrink edges, and set most of them to exactly zero.

    R(theta) = penalty * sum_g d_g ||w_g||_2 + ridge * sum_g ||w_g||_2^2

A group ``g`` is the whole table of an edge (``kind="group"``) or a single parameter
(``kind="l1"``, ``d = 1``). The weight of a table is ``d_e = sqrt(s_i s_j)``, ``s_i s_j`` with
``group_weight="states"``, or what :mod:`~edgegraft.objective.noise_weight` says with ``"noise"``,
and the same weight is used in the penalty and in the test of whether an edge may enter,

    active edge:    grad_e L + penalty * d_e * w_e / ||w_e|| + 2 * ridge * w_e = 0
    inactive edge:  s_e = ||grad_e L||_2 / d_e <= penalty.

Node vectors are neither shrunk nor ridged unless ``penalize_nodes`` asks for both: shrunk node
vectors make every belief wrong, and the score of an edge would then measure that error.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.tables import PairTables
from edgegraft.core.types import Edges, Floats, Integers
from edgegraft.errors import SettingError
from edgegraft.kernels.solver.penalty import (
    group_norms,
    group_peaks,
    group_prox,
    group_violation,
    penalty_value,
)
from edgegraft.objective.noise_weight import NoiseWeights, noise_weights
from edgegraft.objective.objective import Objective

GroupWeight = Literal["sqrt", "states", "noise"]
GROUP_WEIGHTS: tuple[str, ...] = ("sqrt", "states", "noise")


class Groups(NamedTuple):
    """A penalty laid out over the parameters of one graph: what the kernels read."""

    offsets: Integers  # (n_groups + 1,) where each group starts in the parameters, and the end
    strength: Floats  # (n_groups,) penalty * d_g
    ridge: Floats  # (n_groups,)


@dataclass(frozen=True)
class Penalty:
    """Group-l1 or plain l1, with a ridge: each alone, or together.

    Parameters
    ----------
    penalty : float, default 0.0
        Weight of the norms; larger gives fewer edges.
    ridge : float, default 0.0
        Weight of the squared norms.
    kind : {"group", "l1"}
        Whole edge tables vanish together, or single parameters.
    group_weight : {"sqrt", "states", "noise"}
        ``d_e`` is the square root of the number of cells of a table, or that number, or such
        that chance gives every pair of the data the same score. Of no meaning with ``kind="l1"``.
    penalize_nodes : bool, default False
        Whether both terms reach the node vectors too.
    noise : NoiseWeights, optional
        What the noise weights of some data are: :meth:`bound` finds them.

    Examples
    --------
    >>> layout = Layout([2, 2, 2], [(0, 1), (1, 2)])
    >>> theta = np.array([0, 1, 0, 0, 0, 0, 3, -3, -3, 3, 0.1, -0.1, -0.1, 0.1])
    >>> penalty = Penalty(0.5)
    >>> penalty.value(theta, layout)
    6.2
    >>> penalty.prox(theta, 1.0, layout)
    array([ 0. ,  1. ,  0. ,  0. ,  0. ,  0. ,  2.5, -2.5, -2.5,  2.5,  0. ,
            0. ,  0. ,  0. ])
    """

    penalty: float = 0.0
    ridge: float = 0.0
    kind: Literal["group", "l1"] = "group"
    group_weight: GroupWeight = "sqrt"
    penalize_nodes: bool = False
    noise: NoiseWeights | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("penalty", "ridge"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise SettingError(name, f"must be finite and not negative, found {value}")
        if self.kind not in ("group", "l1"):
            raise ValueError(f"kind must be 'group' or 'l1', found {self.kind!r}")
        if self.group_weight not in GROUP_WEIGHTS:
            raise ValueError(
                f"group_weight must be one of {', '.join(GROUP_WEIGHTS)}, found "
                f"{self.group_weight!r}"
            )

    def bound(self, objective: Objective) -> Penalty:
        """Return the penalty with the weights that the margins of the data ask for.

        Only ``group_weight="noise"`` looks at data; any other penalty is returned as it is.

        Examples
        --------
        >>> from edgegraft.table import PackedTable
        >>> from edgegraft.objective.pseudolikelihood import Pseudolikelihood
        >>> table = PackedTable.from_codes([[0, 0], [1, 0], [0, 0], [1, 1]] * 50)
        >>> penalty = Penalty(0.1, group_weight="noise").bound(Pseudolikelihood(table))
        >>> penalty.edge_weights(np.array([(0, 1)]), np.array([4])).round(3)
        array([0.838])
        """
        if self.kind == "l1" or self.group_weight != "noise" or self.noise is not None:
            return self
        return replace(self, noise=noise_weights(objective))

    def edge_weights(self, edges: Edges, cells: Integers) -> Floats:
        """Return ``d_e`` of pairs whose tables have so many cells."""
        if self.kind == "l1":
            return np.ones(len(edges))
        if self.group_weight == "noise":
            if self.noise is None:
                raise ValueError("noise weights need data: call bound(objective) first")
            return self.noise.of(edges)
        return self._size_weights(cells)

    def _size_weights(self, cells: Integers) -> Floats:
        return cells.astype(np.float64) if self.group_weight == "states" else np.sqrt(cells)

    def groups(self, layout: Layout) -> Groups:
        """Return the groups of a graph's parameters: nodes, then edges or their entries.

        Examples
        --------
        >>> Penalty(1.0, kind="l1").groups(Layout([2, 2], [(0, 1)])).offsets
        array([0, 2, 4, 5, 6, 7, 8])
        """
        nodes, edges = layout.node_offset, layout.edge_offset
        if self.kind == "l1":
            edges = np.arange(edges[0], edges[-1] + 1)
            nodes = np.arange(edges[0] + 1) if self.penalize_nodes else nodes
        offsets = np.concatenate((nodes, edges[1:]))
        weights = np.ones(len(offsets) - 1)
        ridge = np.full(len(weights), self.ridge)
        if self.kind == "group":
            cells = np.diff(offsets)
            weights = self._size_weights(cells)
            n_nodes = layout.n_variables
            weights[n_nodes:] = self.edge_weights(layout.edges, cells[n_nodes:])
        if not self.penalize_nodes:
            weights[: layout.n_variables] = 0.0
            ridge[: layout.n_variables] = 0.0
        return Groups(offsets, self.penalty * weights, ridge)

    def value(self, theta: Floats, layout: Layout) -> float:
        """Return the penalty at `theta`."""
        return value_of(theta, self.groups(layout))

    def prox(self, theta: Floats, step: float | Floats, layout: Layout) -> Floats:
        """Return ``argmin_w |w - theta|^2 / (2 step) + R(w)``, with exact zeros.

        Parameters
        ----------
        theta : array, shape (n_parameters,)
        step : float, or array of one a group or one a parameter
            Where each parameter has its own, a table still vanishes as a whole or not at all.
        layout : Layout
        """
        groups = self.groups(layout)
        steps = np.asarray(step, np.float64)
        if steps.ndim and len(steps) == len(groups.strength) != len(theta):
            steps = np.repeat(steps, np.diff(groups.offsets))
        return prox_of(theta, np.broadcast_to(steps, theta.shape), groups)

    def score(self, gradient: Floats | PairTables, layout: Layout | None = None) -> Floats:
        """Return ``s_e`` of every edge: an edge at zero stays there while ``s_e <= penalty``.

        Parameters
        ----------
        gradient : array, or PairTables
            The loss's gradient over the parameters of `layout`, or its tables for any pairs.
        layout : Layout, optional
            Of a flat gradient; the scores are those of its edges.

        Returns
        -------
        array, shape (n_edges,)
            ``||grad_e||_2 / d_e``; with ``kind="l1"`` the largest magnitude in the table.

        Examples
        --------
        >>> layout = Layout([2, 2], [(0, 1)])
        >>> Penalty().score(np.array([9, 9, 9, 9, 0.2, -0.2, -0.2, 0.2]), layout)
        array([0.2])
        """
        if isinstance(gradient, PairTables):
            values, offsets, edges = gradient.values, gradient.offsets, gradient.edges
        else:
            if layout is None:
                raise TypeError("the score of a flat gradient needs the layout of the parameters")
            values, offsets, edges = gradient, layout.edge_offset, layout.edges
        out = np.empty(len(offsets) - 1)
        if self.kind == "l1":
            group_peaks(values, offsets, out)
            return out
        group_norms(values, offsets, out)
        return np.asarray(out / self.edge_weights(edges, np.diff(offsets)))

    def largest_useful(self, gradient: Floats | PairTables, layout: Layout | None = None) -> float:
        """Return the least penalty at which every edge of `gradient` stays at zero.

        `gradient` is the loss's, taken where all edges are zero and the nodes are optimal.
        """
        return float(self.score(gradient, layout).max(initial=0.0))

    def violation(self, theta: Floats, gradient: Floats, layout: Layout) -> Floats:
        """Return how far each group is from stationary, in the Euclidean norm.

        Parameters
        ----------
        theta, gradient : array, shape (n_parameters,)
            Parameters and the gradient of the loss alone.
        layout : Layout

        Returns
        -------
        array, shape (n_groups,)
            Nodes, then edges (with ``kind="l1"`` their single parameters): the norm of
            ``grad + penalty * d * w/||w|| + 2 * ridge * w``, or for a zero group
            ``max(0, ||grad|| - penalty * d)``.
        """
        return violation_of(theta, gradient, self.groups(layout))


def value_of(theta: Floats, groups: Groups) -> float:
    """Return the penalty at `theta`."""
    return float(penalty_value(theta, *groups))


def prox_of(theta: Floats, steps: Floats, groups: Groups) -> Floats:
    """Return the proximal point of `theta` with one step a parameter."""
    out = np.empty_like(theta)
    group_prox(theta, np.ascontiguousarray(steps), *groups, out)
    return out


def violation_of(theta: Floats, gradient: Floats, groups: Groups) -> Floats:
    """Return how far each group is from stationary."""
    out = np.empty(len(groups.strength))
    group_violation(theta, gradient, *groups, out)
    return out
