"""From the distinct labels of a column to its variable: order, bins, and what cannot be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgegraft.errors import Argument, DataError, listing
from edgegraft.ingest.binning import RowSample, assign_bins, bin_edges, bin_labels
from edgegraft.ingest.cells import dressed_number, infer_labels, odd_tokens, reject_infinity
from edgegraft.ingest.column_kinds import (
    Observed,
    check_kind,
    count_levels,
    kind_of_states,
    wants_count,
)
from edgegraft.ingest.findings import OTHER, Findings, Problems, missing_values
from edgegraft.ingest.options import ReadOptions
from edgegraft.table.arrow import LabelKind
from edgegraft.table.numbers import level_means
from edgegraft.table.schema import Kind, Variable


@dataclass(frozen=True)
class LevelRule:
    """How many states a column gets, and when it has too many."""

    nominal: int = 5  # bins of numbers that are to be unordered categories
    numeric: int = 16  # levels of numbers: they keep .956 of the information of a Gaussian edge
    rows: int = 5  # a category: with fewer it can hardly show edges
    few_rows: int = 20  # up to here a column of all-different values says nothing


_TEXT_DTYPE = {
    LabelKind.TEXT: "string",
    LabelKind.BOOL: "bool",
    LabelKind.INT: "int64",
    LabelKind.FLOAT: "double",
}


def decide(
    column: Observed, options: ReadOptions, findings: Findings, problems: Problems
) -> tuple[Variable, NDArray[np.uint16]] | None:
    """Return the variable, and the final code of every label, of a column.

    None, with the problem noted, if it has no known cell, identifies its rows, or was to be binned
    and cannot.
    """
    found = None
    if not column.counts.any():
        problems.empty.append(column.name)
    else:
        with problems.noted(column.name):
            found = _decide(column, options, findings)
    return found


def _decide(
    column: Observed, options: ReadOptions, findings: Findings
) -> tuple[Variable, NDArray[np.uint16]]:
    n_observed = int(column.counts.sum())
    odd = _read_text(column) if column.from_text else []
    if options.order:
        _apply_order(column, options)
    if isinstance(options.bins, Mapping) and column.name in options.bins and not column.numeric:
        raise DataError(
            Argument("bins"),
            f" was given for column '{column.name}', which is not numeric but {column.dtype}",
            _dressed_hint(column),
        )
    asked, wanted = options.bins_for(column.name), options.kind_for(column.name)
    if column.numeric or column.name in options.named_kinds:
        check_kind(column, wanted)
    levels = max(options.max_categories, options.max_numeric_states)
    limit = asked or (levels if wanted == "ordinal" else options.max_numeric_states)
    if column.numeric:
        values, place = np.unique(np.array(column.labels, np.float64), return_inverse=True)
        counts = np.bincount(place, column.counts).astype(np.int64)
        few = len(values) <= min(limit, options.max_states)
        if not few or (asked is None and wants_count(values, counts, wanted)):
            variable = decide_bins(column.name, column.dtype, values, counts, options, findings)
            assert variable.edges is not None
            return variable, assign_bins(values, variable.edges)[place]
    if not column.declared:
        _reject_identifier(column, n_observed, odd)
    if odd:
        findings.odd.append((column.name, odd))
    if np.count_nonzero(column.counts) == 1:
        findings.constant.append(column.name)
    if not (column.numeric or column.declared):
        _doubt(column, n_observed, options, findings)
    kind, reason = kind_of_states(column, wanted)
    if kind != "nominal":
        _reject_many_levels(column, options.max_categories)
    if kind == "nominal" and column.kind is LabelKind.TEXT:
        pooled = _pool(column, options.max_categories)
        if pooled is not None:
            findings.pooled.append((column.name, len(pooled[0].pooled)))
            return pooled
    return _order(column, kind, reason)


def _pool(column: Observed, most: int) -> tuple[Variable, NDArray[np.uint16]] | None:
    """Return a column with those of its categories as one state that do not fit; None if all do.

    Those are the ones of the fewest rows, then the last ones.
    """
    labels = column.labels if column.declared else sorted(set(column.labels))
    if len(labels) <= most:
        return None
    shown = dict(zip(column.labels, column.counts.tolist(), strict=True))
    kept = set(sorted(labels, key=lambda label: -shown[label])[: most - 1])  # stable
    rare = tuple(label for label in labels if label not in kept)
    code = {label: k for k, label in enumerate(label for label in labels if label in kept)}
    final = np.array([code.get(label, len(code)) for label in column.labels], np.uint16)
    reason = f"text; {len(rare):,} rare categories are pooled"
    variable = Variable(column.name, (*code, OTHER), column.dtype, reason=reason, pooled=rare)
    return variable, final


def _reject_many_levels(column: Observed, most: int) -> None:
    n_levels = len(column.labels)
    if column.declared and n_levels > most:
        raise DataError(
            f"column '{column.name}' has {n_levels:,} ordered categories, more than ",
            Argument("max_categories", most),
            ": write its levels as numbers, which are cut into levels of nearly equal counts, "
            "merge neighbouring ones, or leave the column out with ",
            Argument("drop", [column.name]),
        )


def _apply_order(column: Observed, options: ReadOptions) -> None:
    """Put the categories of a column in the order that was given for it, if one was."""
    order = options.order_for(column.name, list(column.labels))
    if order is None:
        return
    twice = next((level for level in order if order.count(level) > 1), None)
    if twice is not None:
        raise DataError(Argument("order"), f" of column '{column.name}' names {twice!r} twice")
    known = {str(label): label for label in column.labels}
    unknown = sorted(set(known).difference(order))
    if unknown:
        raise DataError(
            f"column '{column.name}' has {listing(unknown)}, which its ",
            Argument("order"),
            " lacks: name all of its categories",
        )
    shown = dict(zip(map(str, column.labels), column.counts.tolist(), strict=True))
    column.first_rows = []
    column.counts = np.array([shown.get(level, 0) for level in order], np.int64)
    column.new_place = [order.index(str(label)) for label in column.labels]
    column.labels = [known.get(level, level) for level in order]
    column.kind, column.dtype = LabelKind.TEXT, "category[string]"
    column.declared = column.ordered = True


def _doubt(column: Observed, n_observed: int, options: ReadOptions, findings: Findings) -> None:
    """Note categories that are probably not what the user means."""
    if column.kind is LabelKind.TEXT and (twins := _twins(column.labels)):
        findings.twins.append((column.name, twins))
    if len(column.labels) <= options.max_numeric_states:
        return
    example = dressed_number(column.labels) if column.kind is LabelKind.TEXT else None
    if example is not None:
        findings.dressed.append((column.name, example))
    elif n_observed < LevelRule.rows * len(column.labels):
        findings.scattered.append((column.name, len(column.labels)))


def _twins(labels: list[str]) -> tuple[str, str] | None:
    """Return two labels that differ in blanks or capitals only, if there are such."""
    met: dict[str, str] = {}
    for label in labels:
        plain = " ".join(label.split())
        plain = plain.casefold() if len(plain) > 1 else plain  # single letters may be codes
        if met.setdefault(plain, label) != label:
            return met[plain], label
    return None


def _dressed_hint(column: Observed) -> str:
    example = dressed_number(column.labels) if column.kind is LabelKind.TEXT else None
    return "" if example is None else f"; if {example!r} is a number, write it plainly (1234.5)"


def _read_text(column: Observed) -> list[str]:
    """Find the type of a text column; return the few texts that keep it from being numeric."""
    texts = column.labels
    column.kind, column.labels = infer_labels(texts)
    if column.kind is LabelKind.FLOAT:
        for number, row in zip(column.labels, column.first_rows, strict=True):
            reject_infinity(column.name, float(number), row)
    column.dtype = _TEXT_DTYPE[column.kind]
    if column.kind is LabelKind.BOOL:
        # Two states are declared by the type, even if one of them does not occur.
        absent = [label for label in (False, True) if label not in column.labels]
        column.labels = [*column.labels, *absent]
        column.counts = np.append(column.counts, np.zeros(len(absent), np.int64))
    return odd_tokens(texts) if column.kind is LabelKind.TEXT else []


def _order(column: Observed, kind: Kind, reason: str) -> tuple[Variable, NDArray[np.uint16]]:
    """Sort the labels unless their order was declared; several texts may be one number."""
    labels = column.labels if column.declared else sorted(set(column.labels))
    code = {label: k for k, label in enumerate(labels)}
    final = np.array(column.new_place or [code[label] for label in column.labels], np.uint16)
    return Variable(
        column.name, tuple(labels), column.dtype, column.ordered, None, kind, reason
    ), final


def _reject_identifier(column: Observed, n_observed: int, odd: list[str]) -> None:
    if column.kind is LabelKind.FLOAT or not LevelRule.few_rows < n_observed == len(column.labels):
        return
    hint: list[str | Argument] = []
    if odd:
        hint = [f"; or, as it is numeric but for {listing(odd)}, use ", missing_values(odd)]
    raise DataError(
        f"column '{column.name}' has a different value in each of its {n_observed} rows, such as "
        f"{listing(column.labels, 3)}: it identifies rows and has no categories; leave it out "
        "with ",
        Argument("drop", [column.name]),
        *hint,
        _dressed_hint(column),
    )


def decide_bins(
    name: str,
    dtype: str,
    values: NDArray[np.float64],
    counts: NDArray[np.int64],
    options: ReadOptions,
    findings: Findings,
) -> Variable:
    """Return the variable of a numeric column that is to be binned, from its ascending values."""
    asked, wanted = options.bins_for(name), options.kind_for(name)
    integral = not dtype.startswith(("double", "float", "half"))
    all_differ = counts.sum() == len(values) > LevelRule.few_rows
    if asked is None and wanted is None and integral and all_differ:
        raise DataError(
            f"column '{name}' has a different whole number in each of its {len(values)} rows: it "
            "looks like an identifier; leave it out with ",
            Argument("drop", [name]),
            ", or bin it with ",
            Argument("bins", {name: LevelRule.nominal}),
        )
    if asked is None and wants_count(values, counts, wanted):
        edges, labels = count_levels(values, counts)
        reason = "as asked" if wanted else f"whole numbers from 0 with a tail to {values[-1]:g}"
        means = level_means(edges, values, counts)
        return Variable(name, labels, dtype, True, edges, "count", reason, means=means)
    default = LevelRule.nominal if wanted == "nominal" else LevelRule.numeric
    edges = bin_edges(values, counts, asked or default, options.bin_rule)
    if asked is None and wanted == "nominal":
        findings.binned.append((name, len(edges) - 1))
    reason = f"{len(values):,} different numbers" if wanted is None else "as asked"
    if wanted == "ordinal":
        reason = f"as asked; {len(values):,} different numbers are too many levels"
    kind: Kind = wanted or "numeric"
    means = level_means(edges, values, counts)
    return Variable(name, bin_labels(edges), dtype, True, edges, kind, reason, means=means)


def decide_sampled(
    name: str, dtype: str, sample: RowSample, options: ReadOptions, findings: Findings
) -> Variable:
    """Return the variable of a column of very many numbers, of which there is a sample."""
    values = sample.values(name)
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    # The bins cover the column, also if the sample left out its ends.
    for end in sample.extremes(name):
        if not distinct[0] <= end <= distinct[-1]:
            place = int(np.searchsorted(distinct, end))
            distinct, counts = np.insert(distinct, place, end), np.insert(counts, place, 1)
    if dtype == "string":  # of a text file, whose numbers have no type yet
        dtype = "int64" if bool(np.all(distinct == np.floor(distinct))) else "double"
    return decide_bins(name, dtype, distinct, counts, options, findings)
