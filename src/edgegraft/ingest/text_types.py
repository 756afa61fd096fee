"""Types of text cells, found once over the distinct values of a whole file.

Inference from the first rows, or batch by batch, makes the result depend on where a file is
cut; the distinct values do not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from edgegraft.table.arrow_types import LabelKind
from edgegraft.table.schema import Label

__all__ = [
    "MISSING_TOKENS",
    "dressed_number",
    "infer_labels",
    "odd_tokens",
    "read_number",
    "read_text_as",
]

# What CSV writers put in an empty cell. "None" is absent on purpose: it is a common category.
MISSING_TOKENS: frozenset[Any] = frozenset(
    ["", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan", "NaT", "null",
     "NULL", "Null"]
)  # fmt: skip

# A leading zero marks a code ("007"), not a number.
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

    Examples
    --------
    >>> from edgegraft.ingest.text_types import infer_labels
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
        whole = [int(text) for text in texts]
        if all(number in _INT64 for number in whole):
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
        return int(text) if _INT.fullmatch(text) else float(text)
    return text


def odd_tokens(texts: Sequence[str]) -> list[str]:
    """Return the few texts that keep a column from being numeric, if it nearly is."""
    odd = [text for text in texts if not _FLOAT.fullmatch(text)]
    few = 0 < len(odd) <= 5 and len(odd) <= 0.1 * len(texts)
    return odd if few else []


def dressed_number(texts: Sequence[str]) -> str | None:
    """Return an example, where all texts are numbers and some are not written plainly.

    Those are amounts of money, percentages, and numbers with thousands separators or a decimal
    comma. They are not read as numbers because their meaning is open: is 1,234 more than a
    thousand, or little more than one?

    Examples
    --------
    >>> from edgegraft.ingest.text_types import dressed_number
    >>> dressed_number(["$3.50", "12"]), dressed_number(["1,234", "n/k"]), dressed_number(["007"])
    ('$3.50', None, None)
    """
    if not all(_DRESSED.fullmatch(text) for text in texts):
        return None
    return next((text for text in texts if not _FLOAT.fullmatch(text)), None)
