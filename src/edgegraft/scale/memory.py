"""How much memory a fit may take, and how it is shared out."""

from __future__ import annotations

from dataclasses import dataclass

from edgegraft.errors import Argument, MemoryBudgetError
from edgegraft.ingest.options import enough
from edgegraft.ingest.rows import Budget
from edgegraft.table.blocks import SAMPLE_ROWS


@dataclass(frozen=True)
class Share:
    """Bytes of memory that the parts of a fit take."""

    #: The interpreter, its libraries and compiled code, and one batch of a reader.
    base: int = 500 << 20
    threads: int = 2  # set aside whatever their number: rows must not depend on it
    thread: int = 250 << 20  # a block with its codes, residuals and sums
    reserved: int = base + threads * thread  # for all but rows
    cell: int = 24  # per sampled cell: its codes, bit planes, residuals and what tests make of them
    least_rows: int = 10_000  # of a sample


def check_limit(limit: int) -> None:
    """Refuse a limit that no rows fit, before any are read."""
    if limit < Share.reserved:
        raise MemoryBudgetError(
            f"{limit / 2**30:.2f} GiB are not enough for the library and its working memory: "
            f"allow at least {enough(Share.reserved)} (",
            Argument("max_memory"),
            ") and some room for rows",
        )


def needed_for_all(n_rows: int, n_variables: int) -> int:
    """Return the smallest limit within which all rows are learned from in memory."""
    return Share.reserved + Share.cell * n_variables * n_rows


def share_out(
    limit: int, n_rows: int, n_variables: int, n_jobs: int, sample_rows: int | None = None
) -> Budget:
    """Return what the parts of a fit may take of `limit` bytes.

    How rows are learned from depends on the limit and on the rows alone. More than two threads
    get what is left for them. A fit that is resumed must have the same sample again: `sample_rows`
    are its rows, 0 if it had all rows in memory.
    """
    room = limit - Share.reserved
    needed = Share.cell * n_variables * min(n_rows, Share.least_rows)
    if room < 2 * needed:
        raise MemoryBudgetError(
            f"{limit / 2**30:.2f} GiB are not enough for {n_variables:,} columns: allow at least "
            f"{enough(Share.reserved + 2 * needed)} (",
            Argument("max_memory"),
            ")",
        )
    for_all = needed_for_all(n_rows, n_variables)
    whole = limit >= for_all
    if sample_rows is None:
        sample_rows = min(SAMPLE_ROWS, room // 2 // (Share.cell * n_variables))
    else:
        whole = sample_rows == 0
    spare = room // 4
    threads = min(n_jobs, Share.threads + spare // Share.thread)
    kept = spare - max(0, threads - Share.threads) * Share.thread
    return Budget(limit, for_all, whole, sample_rows, kept, threads)
