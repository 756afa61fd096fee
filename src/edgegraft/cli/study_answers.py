"""What the commands about networks show and write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from edgegraft.cli.console import cell, say, show_table
from edgegraft.cli.model_commands import save_picture
from edgegraft.core.types import Integers
from edgegraft.errors import counted
from edgegraft.study import Comparison, NetworkReading, PowerPlan

_ENDS = ["first", "second"]


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
    shown = [name for name in names if name in found.edges]
    if top and n:
        title = f"Edges that differ: {found.n_different:,} of {n:,} pairs; the clearest first"
        _show(console, title, found.edges, _ENDS, shown, np.arange(min(top, n)))
    order = np.argsort(found.variables["p_value"], kind="stable")[:top]
    numbers = ["n_edges", "n_different", "p_value", "q_value"]
    _show(console, "Variables", found.variables, ["name"], numbers, order)


def write_comparison(
    found: Comparison, output: Path | None, report: Path | None, picture: Path | None, source: str
) -> None:
    """Write what was asked for of a comparison: columns, a page, a picture."""
    if output is not None:
        from edgegraft.io.exports import write_rows

        write_rows(output, {name: list(values) for name, values in found.edges.items()})
    if report is not None:
        from edgegraft.report import write_report

        model, columns = found.first_model()
        title = f"{source}: {' and '.join(found.groups)} compared"
        write_report(report, model, edge_columns=columns, comparison=found, title=title)
    if picture is not None:
        from edgegraft.report import plot_comparison

        save_picture(plot_comparison(found)[0], picture)


def show_reading(console: Console, found: NetworkReading, top: int) -> None:
    """Show what was read to people."""
    variables, edges = found.variables, found.edges
    order = np.argsort(-variables["strength"], kind="stable")
    numbers = ["community", "n_edges", "strength", "influence", "bridge", "accuracy", "usual"]
    numbers += ["explained", "r2"]
    numbers += [name for name in ("held_accuracy", "held_explained") if name in variables]
    title = f"{counted(len(order), 'variable')}, the strongest first"
    _show(console, title, variables, ["name"], numbers, order[:top])
    numbers = ["effect", "low", "high", *(n for n in ("q_value", "returns") if n in edges)]
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


def write_reading(
    found: NetworkReading,
    model: Path,
    output: Path | None,
    report: Path | None,
    picture: Path | None,
    kind: str,
) -> None:
    """Write what was asked for of a reading: columns, a page, a picture."""
    if output is not None:
        from edgegraft.io.exports import write_rows

        write_rows(output, {name: list(values) for name, values in found.variables.items()})
    if report is not None:
        from edgegraft.model import read_details
        from edgegraft.report import write_report

        stored = read_details(model)
        write_report(
            report,
            found.model,
            details=stored.details,
            edge_columns=stored.edge_columns,
            reading=found,
            title=f"The network of {model.name}, read",
        )
    if picture is not None:
        from edgegraft.report import answer_plots

        draw = {
            "centrality": answer_plots.plot_centrality,
            "edges": answer_plots.plot_edge_intervals,
            "stability": answer_plots.plot_stability,
            "adjacency": answer_plots.plot_adjacency,
            "network": answer_plots.plot_predictability,
        }[kind]
        save_picture(draw(found), picture)


def show_plan(console: Console, found: PowerPlan, top: int) -> None:
    """Show how many rows are needed."""
    needed = f"{found.rows:,.0f} rows" if np.isfinite(found.rows) else "No number of rows"
    n = len(found.edges["first"])
    say(
        console,
        f"[bold]{needed}[/] for {found.power:.0%} of {counted(n, 'edge')} at a false discovery "
        f"rate of {found.fdr:g} over {counted(found.n_pairs, 'pair')}",
    )
    numbers = ["rows", "power", *(["simulated"] if "simulated" in found.curve else [])]
    first = np.arange(min(50, len(found.curve["rows"])))
    _show(console, "Expected share of edges found", found.curve, [], numbers, first)
    if found.now is None:
        return
    order = np.argsort(found.edges["rows"], kind="stable")[::-1]
    numbers = ["rows", "power_now", "power_twice", "kept"]
    title = f"Rows needed per edge; the fit had {found.now:,}"
    _show(console, title, found.edges, _ENDS, numbers, order[:top])


def write_curve(found: PowerPlan, picture: Path) -> None:
    """Write the curve of power as a picture."""
    from edgegraft.report import plot_power

    save_picture(plot_power(found), picture)


def _show(
    console: Console,
    title: str,
    columns: dict[str, Any],
    names: list[str],
    numbers: list[str],
    order: Integers,
) -> None:
    """Show some rows of columns: names of variables, then numbers."""
    heads = ["variable"] * len(names) + [">" + name.replace("_", " ") for name in numbers]
    rows = [
        [cell(columns[name][k]) for name in names] + [_number(columns[name][k]) for name in numbers]
        for k in order
    ]
    show_table(console, title, heads, rows)


def _number(value: Any) -> str:
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float):
        return "" if np.isnan(plain) else f"{plain:.3g}"
    return str(plain)
