"""One side of `benchmarks.side_by_side`, run by path; PYTHONPATH selects the code to measure.

    python benchmarks/side_by_side_worker.py TASK FOLDER SCALE

It prepares its task, does it once and writes a line. It then repeats the task for every line that
it reads, writing CPU and wall seconds each time, and its peak memory at the end. The task
``first_fit`` is done once without waiting; ``prepare`` writes the tables that both sides read.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import edgegraft

Work = Callable[[], object]
TASKS: dict[str, Callable[[Path, float], Work]] = {}
#: Bytes reserved for the library, and 40 MiB for rows.
LIMIT = 1040 << 20
COLUMNS = 20


def find(*places: str) -> Any:
    """Return the first of several names that exists in the measured code."""
    for place in places:
        module, _, name = place.rpartition(".")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"the measured code has none of {', '.join(places)}")


# Names below the top level, in old and new code; all differences are resolved here.
def make_layout(states: Any, edges: Any) -> Any:
    return find("edgegraft.core.layout.Layout", "edgegraft.graph.Layout")(states, edges)


def make_counts(table: Any) -> Any:
    make = find("edgegraft.counts.PairCounts", "edgegraft.LocalCounts")
    return make(table)


def make_loss(table: Any) -> Any:
    return find("edgegraft.objective.Pseudolikelihood")(table)


def task(function: Callable[[Path, float], Work]) -> Callable[[Path, float], Work]:
    """Register the function that prepares a task."""
    TASKS[function.__name__] = function
    return function


def random_codes(n: int, states: int, n_rows: int) -> np.ndarray:
    codes = np.random.default_rng(0).integers(0, states, (n_rows, n))
    codes[0] = states - 1
    return codes


def all_pairs(n: int) -> np.ndarray:
    return np.stack(np.triu_indices(n, 1), axis=1)


def some_pairs(n: int, wanted: int, seed: int = 0) -> np.ndarray:
    pairs = all_pairs(n)
    chosen = np.random.default_rng(seed).choice(len(pairs), min(wanted, len(pairs)), False)
    return pairs[np.sort(chosen)]


def prepare(folder: Path, scale: float) -> None:
    """Write the tables that both sides read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = edgegraft.datasets.make_scale_free
    n, n_rows = max(12, int(100 * scale)), max(400, int(10_000 * scale))
    np.save(folder / "five.npy", draw(n, 5, n_rows, random_state=0).X)
    np.save(folder / "ising.npy", draw(2 * n, 2, n_rows, couplings="ising", random_state=0).X)
    rows = draw(COLUMNS, 5, max(60_000, int(400_000 * scale)), random_state=0).X
    table = pa.table({f"x{i}": rows[:, i] for i in range(COLUMNS)})
    pq.write_table(table, folder / "rows.parquet", row_group_size=1 << 16)


# Tasks


def count_all(n: int, states: int, n_rows: int) -> Work:
    counts = make_counts(edgegraft.PackedTable.from_codes(random_codes(n, states, n_rows)))
    edges = all_pairs(n)

    def work() -> None:
        for _ in range(10):
            counts.pairs(edges)

    return work


@task
def pair_counts_5_states(folder: Path, scale: float) -> Work:
    return count_all(max(10, int(600 * scale)), 5, 19_000)


@task
def pair_counts_2_states(folder: Path, scale: float) -> Work:
    return count_all(max(10, int(1200 * scale)), 2, 10_000)


@task
def pair_counts_21_states(folder: Path, scale: float) -> Work:
    return count_all(max(10, int(150 * scale)), 21, 10_000)


def evaluate(n: int, states: int, edges: np.ndarray, n_rows: int, repeats: int) -> Work:
    layout = make_layout([states] * n, edges)
    loss = make_loss(edgegraft.PackedTable.from_codes(random_codes(n, states, n_rows)))
    theta = np.random.default_rng(1).normal(scale=0.3, size=layout.n_parameters)
    state = loss.init(layout)

    def work() -> None:
        for _ in range(repeats):
            loss.evaluate(theta, state)

    return work


@task
def pseudolikelihood_600_edges(folder: Path, scale: float) -> Work:
    n = max(20, int(200 * scale))
    return evaluate(n, 5, some_pairs(n, 3 * n), 19_000, 5)


@task
def pseudolikelihood_all_pairs(folder: Path, scale: float) -> Work:
    n = max(20, int(200 * scale))
    return evaluate(n, 2, all_pairs(n), 10_000, 5)


@task
def pseudolikelihood_scores(folder: Path, scale: float) -> Work:
    """Compute gradients of pairs outside the model, at a new point each time."""
    n = max(20, int(200 * scale))
    layout = make_layout([5] * n, some_pairs(n, 3 * n))
    loss = make_loss(edgegraft.PackedTable.from_codes(random_codes(n, 5, 19_000)))
    rng, outside = np.random.default_rng(1), some_pairs(n, 2000, seed=5)
    state = loss.init(layout)

    def work() -> None:
        theta = rng.normal(scale=0.3, size=layout.n_parameters)
        reached = loss.evaluate(theta, state).state
        loss.edge_gradients(theta, reached, outside)

    return work


@task
def parameters_group_penalty(folder: Path, scale: float) -> Work:
    rows = np.load(folder / "five.npy").astype(np.int64)
    edges = some_pairs(rows.shape[1], 3 * rows.shape[1])
    return lambda: edgegraft.fit_parameters(rows, edges, penalty=0.003, ridge=1e-3, tol=1e-4)


@task
def parameters_ridge_all_pairs(folder: Path, scale: float) -> Work:
    rows = np.load(folder / "ising.npy").astype(np.int64)[:, : max(12, int(100 * scale))]
    return lambda: edgegraft.fit_parameters(rows, ridge=1e-3, tol=1e-4)


@task
def parameters_likelihood_bp(folder: Path, scale: float) -> Work:
    rows = np.load(folder / "five.npy").astype(np.int64)
    edges = some_pairs(rows.shape[1], 2 * rows.shape[1])
    options = {"objective": "likelihood", "engine": "bp", "penalty": 0.01, "ridge": 5e-3}
    return lambda: edgegraft.fit_parameters(rows, edges, tol=1e-4, **options)


@task
def networks_5_states(folder: Path, scale: float) -> Work:
    rows = np.load(folder / "five.npy")
    return lambda: edgegraft.GraftedMRF(random_state=0, n_jobs=1).fit(rows)


@task
def networks_ising(folder: Path, scale: float) -> Work:
    rows = np.load(folder / "ising.npy")
    return lambda: edgegraft.GraftedMRF(random_state=0, n_jobs=1).fit(rows)


@task
def out_of_memory(folder: Path, scale: float) -> Work:
    """Learn with new planes each time; only a sample of the rows fits in memory."""
    cache = folder / f"cache-{'-'.join(Path(edgegraft.__file__).parts[1:-2])}"

    def work() -> None:
        shutil.rmtree(cache, ignore_errors=True)
        os.environ["EDGEGRAFT_CACHE"] = str(cache)
        network = edgegraft.GraftedMRF(random_state=0, n_jobs=1, max_memory=LIMIT)
        network.fit(folder / "rows.parquet")

    return work


@task
def first_fit(folder: Path, scale: float) -> Work:
    rows = np.random.default_rng(0).integers(0, 3, (500, 8))
    rows[:, 1] = np.where(np.random.default_rng(1).random(500) < 0.7, rows[:, 0], rows[:, 1])
    return lambda: edgegraft.GraftedMRF(random_state=0).fit(rows)


def main(name: str, folder: Path, scale: float) -> None:
    """Do a task as often as requested."""
    warnings.simplefilter("ignore")
    if name == "prepare":
        prepare(folder, scale)
        return
    work = TASKS[name](folder, scale)
    work()
    answer(ready=True)
    if name != "first_fit":
        for _ in sys.stdin:
            cpu, wall = process_time(), perf_counter()
            work()
            answer(cpu=process_time() - cpu, wall=perf_counter() - wall)
    answer(peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)  # MiB on Linux


def answer(**figures: object) -> None:
    """Write a line of figures and flush it."""
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]))
