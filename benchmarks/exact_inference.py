"""Exact marginals: edgegraft and pgmpy's junction tree, and a tree compared with a tenth of it.

The problems are those of the UAI 2014 competition (../shared/data/uai). Our time is for finding the
order, building the tree and one run, with compiled kernels; pgmpy's time is for building the
junction tree, calibrating it and extracting the marginal of every variable, without imports and
reading files, in a separate process with limits of 120 s and 12 GiB. The answers are checked
against each other.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.rows import Row, as_markdown
from edgegraft.core import Layout
from edgegraft.inference.exact import ExactEngine
from edgegraft.io import read_uai

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "uai"
#: Cheapest first, so that a small `scale` stays quick.
INSTANCES = [
    "Grids_12",
    "Segmentation_12",
    "Segmentation_11",
    "Segmentation_15",
    "Grids_11",
    "DBN_11",
    "DBN_14",
    "ObjectDetection_11",
    "Grids_16",
]
TARGET = 20
LIMIT_S = 120
LIMIT_BYTES = 12 << 30
GROWTH_TARGET = 12
#: Largest difference of the marginals at which the rival's time counts.
AGREE = 1e-6
COLD = """
import sys, time
import numpy as np
from edgegraft.core import Layout
from edgegraft.inference.exact import ExactEngine
saved = np.load(sys.argv[1])
layout = Layout(saved["states"], saved["edges"])
engine = ExactEngine()
started = time.perf_counter()
engine.run(saved["theta"], engine.init(layout))
print(time.perf_counter() - started)
"""
RIVAL = """
import json, logging, resource, sys, time, warnings
import numpy as np
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
from pgmpy.factors.discrete import DiscreteFactor
from pgmpy.inference import BeliefPropagation
from pgmpy.models import DiscreteMarkovNetwork

saved = np.load(sys.argv[1])
states, edges, theta = saved["states"], saved["edges"], saved["theta"]
names = [f"v{i}" for i in range(len(states))]
model = DiscreteMarkovNetwork()
model.add_nodes_from(names)
at = 0
for i, s in enumerate(states):
    model.add_factors(DiscreteFactor([names[i]], [s], np.exp(theta[at : at + s])))
    at += s
for i, j in edges:
    size = states[i] * states[j]
    # Scaled to a largest entry of one: pgmpy multiplies plain numbers and would overflow.
    table = np.exp(theta[at : at + size] - theta[at : at + size].max())
    model.add_edge(names[i], names[j])
    model.add_factors(DiscreteFactor([names[i], names[j]], [states[i], states[j]], table))
    at += size
started = time.perf_counter()
inference = BeliefPropagation(model)
inference.calibrate()
beliefs = inference.get_clique_beliefs()
found = {}
for clique, belief in sorted(beliefs.items(), key=lambda item: len(item[0])):
    for name in clique:
        if name not in found:
            margin = belief.marginalize([v for v in clique if v != name], inplace=False)
            found[name] = margin.normalize(inplace=False).values
elapsed = time.perf_counter() - started
print(json.dumps([elapsed, [found[name].tolist() for name in names]]))
"""


def random_tree(n: int, seed: int = 0) -> tuple[Layout, np.ndarray]:
    """Return a random recursive tree with 2 to 5 states per variable, and its parameters."""
    rng = np.random.default_rng(seed)
    parents = np.floor(rng.random(n - 1) * np.arange(1, n)).astype(np.int64)
    layout = Layout(rng.integers(2, 6, n), np.stack((parents, np.arange(1, n)), axis=1))
    return layout, rng.normal(size=layout.n_parameters)


def random_grid(side: int, seed: int = 0) -> tuple[Layout, np.ndarray]:
    """Return a binary grid and its parameters."""
    at = np.arange(side * side).reshape(side, side)
    across = np.stack((at[:, :-1].ravel(), at[:, 1:].ravel()), axis=1)
    down = np.stack((at[:-1].ravel(), at[1:].ravel()), axis=1)
    layout = Layout(np.full(side * side, 2), np.concatenate((across, down)))
    return layout, np.random.default_rng(seed).normal(size=layout.n_parameters)


def best_time(layout: Layout, theta: np.ndarray, repeats: int) -> tuple[float, float, np.ndarray]:
    """Return the shortest times of everything and of a run alone, and the marginals."""
    engine = ExactEngine()
    whole, alone = float("inf"), float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        state = engine.init(layout)
        built = time.perf_counter()
        marginals, *_ = engine.run(theta, state)
        ended = time.perf_counter()
        whole, alone = min(whole, ended - started), min(alone, ended - built)
    return whole, alone, marginals.values


def time_cold(path: Path) -> float:
    """Return the seconds of the first run in a new process, with kernels loaded from the cache."""
    done = subprocess.run(
        [sys.executable, "-c", COLD, str(path)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def time_rival(path: Path, ours: np.ndarray) -> tuple[float | None, str]:
    """Return the rival's seconds (None if it gave no answer) and a remark."""
    python = os.environ.get("EDGEGRAFT_PGMPY_PYTHON", sys.executable)
    if python == sys.executable and importlib.util.find_spec("pgmpy") is None:
        return None, "pgmpy is not installed (set EDGEGRAFT_PGMPY_PYTHON to a Python that has it)"
    command = [python, "-c", RIVAL, str(path), str(LIMIT_BYTES)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return None, f"pgmpy did not finish in {LIMIT_S} s"
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"killed ({done.returncode})"])[-1]
        return None, f"pgmpy failed: {last[:120]}"
    seconds, beliefs = json.loads(done.stdout.splitlines()[-1])
    theirs = np.concatenate([np.array(b) for b in beliefs])
    apart = float(np.abs(theirs - ours[: len(theirs)]).max())
    if not apart < AGREE:
        # Our answers are tested against enumeration, transfer matrices and published answers.
        return None, f"pgmpy took {seconds:.3g} s, but its marginals are wrong by up to {apart:.1g}"
    return seconds, f"largest difference of a marginal {apart:.1g}"


def run(scale: float = 1.0) -> list[Row]:
    """Return the rows; `scale` below 1 uses fewer instances and smaller trees."""
    # pgmpy's triangulation fails on most of the UAI problems, but works on small grids.
    rows = [
        _tree_row(scale),
        *(_rival_row(f"a {k} x {k} grid", *random_grid(k)) for k in (6, 7, 8)),
    ]
    if FOLDER.is_dir():
        for name in INSTANCES[: max(1, round(scale * len(INSTANCES)))]:
            file = read_uai(FOLDER / f"{name}.uai.gz")
            rows.append(_rival_row(name, file.layout, file.theta))
    return rows


def _tree_row(scale: float) -> Row:
    small, large = max(round(10_000 * scale), 10), max(round(100_000 * scale), 100)
    one, one_run, _ = best_time(*random_tree(small), repeats=20)
    ten, ten_run, _ = best_time(*random_tree(large), repeats=7)
    return Row(
        f"marginals of a {large:,}-node tree, 2 to 5 states",
        ten,
        f"ourselves, {small:,} nodes",
        one,
        "s",
        notes=f"The cost grows {ten / one:.3g} times with ten times the nodes (target: at most "
        f"{GROWTH_TARGET}); a run with the tree already built takes {ten_run:.3g} s and "
        f"{one_run:.3g} s: {ten_run / one_run:.3g} times.",
    )


def _rival_row(name: str, layout: Layout, theta: np.ndarray) -> Row:
    cost = ExactEngine().estimate(layout)
    warm, alone, values = best_time(layout, theta, repeats=3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.npz")
        np.savez(path, states=layout.states, edges=layout.edges, theta=theta)
        cold = time_cold(path)
        theirs, remark = time_rival(path, values)
    return Row(
        f"marginals of {name} (treewidth {cost.treewidth})",
        warm,
        "pgmpy junction tree",
        theirs,
        "s",
        TARGET,
        f"With the order known, {alone:.3g} s; in a new process {cold:.3g} s; {remark}.",
    )


if __name__ == "__main__":
    print(as_markdown(run()))
