"""HTML building blocks of a page, with names and values escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from edgegraft.report.escape import as_number, as_text
from edgegraft.report.page_model import InteractionTable
from edgegraft.report.style import INK, diverging


def heat_map(table: InteractionTable, names: Sequence[str]) -> str:
    """Return an interaction table with its numbers on coloured cells."""
    finite = table.values[np.isfinite(table.values)]
    limit = float(np.abs(finite).max(initial=0.0))
    heads = "".join(f'<th scope="col">{data_text(label)}</th>' for label in table.columns)
    rows = []
    for label, values in zip(table.rows, table.values.tolist(), strict=True):
        cells = "".join(_heat_cell(value, limit) for value in values)
        rows.append(f'<tr><th scope="row">{data_text(label)}</th>{cells}</tr>')
    part = ""
    if table.values.shape != table.whole:
        part = f" (the categories touched most, of {table.whole[0]:,} by {table.whole[1]:,})"
    caption = f"{data_text(names[0])} down, {data_text(names[1])} across{part}"
    return (
        f'<table class="heat"><caption>{caption}</caption><thead><tr><td></td>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _heat_cell(value: float, limit: float) -> str:
    if not np.isfinite(value):
        return f'<td style="background:{INK};color:#fff">never</td>'
    ink = "#fff" if limit > 0 and abs(value) > 0.65 * limit else INK
    return f'<td style="background:{diverging(value, limit)};color:{ink}">{value:+.2f}</td>'


def titled_table(title: str, heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table of values under a heading."""
    head = "".join(f"<th>{as_text(name)}</th>" for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{value_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f'<h3>{as_text(title)}</h3><div class="scroll"><table class="list"><thead><tr>{head}</tr>'
        f"</thead><tbody>{body}</tbody></table></div>"
    )


def fact_list(facts: Iterable[tuple[str, Any]]) -> str:
    """Return a list of names and values; empty if there are none."""
    rows = "".join(f"<dt>{as_text(name)}</dt><dd>{value_cell(value)}</dd>" for name, value in facts)
    return f'<dl class="pairs">{rows}</dl>' if rows else ""


def flattened(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Return the entries of nested dicts under joined names."""
    found: list[tuple[str, Any]] = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            found += flattened(value, f"{prefix}{key} · ")
        else:
            found.append((f"{prefix}{key}", value))
    return found


def value_cell(value: Any) -> str:
    """Return a value of any plain type; numbers keep all digits, so that runs can be repeated."""
    if value is None:
        return "none"
    if isinstance(value, bool | int):
        return as_number(value)
    if isinstance(value, float):
        return as_text(repr(value))
    if isinstance(value, list | tuple):
        shown = ", ".join(value_cell(entry) for entry in value[:20])
        return shown + (f", … ({len(value):,} in total)" if len(value) > 20 else "") or "none"
    return data_text(value)


def data_text(value: Any) -> str:
    """Return text from the data, isolated so that right-to-left text does not affect the rest."""
    return f"<bdi>{as_text(value)}</bdi>"
