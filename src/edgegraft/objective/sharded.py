"""Rows that lie in shards, blocks on disk or partitions on a cluster, and what is summed of them.

Everything that learning needs of the rows is a sum over rows. A shard works out its sums; the
source of the shards adds them in the order of the shards, in double precision. Where shards end
does not depend on threads, workers or machines, so neither does the result, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from edgegraft.core import Layout
from edgegraft.core.tables import table_offsets
from edgegraft.core.types import Edges, Floats
from edgegraft.counts.pair_counts import PairCounts
from edgegraft.objective.residuals import Job, do_jobs, gradient_of, lay_out, nothing_kept
from edgegraft.objective.row_choice import draw_rows
from edgegraft.objective.scoring import Residuals, score_tables
from edgegraft.objective.wiring import route
from edgegraft.table import PackedTable, Schema

Precision = Literal["single", "double"]

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
        self._columns = lay_out(table, None, whole, dtype)

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
