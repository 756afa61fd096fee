"""Levels: the rate of false edges that is asked for, and the rate that is had.

    python -m benchmarks levels

Every family is drawn 40 times, one that takes little time 400 times, and fitted at the levels .05
and .005, all in parallel processes. The false discovery rate is the mean share of false edges among
those kept, none if nothing is kept; without true edges it is the share of runs that keep any.
"Above" marks rates that exceed their level by more than chance explains (two standard errors);
"warned" counts runs at the larger level that said that the rows cannot tell edges apart.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks import kinds_data
from benchmarks.hard import cases
from benchmarks.hard.cases import Data
from benchmarks.parallel import each

SEEDS = 40
QUICK_SEEDS = 400  # of families with one false edge in ten runs and a tenth of a second per fit
LEVELS = (0.05, 0.005)
_FIRST_SEED = 5000


class Run(NamedTuple):
    """One fit: shares of false edges among those kept and of true ones that were found."""

    false_share: float
    recall: float  # NaN if there is no true edge
    warned: bool


Draw = Callable[[Generator], Data]
Results = dict[tuple[str, float], list[Run]]


def _null(n: int, n_rows: int, alpha: float, n_states: int, missing: float = 0.0) -> Draw:
    """Return a draw of independent columns with margins drawn from a Dirichlet distribution."""

    def draw(rng: Generator) -> Data:
        margins = rng.dirichlet(np.full(n_states, alpha), n)
        X = np.stack([rng.choice(n_states, n_rows, p=p) for p in margins], axis=1).astype(float)
        X[rng.random(X.shape) < missing] = np.nan
        return Data(X if missing else X.astype(np.int64), set())

    return draw


def _generated(n: int, n_rows: int, missing: float = 0.0, **options: object) -> Draw:
    """Return a draw of a scale-free network, every row from a chain of its own."""

    def draw(rng: Generator) -> Data:
        from edgegraft.datasets import make_scale_free

        seed = int(rng.integers(1 << 30))
        made = make_scale_free(
            n, n_rows=n_rows, random_state=seed, n_chains=n_rows, burn_in=300, n_jobs=1, **options
        )
        X = made.X.astype(float)
        X[rng.random(X.shape) < missing] = np.nan
        edges = {(min(i, j), max(i, j)) for i, j in made.edges.tolist()}
        return Data(X if missing else made.X.astype(np.int64), edges)

    return draw


def _copied_null(rng: Generator) -> Data:
    """Draw independent columns, each of them with a copy in which a tenth of the rows differ."""
    X = rng.integers(0, 2, (1000, 20))
    near = np.where(rng.random(X.shape) < 0.1, 1 - X, X)
    return Data(np.concatenate((X, near), axis=1), {(v, v + 20) for v in range(20)})


def _of_kinds(make: Callable[[int], tuple[Any, ...]], kinds: Any = "auto") -> Draw:
    """Return a draw of `benchmarks.kinds_data`: edges, rows, and unordered columns or kinds."""

    def draw(rng: Generator) -> Data:
        edges, rows, *more = make(int(rng.integers(1 << 30)))
        if isinstance(rows, dict):
            return Data(rows, edges, kinds=more[0])
        columns: dict[str, NDArray[Any]] = {f"x{i}": column for i, column in enumerate(rows.T)}
        for i in more[0] if more else ():
            columns[f"x{i}"] = np.array(list("abc"))[rows[:, i].astype(int)]
        return Data(columns, edges, kinds=kinds)

    return draw


QUICK = {"null: 50 even binary columns, N=200"}
ISING = {"couplings": "ising", "n_states": 2}
FAMILIES: dict[str, Draw] = {
    "null: 50 even binary columns, N=200": _null(50, 200, 1000.0, 2),
    "null: 50 columns of 5 even states, N=1,000": _null(50, 1000, 1000.0, 5),
    "null: 50 columns of 4 uneven states, N=1,000": _null(50, 1000, 0.5, 4),
    "null: 40 columns of 8 uneven states, N=500": _null(40, 500, 0.5, 8),
    "null: 100 columns, rate .1, N=1,000": cases.null_rare,
    "null: 100 columns, rates .001 to .5, N=20,000": cases.null_rates,
    "null: survey weights of mean 1": cases.null_weighted(1.0),
    "null: population weights": cases.null_weighted(1000.0),
    "null: 30 columns of 4 states, half of the cells missing, N=1,000": _null(
        30, 1000, 1000.0, 4, 0.5
    ),
    "null: 300 columns of 4 even states, N=1,000": _null(300, 1000, 1000.0, 4),
    "null: 24 columns of every kind, N=400": _of_kinds(kinds_data.null),
    "null: 100 columns, rate .1, and 2 of levels, N=1,000": _of_kinds(kinds_data.rare),
    "pairs of near-copies (90 %), N=1,000": _copied_null,
    "star of 100, coupling .6, N=500": cases.star(0.6, n=100),
    "ferromagnet 6 x 6, beta .4, N=2,000": cases.ising_grid(0.4, 6, 2000),
    "ferromagnet 6 x 6, beta .6, N=2,000": cases.ising_grid(0.6, 6, 2000),
    "ferromagnet 6 x 6, beta .8, N=5,000": cases.ising_grid(0.8, 6),
    "glass 6 x 6, beta 1, N=5,000": cases.ising_grid(1.0, 6, glass=True),
    "Potts 4 x 4, 5 states, beta 1.7, N=5,000": cases.potts_grid(1.7, 4),
    "chain with a copied column": cases.copied_column,
    "tree of 98 % copies, N=5,000": cases.tree_of_copies,
    "near-copies with opposite effects, N=1,000": cases.opposite_effects,
    "scale-free, 40 columns of 5 states, N=5,000": _generated(40, 5000),
    "scale-free, rare states, 40 columns of 4, N=5,000": _generated(
        40, 5000, n_states=4, node_scale=2.0
    ),
    "scale-free, 60 binary columns, N=5,000": _generated(60, 5000, **ISING),
    "tree of 30, 4 states, half of the cells missing, N=1,000": cases.missing_half,
    "scale-free, 40 binary columns, 30 % missing, N=5,000": _generated(40, 5000, 0.3, **ISING),
    "25 columns of numbers, N=400": _of_kinds(lambda s: kinds_data.gaussian(25, 400, None, s)),
    "25 columns of numbers, N=2,000": _of_kinds(lambda s: kinds_data.gaussian(25, 2000, None, s)),
    "25 columns of 5 levels, N=800": _of_kinds(
        lambda s: kinds_data.leveled(25, 800, 5, s), "ordinal"
    ),
    "24 columns of mixed kinds, N=1,000": _of_kinds(lambda s: kinds_data.mixed(1000, s)),
    "24 columns of 4 levels, U-shapes, N=1,000": _of_kinds(
        lambda s: kinds_data.curved(1000, 4, s), "ordinal"
    ),
}


def fit(task: tuple[str, int, float]) -> Run:
    """Draw a family once and fit it at one level."""
    from edgegraft import GraftedMRF
    from edgegraft.errors import IdentificationWarning

    name, seed, level = task
    data = FAMILIES[name](np.random.default_rng(_FIRST_SEED + seed))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = GraftedMRF(kinds=data.kinds, fdr=level, random_state=0, n_jobs=1)
        found = model.fit(data.X, sample_weight=data.weights)
    kept = {(min(i, j), max(i, j)) for i, j in found.edges_.tolist()}
    hits = len(kept & data.edges)
    return Run(
        (len(kept) - hits) / max(1, len(kept)),
        hits / len(data.edges) if data.edges else float("nan"),
        any(issubclass(w.category, IdentificationWarning) for w in caught),
    )


def run(scale: float = 1.0, names: str = "") -> Results:
    """Fit all families whose name contains `names`; `scale` reduces the number of seeds."""
    chosen = [name for name in FAMILIES if names in name]
    seeds = {name: QUICK_SEEDS if name in QUICK else SEEDS for name in chosen}
    tasks = [
        (name, seed, level)
        for name in chosen
        for seed in range(max(1, round(seeds[name] * scale)))
        for level in LEVELS
    ]
    found: Results = defaultdict(list)
    for (name, _, level), result in each(fit, tasks):
        found[name, level].append(result)
    return {(name, level): found[name, level] for name in chosen for level in LEVELS}


def as_markdown(results: Results) -> str:
    """Return the table of a run."""
    titles = [f"rate at {level:g} | above | recall at {level:g}" for level in LEVELS]
    lines = [f"| family | seeds | {' | '.join(titles)} | warned |"]
    lines.append("| --- " + "| ---: " * (2 + 3 * len(LEVELS)) + "|")
    for name in dict.fromkeys(name for name, _ in results):
        cells = [str(len(results[name, LEVELS[0]]))]
        for level in LEVELS:
            runs = results[name, level]
            rate, recall = fmean(r.false_share for r in runs), fmean(r.recall for r in runs)
            cells += [f"{rate:.4f}", "above" if is_above(runs, level) else ""]
            cells += ["" if np.isnan(recall) else f"{recall:.3f}"]
        cells.append(str(sum(r.warned for r in results[name, LEVELS[0]])))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def is_above(runs: list[Run], level: float) -> bool:
    """Return whether shares of false edges exceed a level by more than two standard errors."""
    shares = [r.false_share for r in runs]
    if len(shares) < 2:
        return shares[0] > level
    return fmean(shares) - 2 * stdev(shares) / len(shares) ** 0.5 > level
