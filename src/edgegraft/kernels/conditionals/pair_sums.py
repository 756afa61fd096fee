"""Tables of pairs from the products of all one-hot columns with all residuals.

    sums[x_j = b, R_i(a)] = sum over rows with x_rj = b of R_i(r, a)          a, b >= 1

The last row of `sums` holds the totals over all rows. What state 0 of a source has is the total
less the others', or a row of its own where cells are missing; what state 0 of a target has is minus
the sum of the others.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from edgegraft.kernels.compiler import kernel


class Places(NamedTuple):
    """Where the products of each variable lie."""

    states: np.ndarray  # int64 (n,)
    source: np.ndarray  # int64 (n,) row of state 1; the others follow
    gaps: np.ndarray  # bool (n,) whether the row of state 0 follows them
    target: np.ndarray  # int64 (n,) column of state 1


@kernel
def gather_tables(sums, places, edges, offsets, scale, out):
    """Write ``scale`` times the sums of both ends of every pair: tables, one after another."""
    states = places.states
    for e in range(edges.shape[0]):
        i, j = edges[e]
        table = out[offsets[e] : offsets[e + 1]]
        table[:] = 0.0
        wide, one = states[j], np.int64(1)  # of one type, so that the callee is compiled once
        _add_target(sums, places, i, j, wide, one, scale, table)
        _add_target(sums, places, j, i, one, wide, scale, table)


@njit(inline="always")
def _add_target(sums, places, i, j, own_step, other_step, scale, table):
    """Add the sums of residuals of `i` over the states of `j`."""
    wide = places.states[j]
    totals = sums[sums.shape[0] - 1]
    for a in range(1, places.states[i]):
        column = places.target[i] + a - 1
        rest = totals[column]
        for b in range(1, wide):
            value = sums[places.source[j] + b - 1, column]
            rest -= value
            table[a * own_step + b * other_step] += scale * value
            table[b * other_step] -= scale * value
        if places.gaps[j]:
            rest = sums[places.source[j] + wide - 1, column]
        table[a * own_step] += scale * rest
        table[0] -= scale * rest
