"""Penalties that shrink edges, and set most of them to exactly zero.

    R(theta) = penalty * sum_g d_g ||w_g||_2 + ridge * sum_g ||w_g||_2^2

A group ``g`` is the whole table of an edge. Its weight ``d_e`` is used in the penalty and in the
test of whether an edge may enter,

    active edge:    grad_e L + penalty * d_e * w_e / ||w_e|| + 2 * ridge * w_e = 0
    inactive edge:  s_e = ||grad_e L||_2 / d_e <= penalty,

and is the square root of the number of cells, or that number (tables of many cells then enter
later), or such that chance gives every pair of the data the same score
(:mod:`edgegraft.objective.noise`). Node vectors are neither shrunk nor ridged
unless ``penalize_nodes`` asks for both: shrunk node vectors make every belief wrong, and the score
of an edge would then measure that error.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, NamedTuple, get_args

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.pairs import PairTables
from edgegraft.core.types import Edges, Floats, Integers
from edgegraft.errors import SettingError
from edgegraft.kernels.solver import group_prox
from edgegraft.objective.noise import NoiseWeights, noise_weights
from edgegraft.objective.objective import Objective

GroupWeight = Literal["sqrt", "states", "noise"]


def norms_of(values: Floats, offsets: Integers) -> Floats:
    """Return the norm of each group of a flat array; no group is empty."""
    return np.sqrt(_squares(values, offsets))


def _squares(values: Floats, offsets: Integers) -> Floats:
    return np.add.reduceat(np.square(values[: offsets[-1]]), offsets[:-1])


class Groups(NamedTuple):
    """A penalty laid out over the parameters of one graph: what the kernels read."""

    offsets: Integers  # (n_groups + 1,) start of each group in the parameters, and the end
    strength: Floats  # (n_groups,) penalty * d_g
    ridge: Floats  # (n_groups,)

    def value(self, theta: Floats) -> float:
        """Return the penalty at `theta`."""
        squares = _squares(theta, self.offsets)
        return float((self.strength * np.sqrt(squares) + self.ridge * squares).sum())

    def prox(self, theta: Floats, steps: Floats) -> Floats:
        """Return the proximal point of `theta` with one step per parameter."""
        out = np.empty_like(theta)
        group_prox(theta, np.ascontiguousarray(steps), *self, out)
        return out

    def violation(self, theta: Floats, gradient: Floats) -> Floats:
        """Return how far each group is from stationary: the smallest norm of a subgradient."""
        norms, sizes = norms_of(theta, self.offsets), np.diff(self.offsets)
        zero = norms == 0.0
        factor = self.strength / np.where(zero, 1.0, norms) + 2.0 * self.ridge
        left = norms_of(gradient + np.repeat(factor, sizes) * theta, self.offsets)
        return np.where(zero, np.maximum(left - self.strength, 0.0), left)


@dataclass(frozen=True)
class Penalty:
    """Group-l1 with a ridge, each alone or together.

    Parameters
    ----------
    penalty : float, default 0.0
        Weight of the norms; larger gives fewer edges.
    ridge : float, default 0.0
        Weight of the squared norms.
    penalize_nodes : bool, default False
        Whether both terms reach the node vectors too.
    group_weight : {"sqrt", "states", "noise"}, default "sqrt"
        ``d_e`` is the square root of the number of cells of a table, or that number, or such
        that chance gives every pair of the data the same score.
    noise : NoiseWeights, optional
        The last of these weights for some data: :meth:`bound` finds them.

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
    penalize_nodes: bool = False

    group_weight: GroupWeight = "sqrt"
    noise: NoiseWeights | None = field(default=None, repr=False, compare=False)

    kind: ClassVar[str] = "group"  #: what vanishes together; "group" is the table of an edge

    def __post_init__(self) -> None:
        for name in ("penalty", "ridge"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise SettingError(name, f"must be finite and not negative, found {value}")
        if self.group_weight not in get_args(GroupWeight):
            names = ", ".join(get_args(GroupWeight))
            raise SettingError(
                "group_weight", f"must be one of {names}, found {self.group_weight!r}"
            )

    def bound(self, objective: Objective, *, anew: bool = False) -> Penalty:
        """Return the penalty with the weights that the data ask for, if it depends on them.

        A penalty that is bound already stays as it is, unless it is bound `anew` to other data.

        Examples
        --------
        >>> from edgegraft.table import PackedTable
        >>> from edgegraft.objective.pseudolikelihood import Pseudolikelihood
        >>> table = PackedTable.from_codes([[0, 0], [1, 0], [0, 0], [1, 1]] * 50)
        >>> penalty = Penalty(0.1, group_weight="noise").bound(Pseudolikelihood(table))
        >>> penalty.edge_weights(np.array([(0, 1)]), np.array([4])).round(3)
        array([0.838])
        """
        if self.group_weight != "noise" or (self.noise is not None and not anew):
            return self
        return replace(self, noise=noise_weights(objective))

    def edge_weights(self, edges: Edges, cells: Integers) -> Floats:
        """Return ``d_e`` of pairs whose tables have these numbers of cells."""
        if self.group_weight == "noise":
            return self._bound_noise.of(edges)
        return self._size_weights(cells)

    def _size_weights(self, cells: Integers) -> Floats:
        return cells.astype(np.float64) if self.group_weight == "states" else np.sqrt(cells)

    @property
    def _bound_noise(self) -> NoiseWeights:
        if self.noise is None:
            raise ValueError("noise weights need data: call bound(objective) first")
        return self.noise

    def groups(self, layout: Layout) -> Groups:
        """Return the groups of a graph's parameters: nodes, then edges.

        With noise weights a pair of ordered columns has its linear weight as a group of its own.
        """
        cells = np.diff(layout.edge_offset)
        weights = np.concatenate(
            (self._size_weights(layout.states), self.edge_weights(layout.edges, cells))
        )
        offsets = np.concatenate((layout.node_offset, layout.edge_offset[1:]))
        if self.group_weight == "noise":
            split = self._bound_noise.split(layout.edges) & (cells > 1)
            after = layout.n_variables + 1 + np.flatnonzero(split)
            offsets = np.insert(offsets, after, layout.edge_offset[:-1][split] + 1)
            rest = self._bound_noise.of_rest(layout.edges[split])
            weights = np.insert(weights, after, rest)
        return self._laid_out(offsets, weights, layout.n_variables)

    def _laid_out(self, offsets: Integers, weights: Floats, n_nodes: int) -> Groups:
        ridge = np.full(len(weights), self.ridge)
        if not self.penalize_nodes:
            weights[:n_nodes] = ridge[:n_nodes] = 0.0
        return Groups(offsets, self.penalty * weights, ridge)

    def value(self, theta: Floats, layout: Layout) -> float:
        """Return the penalty at `theta`."""
        return self.groups(layout).value(theta)

    def prox(self, theta: Floats, step: float | Floats, layout: Layout) -> Floats:
        """Return ``argmin_w |w - theta|^2 / (2 step) + R(w)``, with exact zeros.

        There is one step for all, one per group or one per parameter; if each parameter has its
        own, a table still vanishes as a whole or not at all.
        """
        groups = self.groups(layout)
        steps = np.asarray(step, np.float64)
        if steps.ndim and len(steps) == len(groups.strength) != len(theta):
            steps = np.repeat(steps, np.diff(groups.offsets))
        return groups.prox(theta, np.broadcast_to(steps, theta.shape))

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
            ``||grad_e||_2 / d_e``.

        Examples
        --------
        >>> layout = Layout([2, 2], [(0, 1)])
        >>> Penalty().score(np.array([9, 9, 9, 9, 0.2, -0.2, -0.2, 0.2]), layout)
        array([0.2])
        """
        if isinstance(gradient, PairTables):
            return self._scores(gradient.values, gradient.offsets, gradient.edges)
        if layout is None:
            raise TypeError("the score of a flat gradient needs the layout of the parameters")
        return self._scores(gradient, layout.edge_offset, layout.edges)

    def _scores(self, values: Floats, offsets: Integers, edges: Edges) -> Floats:
        norms, weights = norms_of(values, offsets), self.edge_weights(edges, np.diff(offsets))
        if self.group_weight != "noise":
            return np.asarray(norms / weights)
        first, noise = np.abs(values[offsets[:-1]]), self._bound_noise
        rest = np.sqrt(np.maximum(norms**2 - first**2, 0.0)) / noise.of_rest(edges)
        both = np.maximum(first / weights, rest)
        return np.where(noise.split(edges), both, norms / weights)

    def largest_useful(self, gradient: Floats | PairTables, layout: Layout | None = None) -> float:
        """Return the least penalty at which every edge of `gradient` stays at zero.

        `gradient` is the loss's, taken where all edges are zero and the nodes are optimal.
        """
        return float(self.score(gradient, layout).max(initial=0.0))

    def violation(self, theta: Floats, gradient: Floats, layout: Layout) -> Floats:
        """Return how far each group is from stationary, in the Euclidean norm.

        `gradient` is that of the loss alone. Groups are nodes, then edges; theirs is the norm of
        ``grad + penalty * d * w/||w|| + 2 * ridge * w``, or for a zero group
        ``max(0, ||grad|| - penalty * d)``.
        """
        return self.groups(layout).violation(theta, gradient)
