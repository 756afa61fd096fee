"""Belief propagation: messages per second, and marginals compared with pyGMs.

pyGMs has no stopping rule. It runs as many sweeps as ours take to reach the tolerance, and its
beliefs must agree with ours. It runs in a separate process with a time limit; if it is stopped, the
limit is a lower bound of its time. Building its factors is not counted, nor is our wiring in a warm
run.

    python -m benchmarks.bp
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.rows import Row, as_markdown, best_of
from edgegraft.core import Layout
from edgegraft.datasets.graphs import grid, scale_free
from edgegraft.inference.bp import BeliefPropagation

LIMIT_S = 120
AGREEMENT = 1e-4
RIVAL = """
import sys, time
import numpy as np
import pygms as gm
from pygms.messagepass import LBP
given = np.load(sys.argv[1])
states, edges, theta = given["states"], given["edges"], given["theta"]
X = [gm.Var(i, int(s)) for i, s in enumerate(states)]
factors, at = [], 0
for i, s in enumerate(states):
    factors.append(gm.Factor([X[i]], np.exp(theta[at : at + s])))
    at += s
for i, j in edges:
    size = states[i] * states[j]
    factors.append(gm.Factor([X[i], X[j]], np.exp(theta[at : at + size].reshape(states[i], -1))))
    at += size
model = gm.GraphModel(factors)
started = time.perf_counter()
_, beliefs = LBP(model, maxIter=int(sys.argv[2]))
elapsed = time.perf_counter() - started
np.save(sys.argv[3], np.concatenate([np.asarray(b.table).ravel() for b in beliefs]))
print(elapsed)
"""


def run(scale: float = 1.0) -> list[Row]:
    """Return the rows; `scale` shrinks the models."""
    rng = np.random.default_rng(0)
    side, n = max(3, round(20 * scale)), max(10, round(600 * scale))
    return [
        _sweep_row(scale),
        _marginals_row(f"marginals, {side} x {side} binary grid", [2] * side**2, grid(side, side)),
        _marginals_row(f"marginals, scale-free, {n} nodes, 5 states", [5] * n, scale_free(n, rng)),
    ]


def model(states: list[int], edges: np.ndarray) -> tuple[Layout, np.ndarray]:
    """Return a random model with moderate couplings."""
    layout = Layout(states, edges)
    return layout, 0.3 * np.random.default_rng(1).normal(size=layout.n_parameters)


def _sweep_row(scale: float) -> Row:
    n = max(10, round(901 * scale))
    layout, theta = model([5] * n, scale_free(n, np.random.default_rng(0)))
    sweeps = 10  # of more, the worst node is taken first
    engine = BeliefPropagation(tol=1e-300, max_iter=sweeps)
    one = BeliefPropagation(tol=1e-300, max_iter=1)
    began = time.perf_counter()
    _, state, _ = one.run(theta, one.init(layout))
    first = time.perf_counter() - began
    # The difference excludes the work done once per run: potentials and beliefs.
    many, single = best_of(7, lambda: engine.run(theta, state), lambda: one.run(theta, state))
    done = engine.run(theta, state)[2].n_iter
    rate = 2 * layout.n_edges * (done - 1) / (many - single) / 1e6
    return Row(
        f"one sweep of messages, {layout.n_edges} edges, 5 states, one thread",
        rate,
        "figure to reach",
        10.0,
        "million messages/s",
        1.0,
        f"The first call in this process took {first:.2f} s (compiles, or loads the cache).",
        higher_is_better=True,
    )


def _marginals_row(work: str, states: list[int], edges: np.ndarray) -> Row:
    layout, theta = model(states, edges)
    engine = BeliefPropagation()
    ours, state, info = engine.run(theta, engine.init(layout))
    (seconds,) = best_of(10, lambda: engine.run(theta, engine.init(layout)))
    nudged = theta.copy()
    nudged[layout.edge_offset[0]] += 0.1
    (local,) = best_of(10, lambda: engine.run(nudged, state))
    sweeps = info.n_iter
    rival, beliefs, remark = time_rival(layout, theta, sweeps)
    notes = [
        f"cold start, {info.n_iter} sweeps' worth of updates; "
        f"after a change of one entry {1e3 * local:.2f} ms"
    ]
    if beliefs is not None:
        apart = float(abs(beliefs - ours.values[: len(beliefs)]).max())
        notes.append(f"pyGMs ran {sweeps} sweeps; beliefs agree to {apart:.1g}")
        if apart > AGREEMENT:
            rival, remark = None, "the beliefs of pyGMs differ: its time does not count"
    return Row(
        work,
        1e3 * seconds,
        "pyGMs LBP",
        None if rival is None else 1e3 * rival,
        "ms",
        100.0,
        "; ".join([*notes, remark] if remark else notes),
    )


def time_rival(
    layout: Layout, theta: np.ndarray, sweeps: int
) -> tuple[float | None, np.ndarray | None, str]:
    """Return the rival's seconds, its beliefs and a remark."""
    # The rival may be installed in another environment.
    python = os.environ.get("EDGEGRAFT_PYGMS_PYTHON", sys.executable)
    if python == sys.executable and importlib.util.find_spec("pygms") is None:
        return None, None, "pyGMs is not installed"
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder, "model.npz"), Path(folder, "beliefs.npy")
        np.savez(given, states=layout.states, edges=layout.edges, theta=theta)
        command = [python, "-c", RIVAL, str(given), str(sweeps), str(found)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return float(LIMIT_S), None, f"pyGMs stopped after {LIMIT_S} s: a lower bound"
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            return None, None, f"pyGMs failed: {last}"
        return float(done.stdout.split()[-1]), np.load(found), ""


if __name__ == "__main__":
    print(as_markdown(run()))
