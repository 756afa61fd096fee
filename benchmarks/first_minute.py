"""The first minute of a new user, in CPU seconds of whole processes, imports included.

A table of 500 rows and 12 columns is fitted, in Python and by ``edgegraft learn``, with an empty
cache of compiled kernels ("first") and again. From the sources all kernels are compiled. If the
environment variable ``WHEEL_PYTHON`` names the interpreter of an environment in which a wheel of
``make dist`` is installed, the same is measured there. ``BEFORE`` names the folder ``src`` of an
earlier version, which is measured first.
"""

from __future__ import annotations

import csv
import os
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.rows import Row

SOURCES = Path(__file__).resolve().parents[1] / "src"
N_ROWS, N_COLUMNS, N_STATES = 500, 12, 3
IMPORT = "from edgegraft import GraftedMRF"
FIT = """
import sys
import numpy as np
from edgegraft import GraftedMRF
GraftedMRF(random_state=0).fit(np.loadtxt(sys.argv[1], int, delimiter=",", skiprows=1))
"""
LEARN = """
import sys
from edgegraft.cli import main
sys.argv[1:] = ["learn", sys.argv[1], "-o", sys.argv[1] + ".edgegraft", "--force", "--quiet"]
main()
"""


def run(scale: float = 1.0) -> list[Row]:
    """Return all rows; `scale` has no influence."""
    with TemporaryDirectory() as folder:
        table = Path(folder) / "survey.csv"
        write(table)
        earlier = os.environ.get("BEFORE")
        before = measure(sys.executable, table, earlier) if earlier else None
        rows = rows_of("sources", measure(sys.executable, table, str(SOURCES)), before)
        wheel = os.environ.get("WHEEL_PYTHON")
        return rows + (rows_of("wheel", measure(wheel, table), before) if wheel else [])


def measure(python: str, table: Path, sources: str = "") -> dict[str, tuple[float, int]]:
    """Return CPU seconds and the number of compiled kernels of every kind of work."""
    cpu_seconds(python, IMPORT, table, table.parent, sources)  # compiles Python's own files
    found = {f"`{IMPORT}`": cpu_seconds(python, IMPORT, table, table.parent, sources)}
    for work, script in (("fit", FIT), ("`edgegraft learn`", LEARN)):
        with TemporaryDirectory() as cache:
            for which in ("first", "second"):
                spent = cpu_seconds(python, script, table, Path(cache), sources)
                found[f"{which} {work} of {N_ROWS} x {N_COLUMNS}"] = spent
    return found


def rows_of(
    name: str, now: dict[str, tuple[float, int]], before: dict[str, tuple[float, int]] | None
) -> list[Row]:
    """Return the rows of one interpreter, beside those before."""
    rows = []
    for work, (seconds, compiled) in now.items():
        earlier, count = before[work] if before else (None, 0)
        note = f"Kernels compiled: {compiled}; before {count}." if work.startswith("first") else ""
        rows.append(Row(f"{work}, {name}", seconds, "before", earlier, "s", None, note))
    return rows


def write(path: Path) -> None:
    """Write a table in which every column depends on the one before it."""
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, N_STATES, N_ROWS)]
    for _ in range(1, N_COLUMNS):
        drawn = rng.integers(0, N_STATES, N_ROWS)
        columns.append(np.where(rng.random(N_ROWS) < 0.6, columns[-1], drawn))
    with path.open("w", newline="") as file:
        names = [f"q{k}" for k in range(N_COLUMNS)]
        csv.writer(file).writerows([names, *np.column_stack(columns).tolist()])


def cpu_seconds(
    python: str, script: str, table: Path, cache: Path, sources: str
) -> tuple[float, int]:
    """Return the CPU seconds of a script and the number of kernels that are then on disk.

    Processes that the script starts to compile kernels count, as it ends them.
    """
    variables = {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": sources}
    variables["PYTHONDONTWRITEBYTECODE"] = ""  # as users have it
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [python, "-W", "ignore", "-c", script, str(table)],
        env=os.environ | variables,
        cwd=table.parent,
        capture_output=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, len([*cache.rglob("*.nbc")])
