"""A run that is repeatedly killed and resumed, compared with an uninterrupted run."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from benchmarks.out_of_memory import CHUNK, THREADS, write_rows
from benchmarks.processes import answer, start
from benchmarks.rows import Row
from edgegraft.learn import Plan, discover, resume_discovery
from edgegraft.scale.disk import open_store
from edgegraft.table.blocks import StoredRows

ROWS = 500_000
KILL_SECONDS = 20.0


def run(scale: float = 1.0) -> list[Row]:
    """Return the only row of the section."""
    with tempfile.TemporaryDirectory(prefix="edgegraft-killed-") as folder:
        n_rows = max(CHUNK, int(ROWS * scale) // CHUNK * CHUNK)
        write_rows(Path(folder) / "rows", n_rows)
        return [killed(Path(folder))]


def killed(where: Path) -> Row:
    """Kill and resume a run until it is done, and compare its model."""
    began = monotonic()
    whole = answer(start(learn, str(where), str(where / "whole")))
    seconds = monotonic() - began
    n_processes, digest = 0, None
    while digest is None:
        n_processes += 1
        child = start(learn, str(where), str(where / "killed"))
        end = monotonic() + KILL_SECONDS
        while child.poll() is None and monotonic() < end:
            sleep(0.05)
        if child.poll() is None:
            child.kill()
            child.communicate()
        else:
            digest = answer(child)["digest"]
    same = digest == whole["digest"]
    return Row(
        f"{whole['rows']:,} rows, killed every {KILL_SECONDS:.0f} s and "
        "resumed: processes until done",
        n_processes,
        "no rival",
        None,
        "processes",
        notes="the model is "
        + ("identical to" if same else "NOT identical to")
        + f" that of an uninterrupted run, which took {seconds:.0f} s",
    )


def learn(folder: str, checkpoint: str) -> dict[str, Any]:
    """Learn from the rows, resuming from the checkpoint if it exists."""
    plan = Plan(n_jobs=THREADS)
    with open_store(f"{folder}/rows", folder=f"{folder}/planes") as store:
        rows = StoredRows(store, n_jobs=THREADS)
        sample = store.n_rows // 16
        if Path(checkpoint).exists():
            found = resume_discovery(checkpoint, rows, plan, sample_rows=sample)
        else:
            found = discover(rows, plan, checkpoint=checkpoint, sample_rows=sample)
    model = found.model
    digest = hashlib.sha256(model.edges.tobytes() + model.theta.tobytes()).hexdigest()
    return {"digest": digest, "rows": store.n_rows}
