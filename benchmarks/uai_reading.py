"""Reading a UAI model file: edgegraft and pgmpy's UAIReader, on the same file in one run.

The file has 200 variables with 5 states and 400 edges. pgmpy runs in a separate process with a time
limit; if it is stopped, the limit is a lower bound of its time. Both times include parsing and
building the model (``UAIReader(path).get_model()``), but not imports.
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

from benchmarks.rows import Row, as_markdown
from edgegraft.core import Layout
from edgegraft.io import read_uai, write_uai

TARGET = 500
LIMIT_S = 120
RIVAL = """
import sys, time
from pgmpy.readwrite import UAIReader
started = time.perf_counter()
model = UAIReader(sys.argv[1]).get_model()
elapsed = time.perf_counter() - started
assert len(model.nodes()) == int(sys.argv[2])
print(elapsed)
"""


def write_example(path: Path, n_variables: int, seed: int = 0) -> None:
    """Write a random pairwise model with two edges per variable and six digits per number.

    A path through all variables comes first, because the rival refuses variables without edges. The
    competition's files have six digits, and the rival's time grows with the size of the text.
    """
    rng = np.random.default_rng(seed)
    chain = np.stack((np.arange(n_variables - 1), np.arange(1, n_variables)), axis=1)
    others = np.stack(np.triu_indices(n_variables, 2), axis=1)
    chosen = rng.choice(len(others), min(n_variables + 1, len(others)), replace=False)
    layout = Layout(np.full(n_variables, 5), np.concatenate((chain, others[np.sort(chosen)])))
    write_uai(path, layout, rng.normal(size=layout.n_parameters))
    word, *lines = path.read_text().splitlines()
    short = [" ".join(f"{float(token):.6g}" for token in line.split()) for line in lines]
    path.write_text("\n".join([word, *short, ""]))


def time_ours(path: Path, repeats: int = 20) -> float:
    read_uai(path)
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        read_uai(path)
        times.append(time.perf_counter() - started)
    return float(np.median(times))


def time_rival(path: Path, n_variables: int, python: str) -> tuple[float | None, str]:
    """Return the rival's seconds (or None) and a remark."""
    try:
        done = subprocess.run(
            [python, "-c", RIVAL, str(path), str(n_variables)],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return float(LIMIT_S), f"pgmpy stopped after {LIMIT_S} s: a lower bound"
    if done.returncode:
        return None, "pgmpy failed: " + (done.stderr.strip().splitlines() or ["no message"])[-1]
    return float(done.stdout.split()[-1]), ""


def run(scale: float = 1.0) -> list[Row]:
    """Time both readers; `scale` changes the number of variables."""
    n_variables = max(3, round(200 * scale))
    # The rival may be installed in another environment.
    python = os.environ.get("EDGEGRAFT_PGMPY_PYTHON", sys.executable)
    absent = python == sys.executable and importlib.util.find_spec("pgmpy") is None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "example.uai")
        write_example(path, n_variables)
        ours = time_ours(path)
        if absent:
            rival, notes = None, "pgmpy is not installed"
        else:
            rival, notes = time_rival(path, n_variables, python)
        size = path.stat().st_size
    return [
        Row(
            f"read a UAI file of {n_variables} variables, 5 states ({size // 1000} kB)",
            ours,
            "pgmpy UAIReader",
            rival,
            "s",
            TARGET,
            notes,
        )
    ]


if __name__ == "__main__":
    print(as_markdown(run()))
