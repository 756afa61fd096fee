"""What every source of counts promises, and what all of them check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.core.tables import FlatTables, PairTables
from edgegraft.core.types import Edges
from edgegraft.errors import MemoryBudgetError
from edgegraft.table import Schema

MAX_RESULT_BYTES = 1 << 32  # one call's tables; larger requests go through `blocks`


class PairCounts(Protocol):
    """A source of exact counts, additive over shards of rows.

    Rows in which a cell of a pair is missing do not count for that pair.
    """

    @property
    def schema(self) -> Schema:
        """Names and categories of the variables."""
        ...

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    def margins(self) -> FlatTables:
        """Return the counts of every state of every variable."""
        ...

    def pairs(self, edges: ArrayLike) -> PairTables:
        """Return the counts of every pair of states for each edge ``(i, j)``."""
        ...


def check_size(n_cells: int, max_bytes: int = MAX_RESULT_BYTES) -> None:
    """Refuse a request whose tables would not fit, before they are allocated."""
    if 8 * n_cells > max_bytes:
        raise MemoryBudgetError(
            f"the tables asked for take {8 * n_cells:,} bytes, more than the {max_bytes:,} "
            "allowed for one request: ask for fewer pairs at a time, or merge rare states"
        )


def all_pair_blocks(n_states: NDArray[np.int64], max_bytes: int) -> Iterator[Edges]:
    """Yield all pairs ``i < j`` in order, in blocks whose tables take at most `max_bytes`."""
    n = len(n_states)
    room = max_bytes // 8
    waiting: list[Edges] = []
    used = 0
    for i in range(n - 1):
        cells = np.cumsum(n_states[i] * n_states[i + 1 :])
        first = 0
        while first < len(cells):
            before = int(cells[first - 1]) if first else 0
            last = int(np.searchsorted(cells, before + room - used, side="right"))
            if last == first and not waiting:
                check_size(int(cells[first]) - before, max_bytes)
            if last > first:
                second = np.arange(i + 1 + first, i + 1 + last, dtype=np.int64)
                waiting.append(np.column_stack((np.full(len(second), i), second)))
                used += int(cells[last - 1]) - before
                first = last
            if first < len(cells):
                yield np.concatenate(waiting)
                waiting, used = [], 0
    if waiting:
        yield np.concatenate(waiting)
