"""From a CSV file, or a wide array, to a packed table; time on one thread, and peak memory.

The rival is the usual approach: `pandas.read_csv` and scikit-learn's `OrdinalEncoder`. A second
rival reads directly into pandas categories, the fastest way in pandas.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
from sklearn.preprocessing import OrdinalEncoder

from benchmarks.rows import Row, as_markdown, best_of
from edgegraft.ingest import pack

LABELS = ["never", "rarely", "sometimes", "often", "always"]
N_COLUMNS = 100
REPEATS = 3


def run(scale: float = 1.0) -> list[Row]:
    """Return all rows of the section; `scale` shortens the tables."""
    n_rows = max(1000, int(200_000 * scale))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "survey.csv"
        longer = Path(folder) / "longer.csv"
        write_survey(path, n_rows)
        repeat_rows(path, longer, 4)
        return [*reading(path, n_rows), *memory(path, longer, n_rows), wide_array(scale)]


def write_survey(path: Path, n_rows: int) -> None:
    rng = np.random.default_rng(0)
    answers = {
        f"q{i:03d}": np.array(LABELS)[rng.integers(0, len(LABELS), n_rows)]
        for i in range(N_COLUMNS)
    }
    pa_csv.write_csv(pa.table(answers), path, pa_csv.WriteOptions(quoting_style="needed"))


def repeat_rows(source: Path, target: Path, times: int) -> None:
    header, _, rows = source.read_bytes().partition(b"\n")
    with target.open("wb") as file:
        file.write(header + b"\n")
        for _ in range(times):
            file.write(rows)


def reading(path: Path, n_rows: int) -> list[Row]:
    def encoder() -> None:
        OrdinalEncoder().fit_transform(pd.read_csv(path))

    def categories() -> None:
        frame = pd.read_csv(path, dtype="category")
        np.column_stack([frame[name].cat.codes for name in frame])

    pack(path)  # loads the kernels
    ours, slow, fast = best_of(REPEATS, lambda: pack(path), encoder, categories)
    work = f"CSV to table, {n_rows:,} x {N_COLUMNS} text columns of 5 categories, one thread"
    size = f"{path.stat().st_size / 1e6:.0f} MB; best of {REPEATS}, interleaved"
    return [
        Row(work, ours, "pandas.read_csv + OrdinalEncoder", slow, "s", 4, size),
        Row(work, ours, "pandas.read_csv(dtype='category') + codes", fast, "s"),
    ]


def memory(path: Path, longer: Path, n_rows: int) -> list[Row]:
    ours = "from edgegraft import pack", "pack(path)"
    theirs = (
        "import pandas as pd; from sklearn.preprocessing import OrdinalEncoder",
        "OrdinalEncoder().fit_transform(pd.read_csv(path))",
    )
    rival = "pandas.read_csv + OrdinalEncoder"
    note = "increase over the process with its imports, by VmHWM in a separate process (Linux)"
    return [
        Row(
            f"peak memory, {n_rows:,} rows",
            peak_megabytes(*ours, path),
            rival,
            peak_megabytes(*theirs, path),
            "MB",
            notes=note,
        ),
        Row(
            f"peak memory, {4 * n_rows:,} rows",
            peak_megabytes(*ours, longer),
            rival,
            None,
            "MB",
            notes=f"a file of {longer.stat().st_size / 1e6:.0f} MB; the rival was not run on it",
        ),
    ]


def peak_megabytes(imports: str, statement: str, path: Path) -> float:
    # ru_maxrss includes the peak of the parent process; VmHWM does not.
    program = (
        f"import re\n{imports}\npath = {str(path)!r}\n"
        "def peak():\n"
        "    status = open('/proc/self/status').read()\n"
        "    return int(re.search(r'VmHWM:\\s*(\\d+) kB', status)[1])\n"
        f"before = peak()\n{statement}\nprint((peak() - before) / 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def wide_array(scale: float) -> Row:
    n = max(200, int(10_000 * scale))
    table = np.random.default_rng(0).integers(0, 5, (20_000, n), np.uint8)
    sample = table[:, :100]

    def unique() -> None:
        for j in range(sample.shape[1]):
            np.unique(sample[:, j], return_inverse=True)

    pack(sample)
    ours, theirs = best_of(REPEATS, lambda: pack(table), unique)
    return Row(
        f"array to table, 20,000 x {n:,} uint8",
        ours,
        "np.unique of each column",
        theirs * n / sample.shape[1],
        "s",
        notes="the rival is timed on 100 columns, scaled up",
    )


if __name__ == "__main__":
    print(as_markdown(run()))
