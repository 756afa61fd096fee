"""Recall with and without testing the edges of hubs first.

The paper's order is random. ``ours`` is run in random order too, and in the order of the data,
which is its default and does not move hubs.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import TYPE_CHECKING, Any

from paper.experiment import Context, Experiment, Row, markdown
from paper.timed_search import TimedSearch, last_rows, run_search, synthetic
from paper.versions import OURS, PAPER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LIMIT, _QUICK_LIMIT = 10.0, 0.5
_KINDS = (
    (PAPER, "alpha=0.5", "uniform"),
    (OURS, "alpha=0", "uniform"),
    (OURS, "alpha=0", "auto"),
)
_HUBS = ("mean", "none")
_ORDERS = {"uniform": "random order", "auto": "data's order"}


def cells(quick: bool) -> list[TimedSearch]:
    """Return one cell per seed, version, order and treatment of hubs."""
    n, n_rows, limit, seeds = (16, 1000, _QUICK_LIMIT, 2) if quick else (200, 20_000, _LIMIT, 3)
    return [
        TimedSearch(version, limit, method, n, n_rows, seed, 3 * n, hubs=hubs, priority=priority)
        for seed in range(seeds)
        for version, method, priority in _KINDS
        for hubs in _HUBS
    ]


def run(cell: TimedSearch, context: Context) -> list[Row]:
    """Return the trajectory of a search."""
    return run_search(cell, synthetic(cell, context.n_jobs), context.n_jobs)


def _of(rows: Sequence[Row], version: str, priority: str, hubs: str) -> list[Row]:
    wanted = {"version": version, "priority": priority, "hubs": hubs}
    return [row for row in rows if all(row[k] == v for k, v in wanted.items())]


def draw(rows: Sequence[Row]) -> Figure:
    """Draw recall over edges, one panel per version and order, one line per seed."""
    from paper.figures import NEUTRAL, POSITIVE, new_figure

    figure, (axes,) = new_figure(1, len(_KINDS), width=3.5, height=2.8)
    for ax, (version, _, priority) in zip(axes, _KINDS, strict=True):
        for hubs, colour in zip(_HUBS, (POSITIVE, NEUTRAL), strict=True):
            label = "hubs first" if hubs == "mean" else "hubs left alone"
            _draw_seeds(ax, _of(rows, version, priority, hubs), colour, label)
        ax.set_title(f"{version}, {_ORDERS[priority]}", fontsize=9)
        ax.set(xlabel="edges", ylim=(0, 1))
    axes[0].set_ylabel("recall")
    axes[0].legend(frameon=False, fontsize=8)
    return figure


def _draw_seeds(ax: Any, rows: Sequence[Row], colour: str, label: str) -> None:
    for number, seed in enumerate(dict.fromkeys(row["seed"] for row in rows)):
        trajectory = [row for row in rows if row["seed"] == seed]
        ax.plot(
            [row["n_edges"] for row in trajectory],
            [row["recall"] for row in trajectory],
            color=colour,
            linewidth=1.2,
            label=None if number else label,
        )


def table(rows: Sequence[Row]) -> str:
    """Return recall, edges, tables and seconds at the end, averaged over the seeds."""
    ends = last_rows(rows)
    lines = []
    for version, method, priority in _KINDS:
        for hubs in _HUBS:
            chosen = _of(ends, version, priority, hubs)
            recalls = [_number(row, "recall") for row in chosen]
            lines.append(
                [
                    f"{version}, {method}, {_ORDERS[priority]}",
                    "first" if hubs == "mean" else "left alone",
                    f"{mean(recalls):.3f}",
                    f"{min(recalls):.3f} to {max(recalls):.3f}",
                    f"{mean(_number(row, 'n_edges') for row in chosen):,.0f}",
                    f"{mean(_number(row, 'n_tables') for row in chosen):,.0f}",
                    f"{mean(_number(row, 'seconds') for row in chosen):.1f}",
                    f"{sum(bool(row['cut_off']) for row in chosen)} of {len(chosen)}",
                ]
            )
    header = ["version", "hubs", "recall", "range", "edges", "tables", "seconds", "cut off"]
    return markdown(header, lines)


def _number(row: Row, name: str) -> float:
    value = row[name]
    assert isinstance(value, int | float)  # a measured column
    return float(value)


EXPERIMENT = Experiment(
    "heuristics",
    "recall with the edges of hubs brought forward, and without, 200 variables",
    cells,
    run,
    draw,
    table,
    runs="heuristics",
)
