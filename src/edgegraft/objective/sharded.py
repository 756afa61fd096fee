"""The pseudolikelihood of rows that lie in shards: blocks on disk, or partitions on a cluster.

Everything that learning needs of the rows is a sum over rows. A shard works out its sums; the
source of the shards adds them in the order of the shards, in double precision. Where shards end
does not depend on threads, workers or machines, so neither does the result, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from edgegraft.data import PackedTable, Schema
from edgegraft.errors import DataError, ModelError
from edgegraft.graph import Layout
from edgegraft.objective.composite import CompositeLoss, check_parameters
from edgegraft.objective.objective import Evaluation, Floats
from edgegraft.objective.residuals import Job, do_jobs, gradient_of, lay_out, nothing_kept
from edgegraft.objective.row_choice import draw_rows
from edgegraft.objective.scoring import Residuals, score_tables, take_tables
from edgegraft.objective.wiring import route
from edgegraft.stats.source import PairCounts, check_edges, check_size
from edgegraft.stats.tables import Edges, PairTables, table_offsets

Precision = Literal["single", "double"]

#: Tables of all pairs are worked out in one pass where they take no more, once a quarter of the
#: pairs has been asked for at the same parameters.
ALL_PAIRS_BYTES = 1 << 27
_MANY = 0.25
_RESIDUAL_BYTES = 1 << 27  # of one shard, while its pairs are summed


class Sums(NamedTuple):
    """Sums over the rows of a shard, or of all shards; not divided by their weight."""

    losses: Floats  # (n,) of each variable's conditional
    gradient: Floats  # laid out like the parameters


class Sample(NamedTuple):
    """Some rows of all shards, in memory."""

    table: PackedTable
    weights: Floats | None  # None where every row weighs 1


class Drawn(NamedTuple):
    """Rows drawn from one shard."""

    codes: NDArray[np.signedinteger]  # (rows, n), -1 for a missing cell
    weights: Floats | None


class RowShard(Protocol):
    """One block of rows somewhere."""

    @property
    def n_rows(self) -> float:
        """The weight of its rows."""
        ...

    def evaluate(self, theta: Floats, layout: Layout) -> Sums:
        """Return the losses of its rows and their gradient, summed."""
        ...

    def edge_sums(self, theta: Floats, layout: Layout, edges: Edges) -> Floats:
        """Return the summed gradients with respect to the tables of pairs, one after another."""
        ...


class Shards(Protocol):
    """All rows, as far as sums over them are concerned."""

    @property
    def schema(self) -> Schema:
        """Names and categories of the variables."""
        ...

    @property
    def counts(self) -> PairCounts:
        """Exact counts of the same rows; its margins are those of the loss."""
        ...

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def weight(self) -> float:
        """Weight of all rows; their number where they have none of their own."""
        ...

    def evaluate(self, theta: Floats, layout: Layout, precision: Precision = "double") -> Sums:
        """Return the sums of all shards, added in their order."""
        ...

    def edge_sums(
        self, theta: Floats, layout: Layout, edges: Edges, precision: Precision = "double"
    ) -> Floats:
        """Return the summed gradients of pairs, added in the order of the shards."""
        ...

    def sample(self, n_rows: int, rng: np.random.Generator) -> Sample:
        """Return about `n_rows` random rows, drawn in small runs from every shard."""
        ...


class TableShard:
    """A block of rows in memory.

    Parameters
    ----------
    table : PackedTable
    weights : array of float, shape (table.n_rows,), optional
    precision : {"double", "single"}
        Of logits and probabilities; sums are double in both.

    Examples
    --------
    >>> shard = TableShard(PackedTable.from_codes([[0, 0], [1, 1], [1, 1], [0, 1]]))
    >>> shard.edge_sums(np.zeros(4), Layout([2, 2]), np.array([[0, 1]]))
    array([-0.5,  0.5,  1.5, -1.5])
    """

    def __init__(
        self, table: PackedTable, weights: Floats | None = None, precision: Precision = "double"
    ) -> None:
        whole = np.ones(table.n_rows) if weights is None else weights
        dtype = np.float32 if precision == "single" else np.float64
        self.n_rows = float(whole.sum())
        self._columns = lay_out(table, np.arange(table.n_rows), whole, dtype)

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        return int(self._columns.codes.nbytes + self._columns.weights.nbytes)

    def evaluate(self, theta: Floats, layout: Layout) -> Sums:
        """Return the losses of its rows and their gradient, summed."""
        dtype = self._columns.weights.dtype
        jobs = [
            Job(wiring, wiring, np.arange(wiring.n_bundles), nothing_kept(wiring.n_bundles, dtype))
            for wiring in route(layout, self._columns)
        ]
        sums = Sums(np.zeros(layout.n_variables), np.zeros(layout.n_parameters))
        for job, result in zip(jobs, do_jobs(self._columns, layout, theta, jobs, 1), strict=True):
            gradient_of(job, result, layout, -1.0, sums.gradient)
            np.add(sums.losses, result.losses, out=sums.losses)
        return sums

    def edge_sums(self, theta: Floats, layout: Layout, edges: Edges) -> Floats:
        """Return the summed gradients with respect to the tables of pairs, one after another."""
        offsets = table_offsets(layout.states[edges])
        residuals = Residuals(theta, self._columns, _RESIDUAL_BYTES)
        return -score_tables(residuals, layout, edges, offsets, 1)


def add_sums(parts: Iterable[Sums], layout: Layout) -> Sums:
    """Return the sums of all shards, added in the order in which they come."""
    total = Sums(np.zeros(layout.n_variables), np.zeros(layout.n_parameters))
    for part in parts:
        np.add(total.losses, part.losses, out=total.losses)
        np.add(total.gradient, part.gradient, out=total.gradient)
    return total


def add_tables(parts: Iterable[Floats], layout: Layout, edges: Edges) -> Floats:
    """Return the tables of pairs of all shards, added in the order in which they come."""
    total = np.zeros(int(table_offsets(layout.states[edges])[-1]))
    for part in parts:
        total += part
    return total


def draw_shard(table: PackedTable, weights: Floats | None, share: float, seed: int) -> Drawn:
    """Return about ``share`` of a shard's rows, in small runs of neighbours."""
    rows = draw_rows(table.n_rows, share, np.random.default_rng(seed))
    dtype = np.int16 if table.schema.n_states.max() <= np.iinfo(np.int16).max else np.int32
    codes = np.empty((len(rows), table.n_variables), dtype, order="F")
    for i in range(table.n_variables):
        codes[:, i] = table.codes([i])[rows, 0]
    return Drawn(codes, None if weights is None else weights[rows])


def join_sample(schema: Schema, parts: Iterable[Drawn]) -> Sample:
    """Return the rows drawn from all shards, in their order, as one table."""
    drawn = list(parts)
    table = PackedTable.from_codes(np.concatenate([part.codes for part in drawn]), schema)
    weights = [part.weights for part in drawn if part.weights is not None]
    return Sample(table, np.concatenate(weights) if weights else None)


class ShardState(NamedTuple):
    """What an evaluation hands to the next one."""

    layout: Layout
    losses: Floats | None = None  # mean loss of a row for each variable
    pairs: _Pairs | None = None


class _Pairs:
    """Gradients of pairs at one point: those asked for, and all of them once many were."""

    def __init__(self, theta: Floats) -> None:
        self.theta = theta
        self.asked = 0
        self.whole: Floats | None = None  # tables of all pairs i < j, one after another


class ShardedPseudolikelihood(CompositeLoss):
    """Mean negative log-pseudolikelihood of the rows of all shards.

    The same value and gradients as
    :class:`~edgegraft.objective.pseudolikelihood.Pseudolikelihood`, up to rounding.

    Parameters
    ----------
    shards : Shards
    precision : {"double", "single"}, default "double"
        Of logits and probabilities; sums over rows are double in both.

    Examples
    --------
    >>> from edgegraft.data.blocks import TableBlocks
    >>> from edgegraft.objective.local_shards import LocalShards
    >>> table = PackedTable.from_codes([[0, 0], [1, 1], [1, 1], [0, 1]] * 300)
    >>> objective = ShardedPseudolikelihood(LocalShards(TableBlocks(table, rows=512)))
    >>> layout = Layout([2, 2], [(0, 1)])
    >>> round(objective.evaluate(objective.start(layout), objective.init(layout)).value, 4)
    1.2555
    """

    def __init__(self, shards: Shards, *, precision: Precision = "double") -> None:
        if precision not in ("single", "double"):
            raise ValueError(f"precision must be 'single' or 'double', found {precision!r}")
        self.shards = shards
        self.precision: Precision = precision
        weight = float(shards.weight)
        if not weight > 0:
            raise DataError("the rows have no weight: no row counts")
        margins = shards.counts.margins().values.astype(np.float64)
        super().__init__(shards.schema, margins, weight, shards.n_rows)

    def init(self, layout: Layout) -> ShardState:
        """Return a state for a graph."""
        if not np.array_equal(layout.states, self._schema.n_states):
            raise ModelError("the layout's numbers of states are not those of the table")
        return ShardState(layout)

    def grow(self, state: ShardState, layout: Layout) -> ShardState:
        """Return a state for another graph over the same variables; nothing needs keeping."""
        return state if layout is state.layout else self.init(layout)

    def evaluate(self, theta: Floats, state: ShardState) -> Evaluation:
        """Return the loss and its gradient at `theta`: one pass over the rows."""
        theta = check_parameters(theta, state.layout)
        sums = self.shards.evaluate(theta, state.layout, self.precision)
        losses = sums.losses / self._total
        after = ShardState(state.layout, losses, _Pairs(theta))
        return Evaluation(float(losses.sum()), sums.gradient / self._total, after, True)

    def edge_gradients(self, theta: Floats, state: ShardState, edges: Edges) -> PairTables:
        """Return the loss's gradient with respect to the tables of any pairs.

        A pass over the rows, until so many pairs were asked for at the same parameters that all
        of them are worked out at once.
        """
        edges = check_edges(edges, self._schema)
        shapes = self._schema.n_states[edges]
        offsets = table_offsets(shapes)
        check_size(int(offsets[-1]))
        theta = check_parameters(theta, state.layout)
        known = state.pairs
        if known is None or not np.array_equal(theta, known.theta):
            known = _Pairs(theta)
        known.asked += len(edges)
        ask = partial(self.shards.edge_sums, theta, state.layout, precision=self.precision)
        if known.whole is None and self._worth_all(known.asked):
            known.whole = ask(_all_pairs(len(self._schema)))
        values = ask(edges) if known.whole is None else self._look_up(known.whole, edges, offsets)
        return PairTables(edges, shapes, values / self._total, offsets)

    def _worth_all(self, asked: int) -> bool:
        states = self._schema.n_states
        n = len(states)
        cells = (float(states.sum()) ** 2 - float((states**2).sum())) / 2
        return 8 * cells <= ALL_PAIRS_BYTES and asked >= _MANY * n * (n - 1) / 2

    def _look_up(self, whole: Floats, edges: Edges, offsets: NDArray[np.int64]) -> Floats:
        every = Layout(self._schema.n_states, _all_pairs(len(self._schema)))
        nodes = np.zeros(int(every.node_offset[-1]))
        return take_tables(np.concatenate((nodes, whole)), every, edges, offsets)


def _all_pairs(n: int) -> Edges:
    return np.stack(np.triu_indices(n, 1), axis=1).astype(np.int64)
