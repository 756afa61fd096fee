"""Objective against seconds until no pair violates, for every method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paper.courses import Course, last_rows, run_course, synthetic
from paper.experiment import Context, Experiment, Row, markdown
from paper.figures import draw_lines
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

#: Of the paper's version, between two points of its grid: with 0.01 and less, thousands of pairs
#: violate to the end, because of the shrunk node vectors; with 0.1 no pair ever does.
_PENALTY = 0.02
#: What shows that: other penalties, and a small one with nodes left alone.
_OTHERS = ((PAPER, 0.01), (PAPER, PAPER_PENALTY), (FREE_NODES, 0.002))
_LIMIT, _QUICK_LIMIT = 20.0, 1.0


def cells(quick: bool) -> list[Course]:
    """Return a cell a version and method, without an edge budget."""
    n, n_rows, limit = (12, 1000, _QUICK_LIMIT) if quick else (200, 20_000, _LIMIT)
    wanted = [
        (version, method, _PENALTY if version == PAPER else None)
        for version in VERSIONS
        for method in METHODS
    ]
    wanted += [(version, ALPHAS[0], penalty) for version, penalty in _OTHERS]
    return [
        Course(version, limit, method, n, n_rows, penalty=penalty, certified=True)
        for version, method, penalty in wanted
    ]


def run(cell: Course, context: Context) -> list[Row]:
    """Return the course of a search."""
    return run_course(cell, synthetic(cell, context.n_jobs), context.n_jobs)


def draw(rows: Sequence[Row]) -> Figure:
    """Draw a panel a version, without the other penalties."""
    rows = [row for row in rows if row["penalty"] in (None, _PENALTY)]
    panels = [[(version, {"version": version}) for version in VERSIONS]]
    return draw_lines(rows, "objective", "objective, nats a row", panels)


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
