"""The best rank in a reservoir: the loss from not looking at every pair.

``paper``: ranks are drawn at random from all ``M = n (n - 1) / 2`` without replacement, as in the
paper's simulation. The expected minimum of ``k`` such ranks is ``(M + 1) / (k + 1)``. ``ours``: on
generated data, the best true rank among the first ``k`` pairs of the data-driven order, by the
scores of the activation test at the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgegraft.core import Layout
from edgegraft.counts.pair_counts import all_pair_blocks
from edgegraft.optimize.solver import minimize
from edgegraft.rank import rank_pairs
from paper.experiment import Cell, Context, Experiment, Row, markdown
from paper.networks import Network, scale_free
from paper.versions import learner

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN = (1, 2, 5, 10, 50, 100, 400, 500)
_BLOCK_BYTES = 1 << 21


@dataclass(frozen=True)
class Draws(Cell):
    """Reservoirs of every size up to the largest."""

    n_variables: int
    largest: int
    n_trials: int
    n_rows: int = 0
    seed: int = 0


def cells(quick: bool) -> list[Draws]:
    """Return one cell per version."""
    if quick:
        return [Draws("paper", 10, 30, 40, 20), Draws("ours", 10, 30, 40, 1, 1000)]
    return [Draws("paper", 10, 400, 500, 100), Draws("ours", 10, 400, 500, 1, 20_000)]


def run(cell: Draws, context: Context) -> list[Row]:
    """Return the average, the expected value and the range of the best rank for each size."""
    n_pairs = cell.n_variables * (cell.n_variables - 1) // 2
    best = _random(cell, n_pairs) if cell.version == "paper" else _ranked(cell, context)
    return [
        {
            "reservoir_size": size,
            "average": float(ranks.mean()),
            "expected": (n_pairs + 1) / (size + 1),
            "least": int(ranks.min()),
            "largest_rank": int(ranks.max()),
            "n_pairs": n_pairs,
        }
        for size, ranks in enumerate(best, start=1)
    ]


def _random(cell: Draws, n_pairs: int) -> np.ndarray:
    """Return the best rank of every trial (columns) for each size."""
    rng = np.random.default_rng(cell.seed)
    return np.array(
        [
            [
                1 + rng.choice(n_pairs, size, replace=False, shuffle=False).min()
                for _ in range(cell.n_trials)
            ]
            for size in range(1, cell.largest + 1)
        ]
    )


def _ranked(cell: Draws, context: Context) -> np.ndarray:
    """Return the best true rank among the first pairs of the data-driven order, in one column."""
    case = scale_free(Network(cell.n_variables, cell.n_rows, cell.seed), context.n_jobs)
    used = learner("ours", case.train, context.n_jobs)
    penalty = used.penalty.bound(used.loss)
    start = minimize(used.loss, penalty, Layout(case.train.schema.n_states))
    order = rank_pairs(used.counts, np.random.default_rng(cell.seed), cell.largest).edges
    scores, keys = [], []
    for edges in all_pair_blocks(case.train.schema.n_states, _BLOCK_BYTES):
        scores.append(penalty.score(used.loss.edge_gradients(start.theta, start.state, edges)))
        keys.append(edges @ (cell.n_variables, 1))
    ranks = np.empty(cell.n_variables**2, np.int64)
    values = np.concatenate(scores)
    ranks[np.concatenate(keys)[np.argsort(-values, kind="stable")]] = 1 + np.arange(len(values))
    return np.minimum.accumulate(ranks[order @ (cell.n_variables, 1)])[:, None]


def draw(rows: Sequence[Row]) -> Figure:
    """Draw the ranks over the size of the reservoir, both on logarithmic axes."""
    from paper.figures import INK, NEGATIVE, POSITIVE, new_figure

    figure, ((ax,),) = new_figure(1, 1, width=5.6, height=3.6)
    random = _columns(rows, "paper")
    ax.fill_between(
        random["reservoir_size"], random["least"], random["largest_rank"],
        color=POSITIVE, alpha=0.18, linewidth=0, label="range, random order",
    )  # fmt: skip
    ax.plot(random["reservoir_size"], random["average"], color=POSITIVE, label="average")
    ax.plot(random["reservoir_size"], random["expected"], "--", color=INK, label="expected")
    ranked = _columns(rows, "ours")
    ax.plot(ranked["reservoir_size"], ranked["average"], color=NEGATIVE, label="data's order")
    ax.set(xscale="log", yscale="log", xlabel="reservoir size", ylabel="best rank")
    ax.legend(frameon=False, fontsize=8)
    return figure


def _columns(rows: Sequence[Row], version: str) -> dict[str, np.ndarray]:
    chosen = [row for row in rows if row["version"] == version]
    names = ("reservoir_size", "average", "expected", "least", "largest_rank")
    return {name: np.array([row[name] for row in chosen], float) for name in names}


def table(rows: Sequence[Row]) -> str:
    """Return the ranks of a few sizes."""
    random, ranked = _columns(rows, "paper"), _columns(rows, "ours")
    lines = [
        [
            f"{size:,}",
            f"{random['expected'][size - 1]:,.0f}",
            f"{random['average'][size - 1]:,.0f}",
            f"{random['least'][size - 1]:,.0f} to {random['largest_rank'][size - 1]:,.0f}",
            f"{ranked['average'][size - 1]:,.0f}",
        ]
        for size in _SHOWN
        if size <= min(len(random["average"]), len(ranked["average"]))
    ]
    header = ["reservoir", "expected rank", "average", "range", "ours: data's order"]
    return markdown(header, lines)


EXPERIMENT = Experiment(
    "reservoir",
    "the best rank in a reservoir of random pairs, against its size",
    cells,
    run,
    draw,
    table,
    runs="reservoir",
)
