"""What single cells are: types of text, numbers, and the errors that name a cell.

The types of text cells are found once over the distinct values of a whole file. Inference from the
first rows, or batch by batch, makes the result depend on where a file is cut; the distinct values
do not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from edgegraft.core.types import Floats
from edgegraft.errors import Argument, DataError, UnseenCategoryError, listing
from edgegraft.ingest.findings import missing_values
from edgegraft.table.arrow import LabelKind, kind_of, simplify
from edgegraft.table.schema import Label, Variable

if TYPE_CHECKING:
    from edgegraft.ingest.options import ReadOptions

Place = Callable[[int], str]  # what messages call the k-th row of a batch

# What CSV writers put in an empty cell. "None" is absent on purpose: it is a common category.
MISSING_TOKENS: frozenset[Any] = frozenset(
    ["", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan", "NaT", "null",
     "NULL", "Null"]
)  # fmt: skip

# A leading zero marks a code ("007"), not a number.
_DIGITS = 20  # of a whole number of 64 bits, with its sign; Python reads 4,300 at most
_INT = re.compile(r"[ \t]*[+-]?(0|[1-9][0-9]*)[ \t]*")
_FLOAT = re.compile(
    r"[ \t]*[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*"
    r"|[ \t]*[+-]?(inf|Inf|INF|infinity|Infinity)[ \t]*"
)
_DRESSED = re.compile(
    r"\s*[+-]?\s*[$€£¥]?\s*[+-]?(0|[1-9][0-9]{0,2}([,.'][0-9]{3})+|[1-9][0-9]*)([.,][0-9]+)?"
    r"\s*(%|[$€£¥])?\s*"
)
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT64 = range(-(2**63), 2**63)


def infer_labels(texts: Sequence[str]) -> tuple[LabelKind, list[Label]]:
    """Return the narrowest kind that fits every text, and the texts read as that kind.

    >>> from edgegraft.ingest.cells import infer_labels
    >>> infer_labels(["1", "10", "2"])
    (<LabelKind.INT: 'int'>, [1, 10, 2])
    >>> infer_labels(["1", "2.5"])
    (<LabelKind.FLOAT: 'float'>, [1.0, 2.5])
    >>> infer_labels(["007", "010"])
    (<LabelKind.TEXT: 'text'>, ['007', '010'])
    """
    if all(text in _BOOLS for text in texts):
        return LabelKind.BOOL, [_BOOLS[text] for text in texts]
    if all(_INT.fullmatch(text) for text in texts):
        whole = [int(text) for text in texts if len(text.strip()) <= _DIGITS]
        if len(whole) == len(texts) and all(number in _INT64 for number in whole):
            return LabelKind.INT, list(whole)
        return LabelKind.TEXT, list(texts)
    if all(_FLOAT.fullmatch(text) for text in texts):
        return LabelKind.FLOAT, [float(text) for text in texts]
    return LabelKind.TEXT, list(texts)


def read_number(text: str) -> float | None:
    """Return the number that a text writes, None for other text."""
    return float(text) if _FLOAT.fullmatch(text) else None


def read_text_as(text: str, kind: type) -> Label:
    """Return a text read as the given label type; text that does not fit stays text."""
    if kind is bool:
        return _BOOLS.get(text, text)
    if kind in (int, float) and _FLOAT.fullmatch(text):
        # Equality, not type, matches labels: 1.0 finds the category 1.
        whole = _INT.fullmatch(text) and len(text.strip()) <= _DIGITS
        return int(text) if whole else float(text)
    return text


def odd_tokens(texts: Sequence[str]) -> list[str]:
    """Return the few texts that keep a column from being numeric, if it nearly is."""
    odd = [text for text in texts if not _FLOAT.fullmatch(text)]
    few = 0 < len(odd) <= 5 and len(odd) <= 0.1 * len(texts)
    return odd if few else []


def dressed_number(texts: Sequence[str]) -> str | None:
    """Return an example if all texts are numbers and some are not written plainly.

    Those are amounts of money, percentages, and numbers with thousands separators or a decimal
    comma. They are not read as numbers because their meaning is open: is 1,234 more than a
    thousand, or little more than one?

    >>> from edgegraft.ingest.cells import dressed_number
    >>> dressed_number(["$3.50", "12"]), dressed_number(["1,234", "n/k"]), dressed_number(["007"])
    ('$3.50', None, None)
    """
    if not all(_DRESSED.fullmatch(text) for text in texts):
        return None
    return next((text for text in texts if not _FLOAT.fullmatch(text)), None)


def numbers_of(
    name: str,
    array: pa.Array,
    options: ReadOptions,
    from_text: bool,
    place: Place,
    variable: Variable | None = None,
) -> Floats:
    """Return a numeric column as float64, NaN for missing.

    `from_text`: text is to be read as numbers (a CSV file). `place`: what messages call the rows.
    `variable`: the binned variable that a schema has fixed; text is then a category that it does
    not know, and is missing if `unseen` says so.
    """
    array = simplify(array)
    if pt.is_dictionary(array.type):
        array = simplify(array.dictionary_decode())
    if kind_of(array.type) is LabelKind.TEXT:
        missing = [t for t in options.missing_labels(from_text) if isinstance(t, str)]
        is_missing = pc.is_in(array, value_set=pa.array(missing, array.type))
        array = pc.if_else(is_missing, pa.scalar(None, array.type), array)
        if from_text:
            with suppress(pa.ArrowInvalid):  # a cell is not a number; which one is found below
                array = pc.utf8_trim_whitespace(array).cast(pa.float64())
    if kind_of(array.type) not in (LabelKind.INT, LabelKind.FLOAT, LabelKind.BOOL):
        numbers: list[float | None] = []
        for k, cell in enumerate(array.to_pylist()):
            numbers.append(read_number(cell) if from_text and cell is not None else None)
            if cell is None or numbers[k] is not None:
                continue
            if variable is None:
                raise DataError(
                    f"column '{name}' has more numbers than a column can have categories, but row "
                    f"{place(k)} (counted from 0) holds {cell!r}: if that means missing, use ",
                    missing_values([cell]),
                    "; otherwise leave the column out with ",
                    Argument("drop", [name]),
                )
            if options.unseen == "error":
                raise unseen_category(variable, cell, place(k))
        array = pa.array(numbers, pa.float64())
    values = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        reject_infinity(name, float(values[infinite[0]]), place(int(infinite[0])))
    tokens = [token for token in options.missing_values if not isinstance(token, str)]
    return np.where(np.isin(values, tokens), np.nan, values) if tokens else values


def reject_infinity(name: str, value: float, row: str) -> None:
    """Raise if a number is infinite."""
    if math.isinf(value):
        raise DataError(
            f"column '{name}', row {row} (counted from 0): {value} is not a finite number; "
            "replace it with a missing value or a bound"
        )


def unseen_category(variable: Variable, label: Any, row: str) -> UnseenCategoryError:
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
