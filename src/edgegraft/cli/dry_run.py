"""``learn --dry-run``: what a run would take, from a pilot over some of its rows.

Time grows with the rows by a power of about 1.2, because more rows show more edges (measured: 100
variables of 5 states, 6.0 s for 5,000 rows and 31.5 s for 20,000). An estimate may be wrong by a
factor of three.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.markup import escape

from edgegraft.cli.console import give, near, say, warned
from edgegraft.cli.formatting import clock, size
from edgegraft.cli.learn_request import Request
from edgegraft.cli.learn_rows import LearnRows, open_request, show_rows
from edgegraft.cli.progress import Progress
from edgegraft.cli.summary import describe_columns
from edgegraft.config import Plan
from edgegraft.core.types import Floats, Integers
from edgegraft.learn import Discovery, StopReason, discover
from edgegraft.search.priorities import MAX_COLUMNS, ROWS_PER_COLUMN
from edgegraft.table import PackedTable
from edgegraft.table.blocks import sample_rows

PILOT_SECONDS = 10.0
MIN_PILOT_ROWS, MAX_PILOT_ROWS = 500, 5000
_WARM_UP_ROWS = 100  # so that loading the kernels is not measured
_POWER = 1.2
_LIBRARY = 350 << 20  # bytes of Python with the compiled kernels
_RESIDUALS = 1 << 28  # bytes of residuals that are kept at most, in the search and in the tests


class Estimate(NamedTuple):
    """What a run would take.

    Attributes
    ----------
    seconds : float
    at_least : bool
        Whether the pilot's time was up before its search had ended.
    n_bytes : int
    pilot_rows, pilot_edges : int
    """

    seconds: float
    at_least: bool
    n_bytes: int
    pilot_rows: int
    pilot_edges: int


def dry_run(request: Request, console: Console, as_json: bool) -> None:
    """Read the data and report what learning would take, without doing it."""
    plan = request.plan()
    progress = Progress(console, plan.max_time)
    with progress.shown(), open_request(request, console, progress) as rows:
        progress.stage("trying the search on some of the rows")
        with warned(Console(quiet=True)):  # a pilot is expected to end early
            found = estimate(rows, plan)
        if as_json:
            _give(rows, found)
        else:
            _show(console, rows, plan, found)


def estimate(rows: LearnRows, plan: Plan) -> Estimate:
    """Run a pilot and estimate what the whole would take.

    For rows that do not fit in memory the time is that of the search on their sample.
    """
    if isinstance(rows.fitted.rows, PackedTable):
        table, weights = rows.fitted.rows, rows.fitted.weights
        whole, n_bytes = table.n_rows, peak_bytes(table)
    else:
        assert rows.fitted.budget is not None
        rng = np.random.default_rng(plan.random_state)
        sample = sample_rows(rows.fitted.rows, MAX_PILOT_ROWS, rng)
        table, weights = sample.table, sample.weights
        whole, n_bytes = rows.sample_rows, rows.fitted.budget.limit
    n_rows = min(table.n_rows, max(MIN_PILOT_ROWS, min(MAX_PILOT_ROWS, whole // 8)))
    limit = min(PILOT_SECONDS, plan.max_time or PILOT_SECONDS)
    _try(table, weights, min(_WARM_UP_ROWS, n_rows), replace(plan, max_time=1.0))
    started = perf_counter()
    found = _try(table, weights, n_rows, replace(plan, max_time=limit))
    seconds = (perf_counter() - started) * (whole / n_rows) ** _POWER
    cut = found.search.reason is StopReason.MAX_TIME
    return Estimate(seconds, cut, n_bytes, n_rows, found.model.n_edges)


def _try(table: PackedTable, weights: Floats | None, n_rows: int, plan: Plan) -> Discovery:
    counting = np.arange(table.n_rows) if weights is None else np.flatnonzero(weights)
    n_rows = min(n_rows, len(counting))
    rows = counting[np.linspace(0, len(counting) - 1, n_rows).astype(np.int64)]
    chosen = None if weights is None else weights[rows]
    found = discover(_some_rows(table, rows), plan, weights=chosen)
    if found.search.interrupted:  # a pilot is not worth keeping
        raise KeyboardInterrupt
    return found


def _some_rows(table: PackedTable, rows: Integers) -> PackedTable:
    codes = np.stack([table.codes([i])[rows, 0] for i in range(table.n_variables)], axis=1)
    return PackedTable.from_codes(codes, table.schema)


def peak_bytes(table: PackedTable) -> int:
    """Return about how much memory a run needs: planes, codes, residuals and the ranking."""
    cells, states = table.n_rows * table.n_variables, int(table.schema.n_states.sum())
    columns = states - table.n_variables
    inverse = columns <= min(MAX_COLUMNS, table.n_rows / ROWS_PER_COLUMN)
    return (
        _LIBRARY
        + table.nbytes
        + cells * 6  # codes of one byte or two, and once as int32
        + 2 * min(_RESIDUALS, 8 * table.n_rows * states)
        + (3 * 8 * columns**2 if inverse else 0)
    )


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
