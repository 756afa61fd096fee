"""Shards of rows on this machine: blocks of a table, read as they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core import Layout
from edgegraft.core.threads import run_in_order
from edgegraft.core.types import Edges, Floats
from edgegraft.counts import PairCounts
from edgegraft.objective.sharded import (
    Drawn,
    Precision,
    Sample,
    Sums,
    TableShard,
    add_sums,
    add_tables,
    draw_shard,
    join_sample,
)
from edgegraft.table import Schema
from edgegraft.table.blocks import RowBlocks
from edgegraft.table.rows import StoredRows

Result = TypeVar("Result")


class LocalShards:
    """The rows of a table in blocks, worked on by threads.

    Parameters
    ----------
    blocks : RowBlocks
        A store on disk, or the blocks of a table.
    n_jobs : int, optional
        Threads, each of which holds one block; -1 for all cores. Results do not depend on it.
    weights : array of float, shape (n_rows,), optional
        Non-negative row weights.
    max_bytes : int, default 256 MiB
        Memory for blocks that are kept decoded from one pass to the next; the others are read
        again.
    """

    def __init__(
        self,
        blocks: RowBlocks,
        *,
        n_jobs: int | None = None,
        weights: ArrayLike | None = None,
        max_bytes: int = 1 << 28,
    ) -> None:
        self.blocks = blocks
        rows = StoredRows(blocks, weights, n_jobs, max_bytes=0)
        self.counts = PairCounts(rows)
        self.n_jobs, self.weight, self._row_weights = rows.n_jobs, rows.weight, rows.weights
        self._room = max_bytes
        self._kept: dict[tuple[int, Precision], TableShard] = {}
        self._lock = Lock()

    @property
    def schema(self) -> Schema:
        """Names and categories of the variables."""
        return self.blocks.schema

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.blocks.n_rows

    def evaluate(self, theta: Floats, layout: Layout, precision: Precision = "double") -> Sums:
        """Return the sums of all shards, added in their order."""
        return add_sums(self._each(lambda shard: shard.evaluate(theta, layout), precision), layout)

    def edge_sums(
        self, theta: Floats, layout: Layout, edges: Edges, precision: Precision = "double"
    ) -> Floats:
        """Return the summed gradients of pairs, added in the order of the shards."""
        if not len(edges):
            return np.zeros(0)
        parts = self._each(lambda shard: shard.edge_sums(theta, layout, edges), precision)
        return add_tables(parts, layout, edges)

    def sample(self, n_rows: int, rng: np.random.Generator) -> Sample:
        """Return about `n_rows` random rows, drawn in small runs from every shard."""
        share = min(1.0, n_rows / self.n_rows)
        seeds = rng.integers(0, 2**63, len(self.blocks.starts) - 1)

        def draw(k: int) -> Drawn:
            return draw_shard(self.blocks.block(k), self._weights(k), share, int(seeds[k]))

        return join_sample(self.schema, run_in_order(draw, range(len(seeds)), self.n_jobs))

    def _each(self, task: Callable[[TableShard], Result], precision: Precision) -> Iterator[Result]:
        """Yield what `task` returns for every shard, in order."""
        numbers = range(len(self.blocks.starts) - 1)
        return run_in_order(lambda k: task(self._shard(k, precision)), numbers, self.n_jobs)

    def _shard(self, k: int, precision: Precision) -> TableShard:
        if (k, precision) in self._kept:
            return self._kept[k, precision]
        shard = TableShard(self.blocks.block(k), self._weights(k), precision)
        with self._lock:
            # The first come stay: of blocks read in turn, the least recently used is the next.
            if shard.nbytes <= self._room:
                self._room -= shard.nbytes
                self._kept[k, precision] = shard
        return shard

    def _weights(self, k: int) -> Floats | None:
        first, stop = self.blocks.starts[k : k + 2]
        return None if self._row_weights is None else self._row_weights[first:stop]
