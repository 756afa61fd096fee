"""Tables and models, described for programs and shown to people.

``edgegraft info`` imports this module: nothing heavy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from edgegraft.cli.console import SCREEN, cell, say, show_table
from edgegraft.errors import counted

if TYPE_CHECKING:
    from edgegraft.model import StoredModel
    from edgegraft.table import PackedTable, Variable
    from edgegraft.table.blocks import RowStore

Json = dict[str, Any]
_SIGNS = {1: ("blue", "+"), -1: ("dark_orange", "-"), 0: ("default", " ")}
_DOUBTFUL = (" ", "?", "-", "--", ".", "*")  # often written for a missing cell, not read as one


def describe_model(model: StoredModel, columns: Mapping[str, Any], path: Path) -> Json:
    """Return the network and the details of a stored model, the strongest edges first.

    `columns` has values of the edges, among them "strength".
    """
    network = columns.get("in_network", np.ones(len(model.edges), bool))
    order = np.lexsort((-columns["strength"], ~network))
    edges = [
        {"first": model.names[i], "second": model.names[j]}
        | {name: _number(values[k]) for name, values in columns.items()}
        for k, (i, j) in zip(order.tolist(), model.edges[order].tolist(), strict=True)
    ]
    variables = json.loads(model.schema_json)["variables"]
    return {
        "model": str(path),
        "variables": len(model.names),
        "states": sum(model.n_states),
        "parameters": len(model.theta),
        "written_by": model.written_by,
        "categories": {variable["name"]: variable["categories"] for variable in variables},
        "kinds": {
            variable["name"]: {
                "kind": variable.get("kind", "nominal"),
                "reason": variable.get("reason", ""),
            }
            for variable in variables
        },
        "edges": edges,
        "hubs": _hubs(model.names, model.edges[network], columns["strength"][network]),
        "details": model.details,
    }


def _number(value: Any) -> Any:
    """Return an edge's value for JSON, which has no infinity."""
    plain = value.item()
    return plain if np.isfinite(plain) else None


def _hubs(names: Sequence[str], edges: np.ndarray, strengths: np.ndarray) -> list[Json]:
    """Return the variables of most edges, at least two; of equal ones the stronger first."""
    n = len(names)
    degree = np.bincount(edges.ravel(), minlength=n)
    total = np.bincount(edges.ravel(), np.repeat(strengths, 2), minlength=n)
    order = np.lexsort((-total, -degree))[: SCREEN.names]
    return [
        {"variable": names[i], "edges": int(degree[i]), "strength": _number(total[i])}
        for i in order
        if degree[i] > 1
    ]


def show_model(console: Console, found: Json, top: int) -> None:
    """Show a description to people."""
    n_edges = len(found["edges"])
    say(
        console,
        f"[bold]{counted(found['variables'], 'variable')}, {counted(n_edges, 'edge')}[/], "
        f"{counted(found['parameters'], 'parameter')}; written by {escape(found['written_by'])}",
    )
    if n_edges and "in_network" in found["edges"][0]:
        n_network = sum(edge["in_network"] for edge in found["edges"])
        say(
            console,
            f"A model for prediction: {counted(n_network, 'edge')} of it passed the tests and "
            "make up the network, listed first; the others help to predict.",
        )
    if top and n_edges:
        _show_edges(console, found["edges"], top)
    if found["hubs"]:
        hubs = ", ".join(f"{cell(hub['variable'])} ({hub['edges']})" for hub in found["hubs"])
        say(console, f"Most edges: {hubs}")
    for line in _history(found["details"]):
        say(console, escape(line))


def _show_edges(console: Console, edges: list[Json], top: int) -> None:
    n, shown = len(edges), edges[:top]
    title = f"The {top:,} strongest of {n:,} edges" if n > top else counted(n, "edge")
    signed = any(edge.get("sign") for edge in shown)
    columns = [("variable", [edge[end] for edge in shown]) for end in ("first", "second")]
    for name in ("strength", "q_value", "frequency"):
        if name in edges[0]:
            values = [edge[name] for edge in shown]
            if name == "strength":
                values = [_strength(edge, signed) for edge in shown]
            elif name == "q_value":
                values = [None if edge.get("dof") == 0 else edge[name] for edge in shown]
            columns.append((name.replace("_", "-"), values))
    show_table(console, title, columns)
    if signed:
        say(console, "Strengths are on the scale of a correlation, + and - their signs.")


def _strength(edge: Json, signed: bool) -> Text:
    """Return a strength, infinite if it is None, with the sign of its edge if edges have signs."""
    number = "inf" if edge["strength"] is None else f"{edge['strength']:.3f}"
    colour, mark = _SIGNS[int(edge["sign"])] if signed else _SIGNS[0]
    return Text(mark * signed + number, colour, justify="right")


def show_variables(console: Console, found: Json) -> None:
    """Show the variables of a description with their categories; of many, those with most edges."""
    degree = dict.fromkeys(found["categories"], 0)
    for edge in found["edges"]:
        degree[edge["first"]] += 1
        degree[edge["second"]] += 1
    variables = [
        {"name": name, "edges": degree[name], "labels": _labels(categories)} | found["kinds"][name]
        for name, categories in found["categories"].items()
    ]
    title = counted(len(variables), "variable")
    _show_columns(console, title, variables, ("edges",), lambda own: -own["edges"])


def show_columns(console: Console, table: PackedTable | RowStore) -> None:
    """Show the columns; of many, those that are binned, constant or incomplete come first."""
    columns = describe_columns(table)
    for own, variable in zip(columns, table.schema, strict=True):
        share = f"{own['missing']:,} ({own['missing'] / table.n_rows:.1%})"
        own |= {"plain": not (own["binned"] or own["states"] == 1 or own["missing"])}
        own |= {
            "missing": Text(share if own["missing"] else "", justify="right"),
            "labels": _states(variable),
        }
    title = f"{counted(table.n_variables, 'column')} of {counted(table.n_rows, 'row')}"
    _show_columns(console, title, columns, ("states", "missing"), lambda own: own["plain"])
    for token in _DOUBTFUL:
        count = sum(token in variable.categories for variable in table.schema)
        if count:
            say(
                console,
                f"'{token}' is a category of {counted(count, 'column')}: if it means missing, "
                f"add --missing '{token}'.",
            )


def _show_columns(
    console: Console,
    title: str,
    columns: list[Json],
    facts: Sequence[str],
    order: Callable[[Json], Any],
) -> None:
    """Show columns with some facts, in an order if they are many, and why they have their kinds."""
    shown = sorted(columns, key=order)[: SCREEN.rows] if len(columns) > SCREEN.rows else columns
    heads = {"name": "column", "kind": "kind", **{fact: fact for fact in facts}}
    heads["labels"] = "categories"
    cells = [(head, [own[key] for own in shown]) for key, head in heads.items()]
    show_table(console, title, cells)
    groups: dict[tuple[str, str], list[str]] = {}  # most columns share a reason
    for own in columns:
        if own["reason"]:
            groups.setdefault((own["kind"], own["reason"]), []).append(own["name"])
    largest = sorted(groups.items(), key=lambda group: -len(group[1]))
    for (kind, reason), names in largest[: SCREEN.reasons]:
        few = ", ".join(cell(name, 30) for name in names[: SCREEN.names])
        more = f" and {len(names) - SCREEN.names:,} more" if len(names) > SCREEN.names else ""
        say(console, f"{kind} ({cell(reason, SCREEN.letters)}): {few}{more}")
    if len(largest) > SCREEN.reasons:
        say(console, f"... and {len(largest) - SCREEN.reasons:,} more reasons; --json has all.")
    if len(columns) > SCREEN.rows:
        say(console, f"... and {len(columns) - SCREEN.rows:,} more columns; --json has all.")


def _history(details: Json) -> list[str]:
    """Return how a model was learned, a line per subject; files may lack any of them."""
    lines = []
    source, search = details.get("source"), details.get("search")
    if isinstance(source, dict):
        line = f"Learned from {counted(source.get('rows', 0), 'row')} of '{source.get('file')}'"
        if source.get("weights") is not None:
            line += f", weighted by '{source['weights']}'"
        if source.get("sample") is not None:
            done = "all was done" if source.get("fitted") else "edges were tested"
            line += f"; {done} on a sample of about {counted(source['sample'], 'row')}"
        lines.append(line)
    if isinstance(search, dict):
        ended = f"The search ended with {counted(search.get('edges', 0), 'edge')}"
        converged = details.get("converged") in (True, None)
        unless = "" if converged else " (the last fit did not converge)"
        lines.append(f"{ended}: {details.get('reason')}{unless}")
    settings = [
        f"{name} {details[name]:.4g}"
        for name in ("penalty", "ridge", "fdr")
        if isinstance(details.get(name), float)
    ]
    if settings:
        lines.append("Used: " + ", ".join(settings))
    if isinstance(details.get("certificate"), dict):
        lines.append(f"Certificate of the network: {details['certificate'].get('text')}")
    if shares_of(details):
        lines.append(shares_of(details))
    if isinstance(details.get("simulated"), dict):
        lines.append(f"A simulated truth: {details['simulated']}")
    return lines


def shares_of(details: Mapping[str, Any]) -> str:
    """Return the sentence on the shares of a stored network's model; empty if there is none."""
    shares = details.get("shares")
    return str(shares.get("text", "")) if isinstance(shares, dict) else ""


def describe_columns(table: PackedTable | RowStore) -> list[Json]:
    """Return a description of each column, for programs."""
    return [
        {
            "name": variable.name,
            "type": variable.dtype,
            "kind": variable.kind,
            "reason": variable.reason,
            "states": variable.n_states,
            "missing": int(missing),
            "binned": variable.binned,
        }
        for variable, missing in zip(table.schema, table.n_missing, strict=True)
    ]


def _states(variable: Variable) -> Text:
    labels = _labels(variable.categories)
    if variable.binned:
        labels = Text(f"{variable.n_states} bins: ") + labels
    elif variable.n_states == 1:
        labels = Text("constant, so without edges: ") + labels
    return labels


def _labels(categories: Sequence[Any]) -> Text:
    labels = ", ".join(cell(label, 30) for label in categories[: SCREEN.names])
    return Text.from_markup(labels + (", ..." if len(categories) > SCREEN.names else ""))
