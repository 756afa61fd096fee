"""Flat parameter vectors: inner products, and the proximal point of norms of groups.

A threaded BLAS splits sums by the number of its threads, so their last digits depend on it, and
with them the trajectory of a solver; and if other processes compete for the cores, its threads wait
for each other far longer than a sum of some ten thousand terms takes. Products are therefore
summed on one thread and in one order.

Groups are stretches of the vector, ``offsets[g] .. offsets[g + 1]``; single parameters are groups
of length one. Every function is one pass over the parameters.
"""

from __future__ import annotations

import numpy as np

from edgegraft.kernels.compiler import helper, kernel

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


#: Newton steps on a group's norm; four are typical, and each brings the answer closer.
NORM_STEPS = 60


@kernel
def group_prox(values, step, offsets, strength, ridge, out):
    """Write ``argmin_w sum_k (w_k - v_k)^2 / (2 step_k) + strength_g ||w|| + ridge_g ||w||^2``.

    With ``rho = ||w||`` the solution is ``w_k = v_k rho / (rho (1 + 2 ridge step_k) + strength
    step_k)``; if the steps of a group are equal, ``rho`` is closed, otherwise it is the root of
    a concave rising function, which Newton's method climbs from zero without overshooting.
    """
    for g in range(len(strength)):
        first, last = offsets[g], offsets[g + 1]
        c, r = strength[g], ridge[g]
        square = 0.0
        for k in range(first, last):
            square += (values[k] / step[k]) ** 2
        if c > 0.0 and square <= c * c:
            for k in range(first, last):
                out[k] = 0.0
            continue
        rho = _norm_after(values, step, first, last, c, r) if c > 0.0 else 1.0
        for k in range(first, last):
            out[k] = values[k] * rho / (rho * (1.0 + 2.0 * r * step[k]) + c * step[k])


@helper
def _norm_after(values, step, first, last, c, r):
    rho = 0.0
    for _ in range(NORM_STEPS):
        total, slope = 0.0, 0.0
        for k in range(first, last):
            pull = 1.0 + 2.0 * r * step[k]
            below = rho * pull + c * step[k]
            share = (values[k] / below) ** 2
            total += share
            slope += share * pull / below
        # Root of 1/sqrt(total) - 1, whose derivative is slope / total^(3/2).
        move = total * (np.sqrt(total) - 1.0) / slope
        rho += move
        if move <= 1e-15 * rho:
            break
    return rho
