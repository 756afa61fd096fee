"""What kind a column is: unordered categories, levels, counts or numbers.

Types decide first: ordered categories are levels, text and booleans are not, many different numbers
are numbers. Whole numbers of few values may be either, and the other columns tell
(:mod:`edgegraft.ingest.levels`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.types import Floats
from edgegraft.errors import Argument, DataError
from edgegraft.table.arrow_types import LabelKind
from edgegraft.table.schema import Kind

MAX_COUNTS = 32  # levels of a column of counts, the last of them open
_MIN_COUNTS = 8  # different counts of a column that is one unasked: fewer may be an answer scale
_TAIL = 3.0  # the largest count, in medians
_MIN_TAIL = 0.005  # of the rows in the open level


@dataclass
class Observed:
    """What one reading found out about a column."""

    name: str
    kind: LabelKind
    dtype: str
    declared: bool
    ordered: bool
    labels: list[Any]  # distinct ones
    counts: NDArray[np.int64]  # how often each occurs; declared categories may not occur
    from_text: bool = False  # whether the labels are text whose type is still open (a CSV file)
    first_rows: list[str] = field(default_factory=list)  # where text labels occur first
    new_place: list[int] | None = None  # where an order that was given puts each label that was met


def check_kind(column: Observed, wanted: Kind | None) -> None:
    """Refuse a kind that a column cannot have."""
    numeric = column.kind.numeric and not column.declared
    if wanted in ("count", "numeric") and not numeric:
        raise DataError(
            f"column '{column.name}' cannot be {wanted}: it is not numeric but {column.dtype}"
        )
    if wanted == "ordinal" and column.kind is LabelKind.TEXT and not column.declared:
        levels = "<".join(sorted(map(str, column.labels))[:4])
        raise DataError(
            f"column '{column.name}' is text, whose order is not known: give it with ",
            Argument("order", [f"{column.name}={levels}"]),
            ", or as an ordered Categorical",
        )
    if wanted == "count":
        values = np.array(column.labels, np.float64)
        if (values < 0).any() or (values != np.floor(values)).any():
            odd = float(values[(values < 0) | (values != np.floor(values))][0])
            raise DataError(
                f"column '{column.name}' cannot be count: it has {odd:g}, and counts are whole "
                "numbers from 0 on"
            )


def kind_of_states(column: Observed, wanted: Kind | None, numeric: bool) -> tuple[Kind, str]:
    """Return the kind of a column that keeps its states, and why; "" if that is still open."""
    if wanted is not None:
        if column.kind is LabelKind.BOOL or not (numeric or column.declared):
            return "nominal", ""  # one kind was asked for all columns
        return wanted, "as asked"
    if column.ordered:
        return "ordinal", "its categories are declared as ordered"
    return "nominal", ""


def wants_count(values: Floats, counts: NDArray[np.int64], wanted: Kind | None) -> bool:
    """Return whether different values, ascending, are read as counts."""
    if wanted is not None or not len(values):
        return wanted == "count"
    whole = values[0] == 0 and bool((values == np.floor(values)).all())
    if not whole or len(values) < _MIN_COUNTS:
        return False
    half = int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))
    return bool(values[-1] >= _TAIL * max(values[half], 1.0) and counts[-1] < counts.max() / 4)


def why_count(values: Floats, wanted: Kind | None) -> str:
    """Return why a column is read as counts."""
    return "as asked" if wanted else f"whole numbers from 0 with a tail to {values[-1]:g}"


def count_levels(
    values: Floats, counts: NDArray[np.int64]
) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """Return edges and labels of counts: one level each, then wider ones, the last one open.

    >>> count_levels(np.array([0.0, 1, 2, 7]), np.array([50, 30, 17, 3]))[1]
    ('0', '1', '2 or more')
    """
    total, high = int(counts.sum()), float(values[-1])
    least = max(5.0, _MIN_TAIL * total)
    edges = [0.0]
    while len(edges) < MAX_COUNTS:
        last = edges[-1]
        if counts[values > last].sum() < least:
            break
        # Single counts while they fit, then steps that grow with the count.
        edges.append(last + max(1.0, np.floor(last / 8.0)))
    labels = []
    for k, low in enumerate(edges):
        if k == len(edges) - 1:
            labels.append(f"{low:.0f} or more" if high > low else f"{low:.0f}")
        else:
            last = edges[k + 1] - 1
            labels.append(f"{low:.0f}" if last == low else f"{low:.0f} to {last:.0f}")
    return (*edges, max(high, edges[-1])), tuple(labels)
