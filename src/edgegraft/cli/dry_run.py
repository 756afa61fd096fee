"""``learn --dry-run``: what learning would take, for people and for programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from edgegraft.cli.console import give, near, results, say, warned
from edgegraft.cli.formatting import clock, size
from edgegraft.cli.learn_request import Request
from edgegraft.cli.learn_rows import LearnRows, open_request, show_rows
from edgegraft.cli.progress import Progress
from edgegraft.cli.summary import describe_columns
from edgegraft.config import Plan
from edgegraft.learn.pilot import Estimate, estimate_run


def show_dry_run(request: Request, console: Console, as_json: bool) -> None:
    """Read the data and report what learning would take, without doing it."""
    plan = request.plan()
    progress = Progress(console, plan.max_time)
    with progress.shown(), open_request(request, console, progress) as rows:
        progress.stage("trying the search on some of the rows")
        with warned(Console(quiet=True)):  # a pilot is expected to end early
            budget = rows.fitted.budget
            found = estimate_run(
                rows.fitted.rows,
                plan,
                rows.fitted.weights,
                n_sampled=rows.sample_rows,
                max_bytes=0 if budget is None else budget.limit,
            )
        if as_json:
            _give(rows, found)
        else:
            _show(results(console), rows, plan, found)


def _give(rows: LearnRows, found: Estimate) -> None:
    """Write what a run would take to stdout, as JSON."""
    table, budget, store = rows.table, rows.fitted.budget, rows.fitted.store
    n = table.n_variables
    result: dict[str, Any] = {"rows": table.n_rows, "columns": describe_columns(table)}
    if rows.weights is not None:
        result |= {"weights": rows.request.weights, "weight": float(rows.weights.sum())}
    result["memory"] = {
        "limit": None if budget is None else budget.limit,
        "all_rows_fit": rows.in_memory,
        "sample_rows": rows.sample_rows or None,
        "store": None if store is None else str(store.path),
    }
    give(result | {"dry_run": True, "pairs": n * (n - 1) // 2, "estimate": found._asdict()})


def _show(console: Console, rows: LearnRows, plan: Plan, found: Estimate) -> None:
    """Show what a run would take."""
    show_rows(console, rows)
    n = rows.table.n_variables
    about = "at least" if found.at_least else "about"
    passes = "" if rows.in_memory else ", and passes over all rows come on top"
    lines = (
        f"{n * (n - 1) // 2:,} pairs would be searched by {plan.strategy} under the "
        f"{plan.objective}; the model would go to '{near(Path(rows.request.output))}'.",
        f"Memory: about {size(found.n_bytes)}.",
        f"Time: {about} {clock(found.seconds)} (a guess, by a pilot over "
        f"{found.pilot_rows:,} rows that found {found.pilot_edges:,} edges; it may be wrong by "
        f"a factor of three{passes}).",
    )
    for line in lines:
        say(console, escape(line))
