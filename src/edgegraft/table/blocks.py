"""Tables in fixed blocks of rows, each of which fits in memory where the whole need not.

What is learned from rows are sums over rows. Where blocks end depends on the table alone, never
on threads or machines, and sums are added in the order of the blocks; so they are the same to the
last bit whoever adds up which block.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from edgegraft.kernels.counting.popcount import LANES
from edgegraft.table.builder import CHUNK_ROWS, words_a_plane
from edgegraft.table.packed import PackedTable
from edgegraft.table.schema import Schema

#: Cells of a block: codes of a byte each, and what is worked out from them, are held for every
#: thread.
BLOCK_CELLS = 1 << 24
_UNIT = 64 * LANES  # rows of a whole vector of a plane


class RowBlocks(Protocol):
    """A table that is read block by block."""

    @property
    def schema(self) -> Schema:
        """Names and categories of the variables."""
        ...

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def starts(self) -> NDArray[np.int64]:
        """First row of every block, and the number of rows at the end."""
        ...

    def block(self, k: int) -> PackedTable:
        """Return the rows ``starts[k]`` to ``starts[k + 1]``, in memory."""
        ...


def block_rows(n_variables: int) -> int:
    """Return the rows of a block: the fewer the more columns, in whole vectors.

    Examples
    --------
    >>> block_rows(100), block_rows(1000), block_rows(100_000)
    (65536, 16384, 512)
    """
    wanted = BLOCK_CELLS // max(1, n_variables) // _UNIT * _UNIT
    return int(min(CHUNK_ROWS, max(_UNIT, wanted)))


def block_starts(n_rows: int, rows: int) -> NDArray[np.int64]:
    """Return the first row of every block of `rows` rows, and the number of rows at the end."""
    return np.append(np.arange(0, n_rows, rows, dtype=np.int64), n_rows)


class TableBlocks:
    """The blocks of a packed table, in memory or mapped.

    Parameters
    ----------
    table : PackedTable
    rows : int, optional
        Rows of a block, a multiple of 512; by default what suits the number of columns.

    Examples
    --------
    >>> blocks = TableBlocks(PackedTable.from_codes(np.arange(1200)[:, None] % 3), rows=512)
    >>> blocks.starts
    array([   0,  512, 1024, 1200])
    >>> blocks.block(2).n_rows
    176
    """

    def __init__(self, table: PackedTable, rows: int | None = None) -> None:
        rows = block_rows(table.n_variables) if rows is None else rows
        if rows < 1 or rows % _UNIT:
            raise ValueError(f"rows of a block must be a multiple of {_UNIT}, found {rows}")
        self.table = table
        self.starts = block_starts(table.n_rows, rows)

    @property
    def schema(self) -> Schema:
        """Names and categories of the variables."""
        return self.table.schema

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.table.n_rows

    def block(self, k: int) -> PackedTable:
        """Return a copy of the rows of block `k`."""
        first, stop = int(self.starts[k]), int(self.starts[k + 1])
        table = self.table
        length = words_a_plane(stop - first)
        words = np.array(table.planes.words[:, first // 64 : first // 64 + length])
        codes = np.array(table.codes_of[:, first:stop])
        return PackedTable.from_planes(
            table.schema, stop - first, words, codes, table.planes.complete
        )
