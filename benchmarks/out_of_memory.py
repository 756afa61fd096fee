"""Tables larger than memory, and tables of very many columns, on one machine.

Rows of the paper's generator (100 variables, 5 states) are written to Parquet in chunks, one file
each, and learned from within 2 GiB; the memory is the largest resident set of a process of its
own. Bit planes are set beside reading the same columns of the same files on as many threads. The
wide table is an Ising model on a random regular graph. Runs that are killed and resumed are set
beside one that was left alone.

    EDGEGRAFT_BENCH_ROWS   folder for the rows and planes (about 7 GB at full size)
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.rows import Row
from edgegraft.data import PackedTable
from edgegraft.data.cache import open_store
from edgegraft.data.options import PackOptions
from edgegraft.datasets import make_regular, make_scale_free
from edgegraft.learn import Plan, Settings, discover, resume_discovery
from edgegraft.objective.local_shards import LocalShards

THREADS = 2
ROWS, COLUMNS, CHUNK = 50_000_000, 100, 250_000
LIMIT = 2 << 30
READING = 0.6  # of the speed of reading alone, at least
WIDE = {10_000: 10_000, 100_000: 100_000}  # columns, and the budget of edges
WIDE_ROWS = 20_000
KILL_EVERY = 20.0  # seconds


def run(scale: float = 1.0) -> list[Row]:
    """Return every row of the section."""
    given = os.environ.get("EDGEGRAFT_BENCH_ROWS")
    folder = Path(given or tempfile.mkdtemp(prefix="edgegraft-rows-"))
    try:
        n_rows = max(4 * CHUNK, int(ROWS * scale) // CHUNK * CHUNK)
        write_rows(folder / "rows", n_rows)
        return [
            bit_planes(folder, n_rows),
            *learned(folder, n_rows),
            *wide(scale),
            killed(folder, max(100_000, int(1_000_000 * scale))),
        ]
    finally:
        if given is None:
            shutil.rmtree(folder)


def write_rows(folder: Path, n_rows: int) -> None:
    """Write the rows in chunks; those of an earlier run are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    model = make_scale_free(COLUMNS, n_states=5, n_rows=100, random_state=0).model
    for k in range(n_rows // CHUNK):
        path = folder / f"part-{k:04}.parquet"
        if not path.exists():
            rows = np.asarray(model.sample(CHUNK, random_state=k)).astype(np.int8)
            part = path.with_suffix(".part")
            pq.write_table(pa.table({f"x{i}": rows[:, i] for i in range(COLUMNS)}), part)
            part.rename(path)


def bit_planes(folder: Path, n_rows: int) -> Row:
    """Set building bit planes beside reading the same columns."""
    files = sorted((folder / "rows").glob("*.parquet"))[: n_rows // CHUNK]

    def read() -> None:
        for path in files:
            with pq.ParquetFile(path, buffer_size=1 << 16, pre_buffer=False) as file:
                for _ in file.iter_batches(65536, use_threads=False):
                    pass

    def build() -> None:
        shutil.rmtree(folder / "planes", ignore_errors=True)
        open_store(folder / "rows", folder=folder / "planes", options=PackOptions()).close()

    read()  # both from the page cache, as far as it goes
    seconds = []
    for work in (build, read):
        started = perf_counter()
        work()
        seconds.append(perf_counter() - started)
    return Row(
        f"bit planes of {n_rows:,} rows x {COLUMNS} columns, one thread",
        n_rows / seconds[0],
        "reading the Parquet columns alone",
        n_rows / seconds[1],
        "rows/s",
        target=READING,
        higher_is_better=True,
    )


def learned(folder: Path, n_rows: int) -> list[Row]:
    """Learn from all rows in a process of its own, and report time, memory and edges."""
    told = in_process("learn", str(folder))
    notes = (
        f"{told['right']} of {told['true']} true edges, {told['wrong']} others; "
        f"KKT residual over all rows {told['residual']:.1e}; {told['reason']}"
    )
    work = f"learn {n_rows:,} rows x {COLUMNS} columns, 5 states, {THREADS} threads"
    return [
        Row(work, told["seconds"], "no rival", None, "s", notes=notes),
        Row(
            "largest resident memory of that",
            told["memory"] / 2**30,
            "the limit asked for",
            LIMIT / 2**30,
            "GiB",
            target=1.0,
        ),
    ]


def learn(folder: str) -> dict[str, Any]:
    """Learn in this process."""
    from edgegraft import GraftedMRF

    started = perf_counter()
    network = GraftedMRF(
        max_memory=LIMIT, cache_dir=f"{folder}/planes", n_jobs=THREADS, random_state=0
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


def wide(scale: float) -> list[Row]:
    """Learn tables of very many binary columns; the cost of the larger over the smaller."""
    rows, seconds = [], []
    for n, budget in WIDE.items():
        n, budget = max(200, int(n * scale)), max(200, int(budget * scale))
        told = in_process("learn_wide", n, budget)
        seconds.append(told["seconds"])
        notes = (
            f"{told['tables']:,} pair tables, {told['edges']:,} edges of which {told['right']:,} "
            f"are true; {told['memory'] / 2**30:.1f} GiB resident; {told['reason']}"
        )
        if len(seconds) > 1:
            notes += f"; {seconds[-1] / seconds[0]:.1f} times the time of a tenth of the columns"
        work = f"learn {WIDE_ROWS:,} rows x {n:,} binary columns, at most {budget:,} edges"
        rows.append(Row(work, told["seconds"], "no rival", None, "s", notes=notes))
    return rows


def learn_wide(n: int, budget: int) -> dict[str, Any]:
    """Learn one wide table in this process."""
    data = make_regular(n, degree=3, n_rows=WIDE_ROWS, couplings="ising", random_state=0)
    truth = set(map(tuple, np.sort(data.edges, axis=1).tolist()))
    table = PackedTable.from_codes(data.X.astype(np.int8))
    del data
    plan = Plan(settings=Settings(relaxed=True, tol=1e-3, max_edges=budget), n_jobs=THREADS)
    started = perf_counter()
    found = discover(table, plan)
    edges = set(map(tuple, np.sort(found.model.edges, axis=1).tolist()))
    return {
        "seconds": perf_counter() - started,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "tables": found.growth.n_tables,
        "edges": len(edges),
        "right": len(edges & truth),
        "reason": found.growth.reason,
    }


def killed(folder: Path, n_rows: int) -> Row:
    """Kill a run again and again, resume it until it is done, and compare its model."""
    where = folder / "killed"
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir()
    whole = in_process("learn_with_checkpoints", str(folder), str(where / "whole"), n_rows)
    lives, digest = 0, None
    while digest is None:
        lives += 1
        call = ["learn_with_checkpoints", str(folder), str(where / "killed"), n_rows]
        child = start(*call)
        end = monotonic() + KILL_EVERY
        while child.poll() is None and monotonic() < end:
            sleep(0.05)
        if child.poll() is None:
            child.kill()
            child.communicate()
        else:
            digest = json.loads(child.communicate()[0].splitlines()[-1])["digest"]
    same = digest == whole["digest"]
    return Row(
        f"{n_rows:,} rows, killed every {KILL_EVERY:.0f} s and resumed: lives until done",
        lives,
        "no rival",
        None,
        "lives",
        notes="the model is " + ("identical to" if same else "NOT that of") + " the whole run's",
    )


def learn_with_checkpoints(folder: str, path: str, n_rows: int) -> dict[str, Any]:
    """Learn from some of the rows, from a checkpoint where there is one."""
    files = f"{folder}/rows/part-000[0-{max(0, min(9, n_rows // CHUNK - 1))}].parquet"
    plan = Plan(settings=Settings(relaxed=True, tol=1e-3, checkpoint_every=1), n_jobs=THREADS)
    with open_store(files, folder=f"{folder}/planes") as store:
        shards = LocalShards(store, n_jobs=THREADS)
        sample = n_rows // 4
        if Path(path).exists():
            found = resume_discovery(path, shards, plan, sample_rows=sample)
        else:
            found = discover(shards, plan, checkpoint=path, sample_rows=sample)
    model = found.model
    digest = hashlib.sha256(model.edges.tobytes() + model.theta.tobytes()).hexdigest()
    return {"digest": digest}


def start(name: str, *args: object) -> subprocess.Popen[str]:
    """Run a function of this module in a process of its own."""
    call = json.dumps([name, *args])
    command = [sys.executable, "-m", "benchmarks.out_of_memory", call]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def in_process(name: str, *args: object) -> dict[str, Any]:
    """Return what a function of this module returns in a process of its own."""
    child = start(name, *args)
    out, _ = child.communicate()
    if child.returncode:
        raise RuntimeError(f"{name} ended with {child.returncode}")
    return dict(json.loads(out.splitlines()[-1]))


if __name__ == "__main__":
    function, *given = json.loads(sys.argv[1])
    print(json.dumps(globals()[function](*given)))
