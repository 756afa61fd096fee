"""Networks without tuning: `GraftedMRF()` and nodewise logistic regression.

Each variable is regressed on the one-hot columns of all others with scikit-learn, as in the
comparison with rivals (`benchmarks/rivals/tools/nodewise.py`). With l2 (``C=1``), the norms of the
coefficient blocks, averaged over both directions, rank the pairs. With l1, the edges are the pairs
whose coefficients are non-zero in both directions (the AND rule), with the penalty of each
regression chosen by extended BIC along a path; if chosen by held-out rows, it keeps four times as
many edges. The l1 regressions of five states are one against the rest. Our time includes all of
`fit`: search, tests, cut, refit and certificate; kernels are compiled beforehand. All use one
thread, except ours if two are stated.

How settings were chosen: the level and the factors of our search on seeds 0 to 2 of these same
generators, for which the required figures were set. The nodewise regressions run on the first seed
only, ours on three; on 200 variables of five states they take an hour and are skipped.
"""

from __future__ import annotations

import warnings
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.rivals.outcome import Fit
from benchmarks.rivals.tools.nodewise import fit_l1, fit_l2
from benchmarks.rows import Row
from edgegraft import GraftedMRF
from edgegraft.datasets import make_scale_free

SEEDS = 3
RIVAL = "scikit-learn nodewise"


class Case(NamedTuple):
    """A generator, and the required figures."""

    n: int
    n_states: int
    n_rows: int
    options: dict[str, Any]
    precision: float
    f1: float
    seconds: float
    n_jobs: int
    rival_seeds: int


CASES = (
    Case(100, 5, 10_000, {}, 0.985, 0.96, 10, 1, 1),
    Case(200, 5, 19_000, {}, 0.95, 0.93, 30, 2, 0),
    Case(200, 2, 10_000, {"couplings": "ising"}, 0.997, 0.99, 10, 1, 1),
)


class Figures(NamedTuple):
    """Seconds and quality of one run."""

    seconds: float
    precision: float
    f1: float


def run(scale: float = 1.0) -> list[Row]:
    """Return all rows of the section; figures are medians over the seeds."""
    warm_up()
    rows: list[Row] = []
    for case in CASES:
        size = case._replace(n=max(20, int(case.n * scale)), n_rows=int(case.n_rows * scale))
        rows += beside(size, SEEDS if scale == 1.0 else 1)
    return rows


def warm_up() -> None:
    for case in CASES:
        GraftedMRF(random_state=0).fit(draw(case._replace(n=15, n_rows=500), 0)[0])


def draw(case: Case, seed: int) -> tuple[np.ndarray, set[tuple[int, int]]]:
    data = make_scale_free(
        case.n, case.n_states, case.n_rows, random_state=seed, n_jobs=-1, **case.options
    )
    return data.X.astype(np.int64), {(i, j) for i, j in data.edges.tolist()}


def beside(case: Case, seeds: int) -> list[Row]:
    ours, ranked, cut = [], [], []
    for seed in range(seeds):
        codes, truth = draw(case, seed)
        ours.append(grafted(codes, truth, case.n_jobs))
        if seed < case.rival_seeds:
            ranked.append(nodewise(fit_l2, codes, truth))
            cut.append(nodewise(fit_l1, codes, truth))
    kind = "Ising" if case.options else f"{case.n_states} states"
    work = f"{case.n} variables, {kind}, N={case.n_rows:,}"
    threads = "two threads" if case.n_jobs == 2 else "one thread"
    limit = f"Limit: {case.seconds:g} s, {threads}."
    mine = Figures(*(median(column) for column in zip(*ours, strict=True)))
    rows = [
        Row(f"{work}: average precision", mine.precision, "required", case.precision, "", 1.0,
            "Strengths of all edges that the search found.", True),
        Row(f"{work}: F1 of `edges_`", mine.f1, "required", case.f1, "", 1.0, "", True),
    ]  # fmt: skip
    if not ranked:
        return [Row(work, mine.seconds, "none was run", None, "s", None, limit), *rows]
    first, second = (
        Figures(*(median(column) for column in zip(*runs, strict=True))) for runs in (ranked, cut)
    )
    return [
        Row(work, mine.seconds, f"{RIVAL} l2", first.seconds, "s", 10.0, limit),
        Row(work, mine.seconds, f"{RIVAL} l1", second.seconds, "s", 10.0),
        *rows,
        Row(f"{work}: average precision", mine.precision, f"{RIVAL} l2", first.precision, "", 1.0,
            "", True),
        Row(f"{work}: F1 of its own cut", mine.f1, f"{RIVAL} l1, AND", second.f1, "", 1.0, "",
            True),
    ]  # fmt: skip


def grafted(
    codes: np.ndarray,
    truth: set[tuple[int, int]],
    n_jobs: int,
    device: str = "cpu",
    kept: list[GraftedMRF] | None = None,
) -> Figures:
    """Return the figures of one fit; the estimator is added to `kept`."""
    started = perf_counter()
    found = GraftedMRF(n_jobs=n_jobs, device=device, random_state=0).fit(codes)
    seconds = perf_counter() - started
    if kept is not None:
        kept.append(found)
    table = found.edge_table_
    position = {name: i for i, name in enumerate(found.model_.names)}
    edges = [
        tuple(sorted((position[a], position[b])))
        for a, b in zip(table["first"], table["second"], strict=True)
    ]
    return Figures(seconds, *quality(edges, table["search_norm"], found.edges_, truth))


def quality(
    edges: Any, strengths: Any, kept: Any, truth: set[tuple[int, int]]
) -> tuple[float, float]:
    """Return the average precision of a ranking and the F1 of a cut."""
    order = np.argsort(-np.asarray(strengths), kind="stable")
    hits = np.array([tuple(edges[k]) in truth for k in order])
    precision = (np.cumsum(hits) / np.arange(1, len(hits) + 1) * hits).sum() / len(truth)
    chosen = {tuple(sorted(edge)) for edge in np.asarray(kept).tolist()}
    return float(precision), 2 * len(chosen & truth) / (len(chosen) + len(truth))


def nodewise(fit: Fit, codes: np.ndarray, truth: set[tuple[int, int]]) -> Figures:
    """Run one of the regressions on one thread; for l1, the cut by the AND rule comes first."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = perf_counter()
        found = fit(codes, codes.max(axis=0) + 1, 0, 1)[0]
        seconds = perf_counter() - started
    pairs = np.stack(np.triu_indices(codes.shape[1], 1), axis=1)
    strengths = found.strengths[pairs[:, 0], pairs[:, 1]]
    cut = pairs[:1] if found.edges is None else found.edges
    return Figures(seconds, *quality(pairs.tolist(), strengths, cut, truth))
