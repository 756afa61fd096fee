"""One in-memory column, of whatever type, as an Arrow array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from edgegraft.errors import DataTypeError

__all__ = ["to_arrow"]


def to_arrow(name: str, column: Any) -> pa.Array | pa.ChunkedArray:
    """Return a pandas Series, NumPy array, Arrow array or list as an Arrow array.

    Raises
    ------
    DataTypeError
        If the cells have no common type; two of them and their rows are named.
    """
    column = _readable(name, column)
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    try:
        if isinstance(column, np.ma.MaskedArray):
            return pa.array(column.data, mask=np.ma.getmaskarray(column), from_pandas=True)
        return pa.array(column, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise _explain(name, column, error) from error


def _readable(name: str, column: Any) -> Any:
    """Return the column in a form that Arrow converts without losing its meaning."""
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
        if _is_missing(cell):
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


def _is_missing(cell: Any) -> bool:
    # By name: pandas need not be installed, and its NA has no truth value.
    return (
        cell is None
        or (isinstance(cell, float) and cell != cell)
        or type(cell).__name__ in ("NAType", "NaTType")
    )


def _family(cell: Any) -> str:
    if isinstance(cell, bool | np.bool_):
        return "bool"
    if isinstance(cell, int | float | np.integer | np.floating):
        return "numbers"
    return type(cell).__name__
