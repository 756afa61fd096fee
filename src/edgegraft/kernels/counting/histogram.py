"""Pair counts by direct histogram: one increment per row, whatever the number of states.

The path for variables with many states, where AND + popcount over all pairs of planes costs
more than one pass over the rows, and for weighted rows, where there is nothing to popcount.
The codes of a block of rows are widened once for all variables of a batch, then every pair
of the batch is counted on the block, so scratch memory does not grow with the rows.
"""

import numpy as np

from edgegraft.kernels.compiler import kernel

ROWS = 65536  # rows at a time: 128 KiB per variable
_COPIES = 4  # interleaved copies of a small table hide the latency of adding to one cell twice
_SMALL = 2048  # cells of a table, those of missing cells included, that is copied
_BITS = np.uint64(16)  # of a cell number
_LOW = np.uint64(0xFFFF)


@kernel
def count_codes(cells, n_rows, states, weights, edges, chosen, variables, slots, offsets, out):
    """Add the tables of ``edges[chosen]`` at their `offsets` in the zeroed array `out`.

    Missing `cells` (n, rows or more) hold the number of states; `weights` may be None. `variables`
    are those that the batch names, each once; `slots` is where an edge's ends stand among them.
    """
    block = np.empty((variables.shape[0], min(ROWS, n_rows)), np.uint16)
    cell_of = np.empty(min(ROWS, n_rows), np.uint16)
    copies = np.empty((_COPIES, _SMALL), out.dtype)
    for first in range(0, n_rows, ROWS):
        length = min(ROWS, n_rows - first)
        for v in range(variables.shape[0]):
            block[v, :length] = cells[variables[v], first : first + length]
        for k in range(chosen.shape[0]):
            e = chosen[k]
            s_i = states[edges[e, 0]]
            s_j = states[edges[e, 1]]
            x = block[slots[k, 0], :length]
            y = block[slots[k, 1], :length]
            table = out[offsets[e] : offsets[e] + s_i * s_j]
            block_weights = None if weights is None else weights[first : first + length]
            if (s_i + 1) * (s_j + 1) <= _SMALL:
                _count_small(x, y, s_i, s_j, block_weights, cell_of, copies, table)
            else:
                _count_large(x, y, s_i, s_j, block_weights, table)


@kernel
def _count_small(x, y, s_i, s_j, weights, cells, copies, table):
    """Add one block's counts; missing cells fall into a row and a column that are left behind.

    The cell of each row is computed first, in a loop that the compiler turns into vector
    operations; what remains is one load, add and store per row, without a branch.
    """
    width = s_j + 1
    n = x.shape[0]
    for r in range(n):
        cells[r] = x[r] * np.uint16(width) + y[r]
    copies[:, : (s_i + 1) * width] = 0
    first, second, third, fourth = copies[0], copies[1], copies[2], copies[3]
    # Four cells come with one load, which leaves the store unit as the only bound.
    for q, four in enumerate(cells[: n - n % 4].view(np.uint64)):
        r = 4 * q
        first[four & _LOW] += 1 if weights is None else weights[r]
        second[(four >> _BITS) & _LOW] += 1 if weights is None else weights[r + 1]
        third[(four >> (_BITS + _BITS)) & _LOW] += 1 if weights is None else weights[r + 2]
        fourth[four >> (_BITS + _BITS + _BITS)] += 1 if weights is None else weights[r + 3]
    for r in range(n - n % 4, n):
        first[np.uint64(cells[r])] += 1 if weights is None else weights[r]
    for a in range(s_i):
        for b in range(s_j):
            c = a * width + b
            table[a * s_j + b] += first[c] + second[c] + third[c] + fourth[c]


@kernel
def _count_large(x, y, s_i, s_j, weights, table):
    """Add one block's counts straight to a table that is too large to copy and clear."""
    for r in range(x.shape[0]):
        a = np.int64(x[r])
        b = np.int64(y[r])
        if a < s_i and b < s_j:
            table[a * s_j + b] += 1 if weights is None else weights[r]
