"""Tables of very many columns: an Ising model on a random regular graph, 20,000 rows.

The budget of edges is two thirds of the true ones. The time is that of learning; the memory is the
largest resident set of a process of its own, in which the rows are drawn as well.
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
WIDE = {10_000: 10_000, 100_000: 100_000}  # columns, and the budget of edges
WIDE_ROWS = 20_000


def run(scale: float = 1.0) -> list[Row]:
    """Learn tables of very many binary columns; the cost of the larger over the smaller."""
    rows, seconds = [], []
    for n, budget in WIDE.items():
        n, budget = max(200, int(n * scale)), max(200, int(budget * scale))
        told = answer(start(learn_wide, n, budget))
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
