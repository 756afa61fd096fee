"""Exact counts of states and of pairs of states, over rows wherever they are.

Counts add up over blocks of rows. A block's batch of edges is put in an order in which
neighbours share variables, cut into pieces, and the pieces are counted on threads. Every table is
written by one thread; whole numbers add exactly and sums of weights are added in block order, so
the counts are the same for any number of threads or machines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.core.checks import check_edges
from edgegraft.core.pairs import FlatTables, PairTables, table_offsets
from edgegraft.core.threads import run
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.errors import MemoryBudgetError
from edgegraft.kernels.counting import count_codes, count_planes
from edgegraft.table import PackedTable, Schema
from edgegraft.table.blocks import Rows, RowStore, TableRows, add_in_order, as_rows

MAX_RESULT_BYTES = 1 << 32  # of one call's tables; larger requests go through `blocks`


@dataclass(frozen=True)
class _Cost:
    """How a batch of pairs is cut, and which way of counting is cheaper."""

    tile: int = 24  # variables per side: with 5 states and 19,000 rows a quarter of L2
    piece: int = 256  # edges per task, at least
    pieces: int = 8  # tasks per thread, at most: enough to balance
    #: Words of plane pairs counted in the time of a row of a histogram: measured 6.0 to 6.6.
    row_in_words: float = 6.5


class PairCounts:
    """Exact pair counts, additive over rows.

    Rows in which a cell of a pair is missing do not count for that pair.

    Parameters
    ----------
    rows : PackedTable, RowStore or Rows
        A table in memory or mapped from a file; or rows on disk or on a cluster.
    n_jobs : int, optional
        Threads; -1 for all cores. The counts do not depend on it.
    weights : array of float, shape (n_rows,), optional
        Non-negative row weights. Counts are then sums of weights (float64). `Rows` have threads
        and weights of their own.

    Examples
    --------
    >>> from edgegraft.table import PackedTable
    >>> counts = PairCounts(PackedTable.from_codes([[0, 2], [1, 1], [1, -1], [1, 1]]))
    >>> counts.pairs([(0, 1)])[0]
    array([[0, 0, 1],
           [0, 2, 0]])
    """

    def __init__(
        self,
        rows: PackedTable | RowStore | Rows,
        n_jobs: int | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        self.rows = as_rows(rows, weights, n_jobs)
        self.schema, self.n_rows = self.rows.schema, self.rows.n_rows
        self._margins: FlatTables | None = None

    def margins(self) -> FlatTables:
        """Return the counts of every state of every variable (computed once)."""
        if self._margins is None:
            values = add_in_order(self.rows.map(_copy_margins))
            values.flags.writeable = False
            self._margins = FlatTables(values, _margin_offsets(self.schema))
        return self._margins

    def pairs(self, edges: ArrayLike) -> PairTables:
        """Return the tables of a batch of edges, in the order and orientation asked for.

        They are integer counts, or sums of weights.
        """
        edges = check_edges(edges, len(self.schema))
        shapes = np.take(self.schema.n_states, edges)
        offsets = table_offsets(shapes)
        check_size(int(offsets[-1]))
        if not len(edges):
            return PairTables(edges, shapes, np.empty(0, np.int64), offsets)
        values = add_in_order(self.rows.map(partial(_count_pairs, edges=edges, offsets=offsets)))
        return PairTables(edges, shapes, values, offsets)

    def blocks(self, max_bytes: int = 1 << 26) -> Iterator[PairTables]:
        """Yield the tables of all pairs ``i < j``, at most `max_bytes` at a time."""
        for edges in all_pair_blocks(self.schema.n_states, max_bytes):
            yield self.pairs(edges)


def check_size(n_cells: int, max_bytes: int = MAX_RESULT_BYTES) -> None:
    """Refuse a request whose tables would not fit, before they are allocated."""
    if 8 * n_cells > max_bytes:
        raise MemoryBudgetError(
            f"the tables asked for take {8 * n_cells:,} bytes, more than the {max_bytes:,} "
            "allowed for one request: ask for fewer pairs at a time, or merge rare states"
        )


def all_pair_blocks(n_states: Integers, max_bytes: int) -> Iterator[Edges]:
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


def _margin_offsets(schema: Schema) -> Integers:
    return np.concatenate(([0], np.cumsum(schema.n_states)))


def _zeros(block: TableRows, length: int) -> NDArray[Any]:
    return np.zeros(length, np.int64 if block.weights is None else np.float64)


def weigh_states(codes: NDArray[Any], weights: NDArray[Any], states: Integers) -> Floats:
    """Return the weight of the rows in each state of each variable; codes are by variable."""
    own = zip(codes, states.tolist(), strict=True)
    return np.concatenate([np.empty(0), *(np.bincount(c, weights, s)[:s] for c, s in own)])


def _copy_margins(block: TableRows) -> NDArray[Any]:
    return _margins_of(block).copy()


def _margins_of(block: TableRows) -> NDArray[Any]:
    return block.derive("margins", _count_margins)


def _count_margins(block: TableRows) -> NDArray[Any]:
    table, offsets = block.table, _margin_offsets(block.table.schema)
    values = _zeros(block, int(offsets[-1]))
    planes = table.planes if block.weights is None else None
    for i, states in enumerate(table.schema.n_states.tolist()):
        own = values[offsets[i] : offsets[i + 1]]
        if planes is None or planes.start[i] == planes.start[i + 1]:
            cells = table.cells[i, : table.n_rows]
            own[:] = np.bincount(cells, block.weights, states)[:states]
            continue
        words = planes.words[planes.start[i] : planes.start[i + 1]]
        own[: len(words)] = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
        if planes.complete[i]:
            own[-1] = table.n_rows - own[:-1].sum()
    values.flags.writeable = False
    return values


def _count_pairs(block: TableRows, edges: Edges, offsets: Integers) -> NDArray[Any]:
    if (device := block.product_device) is not None:
        return device.count(block, edges)
    out = _zeros(block, int(offsets[-1]))
    # An order in which neighbours share a tile of variables.
    tiles = -(-block.table.n_variables // _Cost.tile)
    order = np.argsort(edges[:, 0] // _Cost.tile * tiles + edges[:, 1] // _Cost.tile, kind="stable")
    by_codes = _by_codes(block, edges)[order]
    by_planes = partial(_count_by_planes, block, edges, offsets, out)
    run(by_planes, _pieces(order[~by_codes], _Cost.pieces * block.n_jobs), block.n_jobs)
    histograms = partial(_count_by_codes, block, edges, offsets, out)
    run(histograms, _pieces(order[by_codes], len(order)), block.n_jobs)
    return out


def _by_codes(block: TableRows, edges: Edges) -> Mask:
    """Return which edges are cheaper, or only possible, by direct histogram."""
    if block.weights is not None:
        return np.ones(len(edges), bool)
    table = block.table
    counts = np.diff(table.planes.start)
    unplaned = (counts == 0) & (table.schema.n_states > 1)
    words = counts[edges].prod(axis=1) * table.planes.words.shape[1]
    return np.asarray((words > _Cost.row_in_words * table.n_rows) | unplaned[edges].any(axis=1))


def _count_by_planes(
    block: TableRows, edges: Edges, offsets: Integers, out: NDArray[Any], piece: Integers
) -> None:
    starts, edges = _margin_offsets(block.table.schema), edges.view()
    edges.flags.writeable = False  # as those of layouts are: one kernel serves both
    planes = block.table.planes
    count_planes(planes, _margins_of(block), starts, edges, piece, offsets, out)


def _count_by_codes(
    block: TableRows, edges: Edges, offsets: Integers, out: NDArray[Any], piece: Integers
) -> None:
    variables, slots = np.unique(edges[piece], return_inverse=True)
    table = block.table
    count_codes(
        table.cells,
        table.n_rows,
        table.schema.n_states,
        block.weights,
        edges,
        piece,
        variables,
        slots.reshape(-1, 2),
        offsets,
        out,
    )


def _pieces(order: Integers, n_pieces: int) -> list[Integers]:
    """Cut the edges into at most `n_pieces` runs of at least `_Cost.piece` edges."""
    size = max(_Cost.piece, -(-len(order) // max(n_pieces, 1)))
    return [order[first : first + size] for first in range(0, len(order), size)]
