"""Models of rows with missing cells: test pseudolikelihood of complete rows, in nats.

Training rows of nltcs (16 columns) with cells removed: 40 % at random, or by a rule (the first four
columns are known; the others are missing in 60 % of the rows in which one of the four is 1, and in
20 % of the rest), and two samples of 600 rows with 40 % missing. Ours is
``GraftedMRF(aim="prediction")``, which draws missing cells from itself; beside it the same fit
without draws, which leaves missing neighbours out of a column's conditional. Lower is better; the
notes give the network's model and the share of missing cells.
"""

from __future__ import annotations

import warnings
from time import process_time

import numpy as np
from numpy.typing import NDArray

from benchmarks.prediction import FOLDER, read
from benchmarks.rows import Row
from edgegraft import GraftedMRF, PairwiseMRF
from edgegraft.learn import fit_for_prediction
from edgegraft.table import PackedTable, Schema
from edgegraft.table.blocks import TableRows

Codes = NDArray[np.int64]  # -1 is missing


def run(scale: float = 1.0) -> list[Row]:
    """Return one row per way of removing cells; `scale` is the share of the rows."""
    if not FOLDER.is_dir():
        return []
    train, test = (codes.astype(np.int64) for codes in read("nltcs"))
    train = train[: max(700, round(scale * len(train)))]
    cases = {
        "nothing missing": train,
        "40 % at random": at_random(train, 0),
        "by a rule": by_rule(train),
        "600 rows, 40 % at random": at_random(few(train, 1), 1),
        "600 other rows, 40 % at random": at_random(few(train, 2), 2),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [measure(name, codes, test) for name, codes in cases.items()]


def few(rows: Codes, seed: int) -> Codes:
    return rows[np.random.default_rng(seed).choice(len(rows), 600, replace=False)]


def at_random(rows: Codes, seed: int) -> Codes:
    return np.where(np.random.default_rng(seed).random(rows.shape) < 0.4, -1, rows)


def by_rule(rows: Codes) -> Codes:
    chance = np.where(rows[:, :4].any(axis=1), 0.6, 0.2)[:, None] * np.ones(rows.shape[1])
    chance[:, :4] = 0.0
    return np.where(np.random.default_rng(0).random(rows.shape) < chance, -1, rows)


def measure(name: str, codes: Codes, test: Codes) -> Row:
    """Return the losses of test rows with and without draws."""

    def loss(model: PairwiseMRF) -> float:
        return -float(model.pseudo_log_likelihood(codes=test).mean())

    began = process_time()
    fitted = GraftedMRF(aim="prediction", random_state=0).fit(np.where(codes < 0, np.nan, codes))
    seconds = process_time() - began
    schema = Schema.from_states([2] * codes.shape[1])
    alone = fit_for_prediction(TableRows(PackedTable.from_codes(codes, schema)))
    ours, theirs = loss(fitted.model_), loss(alone.model)
    note = (
        f"{ours:.3f} and {theirs:.3f}; network {loss(fitted.network_model_):.3f}; "
        f"{(codes < 0).mean():.0%} missing; {seconds:.1f} s"
    )
    return Row(f"nltcs, {name}", ours, "without draws", theirs, "nats", None, note)
