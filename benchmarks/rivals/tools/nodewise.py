"""Nodewise logistic regression with scikit-learn: each variable on all others.

The one-hot columns of all states form one sparse matrix; the regression of variable ``i`` omits its
own columns. With more than two states, l2 is multinomial and l1 is one state against the rest,
because liblinear, by far the fastest solver, has no multinomial loss.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from benchmarks.rivals.outcome import Codes, Floats, Outcome
from benchmarks.rivals.regressions import (
    Regressions,
    extended_bic,
    log_scores,
    one_hot,
    targets,
)

#: Multiples of sqrt(log(columns) / rows), the order of magnitude that theory suggests.
PATH = (1.6, 0.8, 0.4, 0.2, 0.1, 0.05)
#: The best of .4, .6, .8, 1 and 1.4 for the AND cut of three small generated tables (one is seed 0
#: of scale-free-30). It is the smallest value tried; a smaller one might be better still.
FIXED = 0.4


def fit_l2(codes: Codes, states: Codes, seed: int, threads: int) -> list[Outcome]:
    hot, start = one_hot(codes, states)
    found = Regressions(states, softmax=True)
    for i in range(len(states)):
        x = without(hot, start, i)
        model = LogisticRegression(C=1.0, max_iter=200, tol=1e-3).fit(x, codes[:, i])
        found.put(i, both_states(model.intercept_), both_states(model.coef_))
    return [found.outcome(joint=True)]


def fit_l1(codes: Codes, states: Codes, seed: int, threads: int) -> list[Outcome]:
    return against_the_rest(codes, states, by_extended_bic)


def fit_l1_fixed(codes: Codes, states: Codes, seed: int, threads: int) -> list[Outcome]:
    return against_the_rest(codes, states, lambda x, y: lasso(x, y, strictness(x, FIXED)))


def fit_l1_validated(codes: Codes, states: Codes, seed: int, threads: int) -> list[Outcome]:
    return against_the_rest(codes, states, by_validation)


Chooser = Callable[[sparse.csr_matrix, np.ndarray], tuple[float, Floats]]


def against_the_rest(codes: Codes, states: Codes, choose: Chooser) -> list[Outcome]:
    hot, start = one_hot(codes, states)
    found = Regressions(states, softmax=False)
    for i, n_states in enumerate(states.tolist()):
        x = without(hot, start, i)
        rows = [choose(x, y) for y in targets(codes[:, i], n_states)]
        bias, weights = np.array([row[0] for row in rows]), np.stack([row[1] for row in rows])
        found.put(i, both_states(bias), both_states(weights))
    joint = bool((states == 2).all())
    return [
        found.outcome(joint=joint, rule=np.minimum, variant="AND"),
        found.outcome(joint=joint, rule=np.maximum, variant="OR"),
    ]


def by_extended_bic(x: sparse.csr_matrix, y: np.ndarray) -> tuple[float, Floats]:
    """Follow the path until the criterion gets worse."""
    best = (np.inf, 0.0, np.zeros(x.shape[1]))
    for multiple in PATH:
        bias, weights = lasso(x, y, strictness(x, multiple))
        value = extended_bic(x @ weights + bias, y, np.count_nonzero(weights), x.shape[1])
        if value >= best[0]:
            break
        best = (value, bias, weights)
    return best[1:]


def by_validation(x: sparse.csr_matrix, y: np.ndarray) -> tuple[float, Floats]:
    """Follow the path on four fifths of the rows until the score of the last fifth gets worse."""
    last = len(y) * 4 // 5
    best = (-np.inf, PATH[0])
    for multiple in PATH:
        if len(np.unique(y[:last])) < 2:
            break
        bias, weights = lasso(x[:last], y[:last], strictness(x, multiple))
        value = float(log_scores(x[last:] @ weights + bias, y[last:]).mean())
        if value <= best[0]:
            break
        best = (value, multiple)
    return lasso(x, y, strictness(x, best[1]))


def strictness(x: sparse.csr_matrix, multiple: float) -> float:
    """Return scikit-learn's C for a multiple of the theory's penalty."""
    return 1.0 / (multiple * np.sqrt(np.log(x.shape[1]) * x.shape[0]))


def lasso(x: sparse.csr_matrix, y: np.ndarray, c: float) -> tuple[float, Floats]:
    model = LogisticRegression(C=c, l1_ratio=1.0, solver="liblinear", tol=1e-3)
    model.fit(x, y)
    return float(model.intercept_[0]), model.coef_[0]


def without(hot: sparse.csc_matrix, start: np.ndarray, i: int) -> sparse.csr_matrix:
    """Return the columns of all variables except one."""
    return sparse.hstack([hot[:, : start[i]], hot[:, start[i + 1] :]], format="csr")


def both_states(values: Floats) -> Floats:
    """Return one row per state; a binary regression has only that of the second state."""
    return np.concatenate([-values / 2, values / 2]) if len(values) == 1 else values
