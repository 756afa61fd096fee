"""A model for prediction, and l1 logistic regressions of each column on the others.

Test pseudolikelihood in nats per row (lower is better) and seconds of processor time, one thread.
Both get the same training rows, choose their strengths by a fifth of them that is held out, and are
fitted to all of them. The regressions (scikit-learn, liblinear, sparse rows where most cells are
zero) try ``C`` from .01 upwards by factors of about three until the held-out rows are predicted
worse. They have two weights per pair of columns where a joint model has one, so a joint model that
is not the truth may fit worse however it is penalised. Ours is the fit of the model alone
(:func:`edgegraft.learn.fit_for_prediction`); the network beside it is not timed. Of the tables
marked "partial" the published validation rows are the training rows.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from time import process_time

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from benchmarks.rows import Row
from edgegraft.learn import fit_for_prediction
from edgegraft.table import PackedTable, Schema
from edgegraft.table.blocks import TableRows

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
WHOLE = ("nltcs", "plants", "baudio", "jester", "dna", "mushrooms", "msweb", "pumsb_star")
PARTIAL = ("book", "kosarek", "msnbc")
GRID = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
SPARSE = 0.35  # share of ones up to which rows are given as sparse
RIVAL = "l1 regressions"

Codes = NDArray[np.uint8]


def run(scale: float = 1.0) -> list[Row]:
    """Return two rows per table: nats, then seconds; `scale` is the share of the rows."""
    if not FOLDER.is_dir():
        return []
    fit(np.eye(12, dtype=np.uint8))  # compile
    rows: list[Row] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in (*WHOLE, *PARTIAL, "yummly"):
            train, test = read(name)
            rows += compare(name, train[: max(200, round(scale * len(train)))], test)
    return rows


def read(name: str) -> tuple[Codes, Codes]:
    """Return training and test rows."""
    if name == "yummly":
        with np.load(FOLDER / "yummly489.npz") as file:
            X, sample = file["X"], file["sample10000"]
        rest = np.setdiff1d(np.arange(len(X)), sample)
        return X[sample], X[np.random.default_rng(0).choice(rest, 10_000, replace=False)]
    partial = name in PARTIAL
    with np.load(FOLDER / "debd" / f"{name}{'_partial' if partial else ''}.npz") as file:
        return file["valid" if partial else "train"], file["test"]


def compare(name: str, train: Codes, test: Codes) -> list[Row]:
    began = process_time()
    made = fit(train)
    ours = process_time() - began
    began = process_time()
    level, loss = regress(train, test)
    theirs = process_time() - began
    nats = -float(made.model.pseudo_log_likelihood(codes=test.astype(np.int64)).mean())
    note = (
        f"{nats:.4f} and {loss:.4f}; {made.model.n_edges:,} edges, penalty {made.penalty:.2g}, "
        f"ridge {made.ridge:.2g}, {len(made.trials)} fits; C = {level:g}"
    )
    work = f"{name}: {train.shape[1]} columns, {len(train):,} rows"
    return [
        Row(work, nats, RIVAL, loss, "nats", 1.0, note),
        Row(f"{name}, time", ours, RIVAL, theirs, "s", 1.0),
    ]


def fit(train: Codes):  # type: ignore[no-untyped-def]
    schema = Schema.from_states([2] * train.shape[1])
    table = PackedTable.from_codes(train.astype(np.int64), schema)
    return fit_for_prediction(TableRows(table, n_jobs=1))


def regress(train: Codes, test: Codes) -> tuple[float, float]:
    """Return the chosen ``C`` and the test loss of regressions."""
    held = np.random.default_rng(0).permutation(len(train)) % 5 == 0
    best, level = np.inf, GRID[0]
    for candidate in GRID:
        loss = loss_of(train[~held], train[held], candidate)
        if loss >= best:
            break
        best, level = loss, candidate
    return level, loss_of(train, test, level)


def loss_of(train: Codes, test: Codes, level: float) -> float:
    """Return the summed mean losses of all columns, each given the others."""
    n, total = train.shape[1], 0.0
    for i in range(n):
        others, known = np.arange(n) != i, train[:, i]
        share = (known.sum() + 0.5) / (len(known) + 1)
        logits = np.full(len(test), np.log(share / (1 - share)))
        if 0 < known.sum() < len(known):
            X = train[:, others].astype(float)
            rule = LogisticRegression(
                l1_ratio=1.0, solver="liblinear", C=level, tol=1e-3, max_iter=200
            ).fit(sparse.csr_matrix(X) if train.mean() < SPARSE else X, known)
            logits = test[:, others] @ rule.coef_[0] + rule.intercept_[0]
        total += float(np.logaddexp(0.0, np.where(test[:, i] > 0, -logits, logits)).mean())
    return total
