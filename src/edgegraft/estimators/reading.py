"""Tables as scikit-learn's users pass them: checked in its own words, then read as any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from edgegraft.errors import DataError
from edgegraft.ingest.kinds import TableKind, library_of, table_kind


def as_table(X: Any, estimator: str) -> Any:
    """Return `X` as a table that can be read; arrays are checked as scikit-learn does.

    Parameters
    ----------
    X : table
    estimator : str
        What messages call the estimator.
    """
    arrays = (TableKind.ARRAY, TableKind.OTHER)
    if table_kind(X) not in arrays or isinstance(X, np.ma.MaskedArray):
        return X
    if library_of(X) in ("pandas", "polars", "pyarrow"):
        return X  # refused in their own words
    if isinstance(X, list | tuple):
        # As objects: numbers beside text stay numbers, and every column finds its own type.
        _check_lengths(X)
        X = np.array(X, dtype=object)
    from sklearn.utils.validation import check_array  # slow to load, and files do without

    return check_array(X, dtype=None, ensure_all_finite=False, estimator=estimator, input_name="X")


def _check_lengths(rows: Sequence[Any]) -> None:
    lengths = [len(row) if isinstance(row, list | tuple) else None for row in rows]
    for k, length in enumerate(lengths):
        if length is not None and lengths[0] is not None and length != lengths[0]:
            raise DataError(f"row {k} has {length} cells where row 0 has {lengths[0]}")
