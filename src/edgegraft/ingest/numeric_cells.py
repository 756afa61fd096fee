"""Cells as numbers, and the errors of single cells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from edgegraft.core.text import listing
from edgegraft.errors import Argument, DataError, UnseenCategoryError
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.text_types import read_number
from edgegraft.ingest.wording import missing_values
from edgegraft.table.arrow_types import LabelKind, kind_of, simplify
from edgegraft.table.schema import Variable

__all__ = ["numbers_of", "reject_infinity", "unseen_category"]


def numbers_of(
    name: str,
    array: pa.Array,
    options: ReadOptions,
    from_text: bool,
    first_row: int,
    variable: Variable | None = None,
) -> NDArray[np.float64]:
    """Return a numeric column as float64, NaN for missing.

    Parameters
    ----------
    name : str
    array : pyarrow.Array
    options : ReadOptions
    from_text : bool
        Whether text is to be read as numbers (a CSV file).
    first_row : int
        Row of the first cell, for messages.
    variable : Variable, optional
        The binned variable that a schema has fixed: text is then a category that it does not
        know, and is missing where `unseen` says so.
    """
    array = simplify(array)
    if pt.is_dictionary(array.type):
        array = simplify(array.dictionary_decode())
    if kind_of(array.type) not in (LabelKind.INT, LabelKind.FLOAT, LabelKind.BOOL):
        array = _read_text(name, array, options, from_text, first_row, variable)
    values = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        reject_infinity(name, float(values[infinite[0]]), first_row + int(infinite[0]))
    tokens = [token for token in options.missing_values if not isinstance(token, str)]
    return np.where(np.isin(values, tokens), np.nan, values) if tokens else values


def _read_text(
    name: str,
    array: pa.Array,
    options: ReadOptions,
    from_text: bool,
    first_row: int,
    variable: Variable | None,
) -> pa.Array:
    """Return text (or another kind that is not numeric) as numbers."""
    if kind_of(array.type) is LabelKind.TEXT:
        missing = [t for t in options.missing_labels(from_text) if isinstance(t, str)]
        is_missing = pc.is_in(array, value_set=pa.array(missing, array.type))
        array = pc.if_else(is_missing, pa.scalar(None, array.type), array)
        if from_text:
            try:
                return pc.utf8_trim_whitespace(array).cast(pa.float64())
            except pa.ArrowInvalid:
                pass  # one of the cells is no number; which one is found below
    cells = array.to_pylist()
    numbers: list[float | None] = [
        read_number(cell) if from_text and cell is not None else None for cell in cells
    ]
    for k, cell in enumerate(cells):
        if cell is None or numbers[k] is not None:
            continue
        if variable is None:
            raise _not_a_number(name, cell, first_row + k)
        if options.unseen == "error":
            raise unseen_category(variable, cell, first_row + k)
    return pa.array(numbers, pa.float64())


def _not_a_number(name: str, cell: Any, row: int) -> DataError:
    return DataError(
        f"column '{name}' has more numbers than a column can have categories, but row {row} "
        f"(counted from 0) holds {cell!r}: if that means missing, use ",
        missing_values([cell]),
        "; otherwise leave the column out with ",
        Argument("drop", [name]),
    )


def reject_infinity(name: str, value: float, row: int) -> None:
    """Raise if a number is infinite."""
    if math.isinf(value):
        raise DataError(
            f"column '{name}', row {row} (counted from 0): {value} is not a finite number; "
            "replace it with a missing value or a bound"
        )


def unseen_category(variable: Variable, label: Any, row: int) -> UnseenCategoryError:
    """Return the error for a label that a fixed schema does not know."""
    if variable.binned:
        return UnseenCategoryError(
            f"column '{variable.name}', row {row} (counted from 0): {label!r} is not a number, "
            f"and the schema bins this column over {variable.categories[0]} to "
            f"{variable.categories[-1]}"
        )
    return UnseenCategoryError(
        f"column '{variable.name}', row {row} (counted from 0): {label!r} is not one of the "
        f"schema's {variable.n_states} categories {listing(variable.categories)}; use ",
        Argument("unseen", "missing"),
        " to take such cells as missing",
    )
