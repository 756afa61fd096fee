"""Frames, arrays and columns of any library, as sources of batches."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from os import fspath
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from edgegraft.errors import DataError, DataTypeError
from edgegraft.ingest.files import open_path
from edgegraft.ingest.kinds import TableKind, library_of, table_kind
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.sources import ArraySource, Source, StreamSource, TableSource, check_names

_KNOWN = (
    "a NumPy array, a pandas or polars DataFrame, a pyarrow Table, RecordBatch or "
    "RecordBatchReader, a dict of columns, or the path of a file"
)


def open_source(data: Any, options: ReadOptions) -> Source:
    """Return a source for any of the accepted inputs."""
    kind = table_kind(data)
    if kind is TableKind.PATH:
        return open_path(Path(fspath(data)), options)
    if kind in (TableKind.ARRAY, TableKind.RECORDS):
        return _from_array(data, options)
    if kind is TableKind.COLUMNS:
        return _from_columns(list(data), list(data.values()), options)
    if kind is TableKind.PANDAS:
        series = [data.iloc[:, i] for i in range(data.shape[1])]
        return _from_columns(list(data.columns), series, options)
    if kind is TableKind.POLARS:
        return _from_columns(data.columns, data.get_columns(), options)
    if kind is TableKind.ARROW:
        table = data if isinstance(data, pa.Table) else pa.Table.from_batches([data])
        return TableSource(table.column_names, table.select, options.batch_rows)
    if type(data).__name__ == "Series":
        raise DataTypeError(f"a {library_of(data)} Series is one column: pass a DataFrame")
    if hasattr(data, "__arrow_c_stream__"):
        return StreamSource(pa.RecordBatchReader.from_stream(data), options.batch_rows)
    if hasattr(data, "__arrow_c_array__"):
        return open_source(pa.record_batch(data), options)
    library, name = library_of(data), type(data).__name__
    if (library, name) == ("polars", "LazyFrame"):
        raise DataTypeError("a polars LazyFrame has no rows yet: pass frame.collect()")
    raise DataTypeError(f"cannot read a table from {library}.{name}: pass {_KNOWN}")


def _from_columns(
    labels: Sequence[Any], columns: Sequence[Any], options: ReadOptions, named: bool = True
) -> Source:
    """Return the source of columns that are turned into Arrow one after another."""
    names = [_column_name(label) for label in labels]
    check_names(names)
    at = dict(zip(names, columns, strict=True))

    def convert(chosen: list[str]) -> pa.Table:
        arrays = {name: to_arrow(name, at[name]) for name in chosen}
        low = min(chosen, key=lambda name: len(arrays[name]))
        high = max(chosen, key=lambda name: len(arrays[name]))
        if len(arrays[low]) < len(arrays[high]):
            raise DataError(
                f"columns differ in length: '{low}' has {len(arrays[low])} rows and '{high}' has "
                f"{len(arrays[high])}"
            )
        return pa.table(arrays)

    return TableSource(names, convert, options.batch_rows, named)


def _column_name(label: Any) -> str:
    """Return a column label as a name: text as it is, whole numbers as their digits."""
    if isinstance(label, str | int | np.integer) and not isinstance(label, bool):
        return str(label)
    raise DataTypeError(
        f"the column name {label!r} is a {type(label).__name__}: names must be text or whole "
        "numbers; rename the columns, for example frame.columns = frame.columns.map(str)"
    )


def _from_array(array: np.ndarray[Any, Any], options: ReadOptions) -> Source:
    if array.dtype.names:
        fields = list(array.dtype.names)
        return _from_columns(fields, [array[name] for name in fields], options)
    if array.ndim != 2:
        remedy = "array.reshape(-1, 1) makes it one column" if array.ndim == 1 else "flatten it"
        raise DataError(f"a table has two dimensions, this array has {array.ndim}: {remedy}")
    if array.dtype.kind == "c":
        raise DataTypeError("complex numbers have no order and no categories: split their parts")
    if array.dtype.kind in "iubf" and not isinstance(array, np.ma.MaskedArray):
        return ArraySource(array, options.batch_rows)
    names = [f"x{i}" for i in range(array.shape[1])]
    return _from_columns(names, list(array.T), options, named=False)


def to_arrow(name: str, column: Any) -> pa.Array | pa.ChunkedArray:
    """Return a pandas or polars Series, NumPy array, Arrow array or list as an Arrow array.

    If the cells have no common type, the error names two of them and their rows.
    """
    column = _readable(name, column)
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    try:
        if isinstance(column, np.ma.MaskedArray):
            return pa.array(column.data, mask=np.ma.getmaskarray(column), from_pandas=True)
        return pa.array(column, from_pandas=True)
    except (pa.ArrowException, OverflowError) as error:
        raise _explain(name, column, error) from error


def _from_polars(name: str, column: Any) -> pa.Array:
    polars = sys.modules["polars"]
    if column.dtype == polars.Object:
        raise DataTypeError(
            f"column '{name}' has the polars type Object: cast it to text, numbers or dates"
        )
    if column.dtype == polars.Categorical:
        # Its codes follow the process-wide order of first appearance, which says nothing about
        # this table; as text it is ordered like any other column.
        column = column.cast(polars.String)
    array = column.to_arrow(compat_level=polars.CompatLevel.oldest())
    if column.dtype == polars.Enum:  # whose order means something
        array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary, ordered=True)
    return array


def _readable(name: str, column: Any) -> Any:
    """Return the column in a form that Arrow converts without losing its meaning."""
    if library_of(column) == "polars":
        return _from_polars(name, column)
    dtype: Any = getattr(column, "dtype", None)
    kind = type(dtype).__name__
    if kind == "SparseDtype":
        return column.sparse.to_dense()
    if kind in ("IntervalDtype", "PeriodDtype"):
        return column.astype("string")
    if kind == "CategoricalDtype" and type(dtype.categories.dtype).__name__ in (
        "IntervalDtype",
        "PeriodDtype",
    ):
        return column.cat.rename_categories(dtype.categories.astype(str))
    if isinstance(column, np.ndarray):
        if column.ndim != 1:
            raise DataTypeError(
                f"column '{name}' has {column.ndim} dimensions where a column has 1"
            )
        if column.dtype.kind == "T":  # NumPy's variable-width text
            return column.astype(object)
        if column.dtype.kind == "c":
            raise DataTypeError(f"column '{name}' holds complex numbers: split their parts")
    if isinstance(column, str | bytes) or not hasattr(column, "__len__"):
        raise DataTypeError(f"column '{name}' is a {type(column).__name__}, not a column of cells")
    return column


def _explain(name: str, column: Any, error: Exception) -> DataTypeError:
    """Name two cells that do not go together."""
    seen: dict[str, tuple[int, Any]] = {}
    for row, cell in enumerate(column):
        # By name: pandas need not be installed, and its NA has no truth value.
        gap = cell is None or type(cell).__name__ in ("NAType", "NaTType")
        if gap or (isinstance(cell, float) and cell != cell):
            continue
        seen.setdefault(_family(cell), (row, cell))
        if len(seen) == 2:
            (first, (row_a, cell_a)), (second, (row_b, cell_b)) = seen.items()
            return DataTypeError(
                f"column '{name}' mixes {first} and {second}: row {row_a} holds {cell_a!r}, row "
                f"{row_b} holds {cell_b!r} (rows counted from 0); make them one type, for example "
                "with .astype(str)"
            )
    found = next(iter(seen), "nothing")
    return DataTypeError(f"column '{name}' holds {found}, which cannot be encoded: {error}")


def _family(cell: Any) -> str:
    if isinstance(cell, bool | np.bool_):
        return "bool"
    if isinstance(cell, int | float | np.integer | np.floating):
        return "numbers"
    return type(cell).__name__
