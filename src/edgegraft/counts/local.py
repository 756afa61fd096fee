"""Counts from a packed table on this machine.

A batch of edges is put in an order in which neighbours share variables, cut into pieces, and
the pieces are counted on threads. Every table is written by one thread, in integers, so the
result is the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.core.checks import check_edges, check_weights
from edgegraft.core.tables import FlatTables, PairTables, table_offsets
from edgegraft.core.threads import resolve_jobs, run
from edgegraft.core.types import Edges
from edgegraft.counts import cost
from edgegraft.counts.source import all_pair_blocks, check_size
from edgegraft.kernels.counting.histogram import count_codes, count_margin_codes
from edgegraft.kernels.counting.popcount import count_margins, count_planes
from edgegraft.table import PackedTable, Schema

_TILE = (
    24  # variables a side of a tile: 24 five-state variables of 19,000 rows fill a quarter of L2
)
_PIECE = 256  # edges a task of the popcount kernel, at least
_PIECES = 8  # tasks a thread, at most: enough to share out evenly, few enough to cost nothing
_CODED_PIECE = (
    256  # edges a task of the histogram kernel, which unpacks up to twice as many columns
)


class LocalCounts:
    """Exact pair counts of a table in memory or mapped from a file.

    Parameters
    ----------
    table : PackedTable
    n_jobs : int, optional
        Threads; -1 for all cores. The counts do not depend on it.
    weights : array of float, shape (n_rows,), optional
        Non-negative row weights. Counts are then sums of weights (float64).

    Examples
    --------
    >>> from edgegraft.table import PackedTable
    >>> table = PackedTable.from_codes([[0, 2], [1, 1], [1, -1], [1, 1]])
    >>> counts = LocalCounts(table)
    >>> counts.pairs([(0, 1)])[0]
    array([[0, 0, 1],
           [0, 2, 0]])
    """

    def __init__(
        self, table: PackedTable, n_jobs: int | None = None, weights: ArrayLike | None = None
    ) -> None:
        self.table = table
        self.n_jobs = resolve_jobs(n_jobs)
        self.weights = None if weights is None else check_weights(weights, table.n_rows)
        if self.weights is not None:
            self.weights.flags.writeable = False
        self._margins: FlatTables | None = None

    @property
    def schema(self) -> Schema:
        """Names and categories of the variables."""
        return self.table.schema

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.table.n_rows

    def margins(self) -> FlatTables:
        """Return the counts of every state of every variable (computed once)."""
        if self._margins is None:
            self._margins = self._count_margins()
        return self._margins

    def pairs(self, edges: ArrayLike) -> PairTables:
        """Return the tables of a batch of edges, in the order and orientation asked for.

        Parameters
        ----------
        edges : array of int, shape (m, 2)

        Returns
        -------
        PairTables
            Integer counts, or sums of weights.
        """
        edges = check_edges(edges, len(self.schema))
        shapes = np.take(self.schema.n_states, edges)
        offsets = table_offsets(shapes)
        check_size(int(offsets[-1]))
        out = np.zeros(int(offsets[-1]), np.int64 if self.weights is None else np.float64)
        order = _tile_order(edges, len(self.schema))
        by_codes = self._by_codes(edges)[order]
        count = partial(self._count_planes, edges, offsets, out)
        run(count, _pieces(order[~by_codes], _PIECES * self.n_jobs, _PIECE), self.n_jobs)
        count = partial(self._count_codes, edges, offsets, out)
        run(count, _pieces(order[by_codes], len(order), _CODED_PIECE), self.n_jobs)
        return PairTables(edges, shapes, out, offsets)

    def blocks(self, max_bytes: int = 1 << 26) -> Iterator[PairTables]:
        """Yield the tables of all pairs ``i < j`` in blocks of at most `max_bytes`."""
        for edges in all_pair_blocks(self.schema.n_states, max_bytes):
            yield self.pairs(edges)

    def _by_codes(self, edges: Edges) -> NDArray[np.bool_]:
        """Tell which edges are cheaper, or only possible, by direct histogram."""
        if self.weights is not None:
            return np.ones(len(edges), bool)
        table = self.table
        if not len(table.codes_of):
            return np.zeros(len(edges), bool)
        counts = np.diff(table.planes.start)
        unplaned = (counts == 0) & (table.schema.n_states > 1)
        pairs_of_planes = counts[edges[:, 0]] * counts[edges[:, 1]]
        coded = (table.code_row[edges] >= 0).all(axis=1)
        words = table.planes.words.shape[1]
        cheaper = coded & (pairs_of_planes * words > cost.row_in_words() * table.n_rows)
        return np.asarray(cheaper | unplaned[edges].any(axis=1))

    def _count_planes(
        self, edges: Edges, offsets: NDArray[np.int64], out: NDArray[Any], piece: Edges
    ) -> None:
        margins = self.margins()
        count_planes(self.table.planes, margins.values, margins.offsets, edges, piece, offsets, out)

    def _count_codes(
        self, edges: Edges, offsets: NDArray[np.int64], out: NDArray[Any], piece: Edges
    ) -> None:
        variables, slots = np.unique(edges[piece], return_inverse=True)
        slots = slots.reshape(-1, 2)
        table = self.table
        count_codes(
            table.planes,
            table.codes_of,
            table.code_row,
            self.weights,
            edges,
            piece,
            variables,
            slots,
            offsets,
            out,
        )

    def _count_margins(self) -> FlatTables:
        table = self.table
        offsets = np.concatenate(([0], np.cumsum(self.schema.n_states)))
        values = np.zeros(int(offsets[-1]), np.int64 if self.weights is None else np.float64)
        if self.weights is None:
            count_margins(table.planes, table.n_rows, offsets, values)
            remaining = np.flatnonzero(np.diff(table.planes.start) == 0)
        else:
            remaining = np.arange(len(self.schema))
        for i in remaining:
            own = values[offsets[i] : offsets[i + 1]]
            own[:] = 0
            count_margin_codes(
                table.planes, table.codes_of, table.code_row, self.weights, int(i), own
            )
        values.flags.writeable = False
        return FlatTables(values, offsets)


def _tile_order(edges: Edges, n: int) -> NDArray[np.int64]:
    """Return an order of the edges in which neighbours share a tile of variables."""
    tiles = -(-n // _TILE)
    keys = (edges[:, 0] // _TILE) * tiles + edges[:, 1] // _TILE
    return np.argsort(keys, kind="stable").astype(np.int64, copy=False)


def _pieces(order: NDArray[np.int64], n_pieces: int, least: int) -> list[NDArray[np.int64]]:
    """Cut the edges into at most `n_pieces` runs of at least `least` edges."""
    size = max(least, -(-len(order) // max(n_pieces, 1)))
    return [order[first : first + size] for first in range(0, len(order), size)]
