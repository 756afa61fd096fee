"""Edge tables without the part that node vectors can hold, and back.

For each edge the additive part ``f(x_i) + g(x_j)`` of a table ``w`` is its projection in
``L2(p_ij)``, the solution of

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
from edgegraft.kernels.solver.gauge import by_shape

#: Edges with more states than this, both ends together, are treated as independent.
WIDEST = 48
#: Share of the uniform table mixed in, so that states never seen have an inverse.
SOFTENING = 1e-6


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


def prepare(p: Projection) -> None:
    """Fill the inverse matrices of a `Projection` whose other fields are set."""
    exact = np.flatnonzero(np.diff(p.inverse_offset))
    cells_from = p.edge_offset - p.edge_offset[0]
    for which, cells in by_shape(p.states, p.edges, cells_from, exact):
        tables = p.pairs[cells]
        _, r, s = tables.shape
        # A constant may move from f to g: pin it, which leaves f + g as it is.
        side = np.arange(r + s) < r
        matrix = np.where(side == side[:, None], 1.0, -1.0) + np.zeros((len(which), 1, 1))
        matrix[:, :r, r:] += tables
        matrix[:, r:, :r] += tables.transpose(0, 2, 1)
        diagonal = np.concatenate((tables.sum(axis=2), tables.sum(axis=1)), axis=1)
        matrix[:, np.arange(r + s), np.arange(r + s)] += diagonal
        at = p.inverse_offset[which, None, None] + np.arange((r + s) ** 2).reshape(r + s, r + s)
        p.inverse[at] = np.linalg.inv(matrix)


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


@kernel
def centre_curvature(p, diagonal, least):
    """Scale the diagonal of each entry by the share of its indicator that no node explains."""
    base = p.edge_offset[0]
    for e in range(len(p.edges)):
        i, j = p.edges[e, 0], p.edges[e, 1]
        r, s = p.states[i], p.states[j]
        first = p.inverse_offset[e]
        exact = first < p.inverse_offset[e + 1]
        k = p.edge_offset[e]
        for a in range(r):
            for b in range(s):
                if exact:
                    row, other = first + a * (r + s), first + (r + b) * (r + s)
                    lever = p.inverse[row + a] + p.inverse[other + r + b]
                    lever += 2.0 * p.inverse[row + r + b]
                    left = 1.0 - p.pairs[k - base] * lever
                else:
                    left = 1.0 - p.margins[p.node_offset[i] + a]
                    left *= 1.0 - p.margins[p.node_offset[j] + b]
                diagonal[k] *= min(1.0, max(least, left))
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
