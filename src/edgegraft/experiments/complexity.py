"""The complexity table with counted operations, and what counting all pairs costs at the start.

Searches over ``n`` variables, stopped after some activations. Counted at each: pair tables so far
(of the data; those of a ranking included), tests since the last activation, and the work of one
evaluation of loss and gradient at ``j`` edges: messages of belief propagation (``paper``), or
terms of conditionals, ``n + 2 j`` (``ours``). Exponents are slopes of log counts against log n.

The start-up cells time the tables of all pairs, in the way of the library, with one
``np.bincount`` a pair, and with a Python loop over the rows of a pair (the last two on a few
pairs, multiplied).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgegraft.data import PackedTable
from edgegraft.experiments.experiment import Cell, Context, Experiment, Row, markdown
from edgegraft.experiments.networks import Network, scale_free
from edgegraft.experiments.propagation import CountedPropagation
from edgegraft.experiments.versions import EXHAUSTIVE, VERSIONS, learner, with_method
from edgegraft.learn import Event, Growth, grow
from edgegraft.objective.likelihood import Likelihood
from edgegraft.stats import CachedCounts, LocalCounts
from edgegraft.stats.source import all_pair_blocks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BEST, START = "alpha=0.5", "all tables"
SIZES = (100, 200, 400, 800, 1400, 2000)
_QUICK_SIZES = (10, 20, 30)
_START_SIZES = (200, 400, 600)
_ACTIVATIONS = {BEST: 20, EXHAUSTIVE: 3}
_N_ROWS, _LIMIT = 2_000, 12.0  # counts of operations do not depend on rows
_BURN_IN, _THINNING = 200, 10
_BLOCK_BYTES = 1 << 23
_STATES = 5


@dataclass(frozen=True)
class Count(Cell):
    """A search of which operations are counted, or the tables of all pairs."""

    method: str
    n_variables: int
    n_rows: int
    seed: int = 0


def cells(quick: bool) -> list[Count]:
    """Return a cell a size, version and search, then the start-up."""
    sizes, n_rows, limit = (_QUICK_SIZES, 600, 1.0) if quick else (SIZES, _N_ROWS, _LIMIT)
    counted = [
        Count(version, limit, method, n, n_rows)
        for n in sizes
        for version in VERSIONS
        for method in (BEST, EXHAUSTIVE)
    ]
    starts = _QUICK_SIZES if quick else _START_SIZES
    rows = 1000 if quick else 20_000
    return counted + [Count("ours", limit, START, n, rows) for n in starts]


def run(cell: Count, context: Context) -> list[Row]:
    """Return the counts at every activation, or the seconds of the start."""
    if cell.method == START:
        return [_start_up(cell, context)]
    network = Network(cell.n_variables, cell.n_rows, cell.seed, _BURN_IN, _THINNING)
    case = scale_free(network, context.n_jobs)
    used = learner(cell.version, case.train, context.n_jobs)
    counts = used.counts
    if not isinstance(counts, CachedCounts):
        # Room for nothing: only its tally of the tables asked for is of use.
        counts = CachedCounts(used.counts, 0)
    engine = used.loss.engine if isinstance(used.loss, Likelihood) else None
    assert engine is None or isinstance(engine, CountedPropagation)  # as `learner` makes it
    watch = _Watch(_ACTIVATIONS[cell.method], counts, engine)
    settings = replace(with_method(used.settings, cell.method), max_time=cell.max_time)
    growth = grow(used.loss, used.penalty, settings, counts=counts, observers=[watch])
    if growth.reason == "interrupted":
        raise KeyboardInterrupt
    return watch.rows


class _Watch:
    """An observer that counts, and stops after so many activations."""

    def __init__(
        self, n_activations: int, counts: CachedCounts, engine: CountedPropagation | None
    ) -> None:
        self.rows: list[Row] = []
        self._most = n_activations
        self._counts = counts
        self._engine = engine
        self._n_tests = 0

    def on_event(self, event: Event, growth: Growth) -> bool:
        """Take the counts after an activation."""
        if event.kind == "activation":
            evaluations = max(1, growth.solution.info.n_evaluations)
            tables = self._counts.info.computed
            if self._engine is None:
                tables += event.n_tables  # rows are passed over for a pair that is scored
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
                    "evaluations": evaluations,
                    "seconds": event.seconds,
                }
            )
        if self._engine is not None:
            self._engine.updates.clear()
        self._n_tests = event.n_tests
        return event.n_activations >= self._most


def _start_up(cell: Count, context: Context) -> Row:
    """Time the tables of all pairs; the data need no truth, so they are drawn at random."""
    rng = np.random.default_rng(cell.seed)
    codes = rng.integers(0, _STATES, (cell.n_rows, cell.n_variables))
    counts = LocalCounts(PackedTable.from_codes(codes), context.n_jobs)
    counts.pairs([(0, 1)])  # loads what is compiled
    n_pairs = cell.n_variables * (cell.n_variables - 1) // 2
    started = perf_counter()
    for edges in all_pair_blocks(counts.schema.n_states, _BLOCK_BYTES):
        counts.pairs(edges)
    seconds = perf_counter() - started
    return {
        "n_pairs": n_pairs,
        "seconds": seconds,
        "bincount_seconds": n_pairs * _time_pairs(_bincount, codes, 20),
        "loop_seconds": n_pairs * _time_pairs(_loop, codes, 1),
    }


Table = Callable[[NDArray[np.int64], NDArray[np.int64]], object]


def _time_pairs(make: Table, codes: NDArray[np.int64], n_pairs: int) -> float:
    """Return the seconds that a way of counting takes for a pair."""
    columns = [np.ascontiguousarray(codes[:, k]) for k in (0, 1)]
    started = perf_counter()
    for _ in range(n_pairs):
        make(*columns)
    return (perf_counter() - started) / n_pairs


def _bincount(first: NDArray[np.int64], second: NDArray[np.int64]) -> object:
    return np.bincount(first * _STATES + second, minlength=_STATES * _STATES)


def _loop(first: NDArray[np.int64], second: NDArray[np.int64]) -> object:
    return Counter((int(a), int(b)) for a, b in zip(first, second, strict=True))


def draw(rows: Sequence[Row]) -> Figure:
    """Draw tables at the first activation, tests an activation, and work, against n."""
    from edgegraft.experiments.figures import new_figure, style_of

    shown = (
        ("tables", "tables at the first activation"),
        ("tests", "tests of an activation"),
        ("work", "work of an evaluation"),
    )
    figure, (axes,) = new_figure(1, len(shown), width=3.4, height=2.9)
    for ax, (measure, title) in zip(axes, shown, strict=True):
        for version in VERSIONS:
            for method in (BEST, EXHAUSTIVE):
                sizes, values = series(rows, version, method, measure)
                slope = exponent(sizes, values)
                label = f"{version}, {method}: $n^{{{slope:.2f}}}$"
                dash = "-" if version == "paper" else "--"
                colour = style_of(method)["color"]
                ax.plot(sizes, values, dash, marker=".", color=colour, label=label)
        ax.set(xscale="log", yscale="log", xlabel="variables")
        ax.set_title(title, fontsize=9)
        ax.legend(frameon=False, fontsize=6.5)
    return figure


def series(
    rows: Sequence[Row], version: str, method: str, measure: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return sizes and counts: at the first activation, or for tests the mean of the later ones.

    The first activation waits for a full reservoir, so its tests are no example.
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
    """Return the slope of the logarithms; nan where there are fewer than two sizes.

    Examples
    --------
    >>> round(exponent(np.array([1.0, 10.0]), np.array([3.0, 300.0])), 6)
    2.0
    """
    if len(sizes) < 2:
        return float("nan")
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def table(rows: Sequence[Row]) -> str:
    """Return the counts at the least and the largest size with exponents, then the start-up."""
    lines = []
    for version in VERSIONS:
        for method in (BEST, EXHAUSTIVE):
            line = [f"{version}, {method}"]
            for measure in ("tables", "tests", "work"):
                sizes, values = series(rows, version, method, measure)
                line.append(_ends(sizes, values))
            lines.append(line)
    header = ["version, search", "tables at 1st activation", "tests an activation", "work"]
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
