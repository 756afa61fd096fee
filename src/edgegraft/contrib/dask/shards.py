"""Shards of rows on the workers of a cluster: each partition is one.

Workers return the sums of every partition by itself, and they are added here in the order of the
partitions. So the pseudolikelihood is the same to the last bit for any number of workers, and as
:class:`~edgegraft.objective.local_shards.LocalShards` has it of the same partitions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgegraft.contrib.dask.counts import ClusterCounts
from edgegraft.contrib.dask.worker import At, Held
from edgegraft.core import Layout
from edgegraft.core.types import Edges, Floats
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
from edgegraft.table import PackedTable, Schema


class ClusterShards:
    """The partitions of a cluster, as far as sums over their rows are concerned.

    Parameters
    ----------
    counts : ClusterCounts
        Its partitions; workers keep their codes beside the bit planes, a byte a cell.
    """

    def __init__(self, counts: ClusterCounts) -> None:
        self.counts = counts

    @property
    def schema(self) -> Schema:
        """Names and categories of the variables."""
        return self.counts.schema

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.counts.n_rows

    @property
    def weight(self) -> float:
        """Weight of all rows: their number."""
        return float(self.counts.n_rows)

    def evaluate(self, theta: Floats, layout: Layout, precision: Precision = "double") -> Sums:
        """Return the sums of all partitions, added in their order; one round trip."""
        ask = self.counts.partitions.each
        return add_sums(ask(_evaluate, theta, layout.edges, precision), layout)

    def edge_sums(
        self, theta: Floats, layout: Layout, edges: Edges, precision: Precision = "double"
    ) -> Floats:
        """Return the summed gradients of pairs, added in the order of the partitions."""
        if not len(edges):
            return np.zeros(0)
        ask = self.counts.partitions.each
        return add_tables(ask(_edge_sums, theta, layout.edges, edges, precision), layout, edges)

    def sample(self, n_rows: int, rng: np.random.Generator) -> Sample:
        """Return about `n_rows` random rows, drawn in small runs from every partition."""
        share = min(1.0, n_rows / self.n_rows)
        seeds = rng.integers(0, 2**63, self.counts.n_partitions)
        drawn = self.counts.partitions.each(_draw, share, seeds)
        return join_sample(self.schema, drawn)


def _shard(held: Held, precision: Precision) -> TableShard:
    """Return a partition as the kernels read it; worked out once, then kept beside its planes."""

    def lay_out(table: PackedTable) -> TableShard:
        return TableShard(table, None, precision)

    shard: TableShard = held.derive(("shard", precision), lay_out)
    return shard


def _layout(held: Held, edges: Edges) -> Layout:
    return Layout(held.some_table.schema.n_states, edges)


def _evaluate(held: Held, at: At, theta: Floats, edges: Edges, precision: Precision) -> Sums:
    return _shard(held, precision).evaluate(theta, _layout(held, edges))


def _edge_sums(
    held: Held, at: At, theta: Floats, active: Edges, edges: Edges, precision: Precision
) -> Floats:
    return _shard(held, precision).edge_sums(theta, _layout(held, active), edges)


def _draw(held: Held, at: At, share: float, seeds: NDArray[np.int64]) -> Drawn:
    return draw_shard(held.some_table, None, share, int(seeds[at.number]))
