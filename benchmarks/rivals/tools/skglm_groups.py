"""Group lasso with skglm: each state against the rest, one group per other variable.

skglm has no multinomial loss, and its group solver for logistic regression takes only dense
matrices. A path of warm starts begins at the largest penalty and ends when the extended BIC gets
worse.
"""

from __future__ import annotations

import numpy as np
from skglm.datafits import LogisticGroup
from skglm.penalties import WeightedGroupL2
from skglm.solvers import GroupProxNewton

from benchmarks.rivals.outcome import Codes, Floats, Outcome
from benchmarks.rivals.regressions import Regressions, extended_bic, one_hot, targets
from benchmarks.rivals.tools.nodewise import both_states

PATH = (0.5, 0.25, 0.125, 0.0625, 0.03125)


def fit(codes: Codes, states: Codes, seed: int, threads: int) -> list[Outcome]:
    hot, start = one_hot(codes, states)
    dense = hot.toarray(order="F")
    found = Regressions(states, softmax=False)
    for i, n_states in enumerate(states.tolist()):
        x = np.delete(dense, np.s_[start[i] : start[i + 1]], axis=1)
        sizes = np.delete(states, i)
        rows = [follow(x, y, sizes) for y in targets(codes[:, i], n_states)]
        bias, weights = np.array([row[0] for row in rows]), np.stack([row[1] for row in rows])
        found.put(i, both_states(bias), both_states(weights))
    joint = bool((states == 2).all())
    return [
        found.outcome(joint=joint, rule=np.minimum, variant="AND"),
        found.outcome(joint=joint, rule=np.maximum, variant="OR"),
    ]


def follow(x: Floats, y: np.ndarray, sizes: Codes) -> tuple[float, Floats]:
    """Return intercept and weights at the best point of the path."""
    x = np.asfortranarray(x)
    groups = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    indices = np.arange(groups[-1], dtype=np.int32)
    roots = np.sqrt(sizes.astype(np.float64))
    signs = np.where(y, 1.0, -1.0)
    slopes = x.T @ (y - y.mean()) / len(y)
    largest = float((np.sqrt(np.add.reduceat(slopes**2, groups[:-1])) / roots).max())
    datafit = LogisticGroup(groups, indices)
    solver = GroupProxNewton(fit_intercept=True, warm_start=True, tol=1e-4)
    share = min(max(float(y.mean()), 1e-6), 1 - 1e-6)
    w = np.zeros(len(indices) + 1)
    w[-1] = np.log(share / (1.0 - share))
    best = (extended_bic(np.full(len(y), w[-1]), y, 0, len(indices)), w.copy())
    for part in PATH:
        penalty = WeightedGroupL2(part * largest, roots, groups, indices)
        w = solver.solve(x, signs, datafit, penalty, w.copy(), x @ w[:-1] + w[-1])[0]
        scores = x @ w[:-1] + w[-1]
        active = np.add.reduceat(w[:-1] != 0.0, groups[:-1])
        free = int((sizes - 1)[active > 0].sum())  # one-hot columns of a variable sum to one
        value = extended_bic(scores, y, free, len(indices))
        if value >= best[0]:
            break
        best = (value, w.copy())
    return float(best[1][-1]), best[1][:-1]
