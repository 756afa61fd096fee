"""Sections of a page about what was asked of a network: groups compared, variables read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from edgegraft.report.escape import as_number
from edgegraft.report.page_html import titled_table
from edgegraft.report.page_sections import Section
from edgegraft.study.comparison import Comparison
from edgegraft.study.reading import NetworkReading

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


def reading_section(found: NetworkReading) -> Section:
    """Report centrality, predictability, communities and stability of a network."""
    names = ["name", "community", "n_edges", "strength", "strength_low", "strength_high"]
    names += ["influence", "bridge", "stays", "accuracy", "usual", "explained", "r2"]
    names += [name for name in ("held_accuracy", "held_explained") if name in found.variables]
    order = np.argsort(-found.variables["strength"], kind="stable")
    variables = {name: found.variables[name][order] for name in names}
    body = column_table("Variables, the strongest first", variables, names)
    edges = [name for name in ("q_value", "returns") if name in found.edges]
    shown = ["first", "second", "effect", "low", "high", *edges]
    body += column_table("Edges, with intervals of 95 %", found.edges, shown)
    body += (
        "<p>Returns is the chance that another sample of as many rows shows the edge. Rows that "
        "can be dropped such that centralities correlate at least .7 with those of all rows, with "
        f"a chance of 95 %: {found.coefficient['strength']:.0%} for strength, "
        f"{found.coefficient['influence']:.0%} for expected influence.</p>"
    )
    if found.absent:
        order = np.argsort(found.absent["excluded"], kind="stable")
        absent = {name: values[order] for name, values in found.absent.items()}
        title = "Pairs that are not edges, and the effect above which the rows exclude one"
        body += column_table(title, absent, ["first", "second", "p_value", "excluded"])
    return "reading", "The network read", body


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
