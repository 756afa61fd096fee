"""Objective over seconds until no pair violates, for every method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paper.experiment import Context, Experiment, Row, markdown
from paper.figures import draw_lines
from paper.timed_search import TimedSearch, last_rows, run_search, synthetic
from paper.versions import (
    ALPHAS,
    FREE_NODES,
    METHODS,
    PAPER,
    PAPER_PENALTY,
    VERSIONS,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Penalty of the paper's version, between two points of its grid: with 0.01 and less, thousands of
#: pairs violate to the end, because node vectors are shrunk; with 0.1 no pair ever violates.
_PENALTY = 0.02
#: Runs that show this: other penalties, and a small one with free nodes.
_OTHERS = ((PAPER, 0.01), (PAPER, PAPER_PENALTY), (FREE_NODES, 0.002))
_LIMIT, _QUICK_LIMIT = 20.0, 1.0


def cells(quick: bool) -> list[TimedSearch]:
    """Return one cell per version and method, without an edge budget."""
    n, n_rows, limit = (12, 1000, _QUICK_LIMIT) if quick else (200, 20_000, _LIMIT)
    wanted = [
        (version, method, _PENALTY if version == PAPER else None)
        for version in VERSIONS
        for method in METHODS
    ]
    wanted += [(version, ALPHAS[0], penalty) for version, penalty in _OTHERS]
    return [
        TimedSearch(version, limit, method, n, n_rows, penalty=penalty, certified=True)
        for version, method, penalty in wanted
    ]


def run(cell: TimedSearch, context: Context) -> list[Row]:
    """Return the trajectory of a search."""
    return run_search(cell, synthetic(cell, context.n_jobs), context.n_jobs)


def draw(rows: Sequence[Row]) -> Figure:
    """Draw one panel per version, without the other penalties."""
    rows = [row for row in rows if row["penalty"] in (None, _PENALTY)]
    panels = [[(version, {"version": version}) for version in VERSIONS]]
    return draw_lines(rows, "objective", "objective, nats per row", panels)


def table(rows: Sequence[Row]) -> str:
    """Return how every search ended."""
    lines = [
        [
            _name(row),
            f"{row['seconds']:.1f}",
            f"{row['objective']:.3f}",
            f"{row['n_edges']:,}",
            f"{row['n_violating']:,}",
            "cut off" if row["cut_off"] else "converged",
        ]
        for row in last_rows(rows)
    ]
    header = ["version, method", "seconds", "objective", "edges", "pairs that still violate", "end"]
    return markdown(header, lines)


def _name(row: Row) -> str:
    other = "" if row["penalty"] in (None, _PENALTY) else f", lambda={row['penalty']:g}"
    return f"{row['version']}, {row['method']}{other}"


EXPERIMENT = Experiment(
    "convergence",
    "objective against seconds until no pair violates, 200 variables",
    cells,
    run,
    draw,
    table,
    runs="convergence",
)
