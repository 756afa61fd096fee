"""Times that a user waits: the start of the command, a click in the explorer, the demonstration.

Times are wall times of whole processes, medians of five starts; nothing keeps running between them.
The explorer answers queries about 500 variables (scale-free, 3 states, about two edges per
variable, weak enough for belief propagation to converge), each with one more state given, as with a
user's clicks. The demonstration runs twice with a cache of compiled kernels that is empty at first.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from benchmarks.rows import Row
from edgegraft.datasets import make_scale_free
from edgegraft.model import PairwiseMRF
from edgegraft.report.explorer import Explorer

STARTS = 5
CLICKS = 30
WEAK = 0.3  # factor on the generator's log-potentials


def run(scale: float = 1.0) -> list[Row]:
    """Return all rows; `scale` below 1 shrinks the explorer's model and skips the demonstration."""
    with TemporaryDirectory() as folder:
        model = weak_model(max(20, int(500 * scale)))
        path = Path(folder) / "model.edgegraft"
        model.save(path, edge_columns={"strength": model.edge_strengths()})  # as `learn` does
        rows = [
            starting("`edgegraft --help`", ["--help"], 0.5),
            starting("`edgegraft info`, 500 variables", ["info", str(path)], 1.0),
            clicking(model),
        ]
        return rows + (demonstration(Path(folder)) if scale == 1.0 else [])


def weak_model(n: int) -> PairwiseMRF:
    strong = make_scale_free(n, 3, 10, random_state=0).model
    return PairwiseMRF(strong.schema, strong.edges, WEAK * strong.theta)


def seconds_of(arguments: list[str], **variables: str) -> float:
    started = perf_counter()
    subprocess.run(
        [sys.executable, "-m", "edgegraft", *arguments],
        check=True,
        capture_output=True,
        env=os.environ | variables,
    )
    return perf_counter() - started


def starting(work: str, arguments: list[str], limit: float) -> Row:
    times = [seconds_of(arguments) for _ in range(STARTS)]
    return Row(work, median(times), "required", limit, "s", 1.0)


def clicking(model: PairwiseMRF) -> Row:
    explorer = Explorer(model)
    explorer.answer({})
    rng = np.random.default_rng(0)
    given: dict[int, int] = {}
    times = []
    for i in rng.permutation(len(model.names))[:CLICKS].tolist():
        given[i] = int(rng.integers(3))
        started = perf_counter()
        explorer.answer(given)
        times.append(perf_counter() - started)
    note = f"{CLICKS} clicks, the longest {1000 * max(times):.0f} ms; {model.n_edges} edges."
    work = f"an answer of the explorer, {len(model.names)} variables"
    return Row(work, 1000 * median(times), "required", 100.0, "ms", 1.0, note)


def demonstration(folder: Path) -> list[Row]:
    output, cache = str(folder / "demo"), str(folder / "cache")
    rows = []
    for work in ("`edgegraft demo`, kernels to compile", "`edgegraft demo`, again"):
        took = seconds_of(["demo", output, "--force"], NUMBA_CACHE_DIR=cache)
        rows.append(Row(work, took, "required", 60.0, "s", 1.0))
    return rows
