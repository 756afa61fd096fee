"""Real tables: objective and held-out pseudolikelihood over seconds.

Jester is used twice: with all users, including those with missing ratings, and with the users who
rated every joke. The held-out rows are the same, so the two can be compared. The paper's 73,421
users are in three files; only the first, with 24,983 users, is read here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from paper import public
from paper.experiment import Context, Experiment, Row, markdown
from paper.figures import draw_lines
from paper.networks import Case
from paper.timed_search import TimedSearch, last_rows, run_search
from paper.versions import METHODS, VERSIONS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALL_USERS, COMPLETE = "jester, all users", "jester, complete rows"
RECIPES = "yummly"
_JESTER_LIMIT, _YUMMLY_LIMIT, _QUICK_LIMIT = 8.0, 20.0, 0.5
_JESTER_ROWS = 24_983


def jester_cells(quick: bool) -> list[TimedSearch]:
    """Return one cell per kind of rows, version and method."""
    n, n_rows, limit = (10, 1500, _QUICK_LIMIT) if quick else (100, _JESTER_ROWS, _JESTER_LIMIT)
    return _cells((ALL_USERS, COMPLETE), n, n_rows, limit)


def yummly_cells(quick: bool) -> list[TimedSearch]:
    """Return one cell per version and method."""
    n, limit = (20, _QUICK_LIMIT) if quick else (489, _YUMMLY_LIMIT)
    return _cells((RECIPES,), n, 1000 if quick else public.N_RECIPES, limit)


def _cells(tables: Sequence[str], n: int, n_rows: int, limit: float) -> list[TimedSearch]:
    return [
        TimedSearch(version, limit, method, n, n_rows, max_edges=3 * n, data=data)
        for data in tables
        for version in VERSIONS
        for method in METHODS
    ]


def run(cell: TimedSearch, context: Context) -> list[Row]:
    """Return the trajectory of a search."""
    return run_search(cell, _read(cell, context), context.n_jobs)


def _read(cell: TimedSearch, context: Context) -> Case:
    if cell.data == RECIPES:
        return public.yummly(context.data, n_variables=cell.n_variables, n_rows=cell.n_rows)
    return public.jester(
        context.data,
        complete=cell.data == COMPLETE,
        n_variables=cell.n_variables,
        n_rows=cell.n_rows,
    )


def draw(rows: Sequence[Row]) -> Figure:
    """Draw objective and held-out loss: one column per table and version, one row per measure."""
    tables = list(dict.fromkeys(str(row["data"]) for row in rows))
    panels = [
        (f"{data}: {version}", {"data": data, "version": version})
        for data in tables
        for version in VERSIONS
    ]
    doubled = [
        {**row, "measure": measure, "value": row[measure]}
        for measure in ("objective", "held_out")
        for row in rows
    ]
    lines = [
        [(f"{title}, {label}", {**wanted, "measure": measure}) for title, wanted in panels]
        for measure, label in (("objective", "objective"), ("held_out", "held out"))
    ]
    return draw_lines(doubled, "value", "nats per row", lines)


def table(rows: Sequence[Row]) -> str:
    """Return how every search ended."""
    lines = [
        [
            f"{row['data']}: {row['version']}, {row['method']}",
            f"{row['seconds']:.1f}",
            f"{row['n_edges']:,}" + (" (cut off)" if row["cut_off"] else ""),
            f"{row['objective']:.3f}",
            f"{row['held_out']:.3f}",
        ]
        for row in last_rows(rows)
    ]
    return markdown(
        ["data: version, method", "seconds", "edges", "objective", "held-out NLPL"], lines
    )


def _experiment(name: str, claim: str, cells: Callable[[bool], list[TimedSearch]]) -> Experiment:
    return Experiment(name, claim, cells, run, draw, table, runs=name, public=name)


JESTER = _experiment(
    "jester", "objective and held-out NLPL against seconds, joke ratings", jester_cells
)
YUMMLY = _experiment("yummly", "objective and held-out NLPL against seconds, recipes", yummly_cells)
