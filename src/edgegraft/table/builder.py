"""Columns on their way to bit planes, grown batch by batch.

Categories get provisional codes in the order in which they turn up; their final order is known
only at the end of the data. Planes make that cheap: a plane belongs to a category, so putting
categories in order moves planes and touches no cell. Memory is that of the planes so far plus
one pending chunk a column.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from edgegraft.kernels.counting.bitplanes import MISSING, largest_code, pack_codes, unpack_codes
from edgegraft.kernels.counting.popcount import LANES
from edgegraft.table.spool import Spool, Spooled

__all__ = ["MISSING", "ColumnBuilder", "PackedColumn", "n_planes", "needs_codes", "words_a_plane"]

Codes = NDArray[np.uint16]
CHUNK_ROWS = 65536
MAX_PLANES = 64  # states above which a variable keeps codes alone: planes would be larger
MIN_CODED = 16  # states above which a variable keeps codes as well: a histogram can win there


def n_planes(n_states: int, complete: bool) -> int:
    """Return the number of planes kept for a variable.

    A complete variable leaves out its last state, which follows from the margins.
    """
    if n_states > MAX_PLANES:
        return 0
    return n_states - 1 if complete else n_states


def needs_codes(n_states: int) -> bool:
    """Tell whether a variable keeps its codes."""
    return n_states > MIN_CODED


def words_a_plane(n_rows: int) -> int:
    """Return the 64-bit words of a plane, padded to whole vectors."""
    return -(-n_rows // (64 * LANES)) * LANES


class ColumnBuilder:
    """One column, received as provisional codes.

    Parameters
    ----------
    spool : Spool, optional
        File for finished chunks, which are otherwise kept in memory.

    Attributes
    ----------
    n_rows : int
        Cells received.
    n_missing : int
        Missing cells among them.
    """

    def __init__(self, spool: Spool | None = None) -> None:
        self.n_rows = 0
        self.n_missing = 0
        self._pending: list[Codes] = []
        self._n_pending = 0
        self._counts = np.zeros(0, np.int64)  # by provisional code, of the chunks
        self._chunks: list[Any] = []  # of planes, of codes, or where these lie in the spool
        self._spool = spool
        self._chunk_rows = CHUNK_ROWS if spool is None else spool.rows

    def append(self, codes: Codes) -> None:
        """Receive the next cells; `MISSING` marks a missing one."""
        self._pending.append(codes)
        self._n_pending += len(codes)
        self.n_rows += len(codes)
        if self._n_pending >= self._chunk_rows:
            self._flush()

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(part.nbytes for part in (*self._pending, *self._chunks))

    def copy(self) -> ColumnBuilder:
        """Return a builder of the same cells, which is finished apart from this one."""
        other = ColumnBuilder()
        other.n_rows, other.n_missing = self.n_rows, self.n_missing
        other._pending, other._n_pending = list(self._pending), self._n_pending
        other._chunks, other._counts = list(self._chunks), self._counts.copy()
        return other

    def counts(self, n_codes: int) -> NDArray[np.int64]:
        """Return how many cells have each of the provisional codes."""
        out = np.zeros(max(n_codes, len(self._counts)), np.int64)
        out[: len(self._counts)] = self._counts
        for codes in self._pending:
            seen = np.bincount(codes[codes != MISSING])
            out[: len(seen)] += seen
        return out[:n_codes]

    def finish(self, recode: Codes | None, n_states: int) -> PackedColumn:
        """Return the column under its final codes ``recode[provisional]`` and let go of it.

        Several provisional codes may become one; those that become `MISSING` turn missing.
        """
        self._flush(final=True)
        if recode is None:
            recode = np.arange(n_states, dtype=np.uint16)
        column = PackedColumn(
            self._chunks, recode, n_states, self.n_rows, self.n_missing, self._chunk_rows
        )
        self._chunks = []
        return column

    def _flush(self, final: bool = False) -> None:
        """Turn pending cells into chunks of equally many rows (the last may be shorter)."""
        if not self._n_pending:
            return
        codes = self._pending[0] if len(self._pending) == 1 else np.concatenate(self._pending)
        rows = self._chunk_rows
        end = len(codes) if final else len(codes) - len(codes) % rows
        for first in range(0, end, rows):
            self._chunks.append(self._chunk(codes[first : min(first + rows, end)]))
        self._pending = [codes[end:].copy()]
        self._n_pending = len(codes) - end

    def _chunk(self, codes: Codes) -> NDArray[np.uint64] | Codes | Spooled:
        """Return planes (one a provisional code), or the codes where planes would be larger."""
        largest, missing = largest_code(codes)
        self.n_missing += missing
        if largest >= MAX_PLANES:
            self._count(np.bincount(codes[codes != MISSING]))
            return codes.copy() if self._spool is None else self._spool.write(codes, missing)
        planes = np.zeros((largest + 1, -(-len(codes) // 64)), np.uint64)
        pack_codes(codes, planes, 0)
        self._count(np.bitwise_count(planes).sum(axis=1, dtype=np.int64))
        return planes if self._spool is None else self._spool.write(planes, missing)

    def _count(self, seen: NDArray[np.int64]) -> None:
        short = len(seen) - len(self._counts)
        if short > 0:
            self._counts = np.concatenate((self._counts, np.zeros(short, np.int64)))
        self._counts[: len(seen)] += seen


class PackedColumn:
    """A finished column that waits to be written into its table.

    Parameters
    ----------
    chunks : list
        Planes or provisional codes of `chunk_rows` rows each, the last of the rest.
    recode : array of uint16
        Final codes by provisional code.
    n_states, n_rows : int
    n_missing : int
        Missing cells before the recoding.
    chunk_rows : int
    """

    def __init__(
        self,
        chunks: list[Any],
        recode: Codes,
        n_states: int,
        n_rows: int,
        n_missing: int,
        chunk_rows: int = CHUNK_ROWS,
    ) -> None:
        self.n_states = n_states
        self.n_rows = n_rows
        self.chunks = chunks
        self.recode = recode
        self._n_missing = n_missing
        self._chunk_rows = chunk_rows

    @cached_property
    def n_missing(self) -> int:
        """Missing cells, those of labels that turned missing included."""
        if (self.recode == MISSING).any():
            return sum(int((c == MISSING).sum()) for c in self._recoded())
        return self._n_missing

    @property
    def complete(self) -> bool:
        """Whether no cell is missing."""
        return self.n_missing == 0

    def write(self, planes: NDArray[np.uint64], codes: Codes | None) -> None:
        """Fill the column's zeroed planes, and its codes where it keeps them; then forget it."""
        if codes is None:
            self._write_planes(planes)
        else:
            first = 0
            for part in self._recoded():
                pack_codes(part, planes, first // 64)
                codes[first : first + len(part)] = np.where(part == MISSING, self.n_states, part)
                first += len(part)
        self.chunks = []

    def _write_planes(self, planes: NDArray[np.uint64]) -> None:
        for k, chunk in enumerate(self.chunks):
            first = k * (self._chunk_rows // 64)
            if chunk.dtype == np.uint16:
                pack_codes(self._apply(cast(Codes, chunk)), planes, first)
                continue
            for plane, code in zip(chunk, self.recode, strict=False):
                if code < len(planes):
                    planes[code, first : first + len(plane)] |= plane

    def _recoded(self) -> list[Codes]:
        """Return the final codes chunk by chunk."""
        parts = []
        for k, chunk in enumerate(self.chunks):
            if chunk.dtype == np.uint64:
                n_rows = min(self._chunk_rows, self.n_rows - k * self._chunk_rows)
                codes = np.empty(n_rows, np.uint16)
                unpack_codes(chunk, 0, n_rows, MISSING, codes)
                parts.append(self._apply(codes))
            else:
                parts.append(self._apply(cast(Codes, chunk)))
        return parts

    def _apply(self, codes: Codes) -> Codes:
        # The map of MISSING to itself closes the recoding, so that it is one look-up; it is made
        # when it is needed, since thousands of columns may wait at once.
        table = np.full(MISSING + 1, MISSING, np.uint16)
        table[: len(self.recode)] = self.recode
        return table[codes]
