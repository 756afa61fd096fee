"""Counts of a table that is read in blocks of rows, from disk or memory.

Each block is counted by a :class:`~edgegraft.counts.local.LocalCounts`; whole counts are integers,
and sums of weights are added in the order of the blocks, so neither depends on the threads.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core.checks import check_edges, check_weights
from edgegraft.core.tables import FlatTables, PairTables, table_offsets
from edgegraft.core.threads import resolve_jobs, run_in_order
from edgegraft.counts.local import LocalCounts
from edgegraft.counts.source import all_pair_blocks, check_size
from edgegraft.table import Schema
from edgegraft.table.blocks import RowBlocks


class BlockCounts:
    """Exact pair counts of a table that need not fit in memory.

    Parameters
    ----------
    blocks : RowBlocks
    n_jobs : int, optional
        Threads, each of which holds one block; -1 for all cores.
    weights : array of float, shape (n_rows,), optional
        Non-negative row weights. Counts are then sums of weights (float64).

    Examples
    --------
    >>> from edgegraft.table import PackedTable
    >>> from edgegraft.table.blocks import TableBlocks
    >>> table = PackedTable.from_codes([[0, 2], [1, 1], [1, -1], [1, 1]] * 200)
    >>> BlockCounts(TableBlocks(table, rows=512)).pairs([(0, 1)])[0]
    array([[  0,   0, 200],
           [  0, 400,   0]])
    """

    def __init__(
        self, blocks: RowBlocks, n_jobs: int | None = None, weights: ArrayLike | None = None
    ) -> None:
        self.blocks = blocks
        self.n_jobs = resolve_jobs(n_jobs)
        self.weights = None if weights is None else check_weights(weights, blocks.n_rows)
        self._margins: FlatTables | None = None

    @property
    def schema(self) -> Schema:
        """Names and categories of the variables."""
        return self.blocks.schema

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.blocks.n_rows

    def margins(self) -> FlatTables:
        """Return the counts of every state of every variable (computed once)."""
        if self._margins is None:
            offsets = np.concatenate(([0], np.cumsum(self.schema.n_states)))
            values = self._zeros(int(offsets[-1]))
            for part in run_in_order(
                lambda k: self._counts(k).margins().values, self._numbers(), self.n_jobs
            ):
                values += part
            values.flags.writeable = False
            self._margins = FlatTables(values, offsets)
        return self._margins

    def pairs(self, edges: ArrayLike) -> PairTables:
        """Return the tables of a batch of edges, in the order and orientation asked for."""
        edges = check_edges(edges, len(self.schema))
        shapes = np.take(self.schema.n_states, edges)
        offsets = table_offsets(shapes)
        check_size(int(offsets[-1]))
        values = self._zeros(int(offsets[-1]))
        if len(edges):
            for part in run_in_order(
                lambda k: self._counts(k).pairs(edges).values, self._numbers(), self.n_jobs
            ):
                values += part
        return PairTables(edges, shapes, values, offsets)

    def all_blocks(self, max_bytes: int = 1 << 26) -> Iterator[PairTables]:
        """Yield the tables of all pairs ``i < j``, at most `max_bytes` at a time."""
        for edges in all_pair_blocks(self.schema.n_states, max_bytes):
            yield self.pairs(edges)

    def _numbers(self) -> range:
        return range(len(self.blocks.starts) - 1)

    def _zeros(self, length: int) -> np.ndarray:
        return np.zeros(length, np.int64 if self.weights is None else np.float64)

    def _counts(self, k: int) -> LocalCounts:
        first, stop = self.blocks.starts[k : k + 2]
        weights = None if self.weights is None else self.weights[first:stop]
        return LocalCounts(self.blocks.block(k), 1, weights)
