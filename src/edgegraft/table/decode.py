"""From codes back to the caller's labels and types, and to numbers inside of bins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from edgegraft.errors import DataError
from edgegraft.table.arrow_types import LabelKind, kind_of, storage_type, type_from_name
from edgegraft.table.numbers import numbers_of
from edgegraft.table.schema import Schema, Variable

Codes = NDArray[np.integer[Any]]


def decode_table(schema: Schema, codes: ArrayLike) -> pa.Table:
    """Return ``(n_rows, n)`` codes as a table; see :meth:`Schema.decode`."""
    cells = np.asarray(codes)
    if cells.ndim != 2 or cells.shape[1] != len(schema) or cells.dtype.kind not in "iub":
        raise DataError(
            f"codes must be integers of shape (n_rows, {len(schema)}), found {cells.dtype} of "
            f"shape {cells.shape}"
        )
    columns = [_decode(variable, cells[:, i]) for i, variable in enumerate(schema)]
    return pa.table(columns, names=list(schema.names))


def _decode(variable: Variable, codes: Codes) -> pa.Array:
    wrong = np.flatnonzero((codes < -1) | (codes >= variable.n_states))
    if wrong.size:
        row = int(wrong[0])
        raise DataError(
            f"variable '{variable.name}', row {row}: code {codes[row]} is not one of "
            f"0 to {variable.n_states - 1} (or -1 for missing)"
        )
    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    if variable.binned:
        return pa.DictionaryArray.from_arrays(indices, list(variable.categories), ordered=True)
    values = _category_array(variable)
    if variable.declared:
        return pa.DictionaryArray.from_arrays(indices, values, ordered=variable.ordered)
    return values.take(indices)


def _category_array(variable: Variable) -> pa.Array:
    dtype = type_from_name(variable.dtype)
    if dtype is None:
        raise DataError(f"variable '{variable.name}' has the unknown type '{variable.dtype}'")
    labels = list(variable.categories)
    if dtype == pa.float16():  # which older releases of Arrow make of NumPy's numbers alone
        return pa.array(np.array(labels, np.float16))
    if kind_of(dtype) is not LabelKind.TIME:
        return pa.array(labels, dtype)
    stored = pa.array(labels, storage_type(dtype))
    if getattr(dtype, "tz", None):
        # The labels are in UTC, so that their order as text is their order in time.
        stored = pc.assume_timezone(stored.cast(pa.timestamp(dtype.unit)), "UTC")
    return stored.cast(dtype)


def labels(schema: Schema, codes: Codes, rng: np.random.Generator | None = None) -> pa.Table:
    """Return codes as a table of labels that can be read again: of bins, numbers in them.

    That is the mean of a bin's numbers, or with `rng` a random one.
    """
    table = schema.decode(codes)
    for k, variable in enumerate(schema):
        numbers = numbers_of(variable) if variable.binned else None
        if numbers is not None:
            known = codes[:, k] >= 0
            states = np.maximum(codes[:, k], 0)
            values = numbers.middle[states] if rng is None else numbers.draw(states, rng)
            if not known.all():
                values = np.where(known, values, np.nan)
            table = table.set_column(k, variable.name, [values])
    return table
