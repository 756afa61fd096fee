"""Rules that choose the penalty: chance level with a cut (the default), EBIC, held-out rows, StARS.

Every rule uses the same path of ten penalties of a relaxed search, except the default, which needs
no path: its threshold is the level that chance exceeds about once per variable, and its tests cut
the network. Reported are F1 of the edges on generated data, the score of held-out rows in nats per
row, and seconds on one thread; for data without a known truth (NLTCS, plants, DNA), the score of
the published test rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from benchmarks.penalty_path import instability, most_stable, penalty_path
from benchmarks.rows import Row
from edgegraft.datasets import make_scale_free
from edgegraft.errors import ConvergenceWarning
from edgegraft.learn import Plan, discover
from edgegraft.model import PairwiseMRF
from edgegraft.table import PackedTable

SEED = 3  # nothing was tuned on this seed
N_PENALTIES = 10
DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "debd"


class Case(NamedTuple):
    """Training rows, held-out rows, and the true edges if they are known."""

    name: str
    train: PackedTable
    test: PackedTable
    truth: set[tuple[int, int]] | None


def run(scale: float = 1.0) -> list[Row]:
    """Return all rows of the section."""
    rows: list[Row] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for case in cases(scale):
            rows += compare(case)
    return rows


def cases(scale: float) -> list[Case]:
    n = max(15, int(100 * scale))
    found = [
        generated(f"{n} variables, 5 states, N=10,000", n, 5, {}),
        generated(f"Ising, {n} variables, N=10,000", n, 2, {"couplings": "ising"}),
    ]
    if not DATA.exists():
        print(f"{DATA} does not exist: the real data are skipped")
        return found
    return found + [recorded(name) for name in ("nltcs", "plants", "dna")]


def generated(name: str, n: int, n_states: int, options: dict[str, Any]) -> Case:
    data = make_scale_free(n, n_states, 12_000, random_state=SEED, n_jobs=2, **options)
    train, test = np.split(data.X.astype(np.int32), [10_000])
    truth = {(i, j) for i, j in data.edges.tolist()}
    return Case(name, *(PackedTable.from_codes(x, data.schema) for x in (train, test)), truth)


def recorded(name: str) -> Case:
    with np.load(DATA / f"{name}.npz") as stored:
        train, test = (stored[part].astype(np.int32) for part in ("train", "test"))
    whole = PackedTable.from_codes(np.concatenate((train, test)))
    return Case(name, *(PackedTable.from_codes(x, whole.schema) for x in (train, test)), None)


def compare(case: Case) -> list[Row]:
    rules: dict[str, Callable[[PackedTable], PairwiseMRF]] = {
        "EBIC": by_ebic,
        "held-out rows": by_score,
        "StARS": by_stability,
    }
    started = perf_counter()
    ours = discover(case.train).model
    seconds = perf_counter() - started
    mine = judge(ours, case)
    rows = []
    for name, rule in rules.items():
        started = perf_counter()
        model = rule(case.train)
        took = perf_counter() - started
        theirs = judge(model, case)
        note = f"{ours.n_edges} and {model.n_edges} edges; {seconds:.1f} s and {took:.1f} s."
        if case.truth is not None:
            rows.append(Row(f"{case.name}: F1", mine[1], name, theirs[1], "", None, note, True))
            note = ""
        rows.append(
            Row(f"{case.name}: test loss, nats per row", mine[0], name, theirs[0], "", None, note)
        )
    return rows


def judge(model: PairwiseMRF, case: Case) -> tuple[float, float]:
    """Return the loss of the test rows, and F1."""
    loss = -float(model.pseudo_log_likelihood(codes=case.test.codes()).mean())
    if case.truth is None:
        return loss, float("nan")
    edges = {(i, j) for i, j in model.edges.tolist()}
    return loss, 2 * len(edges & case.truth) / (len(edges) + len(case.truth))


def by_ebic(table: PackedTable) -> PairwiseMRF:
    return min(penalty_path(table, penalties=N_PENALTIES), key=lambda point: point.ebic).model


def by_score(table: PackedTable) -> PairwiseMRF:
    """Choose by a fifth of the rows, then learn from all with the chance level rescaled."""
    codes = table.codes()
    last = len(codes) * 4 // 5
    train, rest = (PackedTable.from_codes(x, table.schema) for x in np.split(codes, [last]))
    path = penalty_path(train, penalties=N_PENALTIES, held_out=rest)
    best = max(path, key=lambda point: point.held_out).penalty
    return discover(table, Plan(penalty=best * np.sqrt(last / len(codes)), fdr=None)).model


def by_stability(table: PackedTable) -> PairwiseMRF:
    path = penalty_path(table, penalties=N_PENALTIES)
    levels = [point.penalty for point in path]
    best = most_stable(levels, instability(table, None, levels, n_subsamples=10))
    return next(point for point in path if point.penalty == best).model
