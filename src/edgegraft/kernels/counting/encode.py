"""Integers to codes: by distance from a column's smallest value, or by look-up."""

from __future__ import annotations

import numpy as np

from edgegraft.kernels.compiler import kernel

__all__ = ["UNKNOWN", "look_up", "offset_codes"]

UNKNOWN = 65534  # stands for no code in a table that is looked up

# A tile of this many rows and up to 64 columns stays in the first-level cache while it is
# turned from rows into columns.
TILE_ROWS = 256


@kernel
def offset_codes(block, low, mask, codes, counts):
    """Write ``block[i, j] - low[j]`` to ``codes[j, i]`` and count each in ``counts[j]``.

    Parameters
    ----------
    block : array of unsigned integers, shape (n_rows, n)
        Signed cells are passed as their unsigned bits: the subtraction wraps, so the distance
        is the same.
    low : array of the same type, shape (n,)
        Smallest value of each column.
    mask : uint64
        All bits of the cells' type, at whose width the subtraction wraps.
    codes : array of uint16, shape (n, n_rows)
        Filled.
    counts : array of int64, shape (n, width)
        Added to; `width` is more than the largest distance.
    """
    n_rows, n = block.shape
    for first in range(0, n_rows, TILE_ROWS):
        end = min(n_rows, first + TILE_ROWS)
        for j in range(n):
            least = np.uint64(low[j])
            for i in range(first, end):
                code = np.uint16((np.uint64(block[i, j]) - least) & mask)
                codes[j, i] = code
                counts[j, code] += 1


@kernel
def look_up(values, base, table, out):
    """Write ``table[values - base]`` to `out`; return whether no cell is `UNKNOWN`.

    The last entry of `table` is `UNKNOWN`, and stands for all numbers beyond its ends.
    """
    last = np.uint64(table.shape[0] - 1)
    known = True
    for r in range(values.shape[0]):
        # The difference wraps: numbers below the base are very large.
        code = table[min(np.uint64(np.int64(values[r]) - base), last)]
        out[r] = code
        known &= code != UNKNOWN
    return known
