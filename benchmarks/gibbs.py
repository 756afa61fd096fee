"""Gibbs updates a second, one thread, against a clear per-site loop with ``np.exp``."""

from __future__ import annotations

import time

import numpy as np
from numba import njit

from benchmarks.rows import Row, as_markdown
from edgegraft.core import Layout
from edgegraft.datasets import graphs
from edgegraft.inference.chains import tables_of
from edgegraft.kernels.gibbs.sweeps import sweep

RIVAL = "per-site numba loop with np.exp"
REPEATS = 7
CHAINS = 64


@njit(cache=True, nogil=True)
def plain_sweep(start, neighbour, table, node, tables, state, n_sweeps):
    """Run the textbook loop: log terms of one site, exponentials, inverse of the running sum."""
    n, s = node.shape
    p = np.empty(s)
    for _ in range(n_sweeps):
        for i in range(n):
            p[:] = node[i]
            for e in range(start[i], start[i + 1]):
                row = tables[table[e], state[neighbour[e]]]
                for a in range(s):
                    p[a] += row[a]
            top = p.max()
            total = 0.0
            for a in range(s):
                p[a] = np.exp(p[a] - top)
                total += p[a]
            goal = np.random.random() * total  # noqa: NPY002 - all that numba has
            k = 0
            running = p[0]
            while running <= goal and k < s - 1:
                k += 1
                running += p[k]
            state[i] = k


def run(scale: float = 1.0) -> list[Row]:
    """Measure both sides in turn and report the best of each; `scale` shortens the work."""
    cases = [
        ("600 variables, 5 states, scale-free", 600, 5, graphs.scale_free, 3),
        ("400 variables, 2 states, 20 x 20 grid", 400, 2, lambda n, rng: graphs.grid(20, 20), None),
        ("20,000 variables, 5 states, scale-free", 20_000, 5, graphs.scale_free, None),
    ]
    return [_compare(*case, scale) for case in cases]


def _compare(work, n, s, graph, target, scale):
    rng = np.random.default_rng(0)
    layout = Layout(np.full(n, s), graph(n, rng))
    theta = rng.normal(0, 1, layout.n_parameters)
    theta[: n * s] /= 2
    began = time.perf_counter()
    tables = tables_of(layout, theta)
    streams = rng.integers(1, 1 << 63, (4, CHAINS), np.uint64)
    state = rng.integers(0, s, (n, CHAINS)).astype(np.uint16)
    sweep(tables, state, streams, 1)
    first_call = time.perf_counter() - began
    began = time.perf_counter()
    tables_of(layout, theta)
    second_call = time.perf_counter() - began
    rival_arguments = _rival_arguments(layout, theta)
    plain_sweep(*rival_arguments, 1)

    ours = theirs = 0.0
    n_ours = max(1, int(scale * 30_000_000 / (n * CHAINS)))
    n_theirs = max(1, int(scale * 2_000_000 / n))
    for _ in range(REPEATS):
        ours = max(ours, _rate(n * CHAINS * n_ours, sweep, tables, state, streams, n_ours))
        theirs = max(theirs, _rate(n * n_theirs, plain_sweep, *rival_arguments, n_theirs))
    cold = "warm" if sweep.stats.cache_hits else "cold"
    return Row(
        f"Gibbs updates, {work}, one thread",
        ours,
        RIVAL,
        theirs,
        "updates/s",
        target,
        f"{CHAINS} chains side by side, which is how rows are drawn; the rival has one. Tables of "
        f"{tables.values.nbytes / 1e6:.1f} MB were built in {second_call * 1e3:.1f} ms; the first "
        f"call with a {cold} compilation cache took {first_call:.2f} s",
        higher_is_better=True,
    )


def _rival_arguments(layout, theta):
    s = int(layout.states[0])
    m = layout.n_edges
    node = theta[: layout.n_variables * s].reshape(-1, s).copy()
    forward = theta[layout.n_variables * s :].reshape(-1, s, s)
    tables = np.concatenate((forward, forward.transpose(0, 2, 1)))
    own = layout.edges.T.ravel()
    order = np.argsort(own, kind="stable")
    start = np.concatenate(([0], np.cumsum(np.bincount(own, minlength=layout.n_variables))))
    neighbour = layout.edges[:, ::-1].T.ravel()[order]
    # A table's rows belong to the neighbour: the transposed one for the lower end of an edge.
    table = np.concatenate((np.arange(m) + m, np.arange(m)))[order]
    return start, neighbour, table, node, tables, np.zeros(layout.n_variables, np.int64)


def _rate(n_updates, function, *arguments):
    began = time.perf_counter()
    function(*arguments)
    return n_updates / (time.perf_counter() - began)


if __name__ == "__main__":
    print(as_markdown(run()))
