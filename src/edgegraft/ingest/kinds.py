"""What kind of table a caller holds: decided here, and nowhere else.

pandas and polars are optional: their frames are recognised by the module of their type, and the
libraries are never imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from os import PathLike
from typing import Any

import numpy as np

from edgegraft import plugins


class TableKind(Enum):
    """A kind of table that can be read."""

    PACKED = "packed"  # a PackedTable
    PATH = "path"  # of a file, a folder or a pattern
    ARRAY = "array"  # NumPy's, whose columns have no names
    RECORDS = "records"  # a structured array of NumPy
    COLUMNS = "dict"  # a mapping of names to columns
    PANDAS = "pandas"
    POLARS = "polars"
    ARROW = "pyarrow"  # a Table or RecordBatch, in memory
    STREAM = "stream"  # Arrow batches that come once and may be more than fit in memory
    FOREIGN = "foreign"  # in-memory tables of other libraries that hand out Arrow data
    REMOTE = "remote"  # `Rows`, or a frame of a library that a plug-in keeps elsewhere
    OTHER = "other"  # lists, and whatever else may be made an array


_FRAMES = {
    ("pandas", "DataFrame"): TableKind.PANDAS,
    ("polars", "DataFrame"): TableKind.POLARS,
    ("pyarrow", "Table"): TableKind.ARROW,
    ("pyarrow", "RecordBatch"): TableKind.ARROW,
}
_IN_MEMORY = ("Table", "RecordBatch", "DataFrame", "Series")


def library_of(X: Any) -> str:
    """Return the package that the type of an object comes from."""
    return type(X).__module__.partition(".")[0]


def table_kind(X: Any) -> TableKind:
    """Return the kind of a table; `OTHER` if it is not one that can be read as it is.

    >>> table_kind(np.zeros((2, 2))), table_kind("rows.csv"), table_kind([[1, 2], [3, 4]])
    (<TableKind.ARRAY: 'array'>, <TableKind.PATH: 'path'>, <TableKind.OTHER: 'other'>)
    """
    if _is_packed(X):
        return TableKind.PACKED
    if isinstance(X, str | PathLike):
        return TableKind.PATH
    if isinstance(X, np.ndarray):
        return TableKind.RECORDS if X.dtype.names else TableKind.ARRAY
    if isinstance(X, Mapping):
        return TableKind.COLUMNS
    name = type(X).__name__
    known = _FRAMES.get((library_of(X), name))
    if known is not None:
        return known
    if _is_rows(X) or library_of(X) in plugins.names("rows"):
        return TableKind.REMOTE
    if hasattr(X, "__arrow_c_stream__"):
        return TableKind.FOREIGN if name in _IN_MEMORY else TableKind.STREAM
    return TableKind.FOREIGN if hasattr(X, "__arrow_c_array__") else TableKind.OTHER


def _is_packed(X: Any) -> bool:
    from edgegraft.table.packed import PackedTable  # whose kernels are slow to load

    return isinstance(X, PackedTable)


def _is_rows(X: Any) -> bool:
    from edgegraft.table.blocks import Rows

    return isinstance(X, Rows)


def column_labels(X: Any) -> list[Any] | None:
    """Return the labels of a table's columns; None if they are positions, or not known unread."""
    if _is_packed(X):
        return list(X.schema.names)
    if isinstance(X, Mapping):
        return list(X)
    if isinstance(X, np.ndarray):
        return list(X.dtype.names) if X.dtype.names else None
    if library_of(X) == "pyarrow":
        return list(X.schema.names)
    return list(X.columns) if hasattr(X, "columns") else None
