"""Tables with very many columns: an Ising model on a random regular graph, 20,000 rows.

The edge budget is two thirds of the number of true edges. The time is that of learning; the memory
is the peak resident set of a separate process, in which the rows are also generated.
"""

from __future__ import annotations

import resource
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.processes import answer, start
from benchmarks.rows import Row
from edgegraft.datasets import make_regular
from edgegraft.learn import Plan, discover
from edgegraft.table import PackedTable

THREADS = 2
WIDE = {10_000: 10_000, 100_000: 100_000}  # columns, and the edge budget
WIDE_ROWS = 20_000


def run(scale: float = 1.0) -> list[Row]:
    """Learn tables with very many binary columns, and compare the times of the two sizes."""
    rows, seconds = [], []
    for n, budget in WIDE.items():
        n, budget = max(200, int(n * scale)), max(200, int(budget * scale))
        learned = answer(start(learn_wide, n, budget))
        seconds.append(learned["seconds"])
        notes = (
            f"{learned['tables']:,} pair tables, {learned['edges']:,} edges of which "
            f"{learned['right']:,} are true; {learned['memory'] / 2**30:.1f} GiB resident; "
            f"{learned['reason']}"
        )
        if len(seconds) > 1:
            notes += f"; {seconds[-1] / seconds[0]:.1f} times the time of a tenth of the columns"
        work = f"learn {WIDE_ROWS:,} rows x {n:,} binary columns, at most {budget:,} edges"
        rows.append(Row(work, learned["seconds"], "no rival", None, "s", notes=notes))
    return rows


def learn_wide(n: int, budget: int) -> dict[str, Any]:
    """Learn one wide table in this process."""
    data = make_regular(
        n, degree=3, n_rows=WIDE_ROWS, couplings="ising", random_state=0, n_jobs=THREADS
    )
    truth = set(map(tuple, np.sort(data.edges, axis=1).tolist()))
    table = PackedTable.from_codes(data.X.astype(np.int8))
    del data
    plan = Plan(max_edges=budget, n_jobs=THREADS)
    started = perf_counter()
    found = discover(table, plan)
    edges = set(map(tuple, np.sort(found.model.edges, axis=1).tolist()))
    return {
        "seconds": perf_counter() - started,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "tables": found.search.n_tables,
        "edges": len(edges),
        "right": len(edges & truth),
        "reason": found.search.reason,
    }
