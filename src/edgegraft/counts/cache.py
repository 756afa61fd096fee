"""A byte-bounded memory of pair tables around any source of counts.

Two generations share the budget. Tables are written to the young one; when it is full the old
one is dropped and the young takes its place, and a table found in the old one moves back to the
young. What was used since the last change of generation is therefore never dropped: least
recently used, in effect, at the cost of one hash look-up a table and no bookkeeping a hit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.core.checks import check_edges
from edgegraft.core.pairs import pair_ids, pairs_of_ids
from edgegraft.core.tables import FlatTables, PairTables, table_offsets
from edgegraft.core.types import Edges
from edgegraft.counts.source import PairCounts, check_size
from edgegraft.kernels.counting.hashing import copy_tables, find, insert
from edgegraft.table import Schema


@dataclass(frozen=True)
class CacheInfo:
    """What a cache has done so far.

    Attributes
    ----------
    hits : int
        Tables answered from memory.
    computed : int
        Tables that the source computed.
    nbytes : int
        Bytes held now.
    max_bytes : int
        Bytes that are never exceeded.
    """

    hits: int
    computed: int
    nbytes: int
    max_bytes: int


class CachedCounts:
    """Pair counts that are computed once, as far as memory allows.

    Parameters
    ----------
    source : PairCounts
    max_bytes : int, optional
        Upper bound of all the memory that the cache holds, its index included.

    Examples
    --------
    >>> from edgegraft.table import PackedTable
    >>> from edgegraft.counts import LocalCounts
    >>> counts = CachedCounts(LocalCounts(PackedTable.from_codes([[0, 1, 1], [1, 0, 1]])))
    >>> _ = counts.pairs([(0, 1), (0, 2)])
    >>> counts.pairs([(1, 0)])[0]
    array([[0, 1],
           [1, 0]])
    >>> counts.info.hits, counts.info.computed
    (1, 2)
    """

    def __init__(self, source: PairCounts, max_bytes: int = 1 << 28) -> None:
        if max_bytes < 0:
            raise ValueError(f"max_bytes must not be negative, found {max_bytes}")
        self.source = source
        self.max_bytes = max_bytes
        self._young = _Generation(0)
        self._old = _Generation(0)
        self._hits = 0
        self._computed = 0

    @property
    def schema(self) -> Schema:
        """Names and categories of the variables."""
        return self.source.schema

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.source.n_rows

    @property
    def info(self) -> CacheInfo:
        """Hits, tables computed and bytes held."""
        held = self._young.nbytes + self._old.nbytes
        return CacheInfo(self._hits, self._computed, held, self.max_bytes)

    def margins(self) -> FlatTables:
        """Return the counts of every state of every variable."""
        return self.source.margins()

    def pairs(self, edges: ArrayLike) -> PairTables:
        """Return the tables of a batch of edges, from memory where they are there."""
        edges = check_edges(edges, len(self.schema))
        shapes = self.schema.n_states[edges]
        offsets = table_offsets(shapes)
        check_size(int(offsets[-1]))
        keys = pair_ids(edges, len(self.schema))
        missed = self._missed(keys)
        fresh = self._compute(keys[missed])
        out = np.empty(int(offsets[-1]), fresh.values.dtype)
        self._hits += len(keys) - len(missed)
        self._copy_out(keys, edges, shapes, offsets, fresh, out)
        self._remember(keys, edges, offsets, out)
        return PairTables(edges, shapes, out, offsets)

    def _missed(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of the keys to compute, a key that comes twice once."""
        absent = (self._young.find(keys) < 0) & (self._old.find(keys) < 0)
        candidates = np.flatnonzero(absent)
        _, first = np.unique(keys[candidates], return_index=True)
        return candidates[np.sort(first)]

    def _compute(self, keys: NDArray[np.int64]) -> PairTables:
        self._computed += len(keys)
        return self.source.pairs(pairs_of_ids(keys, len(self.schema)))

    def _copy_out(
        self,
        keys: NDArray[np.int64],
        edges: Edges,
        shapes: NDArray[np.int64],
        offsets: NDArray[np.int64],
        fresh: PairTables,
        out: NDArray[np.generic],
    ) -> None:
        """Gather every table from the source's answer or the generation that holds it."""
        flipped = edges[:, 0] > edges[:, 1]
        computed = _Generation(len(fresh))
        fresh_keys = pair_ids(fresh.edges, len(self.schema))
        computed.adopt(fresh_keys, fresh.offsets[:-1], fresh.values)
        waiting = np.ones(len(keys), bool)
        for generation in (computed, self._young, self._old):
            at = generation.find(keys)
            here = np.flatnonzero(waiting & (at >= 0))
            waiting[here] = False
            copy_tables(
                generation.values,
                at[here],
                flipped[here],
                shapes[here, 0],
                shapes[here, 1],
                out,
                offsets[here],
            )
        # Every key was computed or found, so nothing waits any more.
        assert not waiting.any()

    def _remember(
        self,
        keys: NDArray[np.int64],
        edges: Edges,
        offsets: NDArray[np.int64],
        out: NDArray[np.generic],
    ) -> None:
        """Write to the young generation what it does not hold, as far as the budget goes."""
        absent = np.flatnonzero(self._young.find(keys) < 0)
        _, first = np.unique(keys[absent], return_index=True)
        new = absent[np.sort(first)]
        sizes = np.diff(offsets)
        while len(new):
            if not self._young.capacity:
                self._young = _Generation.within(self.max_bytes // 2, out.dtype)
            taken = self._young.room_for(sizes[new])
            if taken == 0 and self._young.n_tables == 0:
                return  # a table larger than the budget: nothing can be remembered
            part, new = new[:taken], new[taken:]
            n_states = self.schema.n_states
            low, high = edges[part].min(axis=1), edges[part].max(axis=1)
            self._young.write(
                keys[part],
                offsets[part],
                edges[part, 0] > edges[part, 1],
                n_states[low],
                n_states[high],
                out,
            )
            if len(new):
                self._old, self._young = self._young, _Generation(0)


class _Generation:
    """A hash index over tables that lie one after another in an arena."""

    def __init__(self, n_tables: int) -> None:
        self.n_tables = 0
        self.capacity = 0
        self.values: NDArray[np.generic] = np.empty(0, np.int64)
        self._used = 0
        length = 1 << max(3, (2 * n_tables).bit_length())
        self._keys = np.full(length, -1, np.int64)
        self._places = np.empty(length, np.int64)

    @classmethod
    def within(cls, max_bytes: int, dtype: np.dtype[np.generic]) -> _Generation:
        """Return an empty generation whose arena and index take at most `max_bytes`.

        A quarter goes to the index: at two slots of 16 bytes a table that is room for tables
        of twelve cells and more; smaller ones fill the index first.
        """
        slots = 1 << max(3, (max_bytes // 4 // 16).bit_length() - 1)
        generation = cls(0)
        generation._keys = np.full(slots, -1, np.int64)
        generation._places = np.empty(slots, np.int64)
        generation.capacity = max(0, (max_bytes - 16 * slots) // dtype.itemsize)
        generation.values = np.empty(generation.capacity, dtype)
        return generation

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes + self._places.nbytes + self.values.nbytes if self.capacity else 0

    def find(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where each key's table begins in `values`, -1 where it is absent."""
        out = np.empty(len(keys), np.int64)
        find(self._keys, self._places, keys, out)
        return out

    def adopt(
        self, keys: NDArray[np.int64], places: NDArray[np.int64], values: NDArray[np.generic]
    ) -> None:
        """Index tables that lie in an array that is there already."""
        self.values = values
        self.n_tables += insert(self._keys, self._places, keys, places)

    def room_for(self, sizes: NDArray[np.int64]) -> int:
        """Return how many tables of these sizes, in this order, still fit."""
        room = self.capacity - self._used
        by_cells = int(np.searchsorted(np.cumsum(sizes), room, side="right"))
        return min(by_cells, len(self._keys) // 2 - self.n_tables)

    def write(
        self,
        keys: NDArray[np.int64],
        source_places: NDArray[np.int64],
        flipped: NDArray[np.bool_],
        rows: NDArray[np.int64],
        columns: NDArray[np.int64],
        source: NDArray[np.generic],
    ) -> None:
        """Copy tables in, each with the smaller variable along its rows."""
        ends = self._used + np.cumsum(rows * columns)
        places = ends - rows * columns
        copy_tables(source, source_places, flipped, rows, columns, self.values, places)
        self.n_tables += insert(self._keys, self._places, keys, places)
        if len(ends):
            self._used = int(ends[-1])
