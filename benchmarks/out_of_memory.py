"""A table larger than memory, on one machine.

Rows of the paper's generator (100 variables, 5 states) are written to Parquet files in chunks, and
learned from within 2 GiB; the memory is the peak resident set of a separate process. Building bit
planes is compared with reading the same columns of the same files on the same number of threads.

    EDGEGRAFT_BENCH_ROWS   folder for the rows and planes (about 7 GB at full size)
"""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.processes import answer, start
from benchmarks.rows import Row
from edgegraft.datasets import make_scale_free
from edgegraft.ingest.options import ReadOptions
from edgegraft.scale.disk import open_store

THREADS = 2
ROWS, COLUMNS, CHUNK = 50_000_000, 100, 250_000
LIMIT = 2 << 30
MIN_SPEED = 0.6  # of the speed of reading alone


def run(scale: float = 1.0) -> list[Row]:
    """Return all rows of the section."""
    given = os.environ.get("EDGEGRAFT_BENCH_ROWS")
    folder = Path(given or tempfile.mkdtemp(prefix="edgegraft-rows-"))
    try:
        n_rows = max(4 * CHUNK, int(ROWS * scale) // CHUNK * CHUNK)
        write_rows(folder / "rows", n_rows)
        return [stored(folder, n_rows), *learned(folder, n_rows)]
    finally:
        if given is None:
            shutil.rmtree(folder)


def write_rows(folder: Path, n_rows: int) -> None:
    """Write the rows in chunks; existing files are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    model = make_scale_free(COLUMNS, n_states=5, n_rows=100, random_state=0).model
    for k in range(n_rows // CHUNK):
        path = folder / f"part-{k:04}.parquet"
        if not path.exists():
            rows = np.asarray(model.sample(CHUNK, random_state=k)).astype(np.int8)
            part = path.with_suffix(".part")
            pq.write_table(pa.table({f"x{i}": rows[:, i] for i in range(COLUMNS)}), part)
            part.rename(path)


def stored(folder: Path, n_rows: int) -> Row:
    """Compare writing a store with reading the same columns."""
    files = sorted((folder / "rows").glob("*.parquet"))[: n_rows // CHUNK]

    def read() -> None:
        for path in files:
            with pq.ParquetFile(path, buffer_size=1 << 16, pre_buffer=False) as file:
                for _ in file.iter_batches(65536, use_threads=False):
                    pass

    def build() -> None:
        shutil.rmtree(folder / "store", ignore_errors=True)
        open_store(folder / "rows", folder=folder / "store", options=ReadOptions()).close()

    read()  # fills the page cache for both
    seconds = []
    for work in (build, read):
        started = perf_counter()
        work()
        seconds.append(perf_counter() - started)
    return Row(
        f"a store of {n_rows:,} rows x {COLUMNS} columns, one thread",
        n_rows / seconds[0],
        "reading the Parquet columns alone",
        n_rows / seconds[1],
        "rows/s",
        target=MIN_SPEED,
        higher_is_better=True,
    )


def learned(folder: Path, n_rows: int) -> list[Row]:
    """Learn from all rows in a separate process, and report time, memory and edges."""
    learned = answer(start(learn, str(folder)))
    notes = (
        f"{learned['right']} of {learned['true']} true edges, {learned['wrong']} others; "
        f"KKT residual over all rows {learned['residual']:.1e}; {learned['reason']}"
    )
    work = f"learn {n_rows:,} rows x {COLUMNS} columns, 5 states, {THREADS} threads"
    return [
        Row(work, learned["seconds"], "no rival", None, "s", notes=notes),
        Row(
            "its peak resident memory",
            learned["memory"] / 2**30,
            "memory limit",
            LIMIT / 2**30,
            "GiB",
            target=1.0,
        ),
    ]


def learn(folder: str) -> dict[str, Any]:
    """Learn in this process."""
    from edgegraft import GraftedMRF, ReadingOptions

    started = perf_counter()
    network = GraftedMRF(
        max_memory=LIMIT,
        reading=ReadingOptions(cache_dir=f"{folder}/planes"),
        n_jobs=THREADS,
        random_state=0,
    ).fit(f"{folder}/rows")
    seconds = perf_counter() - started
    true = make_scale_free(COLUMNS, n_states=5, n_rows=100, random_state=0).edges
    truth = set(map(tuple, np.sort(true, axis=1).tolist()))
    found = set(map(tuple, np.sort(network.edges_, axis=1).tolist()))
    return {
        "seconds": seconds,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "true": len(truth),
        "right": len(found & truth),
        "wrong": len(found - truth),
        "residual": network.certificate_.residual,
        "reason": network.reason_,
    }
