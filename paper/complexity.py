"""The complexity table with counted operations, and the cost of counting all pairs at the start.

Searches over ``n`` variables are stopped after some activations. Counted at each activation: pair
tables of the data so far (including those of a ranking), tests since the last activation (including
the new scores of the reservoir), and the work of one run of inference at ``j`` edges: messages of
belief propagation (``paper``), or terms of conditionals, ``n + 2 j`` by construction (``ours``).
Exponents are slopes of logarithms. An activation that was cut short by the time limit is omitted,
because its search was incomplete.

The start-up cells time the tables of all pairs: by the library, with one ``np.bincount`` per pair,
and with a Python loop over the rows (the last two for one pair, multiplied). Each is the best of
three, because other work on the machine only adds time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgegraft.counts import PairCounts
from edgegraft.counts.pair_counts import all_pair_blocks
from edgegraft.learn import Event, SearchState, grow
from edgegraft.objective.likelihood import Likelihood
from edgegraft.table import PackedTable
from paper.experiment import Cell, Context, Experiment, Row, markdown
from paper.memoized import MemoizedCounts
from paper.networks import Network, scale_free
from paper.propagation import CountedPropagation
from paper.timed_search import warm_up
from paper.versions import EXHAUSTIVE, PAPER, VERSIONS, learner, with_method

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BEST, START = "alpha=0.5", "all tables"
SIZES = (100, 200, 400, 800, 1400, 2000)
_QUICK_SIZES = (10, 20, 30)
_START_SIZES = (200, 400, 600)
_ACTIVATIONS = {BEST: 20, EXHAUSTIVE: 3}
_N_ROWS = 2_000  # operation counts do not depend on rows
_LIMIT, _LARGE, _LARGE_LIMIT = 8.0, 1000, 40.0
_BURN_IN, _THINNING = 200, 10
_BLOCK_BYTES = 1 << 23
_STATES = 5


@dataclass(frozen=True)
class Count(Cell):
    """A search whose operations are counted, or the tables of all pairs."""

    method: str
    n_variables: int
    n_rows: int
    seed: int = 0


def cells(quick: bool) -> list[Count]:
    """Return one cell per size, version and search, then the start-up cells."""
    sizes, n_rows, limit = (_QUICK_SIZES, 600, 1.0) if quick else (SIZES, _N_ROWS, _LIMIT)
    counted = [
        Count(version, _LARGE_LIMIT if n > _LARGE else limit, method, n, n_rows)
        for n in sizes
        for version in VERSIONS
        for method in (BEST, EXHAUSTIVE)
    ]
    starts = _QUICK_SIZES if quick else _START_SIZES
    rows = 1000 if quick else 20_000
    return counted + [Count("ours", limit, START, n, rows) for n in starts]


def run(cell: Count, context: Context) -> list[Row]:
    """Return the counts at every activation, or the seconds of the start-up."""
    if cell.method == START:
        return [_start_up(cell, context)]
    warm_up(cell.version, cell.method)
    network = Network(cell.n_variables, cell.n_rows, cell.seed, _BURN_IN, _THINNING)
    case = scale_free(network, context.n_jobs)
    used = learner(cell.version, case.train, context.n_jobs)
    counts = used.counts
    if not isinstance(counts, MemoizedCounts):
        counts = MemoizedCounts(used.counts.rows)  # counts the requested tables
    engine = used.loss.engine if isinstance(used.loss, Likelihood) else None
    assert engine is None or isinstance(engine, CountedPropagation)  # `learner` creates it
    watch = _Watch(_ACTIVATIONS[cell.method], counts, engine)
    settings = replace(with_method(used.settings, cell.method), max_time=cell.max_time)
    growth = grow(used.loss, used.penalty, settings, counts=counts, observers=[watch])
    if growth.interrupted:
        raise KeyboardInterrupt
    return watch.rows


class _Watch:
    """An observer that counts, and stops after a number of activations."""

    def __init__(
        self, n_activations: int, counts: MemoizedCounts, engine: CountedPropagation | None
    ) -> None:
        self.rows: list[Row] = []
        self._max_activations = n_activations
        self._counts = counts
        self._engine = engine
        self._n_tests = 0

    def on_event(self, event: Event, growth: SearchState) -> bool:
        """Record the counts after an activation."""
        if event.kind == "activation" and not growth.spent:
            tables = self._counts.computed
            if self._engine is None:
                tables += event.n_tables  # scoring a pair is a pass over the rows
                work = float(len(growth.objective.schema) + 2 * event.n_edges)
            else:
                runs = self._engine.updates
                work = sum(runs) / max(1, len(runs))
            self.rows.append(
                {
                    "activation": event.n_activations,
                    "n_edges": event.n_edges,
                    "tables": tables,
                    "tests": event.n_tests - self._n_tests,
                    "work": work,
                    "evaluations": growth.solution.info.n_evaluations,
                    "seconds": event.seconds,
                }
            )
        if self._engine is not None:
            self._engine.updates.clear()
        self._n_tests = event.n_tests
        return event.n_activations >= self._max_activations


def _start_up(cell: Count, context: Context) -> Row:
    """Time the tables of all pairs, on random data, since no true network is needed."""
    rng = np.random.default_rng(cell.seed)
    codes = rng.integers(0, _STATES, (cell.n_rows, cell.n_variables))
    counts = PairCounts(PackedTable.from_codes(codes), context.n_jobs)
    counts.pairs([(0, 1)])  # loads compiled code
    n_pairs = cell.n_variables * (cell.n_variables - 1) // 2

    def count_all() -> None:
        for edges in all_pair_blocks(counts.schema.n_states, _BLOCK_BYTES):
            counts.pairs(edges)

    first, second = (np.ascontiguousarray(codes[:, k]) for k in (0, 1))
    return {
        "n_pairs": n_pairs,
        "seconds": _best_of_three(count_all),
        "bincount_seconds": n_pairs
        * _best_of_three(lambda: np.bincount(first * _STATES + second, minlength=_STATES**2)),
        "loop_seconds": n_pairs
        * _best_of_three(
            lambda: Counter((int(a), int(b)) for a, b in zip(first, second, strict=True))
        ),
    }


def _best_of_three(work: Callable[[], object]) -> float:
    """Return the shortest of three times."""
    found = []
    for _ in range(3):
        started = perf_counter()
        work()
        found.append(perf_counter() - started)
    return min(found)


def draw(rows: Sequence[Row]) -> Figure:
    """Draw tables at the first activation and tests per activation over n, and work over edges."""
    from paper.figures import new_figure, style_of

    shown = (("tables", "tables at the first activation"), ("tests", "tests per activation"))
    figure, (axes,) = new_figure(1, 3, width=3.4, height=2.9)
    for version, method in product(VERSIONS, (BEST, EXHAUSTIVE)):
        dash = "-" if version == PAPER else "--"
        style = {"linestyle": dash, "marker": ".", "color": style_of(method)["color"]}
        for ax, (measure, _) in zip(axes, shown, strict=False):
            sizes, values = series(rows, version, method, measure)
            label = f"{version}, {method}: $n^{{{exponent(sizes, values):.2f}}}$"
            ax.plot(sizes, values, label=label, **style)
        if version == PAPER:
            edges, work = _messages(rows, method)
            label = f"{method}: $j^{{{exponent(edges, work):.2f}}}$"
            axes[2].plot(edges, work, label=label, **{**style, "linestyle": ""})
    for ax, (_, title) in zip(
        axes, (*shown, ("", "paper: messages per run of inference")), strict=True
    ):
        ax.set(xscale="log", yscale="log", xlabel="edges j" if title[0] == "p" else "variables n")
        ax.set_title(title, fontsize=9)
        ax.legend(frameon=False, fontsize=6.5)
    return figure


def _messages(rows: Sequence[Row], method: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return active edges and messages per run of belief propagation, at every activation."""
    own = [row for row in rows if (row["version"], row["method"]) == (PAPER, method)]
    edges, work = (np.array([row[name] for row in own], float) for name in ("n_edges", "work"))
    return edges, work


def series(
    rows: Sequence[Row], version: str, method: str, measure: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return sizes and counts: at the first activation, or for tests the mean of the later ones.

    The first activation waits for a full reservoir, so its tests are not representative.
    """
    found: dict[int, list[float]] = {}
    for row in rows:
        if (row["version"], row["method"]) != (version, method):
            continue
        first = row["activation"] == 1
        if first if measure == "tables" else not first:
            found.setdefault(int(str(row["n_variables"])), []).append(float(str(row[measure])))
    sizes = np.array(list(found), float)
    return sizes, np.array([np.mean(values) for values in found.values()])


def exponent(sizes: NDArray[np.float64], values: NDArray[np.float64]) -> float:
    """Return the slope of the logarithms; nan if there are fewer than two sizes.

    Examples
    --------
    >>> round(exponent(np.array([1.0, 10.0]), np.array([3.0, 300.0])), 6)
    2.0
    """
    if len(sizes) < 2:
        return float("nan")
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def table(rows: Sequence[Row]) -> str:
    """Return the counts at the smallest and largest size with exponents, then the start-up."""
    lines = []
    for version, method in product(VERSIONS, (BEST, EXHAUSTIVE)):
        line = [f"{version}, {method}"]
        line += [_ends(*series(rows, version, method, measure)) for measure in ("tables", "tests")]
        if version == PAPER:
            edges, work = _messages(rows, method)
            each = f"{np.mean(work / edges):.1f} messages per edge"
            line.append(f"{each}, j^{exponent(edges, work):.2f}")
        else:
            line.append("n + 2 j terms per row")
        lines.append(line)
    header = ["version, search", "tables at 1st activation", "tests per activation", "inference"]
    starts = [
        [
            f"{row['n_variables']} variables, {row['n_pairs']:,} pairs",
            f"{row['seconds']:.2f} s",
            f"{row['bincount_seconds']:.1f} s",
            f"{row['loop_seconds']:,.0f} s",
        ]
        for row in rows
        if row["method"] == START
    ]
    return "\n\n".join(
        (
            markdown(header, lines),
            markdown(["tables of all pairs", "here", "bincount", "Python loop"], starts),
        )
    )


def _ends(sizes: NDArray[np.float64], values: NDArray[np.float64]) -> str:
    if not len(sizes):
        return "cut off"
    ends = f"{values[0]:,.0f} to {values[-1]:,.0f}"
    return f"{ends} (n {sizes[0]:.0f} to {sizes[-1]:.0f}), n^{exponent(sizes, values):.2f}"


EXPERIMENT = Experiment(
    "complexity",
    "tables, tests and inference counted, 100 to 2,000 variables, with fitted exponents",
    cells,
    run,
    draw,
    table,
    runs="complexity",
)
