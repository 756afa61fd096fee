"""The bootstrap: its time on a survey, and its coverage.

The survey is `bfi` (25 items of 6 states, 2,800 rows, 508 missing cells) in ../shared/data. Without
that file, only the coverage is measured.

Coverage is that of intervals of edge strengths on chains of six variables with
the true graph given; the target is the strength that the same ridge gives with 400,000 rows.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np

from benchmarks.rows import Row, as_markdown
from edgegraft.datasets import make_chain
from edgegraft.ingest import pack
from edgegraft.learn import Discovery, Settings, discover, grow
from edgegraft.learn.bootstrap import bootstrap, strength_intervals
from edgegraft.learn.replicate import Draws, Replicator
from edgegraft.model import PairwiseMRF
from edgegraft.objective.penalty import Penalty
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.optimize.solver import Stopping, minimize
from edgegraft.table import PackedTable

SURVEY = Path(__file__).resolve().parents[2] / "shared" / "data" / "bfi.csv.gz"
REPLICATES, THREADS, REQUIRED_SECONDS = 1000, 2, 60.0
LEVEL = 0.95
SIMULATIONS, SIMULATED_REPLICATES = 60, 200
MANY_ROWS = 400_000


class Chain(NamedTuple):
    """A chain to simulate from."""

    name: str
    n_rows: int
    options: dict[str, Any]


CHAINS = (
    Chain("Ising, N=2,000", 2000, {"couplings": "ising", "n_states": 2}),
    Chain("3 states, weak, N=1,000", 1000, {"n_states": 3, "edge_scale": 0.3}),
    Chain("6 states, weak, N=2,500", 2500, {"n_states": 6, "edge_scale": 0.25}),
    Chain("6 states, N=2,500", 2500, {"n_states": 6, "edge_scale": 0.6}),
)


def run(scale: float = 1.0) -> list[Row]:
    """Return the rows; `scale` reduces replicates and simulations."""
    rows = []
    if SURVEY.exists():
        table = pack(SURVEY, missing_values=["?"])
        found = discover(table)
        rows.append(timing(table, found, scale))
    else:
        print(f"{SURVEY} does not exist: the survey is skipped", flush=True)
    return rows + [coverage(chain, max(4, round(SIMULATIONS * scale))) for chain in CHAINS]


def timing(table: PackedTable, found: Discovery, scale: float) -> Row:
    n = max(4, round(REPLICATES * scale))
    bootstrap(found, table, 4, n_jobs=THREADS)  # compiles
    started, used = perf_counter(), process_time()
    bootstrap(found, table, n, n_jobs=THREADS)
    seconds, used = perf_counter() - started, process_time() - used
    note = (
        f"{THREADS} threads; {used:.1f} s of processor time, {1e3 * used / n:.0f} ms per replicate."
    )
    work = f"bfi, {n:,} replicates"
    return Row(work, seconds, "required", REQUIRED_SECONDS * n / REPLICATES, "s", 1.0, note)


def draws_of(n_rows: int, n: int, seed: int) -> Draws:
    return Draws(np.ones(n_rows), tuple(np.random.SeedSequence(seed).spawn(n)))


def coverage(chain: Chain, simulations: int) -> Row:
    many = make_chain(6, n_rows=MANY_ROWS, random_state=0, **chain.options)
    ridge = Penalty(0.0, min(0.1, 10 / chain.n_rows))
    truth = fit(PackedTable.from_codes(many.X.astype(np.int32), many.schema), many.model, ridge)
    hits, plain = [], []
    for seed in range(simulations):
        codes = many.model.sample_codes(chain.n_rows, random_state=seed)
        table = PackedTable.from_codes(codes, many.schema)
        # The search may not add edges: the graph is given.
        idle = grow(
            Pseudolikelihood(table),
            Penalty(1.0, ridge.ridge),
            Settings(relaxed=False, tol=1e-4, max_tables=0),
        )
        draws = draws_of(chain.n_rows, SIMULATED_REPLICATES, seed)
        replicator = Replicator(idle, fit(table, many.model, ridge), table, draws)
        made = [replicator.make(k) for k in range(SIMULATED_REPLICATES)]
        again, moved = (
            np.stack([getattr(m, name) for m in made]) for name in ("strengths", "moved")
        )
        strength = truth.edge_strengths()
        lower, upper = strength_intervals(replicator.strengths, again, moved, LEVEL)
        hits.append(((lower <= strength) & (strength <= upper)).mean())
        lower, upper = np.quantile(again, ((1 - LEVEL) / 2, (1 + LEVEL) / 2), axis=0)
        plain.append(((lower <= strength) & (strength <= upper)).mean())
    shrunk = truth.edge_strengths().mean() / many.model.edge_strengths().mean()
    note = (
        f"{simulations} simulations of 5 edges, {SIMULATED_REPLICATES} replicates. Percentiles of "
        f"the replicated strengths cover {fmean(plain):.3f}. The ridge leaves {shrunk:.2f} of the "
        "strengths, which no interval here corrects."
    )
    work = f"{chain.name}: coverage of {LEVEL} intervals"
    return Row(work, fmean(hits), "level", LEVEL, "", None, note, True)


def fit(table: PackedTable, model: PairwiseMRF, ridge: Penalty) -> PairwiseMRF:
    found = minimize(Pseudolikelihood(table), ridge, model.layout, None, Stopping(1e-5, 500))
    return PairwiseMRF(table.schema, model.edges, found.theta)


if __name__ == "__main__":
    print(as_markdown(run()))
