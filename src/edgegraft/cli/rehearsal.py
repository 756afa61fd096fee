"""What ``learn --dry-run`` tells: what would be done, with memory and time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from edgegraft.cli.columns import describe_columns
from edgegraft.cli.console import give, near, say
from edgegraft.cli.estimate import Estimate
from edgegraft.cli.progress import clock
from edgegraft.cli.request import Request
from edgegraft.cli.rows import Rows, show_rows, size


def give_rehearsal(request: Request, rows: Rows, found: Estimate) -> None:
    """Write what a run would take to stdout, as JSON."""
    table, budget, store = rows.table, rows.given.budget, rows.given.store
    n = table.n_variables
    told: dict[str, Any] = {"rows": table.n_rows, "columns": describe_columns(table)}
    if rows.weights is not None:
        told |= {"weights": request.weights, "weight": float(rows.weights.sum())}
    told["memory"] = {
        "limit": None if budget is None else budget.limit,
        "all_rows_fit": rows.shards is None,
        "sample_rows": rows.sample_rows or None,
        "store": None if store is None else str(store.path),
    }
    give(told | {"dry_run": True, "pairs": n * (n - 1) // 2, "estimate": found._asdict()})


def show_rehearsal(console: Console, request: Request, rows: Rows, found: Estimate) -> None:
    """Say what a run would take."""
    show_rows(console, request, rows)
    n = rows.table.n_variables
    least = "at least " if found.at_least else "about "
    passes = "" if rows.shards is None else ", and passes over all rows come on top"
    lines = (
        f"{n * (n - 1) // 2:,} pairs would be searched by {request.strategy} under the "
        f"{request.objective}; the model would go to '{near(Path(request.output))}'.",
        f"Memory: about {size(found.n_bytes)}.",
        f"Time: {least}{clock(found.seconds)} (a guess, by a pilot over "
        f"{found.pilot_rows:,} rows that found {found.pilot_edges:,} edges; it may be wrong by "
        f"a factor of three{passes}).",
    )
    for line in lines:
        say(console, escape(line))
