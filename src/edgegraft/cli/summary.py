"""What a model file tells of its network and of how it was learned.

This module is imported by ``edgegraft info``: nothing heavy, unless the file lacks strengths.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from edgegraft.cli.console import say
from edgegraft.cli.wording import cell, counted
from edgegraft.model.file import StoredModel

Json = dict[str, Any]
_HUBS = 5


def describe(stored: StoredModel, path: Path, strengths: np.ndarray | None = None) -> Json:
    """Return the network and the details of a model file, the strongest edges first.

    Strengths that are given take the place of the file's.
    """
    columns = {"strength": _strengths(stored, path), **stored.edge_columns}
    if strengths is not None:
        columns["strength"] = strengths
    order = np.argsort(-columns["strength"], kind="stable")
    edges = [
        {"first": stored.names[i], "second": stored.names[j]}
        | {name: _number(values[k]) for name, values in columns.items()}
        for k, (i, j) in zip(order.tolist(), stored.edges[order].tolist(), strict=True)
    ]
    return {
        "model": str(path),
        "variables": len(stored.names),
        "states": sum(stored.n_states),
        "parameters": len(stored.theta),
        "written_by": stored.written_by,
        "edges": edges,
        "hubs": _hubs(stored, columns["strength"]),
        "details": stored.details,
    }


def _strengths(stored: StoredModel, path: Path) -> np.ndarray:
    if "strength" in stored.edge_columns:
        return np.asarray(stored.edge_columns["strength"], np.float64)
    from edgegraft.model import load  # a model that Python saved: worked out from its tables

    return load(path).edge_strengths()


def _number(value: Any) -> Any:
    """Return an edge's value for JSON, which has no infinity."""
    plain = value.item()
    return plain if np.isfinite(plain) else None


def _hubs(stored: StoredModel, strengths: np.ndarray) -> list[Json]:
    """Return the variables of most edges, two at least; of equal ones the stronger first."""
    n = len(stored.names)
    degree = np.bincount(stored.edges.ravel(), minlength=n)
    total = np.bincount(stored.edges.ravel(), np.repeat(strengths, 2), minlength=n)
    order = np.lexsort((-total, -degree))[:_HUBS]
    return [
        {"variable": stored.names[i], "edges": int(degree[i]), "strength": _number(total[i])}
        for i in order
        if degree[i] > 1
    ]


def show(console: Console, found: Json, top: int) -> None:
    """Show a description to people."""
    n_edges = len(found["edges"])
    say(
        console,
        f"[bold]{counted(found['variables'], 'variable')}, {counted(n_edges, 'edge')}[/], "
        f"{counted(found['parameters'], 'parameter')}; written by {escape(found['written_by'])}",
    )
    if top and n_edges:
        _show_edges(console, found["edges"], top)
    if found["hubs"]:
        hubs = ", ".join(f"{cell(hub['variable'])} ({hub['edges']})" for hub in found["hubs"])
        say(console, f"Most edges: {hubs}")
    for line in _history(found["details"]):
        say(console, escape(line))


def _show_edges(console: Console, edges: list[Json], top: int) -> None:
    n = len(edges)
    title = f"The {top:,} strongest of {n:,} edges" if n > top else counted(n, "edge")
    table = Table(title=title, title_justify="left")
    table.add_column("variable", overflow="fold")
    table.add_column("variable", overflow="fold")
    numeric = [name for name in ("strength", "q_value", "frequency") if name in edges[0]]
    for name in numeric:
        table.add_column(name.replace("_", "-"), justify="right")
    for edge in edges[:top]:
        untold = edge.get("dof") == 0  # no test can tell of such an edge
        cells = [
            "" if untold and name == "q_value" else _cell(name, edge[name]) for name in numeric
        ]
        table.add_row(cell(edge["first"]), cell(edge["second"]), *cells)
    console.print(table, highlight=False)


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "inf" if name == "strength" else ""
    return f"{value:.1e}" if name == "q_value" else f"{value:.3f}"


def _history(details: Json) -> list[str]:
    """Return what is known of how a model was learned, a line a subject; files may lack any."""
    lines = []
    source, search = details.get("source"), details.get("search")
    if isinstance(source, dict):
        line = f"Learned from {counted(source.get('rows', 0), 'row')} of '{source.get('file')}'"
        if source.get("weights") is not None:
            line += f", weighed by '{source['weights']}'"
        if source.get("sample") is not None:
            done = "all was done" if source.get("fitted") else "edges were tested"
            line += f"; {done} on a sample of about {counted(source['sample'], 'row')}"
        lines.append(line)
    if isinstance(search, dict):
        ended = f"The search ended with {counted(search.get('edges', 0), 'edge')}"
        lines.append(f"{ended}: {details.get('reason')}" + _unless(details.get("converged")))
    settings = [
        f"{name} {details[name]:.4g}"
        for name in ("penalty", "ridge", "fdr")
        if isinstance(details.get(name), float)
    ]
    if settings:
        lines.append("Used: " + ", ".join(settings))
    if isinstance(details.get("certificate"), dict):
        lines.append(f"Certificate of the search: {details['certificate'].get('text')}")
    if isinstance(details.get("simulated"), dict):
        lines.append(f"A simulated truth: {details['simulated']}")
    return lines


def _unless(converged: Any) -> str:
    return "" if converged in (True, None) else " (the last fit did not converge)"
