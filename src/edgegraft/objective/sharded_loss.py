"""The pseudolikelihood of rows that lie in shards, with as few passes over them as it can do with.

A pass may be minutes, so what is known is not worked out again: an evaluation at the parameters of
the one before costs nothing, nor does one that only adds edges of zeros to it once the gradients of
all pairs are there, nor one without edges, for which the margins are enough. All of this is in the
state, but for the last pass, which is what a run that begins again from a checkpoint works out.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.core import Layout
from edgegraft.core.checks import check_edges, check_theta
from edgegraft.core.pairs import all_pairs, pair_ids
from edgegraft.core.tables import PairTables, table_offsets
from edgegraft.core.types import Edges, Floats
from edgegraft.counts.pair_counts import PairCounts, check_size
from edgegraft.errors import DataError, ModelError
from edgegraft.objective.composite import CompositeLoss
from edgegraft.objective.objective import Evaluation, Objective
from edgegraft.objective.scoring import take_tables
from edgegraft.objective.sharded import Precision, Shards

#: Tables of all pairs are worked out in one pass where they take no more, once a quarter of the
#: pairs has been asked for at the same parameters.
ALL_PAIRS_BYTES = 1 << 27
_MANY = 0.25


class _Pairs:
    """Gradients of pairs at one point: those asked for, and all of them once many were."""

    def __init__(self, theta: Floats) -> None:
        self.theta = theta
        self.asked = 0
        self.whole: Floats | None = None  # of all pairs i < j, laid out as a graph of them all


class Known(NamedTuple):
    """What an evaluation found."""

    layout: Layout
    theta: Floats
    losses: Floats  # mean loss of a row for each variable
    gradient: Floats
    pairs: _Pairs


class ShardState(NamedTuple):
    """What an evaluation hands to the next one."""

    layout: Layout
    known: Known | None = None


class ShardedPseudolikelihood(CompositeLoss):
    """Mean negative log-pseudolikelihood of the rows of all shards.

    The same value and gradients as
    :class:`~edgegraft.objective.pseudolikelihood.Pseudolikelihood`, up to rounding.

    Parameters
    ----------
    shards : Shards
    precision : {"double", "single"}, default "double"
        Of logits and probabilities; sums over rows are double in both.
    stand_in : Objective, optional
        The same loss over few of the rows, in memory, by which solvers save passes.

    Examples
    --------
    >>> from edgegraft.table import PackedTable
    >>> from edgegraft.table.blocks import TableBlocks
    >>> from edgegraft.objective.local_shards import LocalShards
    >>> table = PackedTable.from_codes([[0, 0], [1, 1], [1, 1], [0, 1]] * 300)
    >>> objective = ShardedPseudolikelihood(LocalShards(TableBlocks(table, rows=512)))
    >>> layout = Layout([2, 2], [(0, 1)])
    >>> round(objective.evaluate(objective.start(layout), objective.init(layout)).value, 4)
    1.2555
    """

    def __init__(
        self,
        shards: Shards,
        *,
        precision: Precision = "double",
        stand_in: Objective | None = None,
    ) -> None:
        if precision not in ("single", "double"):
            raise ValueError(f"precision must be 'single' or 'double', found {precision!r}")
        self.shards = shards
        self.precision: Precision = precision
        self.stand_in = stand_in
        self._last: Known | None = None
        weight = float(shards.weight)
        if not weight > 0:
            raise DataError("the rows have no weight: no row counts")
        margins = shards.counts.margins().values.astype(np.float64)
        super().__init__(shards.schema, margins, weight, shards.n_rows)

    @property
    def source(self) -> PairCounts:
        """Counts of the same rows."""
        return self.shards.counts

    def init(self, layout: Layout) -> ShardState:
        """Return a state for a graph."""
        if not np.array_equal(layout.states, self._schema.n_states):
            raise ModelError("the layout's numbers of states are not those of the table")
        return ShardState(layout)

    def grow(self, state: ShardState, layout: Layout) -> ShardState:
        """Return a state for another graph over the same variables, with what is known."""
        return ShardState(self.init(layout).layout, state.known)

    def evaluate(self, theta: Floats, state: ShardState) -> Evaluation:
        """Return the loss and its gradient at `theta`: one pass over the rows, or none."""
        theta = check_theta(theta, state.layout, finite=True).copy()
        known = self._reuse(theta, state)
        if known is None:
            pass_over = self._over_rows if state.layout.n_edges else self._without_edges
            known = Known(state.layout, theta, *pass_over(theta, state.layout), _Pairs(theta))
        after = ShardState(state.layout, known)
        return Evaluation(float(known.losses.sum()), known.gradient, after, True)

    def edge_gradients(self, theta: Floats, state: ShardState, edges: Edges) -> PairTables:
        """Return the loss's gradient with respect to the tables of any pairs.

        A pass over the rows, until so many pairs were asked for at the same parameters that all
        of them are worked out at once.
        """
        edges = check_edges(edges, len(self._schema))
        shapes = self._schema.n_states[edges]
        offsets = table_offsets(shapes)
        check_size(int(offsets[-1]))
        theta = check_theta(theta, state.layout, finite=True).copy()
        pairs = _Pairs(theta) if state.known is None else state.known.pairs
        if not np.array_equal(theta, pairs.theta):
            pairs = _Pairs(theta)
        pairs.asked += len(edges)
        ask = partial(self.shards.edge_sums, theta, state.layout, precision=self.precision)
        if pairs.whole is None and self._worth_all(pairs.asked):
            nodes = np.zeros(int(self._every.node_offset[-1]))
            pairs.whole = np.concatenate((nodes, ask(self._every.edges)))
        values = ask(edges) if pairs.whole is None else self._look_up(pairs.whole, edges, offsets)
        return PairTables(edges, shapes, values / self._total, offsets)

    def _reuse(self, theta: Floats, state: ShardState) -> Known | None:
        """Return what is known of the same model, in the layout of `state`; None if too little."""
        known, layout = state.known, state.layout
        if known is None or not _same_model(theta, layout, known):
            return None
        new = layout.edges[~_contains(known.layout, layout.edges)]
        gradient = layout.carry(known.gradient, known.layout)
        whole = known.pairs.whole
        if len(new):
            if whole is None:
                return None
            added = Layout(layout.states, new)
            tables = self._look_up(whole, new, table_offsets(layout.states[new])) / self._total
            nodes = np.zeros(int(added.node_offset[-1]))
            gradient += layout.carry(np.concatenate((nodes, tables)), added)
        pairs = _Pairs(theta)
        pairs.asked, pairs.whole = known.pairs.asked, whole
        return Known(layout, theta, known.losses, gradient, pairs)

    def _over_rows(self, theta: Floats, layout: Layout) -> tuple[Floats, Floats]:
        """Return losses and gradient; the last are kept, for a run that forgets all it knows."""
        last = self._last
        if (
            last is None
            or not np.array_equal(last.theta, theta)
            or not np.array_equal(last.layout.edges, layout.edges)
        ):
            sums = self.shards.evaluate(theta, layout, self.precision)
            losses, gradient = sums.losses / self._total, sums.gradient / self._total
            last = self._last = Known(layout, theta, losses, gradient, _Pairs(theta))
        return last.losses, last.gradient

    def _without_edges(self, theta: Floats, layout: Layout) -> tuple[Floats, Floats]:
        """Return losses and gradient of a model of independent variables."""
        starts, states = layout.node_offset[:-1], layout.states
        p = self._margins / self._total
        known = np.add.reduceat(p, starts)
        chance = np.exp(theta - np.repeat(np.maximum.reduceat(theta, starts), states))
        total = np.add.reduceat(chance, starts)
        log_chance = theta - np.repeat(np.maximum.reduceat(theta, starts) + np.log(total), states)
        losses = -np.add.reduceat(p * log_chance, starts)
        return losses, np.repeat(known / total, states) * chance - p

    def _worth_all(self, asked: int) -> bool:
        states = self._schema.n_states
        n = len(states)
        cells = (float(states.sum()) ** 2 - float((states**2).sum())) / 2
        return 8 * cells <= ALL_PAIRS_BYTES and asked >= _MANY * n * (n - 1) / 2

    def _look_up(self, whole: Floats, edges: Edges, offsets: NDArray[np.int64]) -> Floats:
        return take_tables(whole, self._every, edges, offsets)

    @cached_property
    def _every(self) -> Layout:
        """Where the table of any pair stands among those of all: asked for batch by batch."""
        return Layout(self._schema.n_states, all_pairs(len(self._schema)))


def _same_model(theta: Floats, layout: Layout, known: Known) -> bool:
    """Whether parameters differ from the known ones by edges of zeros at most."""
    return np.array_equal(layout.carry(known.theta, known.layout), theta) and np.array_equal(
        known.layout.carry(theta, layout), known.theta
    )


def _contains(layout: Layout, edges: Edges) -> NDArray[np.bool_]:
    n = layout.n_variables
    return np.isin(pair_ids(edges, n), pair_ids(layout.edges, n))
