"""What the commands about networks show and write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape

from edgegraft.cli.console import cell, say, show_table
from edgegraft.cli.model_commands import save_picture
from edgegraft.core.types import Integers
from edgegraft.errors import counted
from edgegraft.study import Comparison, NetworkReading, PowerPlan

_ENDS = ["first", "second"]
_MAX_POINTS = 50  # of a curve
Columns = dict[str, Any]


def write_answer(
    console: Console,
    table: tuple[Path | None, Columns],
    picture: tuple[Path | None, Callable[[], Any]],
    page: tuple[Path | None, Callable[[Path], None]] | None = None,
) -> None:
    """Write what was asked for of an answer: columns, a picture, a page."""
    if table[0] is not None:
        from edgegraft.io.exports import write_rows
        from edgegraft.study.columns import plain_columns

        write_rows(table[0], plain_columns(table[1]))
    if picture[0] is not None:
        save_picture(picture[1](), picture[0])
    if page is not None and page[0] is not None:
        page[1](page[0])
    for path in (table[0], picture[0], page and page[0]):
        if path is not None:
            say(console, f"Written: [bold]{escape(str(path))}[/].")


def show_comparison(console: Console, found: Comparison, top: int) -> None:
    """Show a comparison to people."""
    sizes = ", ".join(
        f"{cell(name)} ({counted(size, 'row')})"
        for name, size in zip(found.groups, found.sizes, strict=True)
    )
    say(console, f"Groups: {sizes}")
    by = counted(found.n_permutations, "permutation") if found.n_permutations else "tests of edges"
    say(console, f"[bold]All edges equal in all groups: p = {found.p_value:.3g}[/] (by {by})")
    n = len(found.edges["first"])
    names = [f"effect_{name}" for name in found.groups]
    names += ["difference", "p_value", "q_value", "p_permutation"]
    title = f"Edges that differ: {found.n_different:,} of {n:,} pairs; the clearest first"
    _show(console, title, found.edges, _ENDS, names, np.arange(n)[:top])
    order = np.argsort(found.variables["p_value"], kind="stable")[:top]
    numbers = ["n_edges", "n_different", "p_value", "q_value"]
    _show(console, "Variables", found.variables, ["name"], numbers, order)


def write_compared_page(found: Comparison, source: str, path: Path) -> None:
    """Write a page about groups compared."""
    from edgegraft.report import write_report

    model, columns = found.first_model()
    title = f"{source}: {' and '.join(found.groups)} compared"
    write_report(path, model, edge_columns=columns, comparison=found, title=title)


def show_reading(console: Console, found: NetworkReading, top: int) -> None:
    """Show what was read to people."""
    variables, edges = found.variables, found.edges
    order = np.argsort(-variables["strength"], kind="stable")
    numbers = ["community", "n_edges", "strength", "influence", "bridge", "accuracy", "usual"]
    numbers += ["explained", "r2", "held_accuracy", "held_explained"]
    title = f"{counted(len(order), 'variable')}, the strongest first"
    _show(console, title, variables, ["name"], numbers, order[:top])
    numbers = ["effect", "low", "high", "q_value", "returns"]
    strongest = np.argsort(-np.abs(edges["effect"]), kind="stable")
    title = "Edges, with intervals of 95 %; returns is the chance to be found again"
    _show(console, title, edges, _ENDS, numbers, strongest[:top])
    for name, share in found.coefficient.items():
        say(
            console,
            f"{share:.0%} of the rows can be dropped and {name} still correlates .7 with that of "
            "all rows (chance 95 %).",
        )
    if found.absent and len(found.absent["excluded"]):
        excluded = found.absent["excluded"]
        say(
            console,
            f"{counted(len(excluded), 'pair')} without an edge: the rows exclude effects above "
            f"{np.median(excluded):.2f} for half of them and above {excluded.max():.2f} for all.",
        )


def write_read_page(found: NetworkReading, model: Path, path: Path) -> None:
    """Write a page about a network that was read from a file."""
    from edgegraft.model import read_details
    from edgegraft.report import write_report

    stored = read_details(model)
    write_report(
        path,
        found.model,
        details=stored.details,
        edge_columns=stored.edge_columns,
        reading=found,
        title=f"The network of {model.name}, read",
    )


def show_plan(console: Console, found: PowerPlan, top: int) -> None:
    """Show how many rows are needed."""
    needed = f"{found.rows:,.0f} rows" if np.isfinite(found.rows) else "No number of rows"
    say(
        console,
        f"[bold]{needed}[/] for {found.power:.0%} of {counted(found.n_edges, 'edge')} at a false "
        f"discovery rate of {found.fdr:g} over {counted(found.n_pairs, 'pair')}",
    )
    title = "Expected share of edges found" + (", with intervals of 95 %" if found.now else "")
    first = np.arange(min(_MAX_POINTS, len(found.curve["rows"])))
    names = ["rows", "power", "power_low", "power_high", "simulated"]
    _show(console, title, found.curve, [], names, first)
    if found.now is None:
        return
    order = np.argsort(found.edges["rows"], kind="stable")[::-1]
    numbers = ["rows", "power_now", "power_twice", "kept"]
    title = f"Rows needed per edge; the fit had {found.now:,}"
    _show(console, title, found.edges, _ENDS, numbers, order[:top])
    if settled := [f"{cell(a)} -- {cell(b)}" for a, b in found.settled_by_twice()]:
        say(console, f"Not edges yet, but probably with twice the rows: {', '.join(settled)}")


def _show(
    console: Console,
    title: str,
    columns: Columns,
    names: list[str],
    numbers: list[str],
    order: Integers,
) -> None:
    """Show some rows of columns: names of variables, then those of the numbers that there are."""
    numbers = [name for name in numbers if name in columns]
    heads = ["variable"] * len(names) + [">" + name.replace("_", " ") for name in numbers]
    rows = [
        [cell(columns[name][k]) for name in names]
        + [_number(columns[name][k], name) for name in numbers]
        for k in order
    ]
    if rows:
        show_table(console, title, heads, rows)


def _number(value: Any, name: str) -> str:
    plain = value.item() if isinstance(value, np.generic) else value
    if name == "rows":
        return f"{plain:,.0f}" if np.isfinite(plain) else "never enough"
    if isinstance(plain, bool):
        return "yes" if plain else "no"
    if isinstance(plain, float):
        return "" if np.isnan(plain) else f"{plain:.3g}"
    return str(plain)
