"""Fitting parameters: the solver compared with proximal gradient, a cold start and scikit-learn.

All run on one thread with compiled kernels. The rival of the likelihood is proximal gradient with
backtracking on the same objective (same counts, messages and penalty), timed until it is within
1e-6 of our objective value. scikit-learn fits one logistic regression per variable, so every table
is fitted twice, once from each end. Each fit gets half of our ridge, which is the same objective if
both ends agree. A few variables are timed and scaled up.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.rows import Row, best_of
from edgegraft.core import Layout
from edgegraft.counts import PairCounts
from edgegraft.datasets import make_erdos_renyi, make_scale_free
from edgegraft.inference import BeliefPropagation
from edgegraft.objective.likelihood import Likelihood
from edgegraft.objective.penalty import Penalty
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.optimize import Solution, Stopping, minimize
from edgegraft.table import PackedTable

LIMIT_S = 60.0
CLOSE = 1e-6
DRAWS = 5


def run(scale: float = 1.0) -> list[Row]:
    """Return the rows; `scale` shrinks variables and rows."""
    with threadpool_limits(1):
        return [
            *_likelihood_rows(scale),
            _categorical_row(scale),
            _binary_row(scale),
            _sparse_row(scale),
        ]


def _scale_free(n: int, n_rows: int) -> tuple[PackedTable, Layout]:
    """Return rows of a scale-free model, and its graph with random edges added, 3n in total."""
    data = make_scale_free(n, n_states=5, n_rows=n_rows, random_state=0)
    table = PackedTable.from_codes(data.X.astype(np.int64))
    return table, Layout(table.schema.n_states, _with_random(data.edges, n, 3 * n))


def _with_random(edges: np.ndarray, n: int, wanted: int, seed: int = 1) -> np.ndarray:
    """Return the edges followed by random ones, `wanted` in total."""
    rng = np.random.default_rng(seed)
    found = dict.fromkeys(map(tuple, edges.tolist()))
    while len(found) < wanted:
        i, j = sorted(rng.choice(n, 2, replace=False).tolist())
        found[i, j] = None
    return np.array(list(found))


def _likelihood_rows(scale: float) -> list[Row]:
    n = max(20, round(200 * scale))
    table, layout = _scale_free(n, max(500, round(19_000 * scale)))
    loss = Likelihood(PairCounts(table, 1), BeliefPropagation())
    penalty = Penalty(0.01, 0.005)
    solved = minimize(loss, penalty, layout)
    goal = solved.info.objective * (1 + CLOSE)
    (ours,) = best_of(3, lambda: minimize(loss, penalty, layout))
    theirs, reached, evaluations = proximal_gradient(loss, penalty, layout, goal)
    work = f"likelihood by bp, {n} variables of 5 states, {layout.n_edges} edges, group-l1 + ridge"
    notes = (
        f"ours to a residual of 1e-5: {solved.info.n_evaluations} evaluations; the rival "
        + (f"to {CLOSE:g} of our objective" if reached else f"stopped after {LIMIT_S:.0f} s")
        + f": {evaluations} evaluations"
    )
    rival = "proximal gradient with backtracking"
    return [
        Row(work, ours, rival, theirs, "s", 5, notes),
        _warm_row(loss, penalty, layout, solved),
    ]


def _warm_row(loss: Likelihood, penalty: Penalty, layout: Layout, solved: Solution) -> Row:
    """Sum over several draws, because the number of random edges that enter is due to chance."""
    warm = cold = 0.0
    evaluations = []
    for seed in range(2, 2 + DRAWS):
        edges = _with_random(layout.edges, layout.n_variables, layout.n_edges + 20, seed=seed)
        grown = layout.grow(edges[layout.n_edges :])
        fits = [partial(minimize, loss, penalty, grown, start) for start in (solved, None)]
        evaluations.append([fit().info.n_evaluations for fit in fits])
        times = best_of(3, *fits)
        warm, cold = warm + times[0], cold + times[1]
    counts = "; ".join(f"{a} against {b}" for a, b in evaluations)
    return Row(
        f"the same with 20 random edges more, from the solution without them, {DRAWS} draws",
        warm,
        "ourselves, from zero",
        cold,
        "s",
        8,
        f"evaluations: {counts}",
    )


def proximal_gradient(
    loss: Likelihood, penalty: Penalty, layout: Layout, goal: float
) -> tuple[float, bool, int]:
    """Return the seconds, whether the goal was reached, and the number of evaluations."""
    started = time.perf_counter()
    x, step, n = loss.start(layout), 1.0, 1
    here = loss.evaluate(x, loss.init(layout))
    while time.perf_counter() - started < LIMIT_S:
        step *= 1.25
        while True:
            z = penalty.prox(x - step * here.gradient, step, layout)
            there = loss.evaluate(z, here.state)
            n += 1
            move = z - x
            bound = here.value + here.gradient @ move + move @ move / (2 * step)
            if there.trusted and there.value <= bound + 1e-12 * abs(here.value):
                break
            step *= 0.5
        x, here = z, there
        if here.value + penalty.value(x, layout) <= goal:
            return time.perf_counter() - started, True, n
    return time.perf_counter() - started, False, n


def _all_pairs(table: PackedTable) -> Layout:
    n = len(table.schema)
    return Layout(table.schema.n_states, np.stack(np.triu_indices(n, 1), axis=1))


def _fit_all_pairs(table: PackedTable, ridge: float, tol: float) -> Callable[[], Solution]:
    layout, penalty, stopping = _all_pairs(table), Penalty(0.0, ridge), Stopping(tol=tol)

    def fit() -> Solution:
        loss, counts = Pseudolikelihood(table, n_jobs=1), PairCounts(table, 1)
        return minimize(loss, penalty, layout, None, stopping, counts=counts)

    return fit


def time_nodewise(codes: np.ndarray, ridge: float, solver: str, timed: int) -> float:
    """Return scikit-learn's seconds for all variables, from a few of them."""
    states = codes.max(axis=0) + 1
    started = time.perf_counter()
    for i in range(timed):
        others = [np.eye(s)[codes[:, j]] for j, s in enumerate(states) if j != i]
        if states[i] == 2:  # two indicators of a binary variable are redundant
            others = [block[:, 1:] for block in others]
        features = np.concatenate(others, axis=1)
        # mean loss + (ridge / 2) ||w||^2; one indicator instead of two has four times the weight
        C = 1.0 / (ridge * len(codes)) * (4.0 if states[i] == 2 else 1.0)
        LogisticRegression(C=C, solver=solver, tol=1e-4, max_iter=1000).fit(features, codes[:, i])
    return (time.perf_counter() - started) * codes.shape[1] / timed


def _categorical_row(scale: float) -> Row:
    n, n_rows, ridge = max(10, round(100 * scale)), max(500, round(10_000 * scale)), 1e-3
    data = make_scale_free(n, n_states=5, n_rows=n_rows, random_state=0)
    codes = data.X.astype(np.int64)
    fit = _fit_all_pairs(PackedTable.from_codes(codes), ridge, 1e-4)
    info = fit().info
    (ours,) = best_of(2, fit)
    theirs = time_nodewise(codes, ridge, "lbfgs", 3)
    return Row(
        f"pseudolikelihood of all pairs, {n} variables of 5 states, {n_rows:,} rows, ridge",
        ours,
        "scikit-learn nodewise, lbfgs",
        theirs,
        "s",
        10,
        f"both to 1e-4 (ours: {info.n_evaluations} evaluations); 3 variables timed, scaled up",
    )


def _binary_row(scale: float) -> Row:
    n, n_rows, ridge = max(10, round(200 * scale)), max(500, round(10_000 * scale)), 1e-3
    data = make_erdos_renyi(n, 2, n_rows=n_rows, couplings="ising", random_state=0, n_edges=2 * n)
    codes = data.X.astype(np.int64)
    # The four entries of a binary table's gradient are equal: their norm is twice the largest.
    fit = _fit_all_pairs(PackedTable.from_codes(codes), ridge, 2e-4)
    info = fit().info
    (ours,) = best_of(2, fit)
    times = {
        s: time_nodewise(codes, ridge, s, 5) for s in ("lbfgs", "newton-cholesky", "liblinear")
    }
    best = min(times, key=lambda solver: times[solver])
    return Row(
        f"the same, {n} binary variables, {n_rows:,} rows",
        ours,
        f"scikit-learn nodewise, {best} (best of its solvers)",
        times[best],
        "s",
        10,
        f"ours: {info.n_evaluations} evaluations; 5 variables timed, scaled up: "
        + ", ".join(f"{solver} {seconds:.3g} s" for solver, seconds in times.items()),
    )


def _sparse_row(scale: float) -> Row:
    n, n_rows = max(20, round(200 * scale)), max(500, round(19_000 * scale))
    table, layout = _scale_free(n, n_rows)
    penalty, stopping = Penalty(0.003, 0.0005), Stopping(tol=1e-4)

    def fit() -> Solution:
        return minimize(Pseudolikelihood(table, n_jobs=1), penalty, layout, None, stopping)

    info = fit().info
    (ours,) = best_of(2, fit)
    return Row(
        f"pseudolikelihood, {layout.n_edges} edges, {n} variables of 5 states, {n_rows:,} rows",
        ours,
        "the time allowed",
        6.0,
        "s",
        1,
        f"group-l1 and ridge to a residual of 1e-4: {info.n_evaluations} evaluations",
    )


if __name__ == "__main__":
    import sys

    from benchmarks.rows import as_markdown

    print(as_markdown(run(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)))
