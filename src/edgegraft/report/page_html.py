"""HTML building blocks of a page, with text from the data escaped for each context."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from edgegraft.report.style import INK, diverging

if TYPE_CHECKING:
    from edgegraft.report.page_model import InteractionTable

# "<" could end the script element, "&" is special in XHTML; JSON accepts both in escaped form.
_IN_SCRIPT = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


def asset(name: str) -> str:
    """Return a file of the page: its script, style or a part of its markup."""
    return resources.files("edgegraft.report").joinpath("assets", name).read_text("utf-8")


def as_text(value: Any) -> str:
    """Return a value for the text, or a quoted attribute, of an HTML element.

    >>> as_text('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    # Lone surrogates cannot be encoded: they are shown in escaped form.
    return html.escape(str(value).encode("utf-8", "backslashreplace").decode(), quote=True)


def as_script_json(value: Any) -> str:
    r"""Return a value as JSON that is safe inside a script element.

    Everything outside ASCII is escaped, including the line separators that JavaScript rejects.
    Numbers that JSON cannot express are refused.

    >>> as_script_json({"name": "</script>\u2028"})
    '{"name":"\\u003c/script\\u003e\\u2028"}'
    """
    return json.dumps(value, allow_nan=False, separators=(",", ":")).translate(_IN_SCRIPT)


def as_number(value: Any) -> str:
    """Return a formatted number: integers with separators, others with three digits.

    >>> as_number(12345), as_number(0.012345), as_number(float("inf")), as_number(float("nan"))
    ('12,345', '0.0123', '∞', 'n/a')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if math.isnan(value):
        return "n/a"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def for_json(value: float, digits: int = 4) -> float | None:
    """Return a rounded number, or None if JSON cannot express it."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None


def heat_map(table: InteractionTable, names: Sequence[str]) -> str:
    """Return an interaction table with its numbers on coloured cells."""
    finite = table.values[np.isfinite(table.values)]
    limit = float(np.abs(finite).max(initial=0.0))
    heads = "".join(f'<th scope="col">{data_text(label)}</th>' for label in table.columns)
    rows = []
    for label, values in zip(table.rows, table.values.tolist(), strict=True):
        cells = ""
        for value in values:
            dark = not np.isfinite(value) or (limit > 0 and abs(value) > 0.65 * limit)
            back = diverging(value, limit) if np.isfinite(value) else INK
            text = f"{value:+.2f}" if np.isfinite(value) else "never"
            ink = "#fff" if dark else INK
            cells += f'<td style="background:{back};color:{ink}">{text}</td>'
        rows.append(f'<tr><th scope="row">{data_text(label)}</th>{cells}</tr>')
    part = ""
    if table.values.shape != table.whole:
        part = f" (the categories touched most, of {table.whole[0]:,} by {table.whole[1]:,})"
    caption = f"{data_text(names[0])} down, {data_text(names[1])} across{part}"
    return (
        f'<table class="heat"><caption>{caption}</caption><thead><tr><td></td>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def list_table(heads: Iterable[str], rows: Iterable[str], kind: str = "list") -> str:
    """Return a table of rows, each in HTML, under heads, which are text."""
    head = "".join(f"<th>{as_text(name.replace('_', ' '))}</th>" for name in heads)
    return (
        f'<div class="scroll"><table class="{kind}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def titled_table(title: str, heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table of values under a heading."""
    cells = ("".join(f"<td>{value_cell(cell)}</td>" for cell in row) for row in rows)
    return f"<h3>{as_text(title)}</h3>" + list_table(heads, (f"<tr>{row}</tr>" for row in cells))


def fact_list(facts: Mapping[str, Any]) -> str:
    """Return a list of names and values, those of nested dicts in turn; empty if there are none."""
    rows = "".join(
        f"<dt>{as_text(name)}</dt><dd>{value_cell(value)}</dd>" for name, value in _flat(facts)
    )
    return f'<dl class="pairs">{rows}</dl>' if rows else ""


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key} · ")
        else:
            yield f"{prefix}{key}", value


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
