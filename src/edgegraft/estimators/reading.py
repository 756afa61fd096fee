"""Tables in: what scikit-learn's users pass, as codes under a schema.

Frames, files and packed tables go to :func:`edgegraft.data.pack` as they are; lists and anything
else that can be made an array is one first, with scikit-learn's own checks and messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from edgegraft.data import PackedTable, Schema, pack
from edgegraft.errors import DataError, UnseenCategoryError
from edgegraft.estimators.labels import labels

"""Memory for what a fit keeps of one column: 11,585 categories."""

_LIBRARIES = ("pandas", "polars", "pyarrow")


def library_of(X: Any) -> str:
    """Return the package that a table's type comes from."""
    return type(X).__module__.partition(".")[0]


def as_table(X: Any, estimator: str) -> Any:
    """Return `X` as something that `pack` takes; arrays are checked as scikit-learn does.

    Parameters
    ----------
    X : table
    estimator : str
        What messages call the estimator.
    """
    if isinstance(X, PackedTable | str | PathLike | Mapping):
        return X
    if library_of(X) in _LIBRARIES or hasattr(X, "__arrow_c_stream__"):
        return X
    if hasattr(X, "__arrow_c_array__") or isinstance(X, np.ma.MaskedArray):
        return X
    if isinstance(X, np.ndarray) and X.dtype.names:
        return X
    if isinstance(X, list | tuple):
        # As objects: numbers beside text stay numbers, and every column finds its own type.
        _check_lengths(X)
        X = np.array(X, dtype=object)
    return check_array(X, dtype=None, ensure_all_finite=False, estimator=estimator, input_name="X")


def _check_lengths(rows: Sequence[Any]) -> None:
    lengths = [len(row) if isinstance(row, list | tuple) else None for row in rows]
    for k, length in enumerate(lengths):
        if length is not None and lengths[0] is not None and length != lengths[0]:
            raise DataError(f"row {k} has {length} cells where row 0 has {lengths[0]}")


def column_labels(X: Any) -> list[Any] | None:
    """Return the labels of a table's columns; None where they are positions.

    Of files and one-shot streams, which are read only once, None as well.
    """
    if isinstance(X, PackedTable):
        return list(X.schema.names)
    if isinstance(X, Mapping):
        return list(X)
    if isinstance(X, np.ndarray):
        return list(X.dtype.names) if X.dtype.names else None
    if library_of(X) == "pyarrow":
        return list(X.schema.names)
    return list(X.columns) if hasattr(X, "columns") else None


def has_positions(X: Any) -> bool:
    """Tell whether the columns of `X` have no names of their own."""
    return isinstance(X, np.ndarray) and not X.dtype.names


def read(X: Any, schema: Schema | None = None, n_jobs: int = 1) -> PackedTable:
    """Return a table packed, under `schema` where there is one."""
    if not isinstance(X, PackedTable):
        return pack(X, schema=schema, n_jobs=n_jobs)
    if schema is None or X.schema == schema:
        return X
    for name in schema.names:
        if name in X.schema and (X.schema[name].binned or schema[name].binned):
            if X.schema[name] == schema[name]:
                continue
            raise DataError(
                f"column '{name}' was binned differently when this table was packed: pack it "
                "with schema=estimator.schema_"
            )
    return pack(labels(X.schema, X.codes()), schema=schema)


def read_codes(X: Any, schema: Schema) -> NDArray[np.int64]:
    """Return a table's codes under a schema, -1 for a missing cell."""
    try:
        table = read(X, schema)
    except UnseenCategoryError as error:
        error.add_note(
            "With an estimator: pass pack(X, schema=estimator.schema_, unseen='missing'); or fit "
            "with schema= of all the categories there may be."
        )
        raise
    return np.ascontiguousarray(table.codes(), np.int64)
