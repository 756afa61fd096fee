"""What a run would take, from a pilot over some of its rows.

Time grows with the rows by a power of about 1.2, because more rows show more edges (measured: 100
variables of 5 states, 6.0 s for 5,000 rows and 31.5 s for 20,000). An estimate may be wrong by a
factor of three.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.cli.rows import Rows
from edgegraft.learn import Discovery, Plan, StopReason, discover
from edgegraft.search.priorities import MAX_COLUMNS, ROWS_A_COLUMN
from edgegraft.table import PackedTable

PILOT_SECONDS = 10.0
_LEAST, _MOST = 500, 5000  # rows of a pilot
_WARM_UP = 100  # rows, so that loading the kernels is not measured
_POWER = 1.2
_LIBRARY = 350 << 20  # bytes of Python with the compiled kernels
_KEPT = 1 << 28  # bytes of residuals that are kept at most, in the search and in the tests


class Estimate(NamedTuple):
    """What a run would take.

    Attributes
    ----------
    seconds : float
    at_least : bool
        Whether the pilot's time was up before its search had ended.
    n_bytes : int
    pilot_rows, pilot_edges : int
    """

    seconds: float
    at_least: bool
    n_bytes: int
    pilot_rows: int
    pilot_edges: int


def estimate(rows: Rows, plan: Plan) -> Estimate:
    """Run a pilot and say what the whole would take.

    Of rows that do not fit in memory the time is that of the search on their sample.
    """
    if isinstance(rows.given.rows, PackedTable):
        table, weights = rows.given.rows, rows.given.weights
        whole, n_bytes = table.n_rows, peak_bytes(table)
    else:
        assert rows.given.budget is not None
        rng = np.random.default_rng(plan.random_state)
        table, weights = rows.given.rows.sample(_MOST, rng)
        whole, n_bytes = rows.sample_rows, rows.given.budget.limit
    n_rows = min(table.n_rows, max(_LEAST, min(_MOST, whole // 8)))
    limit = min(PILOT_SECONDS, plan.max_time or PILOT_SECONDS)
    pilot = replace(plan, max_time=limit)
    short = replace(plan, max_time=1.0)
    _try(table, weights, min(_WARM_UP, n_rows), short)
    started = perf_counter()
    found = _try(table, weights, n_rows, pilot)
    seconds = (perf_counter() - started) * (whole / n_rows) ** _POWER
    cut = found.growth.reason is StopReason.MAX_TIME
    return Estimate(seconds, cut, n_bytes, n_rows, found.model.n_edges)


def _try(
    table: PackedTable, weights: NDArray[np.float64] | None, n_rows: int, plan: Plan
) -> Discovery:
    counting = np.arange(table.n_rows) if weights is None else np.flatnonzero(weights)
    n_rows = min(n_rows, len(counting))
    rows = counting[np.linspace(0, len(counting) - 1, n_rows).astype(np.int64)]
    chosen = None if weights is None else weights[rows]
    found = discover(_some_rows(table, rows), plan, weights=chosen)
    if found.growth.interrupted:  # which the search takes for a wish to see the rest
        raise KeyboardInterrupt
    return found


def _some_rows(table: PackedTable, rows: NDArray[np.int64]) -> PackedTable:
    codes = np.stack([table.codes([i])[rows, 0] for i in range(table.n_variables)], axis=1)
    return PackedTable.from_codes(codes, table.schema)


def peak_bytes(table: PackedTable) -> int:
    """Return about how much memory a run needs: planes, codes, residuals and the ranking."""
    cells, states = table.n_rows * table.n_variables, int(table.schema.n_states.sum())
    columns = states - table.n_variables
    inverse = columns <= min(MAX_COLUMNS, table.n_rows / ROWS_A_COLUMN)
    return (
        _LIBRARY
        + table.nbytes
        + cells * 6  # codes of one byte or two, and once as int32
        + 2 * min(_KEPT, 8 * table.n_rows * states)
        + (3 * 8 * columns**2 if inverse else 0)
    )
