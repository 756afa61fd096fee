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

from edgegraft.config import Plan
from edgegraft.core.types import Floats
from edgegraft.grafting.events import StopReason
from edgegraft.learn.discovery import Discovery, discover
from edgegraft.rank.mean_fields import RANKED_COLUMNS, ROWS_PER_COLUMN
from edgegraft.table import PackedTable
from edgegraft.table.blocks import Rows, sample_rows

PILOT_SECONDS = 10.0
MIN_PILOT_ROWS, MAX_PILOT_ROWS = 500, 5000
_POWER = 1.2
_LIBRARY = 350 << 20  # bytes of Python with the compiled kernels
_RESIDUALS = 1 << 28  # bytes of residuals that are kept at most, in the search and in the tests


class Estimate(NamedTuple):
    """What a run would take."""

    seconds: float
    at_least: bool  # whether the pilot's time was up before its search had ended
    n_bytes: int
    pilot_rows: int
    pilot_edges: int


def estimate_run(
    rows: PackedTable | Rows,
    plan: Plan,
    weights: Floats | None = None,
    *,
    n_sampled: int = 0,
    max_bytes: int = 0,
) -> Estimate:
    """Run a pilot and estimate what the whole would take.

    For rows that are not in memory, `n_sampled` are those of the sample that is learned from, whose
    time is estimated, and `max_bytes` is the limit of memory.
    """
    if isinstance(rows, PackedTable):
        table, whole, n_bytes = rows, rows.n_rows, peak_bytes(rows)
    else:
        sample = sample_rows(rows, MAX_PILOT_ROWS, np.random.default_rng(plan.random_state))
        table, weights, whole, n_bytes = sample.table, sample.weights, n_sampled, max_bytes
    n_rows = min(table.n_rows, max(MIN_PILOT_ROWS, min(MAX_PILOT_ROWS, whole // 8)))
    limit = min(PILOT_SECONDS, plan.max_time or PILOT_SECONDS)
    _try(table, weights, min(MIN_PILOT_ROWS, n_rows), replace(plan, max_time=1.0))  # loads kernels
    started = perf_counter()
    found = _try(table, weights, n_rows, replace(plan, max_time=limit))
    seconds = (perf_counter() - started) * (whole / n_rows) ** _POWER
    cut = found.search.reason is StopReason.MAX_TIME
    return Estimate(seconds, cut, n_bytes, n_rows, found.model.n_edges)


def _try(table: PackedTable, weights: Floats | None, n_rows: int, plan: Plan) -> Discovery:
    counting = np.arange(table.n_rows) if weights is None else np.flatnonzero(weights)
    n_rows = min(n_rows, len(counting))
    rows = counting[np.linspace(0, len(counting) - 1, n_rows).astype(np.int64)]
    chosen = None if weights is None else weights[rows]
    found = discover(table.take(rows), plan, weights=chosen)
    if found.search.interrupted:  # a pilot is not worth keeping
        raise KeyboardInterrupt
    return found


def peak_bytes(table: PackedTable) -> int:
    """Return about how much memory a run needs: planes, codes, residuals and the ranking."""
    cells, states = table.n_rows * table.n_variables, int(table.schema.n_states.sum())
    columns = states - table.n_variables
    inverse = columns <= min(RANKED_COLUMNS, table.n_rows / ROWS_PER_COLUMN)
    return (
        _LIBRARY
        + table.nbytes
        + cells * 6  # codes of one byte or two, and once as int32
        + 2 * min(_RESIDUALS, 8 * table.n_rows * states)
        + (3 * 8 * columns**2 if inverse else 0)
    )
