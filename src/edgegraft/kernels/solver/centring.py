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

from edgegraft.kernels.compiler import kernel

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


@kernel
def prepare(p):
    """Fill the inverse matrices of a `Projection` whose other fields are set."""
    base = p.edge_offset[0]
    for e in range(len(p.edges)):
        if p.inverse_offset[e] == p.inverse_offset[e + 1]:
            continue
        r, s = p.states[p.edges[e, 0]], p.states[p.edges[e, 1]]
        table = p.pairs[p.edge_offset[e] - base : p.edge_offset[e + 1] - base].reshape((r, s))
        matrix = np.zeros((r + s, r + s))
        for a in range(r):
            for b in range(s):
                matrix[a, a] += table[a, b]
                matrix[r + b, r + b] += table[a, b]
                matrix[a, r + b] = matrix[r + b, a] = table[a, b]
        # A constant may move from f to g: pin it, which leaves f + g as it is.
        for k in range(r + s):
            for m in range(r + s):
                matrix[k, m] += 1.0 if (k < r) == (m < r) else -1.0
        p.inverse[p.inverse_offset[e] : p.inverse_offset[e + 1]] = np.linalg.inv(matrix).ravel()


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
            sums = _inverse_of(p, e, r + s) @ sums
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
        ends[:r] = gradient[p.node_offset[i] : p.node_offset[i] + r]
        ends[r:] = gradient[p.node_offset[j] : p.node_offset[j] + s]
        exact = p.inverse_offset[e] < p.inverse_offset[e + 1]
        if exact:
            ends = _inverse_of(p, e, r + s) @ ends
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
        exact = p.inverse_offset[e] < p.inverse_offset[e + 1]
        k = p.edge_offset[e]
        for a in range(r):
            for b in range(s):
                if exact:
                    inverse = _inverse_of(p, e, r + s)
                    lever = inverse[a, a] + inverse[r + b, r + b] + 2.0 * inverse[a, r + b]
                    left = 1.0 - p.pairs[k - base] * lever
                else:
                    left = 1.0 - p.margins[p.node_offset[i] + a]
                    left *= 1.0 - p.margins[p.node_offset[j] + b]
                diagonal[k] *= min(1.0, max(least, left))
                k += 1


@kernel
def _inverse_of(p, e, size):
    return p.inverse[p.inverse_offset[e] : p.inverse_offset[e + 1]].reshape((size, size))
