"""How much memory a fit may take, and how it is shared out."""

from __future__ import annotations

import re
from typing import NamedTuple

from edgegraft.errors import Argument, MemoryBudgetError

#: Rows of the largest sample that a search over rows on disk begins with.
SAMPLE_ROWS = 1 << 19

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS |= {"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40}
_BASE = 500 << 20  # the interpreter, its libraries and compiled code, and one batch of a reader
_THREAD = 250 << 20  # a block with its codes, residuals and sums
_THREADS = 2  # whose memory is set aside whatever their number: rows must not depend on it
_RESERVED = _BASE + _THREADS * _THREAD
_CELL = 24  # bytes per sampled cell: its codes, bit planes, residuals and what tests make of them
_MIN_ROWS = 10_000  # of a sample


class Budget(NamedTuple):
    """What the parts of a fit may take."""

    limit: int  # bytes, all together
    whole: bool  # whether all rows fit in memory
    sample_rows: int  # rows read into memory if not all fit
    kept_bytes: int  # for blocks that stay decoded between passes
    n_jobs: int  # threads that pass over the rows, at most those asked for


def read_size(size: int | str) -> int:
    """Return a number of bytes, given as such or as text with a unit.

    >>> read_size("2 GiB"), read_size("500MB"), read_size(1024)
    (2147483648, 500000000, 1024)
    """
    if isinstance(size, str):
        found = re.fullmatch(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*([kmgt]?i?)b?\s*", size.lower())
        if not found or found[2] not in _UNITS:
            raise ValueError(
                f"invalid size {size!r}: expected a whole number of bytes or a text such as '2 GiB'"
            )
        return int(float(found[1]) * _UNITS[found[2]])
    return int(size)


def enough(n_bytes: int) -> str:
    """Return a size, rounded up so that it suffices when it is read back.

    >>> enough((1 << 30) + 1)
    '1.01 GiB'
    """
    return f"{-(-100 * n_bytes >> 30) / 100:.2f} GiB"


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
    whole = limit >= needed_for_all(n_rows, n_variables)
    if sample_rows is None:
        sample_rows = min(SAMPLE_ROWS, room // 2 // (_CELL * n_variables))
    else:
        whole = sample_rows == 0
    spare = room // 4
    threads = min(n_jobs, _THREADS + spare // _THREAD)
    kept = spare - max(0, threads - _THREADS) * _THREAD
    return Budget(limit, whole, sample_rows, kept, threads)
