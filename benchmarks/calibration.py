"""The cut: false discovery rate and F1 of the edges that `discover` keeps.

The false discovery rate is the share of kept edges that are not true, averaged over the seeds. One
thread. The generator's rows come from Gibbs chains and are not quite independent; the cases "own
chains" draw every row from a separate chain, and show the tests in isolation.

How settings were chosen: the variance of the statistic and its minimum information by simulation on
seeds below 100, the default level and the factors of the search on seeds 0 to 2. The seeds here
start at 100.
"""

from __future__ import annotations

import warnings
from statistics import fmean, median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from benchmarks.rows import Row
from edgegraft.datasets import make_scale_free
from edgegraft.errors import ConvergenceWarning
from edgegraft.learn import Plan, discover
from edgegraft.table import PackedTable

LEVEL = 0.05
DEFAULT = Plan().fdr
REQUIRED_RATE = 0.07
FIRST_SEED = 100
MIN_RATE = 1e-4  # shown if no false edge was kept, because the ratio needs a divisor


class Case(NamedTuple):
    """A generator."""

    name: str
    n: int
    n_rows: int
    options: dict[str, Any]
    seeds: int


class Figures(NamedTuple):
    """One run."""

    reachable: float  # share of the true edges that the search found
    false_share: float
    f1: float
    default_false_share: float
    default_f1: float
    seconds: float


ISING = {"couplings": "ising", "n_states": 2}
CASES = (
    Case("100 variables, 5 states, N=10,000", 100, 10_000, {}, 20),
    Case("Ising, 100 variables, N=10,000", 100, 10_000, ISING, 20),
    Case("Ising, 100 variables, N=10,000, own chains", 100, 10_000,
         {**ISING, "n_chains": 10_000, "burn_in": 300}, 20),
    Case("rare states: 50 variables, 4 states, node potentials N(0, 2), N=5,000", 50, 5_000,
         {"node_scale": 2.0, "n_states": 4}, 20),
)  # fmt: skip


def run(scale: float = 1.0) -> list[Row]:
    """Return two rows per case; `scale` reduces the number of seeds."""
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for case in CASES:
            count = max(1, round(case.seeds * scale))
            rows += summary(case, [learn(case, FIRST_SEED + k) for k in range(count)])
    return rows


def summary(case: Case, runs: list[Figures]) -> list[Row]:
    note = (
        f"Mean of {len(runs)} seeds; the search reached "
        f"{fmean(r.reachable for r in runs):.3f} of the true edges; F1 at this level "
        f"{fmean(r.f1 for r in runs):.3f}; median {median(r.seconds for r in runs):.1f} s."
    )
    at = f"level {DEFAULT}, the default"
    least = f"False discovery rate {fmean(r.default_false_share for r in runs):.4f}."
    rate = max(fmean(r.false_share for r in runs), MIN_RATE)
    work = f"{case.name}: false discovery rate at level {LEVEL}"
    return [
        Row(work, rate, "required", REQUIRED_RATE, "", 1.0, note),
        Row(f"{case.name}: F1 at {at}", fmean(r.default_f1 for r in runs), "none", None, "",
            None, least, True),
    ]  # fmt: skip


def learn(case: Case, seed: int) -> Figures:
    """Draw data, learn, and evaluate the cuts."""
    data = make_scale_free(case.n, n_rows=case.n_rows, random_state=seed, **case.options)
    table = PackedTable.from_codes(data.X.astype(np.int32), data.schema)
    started = perf_counter()
    tests = discover(table).tests
    seconds = perf_counter() - started
    known = {tuple(edge) for edge in data.edges.tolist()}
    true = np.array([tuple(edge) in known for edge in tests.edges.tolist()], bool)
    cuts = [judge(tests.q_value <= level, true, len(known)) for level in (LEVEL, DEFAULT)]
    return Figures(true.sum() / len(known), *cuts[0], *cuts[1], seconds)


def judge(kept: np.ndarray, true: np.ndarray, n_true: int) -> tuple[float, float]:
    """Return the share of false edges among those kept, and F1."""
    hits, n_kept = int((kept & true).sum()), int(kept.sum())
    return 1 - hits / n_kept if n_kept else 0.0, 2 * hits / (n_kept + n_true)
