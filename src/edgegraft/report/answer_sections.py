"""Sections of a page about what was asked of a network: groups compared, variables read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from edgegraft.report.escape import as_number
from edgegraft.report.page_html import titled_table
from edgegraft.report.page_sections import Section
from edgegraft.study.comparison import Comparison

_MAX_ROWS = 100


def comparison_section(found: Comparison) -> Section:
    """Report which edges and variables differ between groups."""
    sizes = ", ".join(
        f"{name} ({size:,} rows)" for name, size in zip(found.groups, found.sizes, strict=True)
    )
    by = "permutations of rows between groups" if found.n_permutations else "tests of edges"
    tested = len(found.edges["first"])
    facts = [
        ["groups", sizes],
        ["p-value that all networks are equal", f"{found.p_value:.3g}, by {by}"],
        ["edges that differ", f"{found.n_different:,} of {tested:,}"],
    ]
    shown = ["first", "second", *(f"effect_{name}" for name in found.groups)]
    shown += ["difference", "p_value", "q_value"]
    body = titled_table("Groups", ("", ""), facts)
    body += column_table("Edges, the clearest differences first", found.edges, shown)
    heads = ["name", "n_edges", "n_different", "p_value", "q_value"]
    body += column_table("Variables", found.variables, heads)
    return "comparison", "Groups compared", body


def column_table(title: str, columns: Mapping[str, Any], names: list[str]) -> str:
    """Return some columns as a table, its first rows if there are many."""
    n = len(columns[names[0]])
    rows = [[_cell(columns[name][k]) for name in names] for k in range(min(n, _MAX_ROWS))]
    if n > _MAX_ROWS:
        title += f" ({_MAX_ROWS} of {n:,})"
    return titled_table(title, [name.replace("_", " ") for name in names], rows)


def _cell(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    return as_number(plain) if isinstance(plain, float) else plain
