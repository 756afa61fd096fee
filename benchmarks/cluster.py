"""Costs of a cluster: measured rates of local workers, and the capacity that follows from them.

    python -m benchmarks.cluster [--rows 4000000] [--dry-run]

Rates are measured on two single-threaded workers at two sizes, checked by predicting the times of a
third size with twice the rows, and written to the tables of docs/cluster.md.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np

from benchmarks.__main__ import machine
from benchmarks.rows import best_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "cluster.md"
WORKERS = 2
REPEATS, PACKED = 5, 3
PRECISION = "single"  # the default of the estimator
ITERATIONS = 3  # iterations of the solver after an activation, with the sample
BANDWIDTH = 125e6  # assumed bandwidth of the network in bytes per second: 1 Gbit/s
# rows, columns, states, workers of one thread, partitions, edges
CASES = [
    (10_000_000, 100, 5, 4, 16, 300),
    (50_000_000, 100, 5, 8, 32, 300),
    (1_000_000_000, 100, 5, 64, 256, 300),
    (100_000_000, 1000, 2, 32, 128, 3000),
    (20_000_000, 1000, 21, 64, 256, 3000),
]


class Rates(NamedTuple):
    """Seconds per row on one thread, and the fixed cost of a request."""

    round_trip: float  # a request without work
    cell: float  # surveying and packing a cell of a frame in memory
    plane_pair: float  # counting, per row and pair of planes
    evaluated: float  # the loss, per row and state of an edge
    scored: float  # gradients of other pairs, per row and state of a pair
    fixed: Times  # without rows, with PARTS partitions on WORKERS workers


def make_part(k: int, n_rows: int, n: int, states: int):
    """Return one partition, created on its worker."""
    import pandas as pd

    codes = np.random.default_rng(k).integers(0, states, (n_rows, n), dtype=np.int8)
    return pd.DataFrame(codes, columns=[f"c{i}" for i in range(n)])


def partitions(n_rows: int, n: int, states: int, count: int) -> list:
    from dask import delayed

    return [delayed(make_part)(k, n_rows // count, n, states) for k in range(count)]


def some_edges(n: int, count: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    every = np.stack(np.triu_indices(n, 1), axis=1)
    return every[np.sort(rng.choice(len(every), count, replace=False))]


class Times(NamedTuple):
    """Seconds of one table on the cluster."""

    pack: float
    pairs: float
    evaluate: float
    score: float
    round_trip: float


N, STATES, PAIRS, EDGES, SCORED, PARTS = 100, 5, 2000, 150, 500, 8


def measure(client, n_rows: int) -> Times:
    """Time every operation of learning on a table of random rows."""
    from distributed import wait

    import edgegraft as eg
    from edgegraft.core import Layout
    from edgegraft.objective import Pseudolikelihood

    parts = client.compute(partitions(n_rows, N, STATES, PARTS))
    wait(parts)
    taken = []
    for _ in range(PACKED):
        started = perf_counter()
        rows = eg.ClusterRows(client, parts)
        taken.append(perf_counter() - started)
    pack = min(taken)
    counts, loss = eg.PairCounts(rows), Pseudolikelihood(rows, precision=PRECISION)
    pairs = some_edges(N, PAIRS)
    layout = Layout(counts.schema.n_states, some_edges(N, EDGES))
    theta = np.random.default_rng(2).normal(size=layout.n_parameters) * 0.1
    asked = some_edges(N, SCORED)
    start = loss.init(layout)

    def evaluate() -> None:
        theta[0] += 1e-9  # known values are not computed again
        loss.evaluate(theta, start)

    sides = (
        lambda: counts.pairs(pairs),
        evaluate,
        lambda: loss.edge_gradients(theta, start, asked),
        lambda: rows.map(type),
    )
    for side in sides:
        side()  # loads compiled code and lays out rows
    return Times(pack, *best_of(REPEATS, *sides))


def rates_of(small: Times, large: Times, n_small: int, n_large: int) -> Rates:
    """Return rates from the times of two sizes: the cost per row, and the fixed cost."""
    slopes = [(b - a) / (n_large - n_small) for a, b in zip(small, large, strict=True)]
    fixed = Times(*(max(a - by * n_small, 0.0) for a, by in zip(small, slopes, strict=True)))
    slope = Times(*slopes)
    return Rates(
        min(small.round_trip, large.round_trip),
        slope.pack * WORKERS / N,
        slope.pairs * WORKERS / (PAIRS * (STATES - 1) ** 2),
        slope.evaluate * WORKERS / (2 * EDGES * STATES),
        slope.score * WORKERS / (SCORED * STATES),
        fixed,
    )


def predict(rates: Rates, n_rows: int) -> Times:
    """Return the predicted times of another number of rows."""
    share = n_rows / WORKERS
    rows = Times(
        rates.cell * share * N,
        rates.plane_pair * share * PAIRS * (STATES - 1) ** 2,
        rates.evaluated * share * 2 * EDGES * STATES,
        rates.scored * share * SCORED * STATES,
        0.0,
    )
    return Times(*(a + b for a, b in zip(rates.fixed, rows, strict=True)))


def beside_local(client, n_rows: int, n: int = 200, n_pairs: int = 10_000) -> tuple[float, float]:
    """Return the seconds of a batch of pairs on the cluster, and on as many local threads."""
    import edgegraft as eg
    from edgegraft.ingest import pack

    parts = [make_part(k, n_rows // 8, n, STATES) for k in range(8)]
    import pandas as pd

    local = eg.PairCounts(pack(pd.concat(parts)), n_jobs=WORKERS)
    counts = eg.PairCounts(eg.ClusterRows(client, partitions(n_rows, n, STATES, 8)))
    edges = some_edges(n, n_pairs)
    assert np.array_equal(counts.pairs(edges).values, local.pairs(edges).values)
    cluster, here = best_of(REPEATS, lambda: counts.pairs(edges), lambda: local.pairs(edges))
    return cluster, here


def capacity(rates: Rates) -> str:
    """Return the table of memory, network and time for larger sizes."""
    lines = [
        "| rows | columns | states | workers | partitions | edges | memory per worker | packing | "
        "network per activation | time per activation |",
        "| ---: " * 10 + "|",
    ]
    for rows, n, states, workers, parts, edges in CASES:
        planes = (states - 1) / 8 + (2 if states > 16 else 0)
        memory = rows * n * (planes + 1) / workers
        tests = max(32, n // 4)
        parameters = 8 * (edges * states**2 + n * states)
        sent = workers * (16 * tests + (ITERATIONS + 1) * (parameters + 16 * edges))
        received = parts * (8 * tests * states**2 + ITERATIONS * parameters)
        work = rates.scored * tests * states + ITERATIONS * rates.evaluated * 2 * edges * states
        more = (parts / workers) / (
            PARTS / WORKERS
        )  # partitions per worker, relative to the measurement
        fixed = rates.fixed.score + ITERATIONS * rates.fixed.evaluate
        seconds = work * rows / workers + more * fixed + (sent + received) / BANDWIDTH
        packing = rates.cell * rows * n / workers + more * rates.fixed.pack
        lines.append(
            f"| {rows:,} | {n:,} | {states} | {workers} | {parts} | {edges:,} "
            f"| {memory / 2**30:.2g} GiB | {_duration(packing)} "
            f"| {(sent + received) / 2**20:,.0f} MiB | {_duration(seconds)} |"
        )
    return "\n".join(lines)


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds > 120 else f"{seconds:.2g} s"


def report(n_rows: int) -> str:
    """Measure, check, and return the section of the page."""
    from distributed import Client, LocalCluster

    sizes = n_rows // 4, n_rows // 2
    with (
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, dashboard_address=None, memory_limit=0
        ) as cluster,
        Client(cluster) as client,
    ):
        measure(client, 8_000)  # workers load the library and its compiled code
        rates = rates_of(*(measure(client, size) for size in sizes), *sizes)
        found, expected = measure(client, n_rows), predict(rates, n_rows)
        ratio = beside_local(client, n_rows // 4)
    names = {
        "pack": "packing",
        "pairs": f"counts of {PAIRS:,} pairs",
        "evaluate": f"loss and gradient, {EDGES} edges",
        "score": f"gradients of {SCORED} pairs outside the model",
    }
    checks = ["| work | measured | predicted |", "| --- | ---: | ---: |"]
    for field, name in names.items():
        taken, predicted = getattr(found, field), getattr(expected, field)
        checks.append(f"| {name} | {taken:.2g} s | {predicted:.2g} s |")
    return "\n".join(
        [
            "`python -m benchmarks.cluster`",
            "",
            "| work | cost |",
            "| --- | ---: |",
            f"| round trip without work | {1e3 * rates.round_trip:.1f} ms |",
            f"| packing cells of frames in memory | {1e-6 / rates.cell:.1f} million per second |",
            f"| pair counts, per row and pair of planes | {1e12 * rates.plane_pair:.1f} ps |",
            f"| loss and gradient, per row and state of an edge | {1e9 * rates.evaluated:.2f} ns |",
            "| gradients of other pairs, per row and state of a pair "
            f"| {1e9 * rates.scored:.2f} ns |",
            f"| batch of 10,000 pairs, {n_rows // 4:,} rows x 200 columns, on the cluster over "
            f"{WORKERS} local threads | {ratio[0]:.2g} s / {ratio[1]:.2g} s = "
            f"{ratio[0] / ratio[1]:.2f} |",
            "",
            f"Rates are per thread, from {sizes[0]:,} and {sizes[1]:,} rows x {N} columns of "
            f"{STATES} states in {PARTS} partitions on {WORKERS} workers. Their prediction for "
            f"{n_rows:,} rows, and the measured times:",
            "",
            *checks,
            "",
            "Predictions for larger tables, with one thread per worker and a network of 1 Gbit/s:",
            "",
            capacity(rates),
            "",
            f"{machine()} *Load average {os.getloadavg()[1]:.1f} during the measurement: other "
            "work ran on the machine.*"
            if os.getloadavg()[1] > WORKERS + 1
            else machine(),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000, help="rows of the largest run")
    parser.add_argument("--dry-run", action="store_true", help="print, write nothing")
    options = parser.parse_args()
    text = report(options.rows)
    print(text)
    if not options.dry_run:
        begin, end = "<!-- begin cluster -->", "<!-- end cluster -->"
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(begin)
        after = rest.partition(end)[2]
        PAGE.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
