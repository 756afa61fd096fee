"""Inner products of long vectors, on one thread and in one order.

A threaded BLAS splits sums by the number of its threads, so their last digits depend on it, and
with them the trajectory of a solver; and if other processes compete for the cores, its threads wait
for each other far longer than a sum of some ten thousand terms takes.
"""

from __future__ import annotations

import numpy as np

from edgegraft.kernels.compiler import kernel

#: Entries of a vector that stay in the first cache while rows pass by.
BLOCK = 1024


@kernel(fastmath=True)
def dot(left, right):
    """Return the sum of the products of two vectors' entries."""
    total = 0.0
    for i in range(len(left)):
        total += left[i] * right[i]
    return total


@kernel(fastmath=True)
def rows_times(rows, vector):
    """Return the product of each row with `vector`."""
    n_rows, n = rows.shape
    out = np.zeros(n_rows)
    for first in range(0, n, BLOCK):
        last = min(n, first + BLOCK)
        for k in range(n_rows):
            row = rows[k]
            total = 0.0
            for i in range(first, last):
                total += row[i] * vector[i]
            out[k] += total
    return out


@kernel(fastmath=True)
def subtract_rows(out, share, rows):
    """Take ``share[k]`` of each row from `out`."""
    n_rows, n = rows.shape
    for first in range(0, n, BLOCK):
        last = min(n, first + BLOCK)
        for k in range(n_rows):
            row = rows[k]
            part = share[k]
            for i in range(first, last):
                out[i] -= part * row[i]
