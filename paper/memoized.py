"""Pair counts that are computed once and kept, as in the paper, and that count their work."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.core.checks import check_edges
from edgegraft.core.pairs import PairTables, pair_ids, pairs_of_ids, table_offsets
from edgegraft.counts import PairCounts
from edgegraft.table.blocks import Rows


class MemoizedCounts(PairCounts):
    """Pair counts that keep every table they compute.

    Parameters
    ----------
    rows : Rows

    Attributes
    ----------
    computed : int
        Number of tables computed so far.

    Examples
    --------
    >>> from edgegraft.table import PackedTable
    >>> from edgegraft.table.blocks import TableRows
    >>> counts = MemoizedCounts(TableRows(PackedTable.from_codes([[0, 1, 1], [1, 0, 1]])))
    >>> _ = counts.pairs([(0, 1), (0, 2)])
    >>> counts.pairs([(1, 0)])[0]
    array([[0, 1],
           [1, 0]])
    >>> counts.computed
    2
    """

    def __init__(self, rows: Rows) -> None:
        super().__init__(rows)
        self.computed = 0
        self._ids = np.empty(0, np.int64)  # ids of known pairs, ascending
        self._places = np.empty(0, np.int64)  # start of their tables in `_values`
        self._values: NDArray[Any] = np.empty(0, np.int64)
        self._used = 0

    def pairs(self, edges: ArrayLike) -> PairTables:
        """Return the tables of a batch of edges, in the requested order and orientation."""
        n, states = len(self.schema), self.schema.n_states
        edges = check_edges(edges, n)
        ids = pair_ids(edges, n)
        self._compute(np.setdiff1d(ids, self._ids))
        shapes = states[edges]
        offsets = table_offsets(shapes)
        sizes = np.diff(offsets)
        cell = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], sizes)
        tall, wide = (np.repeat(shapes[:, side], sizes) for side in (0, 1))
        flipped = np.repeat(edges[:, 0] > edges[:, 1], sizes)
        cell = np.where(flipped, cell % wide * tall + cell // wide, cell)
        place = np.repeat(self._places[np.searchsorted(self._ids, ids)], sizes)
        return PairTables(edges, shapes, self._values[place + cell], offsets)

    def _compute(self, ids: NDArray[np.int64]) -> None:
        if not len(ids):
            return
        found = super().pairs(pairs_of_ids(ids, len(self.schema)))
        self.computed += len(ids)
        end = self._used + len(found.values)
        if end > len(self._values):
            grown = np.empty(2 * end, found.values.dtype)
            grown[: self._used] = self._values[: self._used]
            self._values = grown
        self._values[self._used : end] = found.values
        known = np.concatenate((self._ids, ids))
        places = np.concatenate((self._places, self._used + found.offsets[:-1]))
        order = np.argsort(known)
        self._ids, self._places, self._used = known[order], places[order], end
