"""Rows that stay with the workers of a Dask cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgegraft.contrib.dask.cluster import ClusterRows
    from edgegraft.ingest.options import ReadOptions
    from edgegraft.table import Schema


def open_rows(X: Any, schema: Schema | None, options: ReadOptions) -> ClusterRows:
    """Return the rows of a Dask frame on the current client's cluster; `ClusterRows` as they are.

    What :func:`edgegraft.ingest.rows.open_rows` calls for them.
    """
    from edgegraft.contrib.dask.cluster import ClusterRows, current_client
    from edgegraft.errors import DataError

    if not isinstance(X, ClusterRows):
        return ClusterRows(current_client(), X, schema=schema, **options.of_cells())
    if schema is not None and schema != X.schema:
        raise DataError(
            "schema= differs from that of the rows on the cluster: pass it to ClusterRows instead"
        )
    return X
