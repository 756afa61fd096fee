"""Rows that stay with the workers of a Dask cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgegraft.contrib.dask.shards import ClusterShards
    from edgegraft.ingest.options import ReadOptions
    from edgegraft.table import Schema


def open_rows(X: Any, schema: Schema | None, options: ReadOptions) -> ClusterShards:
    """Return the rows of a Dask frame or of `ClusterCounts`, which stay where they are.

    What :func:`edgegraft.ingest.rows.open_rows` calls for them.
    """
    from edgegraft.contrib.dask.counts import counts_of
    from edgegraft.contrib.dask.shards import ClusterShards

    return ClusterShards(counts_of(X, schema, options))
