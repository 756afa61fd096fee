"""What kind a column is: unordered categories, levels, counts or numbers.

Types decide first: ordered categories are levels, text and booleans are not, many different numbers
are numbers. Whole numbers of few values may be either: codes of regions and answers on a scale look
alike. They differ in how other columns depend on them: that of levels is mostly a trend. For a
group of columns with the same values

    share = sum of N r_ij^2 / sum of chi-square_ij,      each less what chance adds,

over pairs with other columns, with ``r`` the correlation of middle ranks (or all that the rank of
one end explains of an unordered other end). A large share makes them levels. It was .56 and .68 of
answers on scales of 6 and 5 levels and above .9 of Gaussian columns cut into levels; of columns
without an order at most .28 with 5 states, .66 with 4 and .58 with 3, so few levels ask for more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.types import Floats
from edgegraft.errors import Argument, DataError, listing
from edgegraft.ingest.options import ReadOptions
from edgegraft.table.arrow import LabelKind
from edgegraft.table.numbers import scores_of
from edgegraft.table.packed import PackedTable
from edgegraft.table.schema import Kind, Schema, Variable


@dataclass(frozen=True)
class CountRule:
    """When whole numbers are counts, and into which levels these are cut."""

    levels: int = 32  # the last of them open; as many states as numbers may keep
    least: int = 8  # different counts of a column that is one unasked: fewer may be an answer scale
    tail: float = 3.0  # the largest count, in medians
    share: float = 0.005  # of the rows in the open level


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

    @property
    def numeric(self) -> bool:
        """Whether the column may be binned."""
        return self.kind.numeric and not self.declared


def check_kind(column: Observed, wanted: Kind | None) -> None:
    """Refuse a kind that a column cannot have."""
    if wanted in ("count", "numeric") and not column.numeric:
        raise DataError(
            f"column '{column.name}' cannot be {wanted}: it is not numeric but {column.dtype}; "
            "write its values as numbers, or let it be 'nominal'"
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
                "numbers from 0 on; let it be 'numeric'"
            )


def kind_of_states(column: Observed, wanted: Kind | None) -> tuple[Kind, str]:
    """Return the kind of a column that keeps its states, and why.

    Whole numbers of few values are nominal until :func:`settle_levels` has looked at the rows.
    """
    if column.kind is LabelKind.BOOL:
        return "nominal", "booleans"
    if not (column.numeric or column.declared):
        return "nominal", "text"  # also if another kind was asked for all columns
    if wanted is not None:
        return wanted, "as asked"
    if column.ordered:
        return "ordinal", "its categories are declared as ordered"
    if column.declared:
        return "nominal", "its categories are declared, without an order"
    values = np.array(column.labels, np.float64)
    if len(set(column.labels)) < 3:
        return "nominal", "two states" if len(set(column.labels)) == 2 else "one value"
    if (values != np.floor(values)).any():
        return "ordinal", "numbers with decimals"
    return "nominal", "whole numbers of few values"


def check_orders(schema: Schema, options: ReadOptions) -> None:
    """Refuse an order without a column that suits no column."""
    shown = [set(map(str, variable.categories)) for variable in schema]
    for text, levels in options.orders_for_all():
        if any(
            variable.ordered and own == set(levels)
            for variable, own in zip(schema, shown, strict=True)
        ):
            continue
        near = max(range(len(shown)), key=lambda i: len(shown[i].intersection(levels)), default=0)
        hint = ""
        if shown and shown[near].intersection(levels):
            more = listing(sorted(shown[near].difference(levels)))
            hint = f"; column '{schema[near].name}' has {more} besides: name all of its categories"
        raise DataError(Argument("order", [text]), f" is the order of no column's categories{hint}")


def wants_count(values: Floats, counts: NDArray[np.int64], wanted: Kind | None) -> bool:
    """Return whether different values, ascending, are read as counts."""
    if wanted is not None or not len(values):
        return wanted == "count"
    whole = values[0] == 0 and bool((values == np.floor(values)).all())
    if not whole or len(values) < CountRule.least:
        return False
    half = int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))
    return bool(
        values[-1] >= CountRule.tail * max(values[half], 1.0) and counts[-1] < counts.max() / 4
    )


def count_levels(
    values: Floats, counts: NDArray[np.int64]
) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """Return edges and labels of counts: one level each, then wider ones, the last one open.

    >>> count_levels(np.array([0.0, 1, 2, 7]), np.array([50, 30, 17, 3]))[1]
    ('0', '1', '2 or more')
    """
    total, high = int(counts.sum()), float(values[-1])
    least = max(5.0, CountRule.share * total)
    edges = [0.0]
    while len(edges) < CountRule.levels:
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


@dataclass(frozen=True)
class TrendRule:
    """When few whole numbers are levels; the shares lie between those at the top of this file."""

    share_of_few: float = 0.7  # of three or four levels
    share: float = 0.45  # of the dependence on other columns that is a trend
    rows: int = 4096  # that are looked at, from all over the table
    columns: int = 24  # of a group that are looked at, and partners of each
    evidence: float = 4.0  # standard deviations of chance
    states: int = 64  # of a partner: wider tables are nearly empty in that many rows
    gaps: float = 1.5  # span of the values, in their number: codes of regions have gaps


def settle_levels(table: PackedTable, options: ReadOptions) -> PackedTable:
    """Return the table with the kinds of its columns of few whole numbers decided."""
    return table.with_schema(settled_schema(table.schema, [lambda: table], options))


def settled_schema(
    schema: Schema, blocks: Sequence[Callable[[], PackedTable]], options: ReadOptions
) -> Schema:
    """Return a schema with those kinds decided by some rows of a table, read block by block."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for i, variable in enumerate(schema):
        if options.kind_for(variable.name) is None and _may_be_levels(variable):
            groups.setdefault(variable.categories, []).append(i)
    if not groups:
        return schema
    most = TrendRule.rows // len(blocks)
    codes = np.concatenate([_spread(block(), most) for block in blocks], axis=1)
    waiting = {i for members in groups.values() for i in members}
    variables = list(schema)
    for members in groups.values():
        found = np.array([_trend(codes, schema, i, waiting) for i in members[: TrendRule.columns]])
        together = _share(found.sum(axis=0))
        for k, i in enumerate(members):
            own = _share(found[k]) if k < len(found) else None
            # A column of its own kind may have the same values by chance.
            stands_out = own is not None and together is not None and own < together / 2
            variables[i] = _decided(variables[i], own if stands_out else together)
    return Schema(variables)


def _spread(table: PackedTable, most: int) -> NDArray[np.int64]:
    """Return the codes of some rows from all over a table, columns first."""
    rows = np.unique(np.linspace(0, table.n_rows - 1, most).astype(np.int64))
    return np.asarray(table.cells[:, rows].astype(np.int64))


def _may_be_levels(variable: Variable) -> bool:
    labels = variable.categories
    numbers = all(type(label) in (int, float) for label in labels)
    if variable.kind != "nominal" or variable.declared or not numbers or len(labels) < 3:
        return False
    values = np.array(labels, np.float64)
    whole = bool((values == np.floor(values)).all())
    return whole and bool(values[-1] - values[0] + 1 <= TrendRule.gaps * len(values))


def _decided(variable: Variable, share: float | None) -> Variable:
    if share is None:
        return replace(variable, reason="whole numbers, on which no other column depends")
    found = f"whole numbers; {max(share, 0.0):.0%} of their dependence on other columns is a trend"
    needed = TrendRule.share if variable.n_states > 4 else TrendRule.share_of_few
    return replace(variable, kind="ordinal" if share >= needed else "nominal", reason=found)


def _trend(codes: np.ndarray, schema: Schema, i: int, waiting: set[int]) -> Floats:
    """Return the dependence of a column on others, the part that is a trend, and its variance."""
    total = np.zeros(3)
    others = np.array([j for j in range(len(schema)) if j != i], np.int64)
    for j in others[:: max(1, -(-len(others) // TrendRule.columns))].tolist():
        ranked = j in waiting or schema[j].scored or schema.n_states[j] == 2
        total += _dependence(codes, schema, i, j, ranked)
    return total


def _share(found: Floats) -> float | None:
    """Return the share of dependence that is a trend; None if there is little dependence."""
    whole, trend, variance = found.tolist()
    return None if whole <= TrendRule.evidence * np.sqrt(variance) else trend / whole


def _dependence(
    codes: np.ndarray, schema: Schema, i: int, j: int, ranked: bool
) -> tuple[float, float, float]:
    """Return chi-square and the part of ranks, less their expectations, and the variance."""
    tall, wide = int(schema.n_states[i]), int(schema.n_states[j])
    if wide > TrendRule.states:
        return 0.0, 0.0, 0.0
    known = (codes[i] < tall) & (codes[j] < wide)
    table = np.bincount(codes[i, known] * wide + codes[j, known], minlength=tall * wide)
    counts: Floats = table.reshape(tall, wide).astype(np.float64)
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    if min(counts.shape) < 2:
        return 0.0, 0.0, 0.0
    n = counts.sum()
    p, q = counts.sum(axis=1) / n, counts.sum(axis=0) / n
    excess = counts / n - np.outer(p, q)
    dof = (len(p) - 1.0) * (len(q) - 1.0)
    along = scores_of(p, 1)[:, 0] @ excess
    if ranked:
        trend = n * float(along @ scores_of(q, 1)[:, 0]) ** 2 - 1.0
    else:
        trend = n * float((along**2 / q).sum()) - (len(q) - 1.0)
    return n * float((excess**2 / np.outer(p, q)).sum()) - dof, trend, 2.0 * dof
