"""Flat parameter vectors: inner products, penalties of groups, what nodes can hold of edges.

A threaded BLAS splits sums by the number of its threads, so their last digits depend on it, and
with them the trajectory of a solver; and if other processes compete for the cores, its threads wait
for each other far longer than a sum of some ten thousand terms takes. Products are therefore
summed on one thread and in one order.

Groups are stretches of the vector, ``offsets[g] .. offsets[g + 1]``; single parameters are groups
of length one. Every function is one pass over the parameters.

*The gauge of the data.* For each edge the additive part ``f(x_i) + g(x_j)`` of a table ``w`` is its
projection in ``L2(p_ij)``, the solution of

    [diag(p_i)  P      ] [f]   [sum_b p_ij(a, b) w(a, b)]
    [P'         diag(p_j)] [g] = [sum_a p_ij(a, b) w(a, b)]

The inverse of the matrix is kept per edge: an edge costs one pass over its table and one small
product. Tables of many states are projected as if the two variables were independent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

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


#: Newton steps on a group's norm; four are typical, and each brings the answer closer.
NORM_STEPS = 60


@kernel
def group_norms(values, offsets, out):
    """Write the Euclidean norm of every group."""
    for g in range(len(out)):
        total = 0.0
        for k in range(offsets[g], offsets[g + 1]):
            total += values[k] * values[k]
        out[g] = np.sqrt(total)


@kernel
def penalty_value(values, offsets, strength, ridge):
    """Return ``sum_g strength_g ||w_g|| + ridge_g ||w_g||^2``."""
    total = 0.0
    for g in range(len(strength)):
        square = 0.0
        for k in range(offsets[g], offsets[g + 1]):
            square += values[k] * values[k]
        total += strength[g] * np.sqrt(square) + ridge[g] * square
    return total


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


@kernel
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


@kernel
def group_violation(values, gradient, offsets, strength, ridge, out):
    """Write how far each group is from stationary: the smallest norm of a subgradient."""
    for g in range(len(strength)):
        first, last = offsets[g], offsets[g + 1]
        square, steep = 0.0, 0.0
        for k in range(first, last):
            square += values[k] * values[k]
            steep += gradient[k] * gradient[k]
        norm = np.sqrt(square)
        if norm == 0.0:
            out[g] = max(0.0, np.sqrt(steep) - strength[g])
            continue
        factor = strength[g] / norm + 2.0 * ridge[g]
        left = 0.0
        for k in range(first, last):
            left += (gradient[k] + factor * values[k]) ** 2
        out[g] = np.sqrt(left)


class Projection(NamedTuple):
    """What the projections of all edges need."""

    states: np.ndarray
    edges: np.ndarray
    node_offset: np.ndarray
    edge_offset: np.ndarray
    pairs: np.ndarray  # softened frequencies, laid out like the edges' parameters
    margins: np.ndarray  # softened frequencies of states
    inverse: np.ndarray  # one square matrix per edge, flat
    inverse_offset: np.ndarray


@kernel
def shift_nodes(p, theta, sign):
    """Add `sign` times the additive parts of all tables to the node vectors, in place."""
    base = p.edge_offset[0]
    for e in range(len(p.edges)):
        i, j = p.edges[e, 0], p.edges[e, 1]
        r, s = p.states[i], p.states[j]
        sums = np.zeros(r + s)
        exact = p.inverse_offset[e] < p.inverse_offset[e + 1]
        k = p.edge_offset[e]
        for a in range(r):
            for b in range(s):
                if exact:
                    share = p.pairs[k - base] * theta[k]
                    sums[a] += share
                    sums[r + b] += share
                else:
                    sums[a] += p.margins[p.node_offset[j] + b] * theta[k]
                    sums[r + b] += p.margins[p.node_offset[i] + a] * theta[k]
                k += 1
        if exact:
            sums = _times_inverse(p, e, sums)
        for a in range(r):
            theta[p.node_offset[i] + a] += sign * sums[a]
        for b in range(s):
            theta[p.node_offset[j] + b] += sign * sums[r + b]


@kernel
def centre_gradient(p, gradient):
    """Apply the transpose of the outward map to a gradient, in place."""
    base = p.edge_offset[0]
    for e in range(len(p.edges)):
        i, j = p.edges[e, 0], p.edges[e, 1]
        r, s = p.states[i], p.states[j]
        ends = np.empty(r + s)
        for a in range(r):
            ends[a] = gradient[p.node_offset[i] + a]
        for b in range(s):
            ends[r + b] = gradient[p.node_offset[j] + b]
        exact = p.inverse_offset[e] < p.inverse_offset[e + 1]
        if exact:
            ends = _times_inverse(p, e, ends)
        k = p.edge_offset[e]
        for a in range(r):
            for b in range(s):
                if exact:
                    gradient[k] -= p.pairs[k - base] * (ends[a] + ends[r + b])
                else:
                    gradient[k] -= (
                        p.margins[p.node_offset[j] + b] * ends[a]
                        + p.margins[p.node_offset[i] + a] * ends[r + b]
                    )
                k += 1


@njit(inline="always")
def _times_inverse(p, e, vector):
    size = len(vector)
    out = np.zeros(size)
    k = p.inverse_offset[e]
    for x in range(size):
        for y in range(size):
            out[x] += p.inverse[k] * vector[y]
            k += 1
    return out
