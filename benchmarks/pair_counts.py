"""Pair tables: bit planes compared with `np.bincount` and a one-hot matrix product.

The rivals are also measured at their best: with columns laid out beforehand (contiguous int64 for
`np.bincount`), and without the time of that preparation. Our time includes everything that
`PairCounts.pairs` does; packing is reported separately.
"""

from __future__ import annotations

import subprocess
import sys
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.rows import Row, best_of
from edgegraft.counts import PairCounts
from edgegraft.table import PackedTable

REPEATS = 7


def run(scale: float = 1.0) -> list[Row]:
    """Return all rows of the section."""
    return [
        *against_bincount(int(600 * scale), 5, 19_000, 150),
        against_product(int(600 * scale), 5, 19_000, 20),
        *against_bincount(int(600 * scale), 2, 10_000, 130),
        *against_bincount(int(200 * scale), 21, 10_000, 5),
        two_threads(int(600 * scale), 1.7),
        from_the_bound(int(600 * scale)),
        start_up(),
    ]


def random_table(n: int, states: int, n_rows: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, states, (n_rows, n)).astype(np.uint8)


def all_pairs(n: int) -> np.ndarray:
    return np.stack(np.triu_indices(n, 1), axis=1)


def against_bincount(n: int, states: int, n_rows: int, target: float) -> list[Row]:
    codes = random_table(n, states, n_rows)
    started = perf_counter()
    counts = PairCounts(PackedTable.from_codes(codes))
    packing = perf_counter() - started
    edges = all_pairs(n)
    counts.pairs(edges[:10])
    sample = edges[np.random.default_rng(1).choice(len(edges), min(300, len(edges)), False)]
    laid_out = np.asfortranarray(codes.astype(np.int64))

    def bincount(table: np.ndarray) -> None:
        for i, j in sample:
            np.bincount(table[:, i] * np.int64(states) + table[:, j], minlength=states * states)

    ours, plain, prepared = best_of(
        REPEATS,
        lambda: counts.pairs(edges),
        lambda: bincount(codes),
        lambda: bincount(laid_out),
    )
    work = f"pair tables, {states} states, N={n_rows:,}, all {len(edges):,} pairs of {n}"
    us = 1e6 / len(edges)
    note = (
        f"Per pair, one thread; packing the {n} columns took another {packing:.2f} s (once). The "
        f"rival is timed on {len(sample)} random pairs of the same uint8 table."
    )
    best = (
        "The rival's columns laid out beforehand as contiguous int64, eight times the memory of "
        "the table."
    )
    theirs = [1e6 * seconds / len(sample) for seconds in (plain, prepared)]
    return [
        Row(work, ours * us, "np.bincount per pair", theirs[0], "us", target, note),
        Row("the same", ours * us, "np.bincount, prepared columns", theirs[1], "us", None, best),
    ]


def against_product(n: int, states: int, n_rows: int, target: float) -> Row:
    codes = random_table(n, states, n_rows)
    counts = PairCounts(PackedTable.from_codes(codes))
    edges = all_pairs(n)
    counts.pairs(edges[:10])
    one_hot = (codes[:, :, None] == np.arange(states, dtype=np.uint8)).reshape(n_rows, -1)
    one_hot = one_hot.astype(np.float32)
    with threadpool_limits(1):
        ours, theirs = best_of(3, lambda: counts.pairs(edges), lambda: one_hot.T @ one_hot)
    us = 1e6 / len(edges)
    note = (
        "The product gives both halves of a symmetric matrix; building the one-hot matrix is not "
        "timed."
    )
    return Row(
        "the same, 5 states",
        ours * us,
        "one-hot float32 matrix product, one thread",
        theirs * us,
        "us",
        target,
        note,
    )


def two_threads(n: int, target: float) -> Row:
    table = PackedTable.from_codes(random_table(n, 5, 19_000))
    edges = all_pairs(n)
    one, two = PairCounts(table, 1), PairCounts(table, 2)
    for counts in (one, two):
        counts.pairs(edges[:10])
    theirs, ours = best_of(REPEATS, lambda: one.pairs(edges), lambda: two.pairs(edges))
    us = 1e6 / len(edges)
    return Row("two threads, 5 states", ours * us, "one thread", theirs * us, "us", target)


def from_the_bound(n: int) -> Row:
    """Compare the count kernel with a loop that only ANDs and popcounts data in L1."""
    n_rows, states = 19_000, 5
    counts = PairCounts(PackedTable.from_codes(random_table(n, states, n_rows)))
    edges = all_pairs(n)
    counts.pairs(edges[:10])
    planes = np.random.default_rng(0).integers(0, 2**63, (8, 512), np.uint64)
    repeats = 20_000
    saturate(planes, 1)
    ours, bound = best_of(REPEATS, lambda: counts.pairs(edges), lambda: saturate(planes, repeats))
    vectors = -(-n_rows // 512) * (states - 1) ** 2
    peak = bound / (repeats * 16 * 512 / 8) * vectors
    us = 1e6 / len(edges)
    note = (
        f"A pair takes {vectors} vector steps (AND, popcount, add of 512 bits). The bound is the "
        "same steps on eight planes of 4 KiB that never leave the L1 cache, in registers, with "
        "nothing stored: the capacity of the vector units. Our kernel adds to that: operands from "
        "L2, summing each of 16 accumulators across its vector and storing it, filling in nine "
        "cells from the margins, clearing the result, and putting the edges in order."
    )
    return Row(
        "pair tables, 5 states, N=19,000",
        ours * us,
        "bound: AND + popcount + add from L1",
        peak * 1e6,
        "us",
        None,
        note,
    )


def saturate(planes: np.ndarray, repeats: int) -> int:
    """Return a sum of popcounts that keeps only the vector units busy."""
    from edgegraft.kernels.counting import Planes, count_planes

    out = np.zeros(25, np.int64)
    table = Planes(planes, np.array([0, 4, 8]), np.array([4, 4]), np.array([False, False]))
    edges = np.array([[0, 1]])
    margins = np.zeros(8, np.int64)
    start = np.array([0, 4, 8])
    chosen = np.zeros(repeats, np.int64)
    count_planes(table, margins, start, edges, chosen, np.array([0, 16]), out)
    return int(out.sum())


def start_up() -> Row:
    """Time the first count of a process with and without compiled kernels on disk."""
    import tempfile

    script = (
        "import time, numpy as np; from edgegraft.table import PackedTable; "
        "from edgegraft.counts import PairCounts; t = time.perf_counter(); "
        "PairCounts(PackedTable.from_codes(np.eye(5, dtype=int))).pairs([(0, 1)]); "
        "print(time.perf_counter() - t)"
    )

    def first_call(cache: str) -> float:
        import os

        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "NUMBA_CACHE_DIR": cache},
            capture_output=True,
            text=True,
            check=True,
        )
        return float(done.stdout)

    with tempfile.TemporaryDirectory() as cache:
        cold, warm = first_call(cache), first_call(cache)
    return Row(
        "first count of a process, kernels on disk",
        warm,
        "the same, kernels compiled from scratch",
        cold,
        "s",
        None,
        "Cold and warm start.",
    )
