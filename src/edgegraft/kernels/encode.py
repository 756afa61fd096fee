"""Integers to provisional codes: the distance of a cell from its column's smallest value."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["offset_codes"]

# A tile of this many rows and up to 64 columns stays in the first-level cache while it is
# turned from rows into columns.
TILE_ROWS = 256


@njit(cache=True, nogil=True)
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
