"""A model for prediction, and l1 logistic regressions of each column on the others.

Test pseudolikelihood in nats per row (lower is better) and seconds of processor time, one thread.
Both get the same training rows, choose their strengths by a fifth of them that is held out, and are
fitted to all of them. The regressions (scikit-learn, liblinear, sparse rows where most cells are
zero; multinomial by saga for five states) try ``C`` from .01 upwards by factors of about three
until the held-out rows are predicted worse. Of the largest tables (`SAMPLED`) they predict some
columns, drawn at random, and our figure is of the same columns; their time is scaled to all. Ours
is the fit of the model alone (:func:`edgegraft.learn.fit_for_prediction`); the network beside it is
not timed. Of the tables marked "partial" the published validation rows are the training rows. The
table "made" (1,000 columns, 1,700 rows) is drawn from a scale-free network.

Regressions have two weights per pair of columns where a joint model has one, so a joint model that
is not the truth may fit worse however it is penalised. If ours is worse, the notes say how good it
could be: the path of strengths fitted to all training rows, the best chosen by the test rows.
"""

from __future__ import annotations

import pathlib
import warnings
from time import process_time

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from benchmarks.rows import Row
from edgegraft.core.pairs import all_pairs
from edgegraft.datasets import make_scale_free
from edgegraft.learn import fit_for_prediction
from edgegraft.learn.prediction import Prediction
from edgegraft.learn.prediction_path import Path, choose_strengths
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.table import PackedTable, Schema
from edgegraft.table.blocks import TableRows

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data"
WHOLE = ("nltcs", "plants", "baudio", "jester", "dna", "mushrooms", "msweb", "pumsb_star")
PARTIAL = ("book", "kosarek", "msnbc")
SAMPLED = {"pumsb_star": 24, "yummly": 60, "jester5": 6, "made": 60}
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
        for name in (*WHOLE, *PARTIAL, "yummly", "jester5", "made"):
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
    if name == "jester5":
        with np.load(FOLDER / "jester5.npz") as file:
            X = file["X"][file["complete_rows"]]
        order = np.random.default_rng(0).permutation(len(X))
        return X[order[1000:]], X[order[:1000]]
    if name == "made":
        X = make_scale_free(1000, 2, 2700, random_state=0).X.astype(np.uint8)
        return X[:1700], X[1700:]
    partial = name in PARTIAL
    with np.load(FOLDER / "debd" / f"{name}{'_partial' if partial else ''}.npz") as file:
        return file["valid" if partial else "train"], file["test"]


def compare(name: str, train: Codes, test: Codes) -> list[Row]:
    began = process_time()
    made = fit(train)
    ours = process_time() - began
    n = train.shape[1]
    columns = np.sort(np.random.default_rng(0).permutation(n)[: SAMPLED.get(name, n)])
    began = process_time()
    level, loss = regress(train, test, columns)
    theirs = (process_time() - began) * n / len(columns)
    cells = made.model.pseudo_log_likelihood(codes=test.astype(np.int64), per_variable=True)
    nats = -float(cells[:, columns].sum(axis=1).mean())
    note = (
        f"{nats:.4f} and {loss:.4f}; {made.model.n_edges:,} edges, penalty {made.penalty:.2g}, "
        f"ridge {made.ridge:.2g}, {len(made.trials)} fits; C = {level:g}"
    )
    if len(columns) < n:
        note += f"; of {len(columns)} columns, all: {-cells.sum(axis=1).mean():.4f}"
    elif nats > loss:
        note += f"; strengths chosen by the test rows: {limit(train, test):.4f}"
    work = f"{name}: {n} columns, {len(train):,} rows"
    return [
        Row(work, nats, RIVAL, loss, "nats", 1.0, note),
        Row(f"{name}, time", ours, RIVAL, theirs, "s", 1.0),
    ]


def rows_of(codes: Codes, n_states: int) -> TableRows:
    schema = Schema.from_states([n_states] * codes.shape[1])
    return TableRows(PackedTable.from_codes(codes.astype(np.int64), schema), n_jobs=1)


def fit(train: Codes) -> Prediction:
    return fit_for_prediction(rows_of(train, int(train.max()) + 1))


def limit(train: Codes, test: Codes) -> float:
    """Return the test loss of the best joint fit to all pairs, its strengths chosen by that."""
    loss, held = (Pseudolikelihood(rows_of(codes, 2)) for codes in (train, test))
    path = Path(loss, all_pairs(train.shape[1]), 1e-4)
    return -choose_strengths([(path, held)], lambda: False)[0].score


def regress(train: Codes, test: Codes, columns: NDArray[np.intp]) -> tuple[float, float]:
    """Return the chosen ``C`` and the test loss of regressions of some columns."""
    held = np.random.default_rng(0).permutation(len(train)) % 5 == 0
    best, level = np.inf, GRID[0]
    for candidate in GRID:
        loss = loss_of(train[~held], train[held], candidate, columns)
        if loss >= best:
            break
        best, level = loss, candidate
    return level, loss_of(train, test, level, columns)


def loss_of(train: Codes, test: Codes, level: float, columns: NDArray[np.intp]) -> float:
    """Return the summed mean losses of columns, each given all others."""
    loss = column_loss if train.max() < 2 else column_loss_of_states
    return sum(loss(train, test, level, int(i)) for i in columns)


def column_loss(train: Codes, test: Codes, level: float, i: int) -> float:
    """Return the mean loss of a column of two states."""
    others, known = np.arange(train.shape[1]) != i, train[:, i]
    share = (known.sum() + 0.5) / (len(known) + 1)
    logits = np.full(len(test), np.log(share / (1 - share)))
    if 0 < known.sum() < len(known):
        X = train[:, others].astype(float)
        rule = LogisticRegression(
            l1_ratio=1.0, solver="liblinear", C=level, tol=1e-3, max_iter=200
        ).fit(sparse.csr_matrix(X) if train.mean() < SPARSE else X, known)
        logits = test[:, others] @ rule.coef_[0] + rule.intercept_[0]
    return float(np.logaddexp(0.0, np.where(test[:, i] > 0, -logits, logits)).mean())


def column_loss_of_states(train: Codes, test: Codes, level: float, i: int) -> float:
    """Return the mean loss of a column of several states, given indicators of the others."""
    others, states = np.arange(train.shape[1]) != i, np.arange(int(train.max()) + 1)
    X, held = (
        sparse.csr_matrix((codes[:, others, None] == states).reshape(len(codes), -1) * 1.0)
        for codes in (train, test)
    )
    rule = LogisticRegression(l1_ratio=1.0, solver="saga", C=level, tol=1e-3, max_iter=200)
    shares = rule.fit(X, train[:, i]).predict_log_proba(held)
    return -float(shares[np.arange(len(test)), np.searchsorted(rule.classes_, test[:, i])].mean())
