"""Networks of two groups compared: false positives, power, time.

Rows are Gaussian with sparse partial correlations (three edges per column on average, sizes .15 to
.3), cut into five levels; "shifted" groups differ in their margins but not in their network. The
rival is the procedure of NetworkComparisonTest, rebuilt: graphical lasso by EBIC (gamma .5, ten
penalties) in each group, the largest difference of partial correlations as the statistic, and both
fits repeated for every permutation of the rows. Its fits are compiled here, and timed with those of
scikit-learn as well. "Separate fits" calls an edge different if one group's network has it and the
other's has not. Seeds begin at 1,000; choices were made on seeds 0 to 39. Rates have standard
errors over the pairs.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import NamedTuple, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray
from sklearn.covariance import graphical_lasso

from edgegraft.study import compare

SURVEY = Path(__file__).resolve().parents[2] / "shared" / "data" / "bfi.csv.gz"
FIRST_SEED = 1000
PERMUTATIONS, RIVAL_PERMUTATIONS = 400, 199
LEVEL = 0.05
Matrix = NDArray[np.float64]


class Null(NamedTuple):
    """Equal groups."""

    n: int
    sizes: tuple[int, int]
    shift: float
    pairs: int


NULLS = (
    Null(15, (300, 300), 0.0, 90),
    Null(15, (200, 400), 0.4, 50),
    Null(25, (600, 400), 0.0, 45),
    Null(50, (800, 800), 0.0, 50),
)
POWER_PAIRS, POWER_COLUMNS, POWER_ROWS = 60, 10, 300
TIMED_PAIRS = 1
CHANGES = ("one edge gone", "one edge of .45 halved", "all edges weaker, by 0 to 70 %")
Found = TypeVar("Found")


class Line(NamedTuple):
    """One line of the table."""

    work: str
    figure: str
    aim: str


def as_markdown(lines: list[Line]) -> str:
    """Return the table."""
    rows = [f"| {line.work} | {line.figure} | {line.aim} |" for line in lines]
    return "\n".join(["| work | figure | aim |", "| --- | --- | --- |", *rows])


def run(scale: float = 1.0) -> list[Line]:
    """Return the lines; `scale` reduces the number of pairs of groups."""
    warnings.simplefilter("ignore")
    return [*false_positives(scale), *power(scale), *survey()]


def precision(n: int, rng: np.random.Generator) -> Matrix:
    """Return a sparse matrix whose entries are minus the partial correlations."""
    k = np.eye(n)
    for _ in range(int(1.5 * n)):
        i, j = rng.choice(n, 2, replace=False)
        k[i, j] = k[j, i] = -rng.uniform(0.15, 0.3) * rng.choice([1, 1, -1])
    smallest = float(np.linalg.eigvalsh(k)[0])
    k += np.eye(n) * max(0.0, 0.2 - smallest)
    scale = np.sqrt(np.diag(k))
    return np.asarray(k / np.outer(scale, scale))


def draw(k: Matrix, n_rows: int, rng: np.random.Generator, shift: float = 0.0) -> NDArray[np.int64]:
    """Draw rows of five levels; every column is shifted by its own amount."""
    s = np.linalg.inv(k)
    s /= np.sqrt(np.outer(np.diag(s), np.diag(s)))
    z = rng.multivariate_normal(np.zeros(len(k)), s, n_rows) + shift * rng.normal(size=len(k))
    return np.digitize(z, np.linspace(-1.2, 1.2, 4))


def _null_pair(case: Null, seed: int) -> tuple[float, list[float], list[float], bool, float]:
    """Return p-values of the network, of variables and of edges, and the seconds of one pair."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([seed, case.n])
    k = precision(case.n, rng)
    parts = [draw(k, case.sizes[0], rng), draw(k, case.sizes[1], rng, case.shift)]
    started = process_time()
    found = compare(
        np.concatenate(parts),
        np.repeat(["a", "b"], case.sizes),
        n_permutations=PERMUTATIONS,
        kinds="ordinal",
        n_jobs=1,
    )
    spent = process_time() - started
    separate = bool((found.edges["in_a"] != found.edges["in_b"]).any())
    p = found.variables["p_value"].tolist(), found.edges["p_value"].tolist()
    return found.p_value, *p, separate, spent


def false_positives(scale: float) -> list[Line]:
    """Measure how often equal groups are called different."""
    lines, networks = [], []
    for case in NULLS:
        count = max(2, round(case.pairs * scale))
        seeds = range(FIRST_SEED, FIRST_SEED + count)
        found = spread(partial(_null_pair, case), seeds)
        p, variables, edges, separate, seconds = zip(*found, strict=True)
        networks += p
        shifted = f", margins shifted by {case.shift}" if case.shift else ""
        work = f"{count} equal pairs, {case.n} columns, {case.sizes[0]} and {case.sizes[1]} rows"
        figure = (
            f"network {_rate(p)}, variables {_rate(*variables)}, edges {_rate(*edges)}; "
            f"separate fits differ in {np.mean(separate):.2f}; {np.median(seconds):.1f} s CPU"
        )
        lines.append(Line(work + shifted + f": rate at {LEVEL}", figure, "about .05"))
        print(lines[-1], flush=True)
    work = f"all {len(networks)} equal pairs: rate of the network's test at {LEVEL}"
    return [*lines, Line(work, _rate(networks), ".03 to .06")]


def _rate(*p: Sequence[float]) -> str:
    """Return the share of p-values at the level, with its error over pairs of groups.

    One sequence has a p-value per pair, several ones those of one pair each.
    """
    if len(p) == 1:
        n, share = len(p[0]), float(np.mean(np.array(p[0]) <= LEVEL))
        near = share if 0 < share < 1 else (share * n + 1) / (n + 2)  # none or all are not certain
        return f"{share:.3f} ± {np.sqrt(near * (1 - near) / n):.3f}"
    shares, sizes = np.array([[np.mean(np.array(own) <= LEVEL), len(own)] for own in p]).T
    share = float(np.average(shares, weights=sizes))
    error = np.sqrt(np.sum((sizes * (shares - share)) ** 2)) / sizes.sum()
    return f"{share:.3f} ± {error:.3f}"


def spread(work: Callable[[int], Found], seeds: Iterable[int]) -> list[Found]:
    """Run work for every seed, in as many processes as this one may use cores."""
    cores = len(os.sched_getaffinity(0))
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
        return list(pool.map(work, seeds))


def _changed(change: str, k: Matrix, rng: np.random.Generator) -> tuple[Matrix, Matrix]:
    """Return the networks of two groups, and change the first edge, or all of them."""
    first, other = k.copy(), k.copy()
    i, j = np.argwhere(np.triu(np.abs(k) > 0.1, 1))[0]
    if change == "one edge gone":
        other[i, j] = other[j, i] = 0.0
    elif change == "one edge of .45 halved":
        first[i, j] = first[j, i] = np.sign(k[i, j]) * 0.45
        other[i, j] = other[j, i] = np.sign(k[i, j]) * 0.225
    else:
        weaker = np.triu(rng.uniform(0.3, 1.0, k.shape), 1)
        other *= weaker + weaker.T + np.eye(len(k))
    return first, other


def _power_pair(change: str, seed: int) -> tuple[float, float, bool, float, float]:
    """Return our p-value and the rival's, whether the edge is named, and the seconds of both."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([seed, 0])
    k = precision(POWER_COLUMNS, rng)
    i, j = np.argwhere(np.triu(np.abs(k) > 0.1, 1))[0]
    x = np.concatenate([draw(own, POWER_ROWS, rng) for own in _changed(change, k, rng)])
    groups = np.repeat([0, 1], POWER_ROWS)
    times = [process_time()]
    found = compare(x, groups, n_permutations=PERMUTATIONS, kinds="ordinal", n_jobs=1)
    times.append(process_time())
    pairs = zip(found.edges["first"], found.edges["second"], strict=True)
    hits = dict(zip(pairs, found.edges["q_value"] <= LEVEL, strict=True))
    theirs = rival(x, groups, rng, compiled_lasso)
    times.append(process_time())
    named = bool(hits.get((f"x{i}", f"x{j}"), False))
    return found.p_value, theirs, named, times[1] - times[0], times[2] - times[1]


def power(scale: float) -> list[Line]:
    """Measure how often changes are found, beside the rival."""
    lines: list[Line] = []
    count = max(2, round(POWER_PAIRS * scale))
    for change in CHANGES:
        seeds = range(FIRST_SEED, FIRST_SEED + count)
        found = spread(partial(_power_pair, change), seeds)
        ours, theirs, named, *seconds = zip(*found, strict=True)
        work = f"{count} pairs, {POWER_COLUMNS} columns, twice {POWER_ROWS} rows, {change}"
        apart = (np.array(ours) <= LEVEL) * 1.0 - (np.array(theirs) <= LEVEL)
        figure = (
            f"{_rate(ours)}; rebuilt NetworkComparisonTest {_rate(theirs)}; difference "
            f"{apart.mean():+.3f} ± {apart.std() / np.sqrt(count):.3f}"
        )
        if change != CHANGES[-1]:
            figure += f"; the edge itself is named at q <= .05 in {np.mean(named):.2f}"
        lines.append(Line(f"{work}: power of the network's test at {LEVEL}", figure, "higher"))
        print(lines[-1], flush=True)
    usual = spread(_usual_seconds, range(FIRST_SEED, FIRST_SEED + TIMED_PAIRS))
    figure = (
        f"{np.median(seconds[0]):.2f} with {PERMUTATIONS} permutations; rebuilt, for 1,000: "
        f"{_for_1000(usual):.0f} by scikit-learn's graphical lasso, {_for_1000(seconds[1]):.1f} by "
        "a compiled one"
    )
    return [*lines, Line("CPU seconds per comparison, median", figure, "a tenth")]


def _for_1000(seconds: Sequence[float]) -> float:
    return float(np.median(seconds)) * 1000 / RIVAL_PERMUTATIONS


def _usual_seconds(seed: int) -> float:
    """Return the seconds of the rebuilt procedure by scikit-learn's graphical lasso."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([seed, 0])
    x = draw(precision(POWER_COLUMNS, rng), 2 * POWER_ROWS, rng)
    groups = np.repeat([0, 1], POWER_ROWS)
    return _timed(
        lambda: rival(x, groups, rng, lambda s, c: graphical_lasso(s, c, max_iter=200)[1])
    )


Lasso = Callable[[Matrix, float], Matrix]


def rival(
    x: NDArray[np.int64], groups: NDArray[np.int64], rng: np.random.Generator, lasso: Lasso
) -> float:
    """Return the p-value of the rebuilt procedure."""

    def statistic(labels: NDArray[np.int64]) -> float:
        first, second = (ebic_glasso(x[labels == g], lasso) for g in (0, 1))
        return float(np.abs(first - second).max())

    observed = statistic(groups)
    draws = [statistic(rng.permutation(groups)) for _ in range(RIVAL_PERMUTATIONS)]
    return (1 + sum(value >= observed for value in draws)) / (1 + RIVAL_PERMUTATIONS)


def ebic_glasso(x: NDArray[np.int64], lasso: Lasso, gamma: float = 0.5) -> Matrix:
    """Return the partial correlations of the graphical lasso with the smallest EBIC."""
    n_rows, n = x.shape
    s = np.corrcoef(x.T)
    largest = float(np.abs(s - np.eye(n)).max())
    best, chosen = np.inf, np.eye(n)
    for penalty in largest * np.logspace(-2, 0, 10):
        k = lasso(s, penalty)
        n_edges = int((np.abs(np.triu(k, 1)) > 1e-8).sum())
        likelihood = n_rows / 2 * (np.linalg.slogdet(k)[1] - np.trace(s @ k))
        ebic = -2 * likelihood + n_edges * (np.log(n_rows) + 4 * gamma * np.log(n))
        if ebic < best:
            best, chosen = ebic, k
    scale = np.sqrt(np.diag(chosen))
    return np.asarray(-chosen / np.outer(scale, scale) + 2 * np.eye(n))


@njit(cache=True)
def compiled_lasso(s: Matrix, penalty: float) -> Matrix:  # pragma: no cover
    """Return the precision matrix of the graphical lasso, by coordinate descent on its columns."""
    n = len(s)
    w, slopes = s.copy(), np.zeros((n, n))
    for _ in range(200):
        moved = 0.0
        for j in range(n):
            for _ in range(1000):
                step = 0.0
                for k in range(n):
                    if k == j:
                        continue
                    left = s[k, j]
                    for i in range(n):
                        if i != j and i != k:
                            left -= w[k, i] * slopes[i, j]
                    new = np.sign(left) * max(abs(left) - penalty, 0.0) / w[k, k]
                    step = max(step, abs(new - slopes[k, j]))
                    slopes[k, j] = new
                if step < 1e-7:
                    break
            for k in range(n):
                if k != j:
                    fitted = 0.0
                    for i in range(n):
                        if i != j:
                            fitted += w[k, i] * slopes[i, j]
                    moved = max(moved, abs(fitted - w[k, j]))
                    w[k, j] = w[j, k] = fitted
        if moved < 1e-6:
            break
    out = np.zeros((n, n))
    for j in range(n):
        out[j, j] = 1.0 / (w[j, j] - w[:, j] @ slopes[:, j] + w[j, j] * slopes[j, j])
        for k in range(n):
            if k != j:
                out[k, j] = -slopes[k, j] * out[j, j]
    return (out + out.T) / 2


def survey() -> list[Line]:
    """Time a survey of usual size, cut in two at random."""
    if not SURVEY.exists():
        print(f"{SURVEY} does not exist: the survey is skipped", flush=True)
        return []
    groups = np.random.default_rng(0).integers(0, 2, 2800)
    seconds = _timed(
        lambda: compare(SURVEY, groups, n_permutations=1000, missing_values=["?"], n_jobs=2)
    )
    note = f"{seconds:.1f} s of CPU"
    return [Line("bfi (25 items, 2,800 rows), 1,000 permutations", note, "60 s on two cores")]


def _timed(work: Callable[[], object]) -> float:
    started = process_time()
    work()
    return process_time() - started
