"""Tables with very many two-state columns, learned without a budget of edges.

Columns come in blocks of 100, each a random tree: a column is a copy of an earlier one of its block
in which a share of .17 to .36 of the cells is turned, an Ising model without fields and couplings
of .3 to .8. The time is that of learning from a packed table, with kernels compiled; the memory is
the peak resident set of a separate process, in which the rows are also drawn. Two threads; with a
GPU, all cores beside it, and a million columns.
"""

from __future__ import annotations

import os
import resource
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.gpu import has_gpu
from benchmarks.processes import answer, start
from benchmarks.rows import Row
from edgegraft.learn import Plan, discover
from edgegraft.table import PackedTable, Schema
from edgegraft.table.packed import empty_cells

BLOCK = 100
CASES = ((10_000, 20_000, "cpu"), (100_000, 20_000, "cpu"))  # columns, rows
ON_GPU = ((10_000, 20_000, "cuda"), (100_000, 20_000, "cuda"), (1_000_000, 5_000, "cuda"))
AIMS = {
    (100_000, "cpu"): 600,
    (10_000, "cuda"): 10,
    (100_000, "cuda"): 60,
    (1_000_000, "cuda"): 600,
}


def run(scale: float = 1.0) -> list[Row]:
    """Learn wide tables, on the processor and on a GPU if there is one."""
    rows = []
    for n, n_rows, device in (*CASES, *(ON_GPU if has_gpu() else ())):
        aim = AIMS.get((n, device))
        n, n_rows = max(200, int(n * scale)), max(200, int(n_rows * scale))
        learned = answer(start(learn_wide, n, n_rows, device))
        notes = (
            f"{learned['cpu']:,.0f} s of processor time, {learned['tables']:,} pairs scored, "
            f"{learned['edges']:,} edges of which {learned['right']:,} of {learned['true']:,} are "
            f"true; {learned['memory'] / 2**30:.1f} GiB resident"
        )
        notes += f", {learned['on_device'] / 2**30:.1f} GiB on the GPU" if device == "cuda" else ""
        where = "GPU" if device == "cuda" else "two threads"
        work = f"learn {n_rows:,} rows x {n:,} binary columns, {where}"
        notes += f"; aim: {aim} s" if aim else ""
        rows.append(Row(work, learned["seconds"], "no rival", None, "s", notes=notes))
    return rows


def learn_wide(n: int, n_rows: int, device: str) -> dict[str, Any]:
    """Learn one wide table in this process."""
    threads = 2 if device == "cpu" else os.cpu_count()
    plan = Plan(n_jobs=threads, device=device, random_state=0)
    discover(draw_blocks(1_200, 600)[0], plan)
    table, truth = draw_blocks(n, n_rows)
    started, cpu = perf_counter(), _processor_seconds()
    found = discover(table, plan)
    seconds, cpu = perf_counter() - started, _processor_seconds() - cpu
    ids = (np.sort(edges, axis=1) @ np.array([n, 1]) for edges in (found.model.edges, truth))
    on_device = 0
    if device == "cuda":
        import torch

        on_device = torch.cuda.max_memory_allocated()
    return {
        "seconds": seconds,
        "cpu": cpu,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "on_device": on_device,
        "tables": found.search.n_tables,
        "edges": found.model.n_edges,
        "right": int(np.isin(*ids).sum()),
        "true": len(truth),
    }


def draw_blocks(n: int, n_rows: int, seed: int = 0) -> tuple[PackedTable, np.ndarray]:
    """Return a table of blocks of columns, each a random tree, and its edges."""
    schema = Schema.from_states(np.full(n, 2))
    cells = empty_cells(schema, n_rows)

    def draw(block: int) -> np.ndarray:
        rng = np.random.default_rng((seed, block))
        first, size = block * BLOCK, min(BLOCK, n - block * BLOCK)
        own = cells[first : first + size, :n_rows]
        words = rng.integers(0, 2**64 - 1, (size, -(-n_rows // 8)), dtype=np.uint64)
        chance = words.view(np.uint8)[:, :n_rows]
        turned = rng.integers(43, 92, size)  # of 256
        parent = (rng.random(size) * np.arange(size)).astype(int)
        own[0] = chance[0] & 1
        for j in range(1, size):
            own[j] = own[parent[j]] ^ (chance[j] < turned[j])
        return np.column_stack((first + parent[1:], first + np.arange(1, size)))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        edges = list(pool.map(draw, range(-(-n // BLOCK))))
    return PackedTable(schema, cells, n_rows), np.concatenate(edges)


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
