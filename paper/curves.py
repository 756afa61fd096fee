"""Objective, held-out pseudolikelihood and recall over seconds, up to 3n edges.

Three figures share one set of runs: every method, three sizes, both versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from paper.experiment import Context, Experiment, Row, markdown
from paper.figures import draw_lines
from paper.timed_search import TimedSearch, last_rows, outcome, run_search, synthetic
from paper.versions import METHODS, VERSIONS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Time limit of a search in seconds, by number of variables (7 methods x 2 versions each).
LIMITS = {200: 20.0, 400: 35.0, 600: 50.0}
_QUICK_LIMIT = 0.5


def cells(quick: bool) -> list[TimedSearch]:
    """Return one cell per size, version and method."""
    limits, n_rows = ({12: _QUICK_LIMIT, 16: _QUICK_LIMIT}, 1000) if quick else (LIMITS, 20_000)
    return [
        TimedSearch(version, limit, method, n, n_rows, max_edges=3 * n)
        for n, limit in limits.items()
        for version in VERSIONS
        for method in METHODS
    ]


def run(cell: TimedSearch, context: Context) -> list[Row]:
    """Return the trajectory of a search."""
    return run_search(cell, synthetic(cell, context.n_jobs), context.n_jobs)


def _sizes(rows: Sequence[Row]) -> list[Any]:
    return list(dict.fromkeys(row["n_variables"] for row in rows))


def draw(rows: Sequence[Row], measure: str, label: str) -> Figure:
    """Draw one panel per version and size."""
    panels = [
        [
            (f"{version}, {n} variables", {"version": version, "n_variables": n})
            for n in _sizes(rows)
        ]
        for version in VERSIONS
    ]
    return draw_lines(rows, measure, label, panels)


def table(rows: Sequence[Row], measure: str, digits: int) -> str:
    """Return the end of every search: one line per version and method, one column per size."""
    sizes = _sizes(rows)
    ends = {(row["version"], row["method"], row["n_variables"]): row for row in last_rows(rows)}
    lines = [
        [
            f"{version}, {method}",
            *(outcome(ends[version, method, n], measure, digits) for n in sizes),
        ]
        for version in VERSIONS
        for method in METHODS
    ]
    return markdown(["version, method", *(f"{n} variables" for n in sizes)], lines)


def _experiment(name: str, claim: str, measure: str, label: str, digits: int) -> Experiment:
    return Experiment(
        name,
        claim,
        cells,
        run,
        partial(draw, measure=measure, label=label),
        partial(table, measure=measure, digits=digits),
        runs="curves",
    )


OBJECTIVE = _experiment(
    "objective",
    "objective against seconds, up to 3n edges, for 200, 400 and 600 variables",
    "objective",
    "objective, nats per row",
    2,
)
NLPL = _experiment(
    "nlpl",
    "held-out negative log-pseudolikelihood against seconds; the runs of objective",
    "held_out",
    "held-out NLPL, nats per row",
    2,
)
RECALL = _experiment(
    "recall",
    "recall of the true edges against seconds; the runs of objective",
    "recall",
    "recall",
    3,
)
