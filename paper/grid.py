"""A grid of penalties and ridges in the paper's ranges, by held-out NLPL and recall.

The paper's versions search exhaustively, because the paper tunes this baseline. The version with
free nodes shows the harm of the node penalty at every point. ``ours`` searches with its defaults,
over the same ranges and with the automatic choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from paper.experiment import Context, Experiment, Row, markdown
from paper.timed_search import TimedSearch, last_rows, run_search, synthetic
from paper.versions import EXHAUSTIVE, FREE_NODES, OURS, PAPER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
RIDGES = (0.5, 0.75, 1.0, 1.5)
_LIMIT, _QUICK_LIMIT = 5.0, 0.3
_SEARCHES = {PAPER: EXHAUSTIVE, FREE_NODES: EXHAUSTIVE, OURS: "alpha=0"}


def cells(quick: bool) -> list[TimedSearch]:
    """Return one cell per version, penalty and ridge, and one with the automatic choice."""
    n, n_rows, limit = (10, 1000, _QUICK_LIMIT) if quick else (100, 20_000, _LIMIT)
    penalties, ridges = (PENALTIES[::2], RIDGES[::3]) if quick else (PENALTIES, RIDGES)
    points: list[tuple[float | None, float | None]] = [(p, r) for p in penalties for r in ridges]
    return [
        TimedSearch(
            version, limit, method, n, n_rows, max_edges=3 * n, penalty=penalty, ridge=ridge
        )
        for version, method in _SEARCHES.items()
        for penalty, ridge in ([*points, (None, None)] if version == OURS else points)
    ]


def run(cell: TimedSearch, context: Context) -> list[Row]:
    """Return how a search ended."""
    return run_search(cell, synthetic(cell, context.n_jobs), context.n_jobs)[-1:]


def draw(rows: Sequence[Row]) -> Figure:
    """Draw held-out loss and recall over the grid, one column per version."""
    from paper.figures import new_figure

    figure, axes = new_figure(2, len(_SEARCHES), width=3.2, height=2.5)
    grid = [row for row in rows if row["penalty"] is not None]
    for column, version in enumerate(_SEARCHES):
        inside = [row for row in grid if row["version"] == version]
        for line, measure in enumerate(("held_out", "recall")):
            _draw_grid(axes[line, column], inside, measure)
        axes[0, column].set_title(version, fontsize=9)
    return figure


def _draw_grid(ax: Any, rows: Sequence[Row], measure: str) -> None:
    penalties = sorted({float(str(row["penalty"])) for row in rows})
    ridges = sorted({float(str(row["ridge"])) for row in rows})
    found = {(row["penalty"], row["ridge"]): row[measure] for row in rows}
    values = np.array([[found[p, r] for p in penalties] for r in ridges], float)
    ax.imshow(values, cmap="Blues" if measure == "recall" else "Oranges", aspect="auto", alpha=0.6)
    for (i, j), value in np.ndenumerate(values):
        ax.text(j, i, f"{value:.3g}", ha="center", va="center", fontsize=7)
    ax.set_xticks(range(len(penalties)), [f"{p:g}" for p in penalties], fontsize=7)
    ax.set_yticks(range(len(ridges)), [f"{r:g}" for r in ridges], fontsize=7)
    ax.set_xlabel("penalty", fontsize=8)
    ax.set_ylabel(f"{'held-out NLPL' if measure == 'held_out' else measure}: ridge", fontsize=8)


def table(rows: Sequence[Row]) -> str:
    """Return, for each version and penalty, the point with the best ridge by held-out loss."""
    lines = []
    for version in _SEARCHES:
        own = [row for row in last_rows(rows) if row["version"] == version]
        for penalty in dict.fromkeys(row["penalty"] for row in own):
            best = min(
                (row for row in own if row["penalty"] == penalty),
                key=lambda row: float(str(row["held_out"])),
            )
            chosen = (
                f"{best['penalty_used']:.2g} (automatic)" if penalty is None else f"{penalty:g}"
            )
            lines.append(
                [
                    version,
                    chosen,
                    f"{best['ridge_used']:.2g}",
                    f"{best['held_out']:.2f}",
                    f"{best['recall']:.3f}",
                    f"{best['n_edges']:,}" + (" (cut off)" if best["cut_off"] else ""),
                ]
            )
    header = ["version", "penalty", "best ridge", "held-out NLPL", "recall", "edges"]
    return markdown(header, lines)


EXPERIMENT = Experiment(
    "grid",
    "penalty and ridge in the paper's ranges, by held-out NLPL and recall",
    cells,
    run,
    draw,
    table,
    runs="grid",
)
