"""Whole numbers to codes by look-up, and rows of an array to columns."""

from __future__ import annotations

import numpy as np

from edgegraft.kernels.compiler import kernel

__all__ = ["look_up", "look_up_plainly", "turn"]

# A tile of this many rows and up to 64 columns stays in the first-level cache while it is turned.
TILE_ROWS = 256


@kernel
def look_up(values, base, table, out):
    """Write ``table[values - base]`` to `out`; return whether all cells are known.

    The last entry of `table` means unknown, and stands for all numbers beyond its ends.
    """
    last = np.uint64(table.shape[0] - 1)
    unknown = table[last]
    known = True
    for r in range(values.shape[0]):
        # The difference wraps: numbers below the base are very large.
        code = table[min(np.uint64(np.int64(values[r]) - base), last)]
        out[r] = code
        known &= code != unknown
    return known


def look_up_plainly(values, base, table, out):
    """Do the same with NumPy."""
    last = np.uint64(len(table) - 1)
    out[:] = table[np.minimum((values.astype(np.int64) - base).view(np.uint64), last)]
    return bool((out != table[last]).all())


@kernel
def turn(rows, columns):
    """Write ``rows[i, j]`` to ``columns[j, i]``, a tile at a time."""
    n_rows, n = rows.shape
    for first in range(0, n_rows, TILE_ROWS):
        end = min(n_rows, first + TILE_ROWS)
        for j in range(n):
            for i in range(first, end):
                columns[j, i] = rows[i, j]
