"""The sections of a page in HTML, empty if nothing is known.

Every name, category and setting passes through :func:`~edgegraft.report.page_html.as_text`.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping
from string import Template
from typing import Any

import numpy as np

from edgegraft import __version__
from edgegraft.report.page_html import (
    as_number,
    as_text,
    asset,
    data_text,
    fact_list,
    heat_map,
    list_table,
    titled_table,
    value_cell,
)
from edgegraft.report.page_model import ModelSummary

_TOP_EDGES = 50
_OPEN_TABLES = 4  # shown without a click
_MAX_VARIABLES = 1000
_MAX_RARE = 100
_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "pyarrow")
_ELSEWHERE = ("source", "settings", "certificate", "cut", "shares", "versions")


def summary_section(
    about: ModelSummary, details: Mapping[str, Any], quality: Mapping[str, Any] | None
) -> str:
    """Summarise the model and its source."""
    model = about.model
    alone = int((about.degree == 0).sum())
    facts: list[tuple[str, Any]] = [("variables", model.n_variables), ("edges", model.n_edges)]
    facts.append(("parameters", model.layout.n_parameters))
    source = details.get("source")
    if isinstance(source, Mapping):
        facts += [
            (key, value) for key, value in source.items() if isinstance(value, str | int | float)
        ]
    if quality and "n_rows" in quality and not any(name == "rows" for name, _ in facts):
        facts.append(("rows", quality["n_rows"]))
    if alone:
        facts.append(("variables without an edge", alone))
    tiles = "".join(
        f"<div><dt>{as_text(name)}</dt><dd>{value_cell(value)}</dd></div>" for name, value in facts
    )
    text = f'<dl class="tiles">{tiles}</dl>'
    hubs = [int(v) for v in np.lexsort((-about.total, -about.degree))[:5] if about.degree[v] > 1]
    if hubs:
        names = ", ".join(f"{data_text(model.names[v])} ({about.degree[v]:,})" for v in hubs)
        text += f"<p>Most edges: {names}.</p>"
    return (
        text + "<p>Two variables share an edge if they still depend on each other once all other "
        "variables are known. An edge has no direction and does not prove a cause.</p>"
    )


def network_section(about: ModelSummary) -> str:
    """Return the container of the network, and its controls."""
    network, model = about.network, about.model
    if not len(network.edges):
        return "<p>The model has no edges: its variables are independent.</p>"
    left_out = (
        f" Drawn are the {len(network.edges):,} strongest of {model.n_edges:,} edges."
        if len(network.edges) < model.n_edges
        else ""
    )
    signs = (
        ' <span class="positive">Positive</span> edges join the first categories of two variables '
        'with each other, <span class="negative">negative</span> ones the first with the last; '
        "grey edges have no sign, because a column has no order."
        if network.sign.any()
        else ""
    )
    return Template(asset("network.html")).substitute(signs=signs, left_out=left_out)


def edges_section(about: ModelSummary) -> str:
    """List the strongest edges, each with its interaction table."""
    model = about.model
    if not model.n_edges:
        return ""
    shown = about.order[:_TOP_EDGES].tolist()
    rows = []
    for rank, which in enumerate(shown):
        ends = " &ndash; ".join(data_text(model.names[v]) for v in model.edges[which])
        cells = "".join(
            f"<td>{as_number(values[which].item())}</td>" for values in about.attributes.values()
        )
        opened = " open" if rank < _OPEN_TABLES else ""
        table = heat_map(about.table(which), [model.names[v] for v in model.edges[which]])
        rows.append(
            f"<tr><td><details{opened}><summary>{ends}</summary>{table}</details></td>{cells}</tr>"
        )
    many = f"The {len(shown):,} strongest of " if len(shown) < model.n_edges else "All "
    return (
        f"<p>{many}{model.n_edges:,} edges. Tables show which categories go together: blue pairs "
        "occur more often, vermillion pairs less often, than the rest of the model predicts "
        "(log-potentials; rows and columns sum to zero).</p>"
        + list_table(["edge", *about.attributes], rows)
    )


def variables_section(about: ModelSummary, quality: Mapping[str, Any] | None) -> str:
    """List the variables with their edges and their most likely categories."""
    model = about.model
    missing = (quality or {}).get("missing", {})
    n_rows = (quality or {}).get("n_rows", 0)
    order = np.lexsort((-about.total, -about.degree))[:_MAX_VARIABLES].tolist()
    heads = ["variable", "kind", "edges", "strength", "categories"]
    heads += ["missing"] if missing and n_rows else []
    heads += ["probabilities"] if about.marginals is not None else []
    rows = []
    for v in order:
        name = model.names[v]
        numbers: list[Any] = [int(about.degree[v]), float(about.total[v]), model.schema[v].n_states]
        kind, reason = model.schema[v].kind, model.schema[v].reason
        cells = [f"<th>{data_text(name)}</th>"]
        cells.append(f'<td title="{as_text(reason)}">{kind}</td>')
        cells += [f'<td data-value="{number}">{as_number(number)}</td>' for number in numbers]
        if missing and n_rows:
            share = float(missing.get(name, 0)) / float(n_rows)
            cells.append(f'<td data-value="{share}">{share:.1%}</td>')
        if about.marginals is not None:
            cells.append(f'<td class="bars">{_shares(about, v)}</td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    cut = ""
    if len(order) < model.n_variables:
        cut = f"<p>The {len(order):,} of {model.n_variables:,} variables with the most edges.</p>"
    note = f"{cut}<p>{as_text(about.marginals_note)}</p>"
    return note + list_table(heads, rows, "list sortable")


def trajectory_section(has_trace: bool) -> str:
    """Return the container of the chart of the search."""
    return '<div class="chart" data-chart="trace"></div>' if has_trace else ""


def certificate_section(details: Mapping[str, Any]) -> str:
    """Report what was checked at the end of the search, and the result."""
    found = details.get("certificate")
    if not found:
        return ""
    if not isinstance(found, Mapping):
        return f"<p>{as_text(found)}</p>"
    rest = {key: value for key, value in found.items() if key != "text"}
    result = f"<p>{as_text(found['text'])}.</p>" if "text" in found else ""
    shares = details.get("shares")
    if isinstance(shares, Mapping) and "text" in shares:
        result += f"<p>{as_text(shares['text'])}</p>"
    return (
        "<p>At the end of the search, pairs without an edge were checked once more: one that "
        f"violates optimality should have been an edge.</p>{result}{fact_list(rest)}"
    )


def quality_section(quality: Mapping[str, Any] | None, n_variables: int) -> str:
    """Report missing cells, rare categories and omitted columns."""
    if not quality:
        return ""
    missing = dict(quality.get("missing", {}))
    n_rows = int(quality.get("n_rows", 0))
    cells = sum(int(count) for count in missing.values())
    share = f" ({cells / (n_rows * n_variables):.2%})" if n_rows and n_variables else ""
    parts = [
        f"<p>{n_rows:,} rows. {cells:,} cells are missing{share}.</p>"
        if cells
        else f"<p>{n_rows:,} rows. No cell is missing.</p>"
    ]
    if missing:
        most = sorted(missing.items(), key=lambda item: -int(item[1]))[:_MAX_RARE]
        parts.append(titled_table("Missing cells", ("variable", "cells"), most))
    rare = list(quality.get("rare", ()))
    if rare:
        rows = [(r["variable"], r["category"], int(r["count"])) for r in rare[:_MAX_RARE]]
        title = f"Categories in fewer than {int(quality.get('rare_below', 10)):,} rows"
        n_rare = int(quality.get("n_rare", len(rare)))
        if n_rare > len(rows):
            title += f": the {len(rows)} rarest of {n_rare:,}"
        parts.append(titled_table(title, ("variable", "category", "rows"), rows))
    if quality.get("dropped"):
        parts.append(titled_table("Omitted columns", ("column", "why"), quality["dropped"].items()))
    notes = "".join(f"<li>{as_text(note)}</li>" for note in quality.get("notes", ()))
    return "".join(parts) + (f"<ul>{notes}</ul>" if notes else "")


def settings_section(details: Mapping[str, Any]) -> str:
    """List everything needed to repeat the run."""
    rest = {key: value for key, value in details.items() if key not in _ELSEWHERE}
    settings = details.get("settings")
    if not isinstance(settings, Mapping):
        settings = {} if settings is None else {"settings": settings}
    body = "".join(
        f"<h3>{title}</h3>{fact_list(facts)}"
        for title, facts in (("Settings", settings), ("The run", rest))
        if facts
    )
    versions = details.get("versions")
    if not isinstance(versions, Mapping):
        versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
        versions |= {"edgegraft": __version__, "python": platform.python_version()}
        note = "Versions are those that wrote this page."
    else:
        note = f"Versions are those of the run; edgegraft {__version__} wrote this page."
    return f'{body}<h3>Versions</h3>{fact_list(versions)}<p class="note">{as_text(note)}</p>'


def _shares(about: ModelSummary, variable: int) -> str:
    shown = about.likeliest(variable, 6)
    text = ", ".join(f"{data_text(label)} {p:.0%}" for label, p in shown)
    return text + (", …" if about.model.schema[variable].n_states > len(shown) else "")
