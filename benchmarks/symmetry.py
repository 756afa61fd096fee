"""What one weight per pair of columns costs beside two: all pairs, jointly and column by column.

A joint model has the same weight in the conditionals of both ends of a pair; logistic regressions
of each column on all others have two. On the tables where l1 regressions predict test rows better
than the model for prediction, both are fitted here to the same rows without choosing pairs, once
without a penalty (a ridge of 1e-7) and once with the ridge that predicts the *test rows* best: the
difference is what no choice of pairs and strengths of a joint model brings back. Nats per row; the
notes have the training rows, on which the regressions without a penalty cannot be worse.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.prediction import FOLDER, Codes, read, rows_of
from benchmarks.rows import Row
from edgegraft.optimize import fit_parameters

TABLES = ("nltcs", "msnbc", "plants")
FREE = 1e-7
RIDGES = (1e-5, 1e-4, 3e-4, 1e-3)

Losses = tuple[float, float]  # of training and of test rows


def run(scale: float = 1.0) -> list[Row]:
    """Return two rows per table: without a penalty, and with the best ridge."""
    if not FOLDER.is_dir():
        return []
    rows = []
    for name in TABLES:
        train, test = read(name)
        train = train[: max(200, round(scale * len(train)))]
        varied = (train != train[0]).any(axis=0)
        train, test = train[:, varied], test[:, varied]
        for what, ridges in (("no penalty", (FREE,)), ("best ridge", RIDGES)):
            joint, apart = (best(fit, train, test, ridges) for fit in (joint_loss, apart_loss))
            note = (
                f"test rows {joint[1][1]:.4f} and {apart[1][1]:.4f}, training rows "
                f"{joint[1][0]:.4f} and {apart[1][0]:.4f}; ridges {joint[0]:g} and {apart[0]:g}"
            )
            work = f"{name}: {train.shape[1]} columns, {len(train):,} rows, {what}"
            rows.append(Row(work, joint[1][1], "two weights", apart[1][1], "nats", None, note))
    return rows


def best(
    fit: Callable[[Codes, Codes, float], Losses],
    train: Codes,
    test: Codes,
    ridges: tuple[float, ...],
) -> tuple[float, Losses]:
    """Return the ridge whose fit predicts the test rows best, and its losses."""
    found = [(ridge, fit(train, test, ridge)) for ridge in ridges]
    return min(found, key=lambda each: each[1][1])


def joint_loss(train: Codes, test: Codes, ridge: float) -> Losses:
    """Return the losses of one model of all pairs."""
    model, _ = fit_parameters(rows_of(train, 2).table, ridge=ridge)
    first, second = (
        -float(model.pseudo_log_likelihood(codes=rows.astype(np.int64)).mean())
        for rows in (train, test)
    )
    return first, second


def apart_loss(train: Codes, test: Codes, ridge: float) -> Losses:
    """Return the losses of regressions of each column on all others."""
    total = np.zeros(2)
    for i in range(train.shape[1]):
        known, others = train[:, i], np.arange(train.shape[1]) != i
        rule = LogisticRegression(C=1.0 / (2.0 * ridge * len(train)), tol=1e-6, max_iter=2000)
        rule.fit(train[:, others], known)
        for k, rows in enumerate((train, test)):
            chance = rule.predict_log_proba(rows[:, others])
            total[k] -= chance[np.arange(len(rows)), rows[:, i]].mean()
    return float(total[0]), float(total[1])
