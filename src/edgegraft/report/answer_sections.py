"""Sections of the report about groups compared and a network read, with their pictures."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from edgegraft.report import answer_plots
from edgegraft.report.page_html import as_number, as_text, titled_table
from edgegraft.study.comparison import Comparison
from edgegraft.study.reading import NetworkReading

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_ROWS = 100  # of a table
_MAX_DRAWN = 100  # variables whose heat map and centralities are drawn
_DPI = 120  # with outlines of letters, vector pictures are five times as large


def comparison_section(found: Comparison) -> str:
    """Report which edges and variables differ between groups."""
    sizes = ", ".join(
        f"{name} ({size:,} rows)" for name, size in zip(found.groups, found.sizes, strict=True)
    )
    by = "permutations of rows between groups" if found.n_permutations else "tests of edges"
    tested = len(found.edges["first"])
    facts = [
        ["groups", sizes],
        ["p-value that all networks are equal", f"{found.p_value:.3g}, by {by}"],
        ["edges that differ", f"{found.n_different:,} of {tested:,} pairs"],
    ]
    shown = ["first", "second", *(f"effect_{name}" for name in found.groups)]
    shown += ["difference", "p_value", "q_value"]
    body = titled_table("Groups", ("", ""), facts)
    alt = "The network of each group, and the edges that differ"
    body += picture(alt, lambda: answer_plots.plot_comparison(found)[0])
    body += column_table("Edges, the clearest differences first", found.edges, shown)
    heads = ["name", "n_edges", "n_different", "p_value", "q_value"]
    return body + column_table("Variables", found.variables, heads)


def reading_section(found: NetworkReading) -> str:
    """Report centrality, predictability, communities and stability of a network."""
    names = ["name", "community", "n_edges", "strength", "strength_low", "strength_high"]
    names += ["influence", "bridge", "stays", "accuracy", "usual", "explained", "r2"]
    names += [name for name in found.variables if name.startswith("community_")]
    names += [name for name in ("held_accuracy", "held_explained") if name in found.variables]
    order = np.argsort(-found.variables["strength"], kind="stable")
    variables = {name: found.variables[name][order] for name in names}
    body = column_table("Variables, the strongest first", variables, names) + _pictures(found)
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
    return body


def _pictures(found: NetworkReading) -> str:
    if not found.model.n_edges or found.model.n_variables > _MAX_DRAWN:
        return ""
    drawn = answer_plots.READING_PLOTS.values()
    return "".join(picture(alt, partial(draw, found)) for draw, alt in drawn)


def column_table(title: str, columns: Mapping[str, Any], names: list[str]) -> str:
    """Return some columns as a table, its first rows if there are many."""
    n = len(columns[names[0]])
    rows = [[_cell(columns[name][k]) for name in names] for k in range(min(n, _MAX_ROWS))]
    if n > _MAX_ROWS:
        title += f" ({_MAX_ROWS} of {n:,})"
    return titled_table(title, names, rows)


def _cell(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    return as_number(plain) if isinstance(plain, float) else plain


def picture(alt: str, draw: Callable[[], Axes]) -> str:
    """Return a picture as an image within the page; nothing if matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        return ""
    import matplotlib.pyplot as plt

    figure = draw().get_figure(root=True)
    assert figure is not None
    out = BytesIO()
    figure.savefig(out, format="png", dpi=_DPI, metadata={"Software": None})
    plt.close(figure)
    data = base64.b64encode(out.getvalue()).decode()
    return (
        f'<p><img alt="{as_text(alt)}" style="max-width: 100%" '
        f'src="data:image/png;base64,{data}"></p>\n'
    )
