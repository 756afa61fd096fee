"""How much memory a fit may take, and how it is shared out."""

from __future__ import annotations

from edgegraft.errors import Argument, MemoryBudgetError
from edgegraft.ingest.options import enough
from edgegraft.ingest.rows import Budget
from edgegraft.table.blocks import SAMPLE_ROWS

_BASE = 500 << 20  # the interpreter, its libraries and compiled code, and one batch of a reader
_THREAD = 250 << 20  # a block with its codes, residuals and sums
_THREADS = 2  # whose memory is set aside whatever their number: rows must not depend on it
_RESERVED = _BASE + _THREADS * _THREAD
_CELL = 24  # bytes per sampled cell: its codes, bit planes, residuals and what tests make of them
_MIN_ROWS = 10_000  # of a sample


def check_limit(limit: int) -> None:
    """Refuse a limit that no rows fit, before any are read."""
    if limit < _RESERVED:
        raise MemoryBudgetError(
            f"{limit / 2**30:.2f} GiB are not enough for the library and its working memory: "
            f"allow at least {enough(_RESERVED)} (",
            Argument("max_memory"),
            ") and some room for rows",
        )


def needed_for_all(n_rows: int, n_variables: int) -> int:
    """Return the smallest limit within which all rows are learned from in memory."""
    return _RESERVED + _CELL * n_variables * n_rows


def share_out(
    limit: int, n_rows: int, n_variables: int, n_jobs: int, sample_rows: int | None = None
) -> Budget:
    """Return what the parts of a fit may take of `limit` bytes.

    How rows are learned from depends on the limit and on the rows alone. More than two threads
    get what is left for them. A fit that is resumed must have the same sample again: `sample_rows`
    are its rows, 0 if it had all rows in memory.
    """
    room = limit - _RESERVED
    needed = _CELL * n_variables * min(n_rows, _MIN_ROWS)
    if room < 2 * needed:
        raise MemoryBudgetError(
            f"{limit / 2**30:.2f} GiB are not enough for {n_variables:,} columns: allow at least "
            f"{enough(_RESERVED + 2 * needed)} (",
            Argument("max_memory"),
            ")",
        )
    for_all = needed_for_all(n_rows, n_variables)
    whole = limit >= for_all
    if sample_rows is None:
        sample_rows = min(SAMPLE_ROWS, room // 2 // (_CELL * n_variables))
    else:
        whole = sample_rows == 0
    spare = room // 4
    threads = min(n_jobs, _THREADS + spare // _THREAD)
    kept = spare - max(0, threads - _THREADS) * _THREAD
    return Budget(limit, for_all, whole, sample_rows, kept, threads)
