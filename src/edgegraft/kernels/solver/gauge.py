"""Edge tables and what node vectors can hold of them.

*The zero-sum gauge*, and the strengths of edges in it:

    w'(a, b) = w(a, b) - mean_b w(a, .) - mean_a w(., b) + mean w

What is taken from a table goes to its two node vectors, so the distribution stays the same.

*The gauge of the data.* For each edge the additive part ``f(x_i) + g(x_j)`` of a table ``w`` is its
projection in ``L2(p_ij)``, the solution of

    [diag(p_i)  P      ] [f]   [sum_b p_ij(a, b) w(a, b)]
    [P'         diag(p_j)] [g] = [sum_a p_ij(a, b) w(a, b)]

The inverse of the matrix is kept per edge: an edge costs one pass over its table and one small
product. Tables of many states are projected as if the two variables were independent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from edgegraft.kernels.compiler import kernel

Array = NDArray[Any]


def by_shape(
    states: Array, edges: Array, edge_offset: Array, chosen: Array | None = None
) -> Iterator[tuple[Array, Array]]:
    """Yield the (chosen) edges of each shape of table, and where in a vector their cells lie.

    The second of the two is an array of shape (edges, rows, columns).
    """
    chosen = np.arange(len(edges)) if chosen is None else chosen
    ends = states[edges[chosen]]
    shapes, shape = np.unique(ends @ [1 << 32, 1], return_inverse=True)
    for k, code in enumerate(shapes.tolist()):
        rows, columns = divmod(code, 1 << 32)
        which = chosen[shape == k]
        cells = np.arange(rows * columns).reshape(rows, columns)
        yield which, edge_offset[which, None, None] + cells


def to_zero_sum(
    theta: Array, states: Array, edges: Array, node_offset: Array, edge_offset: Array
) -> float:
    """Change `theta` in place so that every row and column of every edge table sums to zero.

    Returns the constant that the change took out of the log-potentials. Tables with an entry
    of minus infinity have no such gauge and stay as they are.
    """
    constant = 0.0
    for which, cells in by_shape(states, edges, edge_offset):
        finite = np.isfinite(theta[cells]).all(axis=(1, 2))
        tables, cells = theta[cells[finite]], cells[finite]
        first, second = node_offset[edges[which[finite]].T]
        grand = tables.mean(axis=(1, 2))
        by_row = tables.mean(axis=2) - grand[:, None]
        by_column = tables.mean(axis=1) - grand[:, None]
        np.add.at(theta, first[:, None] + np.arange(tables.shape[1]), by_row)
        np.add.at(theta, second[:, None] + np.arange(tables.shape[2]), by_column)
        shared = grand[:, None, None] + by_row[:, :, None] + by_column[:, None, :]
        theta[cells] = tables - shared
        constant += grand.sum()
    nodes = theta[: node_offset[-1]]
    mean = np.add.reduceat(nodes, node_offset[:-1]) / states
    mean[~np.isfinite(mean)] = 0.0
    nodes -= np.repeat(mean, states)
    return float(constant + mean.sum())


def strengths(
    theta: Array,
    states: Array,
    edges: Array,
    node_offset: Array,
    edge_offset: Array,
    counted: Array,
    out: Array,
) -> None:
    """Write the Frobenius norm of each edge table in the zero-sum gauge to `out`.

    `counted` holds for every state of every variable, laid out by `node_offset`, whether its rows
    and columns are part of the norm; the gauge is that of the whole table. A table with an entry
    of minus infinity has infinite strength.
    """
    for which, cells in by_shape(states, edges, edge_offset):
        tables = theta[cells]
        finite = np.isfinite(tables).all(axis=(1, 2))
        tables[~finite] = 0.0
        centred = tables - tables.mean(axis=2, keepdims=True) - tables.mean(axis=1, keepdims=True)
        centred += tables.mean(axis=(1, 2), keepdims=True)
        first, second = node_offset[edges[which].T]
        rows = counted[first[:, None] + np.arange(tables.shape[1])]
        columns = counted[second[:, None] + np.arange(tables.shape[2])]
        centred *= rows[:, :, None] & columns[:, None, :]
        out[which] = np.where(finite, np.sqrt(np.square(centred).sum(axis=(1, 2))), np.inf)


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


def centre_curvature(p: Projection, diagonal: Array, least: float) -> None:
    """Scale the diagonal of each entry by the share of its indicator that no node explains."""
    for which, cells in by_shape(p.states, p.edges, p.edge_offset):
        _, r, s = cells.shape
        if p.inverse_offset[which[0]] < p.inverse_offset[which[0] + 1]:
            at = p.inverse_offset[which, None, None] + np.arange((r + s) ** 2).reshape(r + s, r + s)
            inverse = p.inverse[at]
            own = np.diagonal(inverse, axis1=1, axis2=2)
            lever = own[:, :r, None] + own[:, None, r:] + 2.0 * inverse[:, :r, r:]
            left = 1.0 - p.pairs[cells - p.edge_offset[0]] * lever
        else:
            first, second = p.node_offset[p.edges[which].T]
            left = 1.0 - p.margins[first[:, None] + np.arange(r)][:, :, None]
            left = left * (1.0 - p.margins[second[:, None] + np.arange(s)][:, None, :])
        diagonal[cells] *= np.clip(left, least, 1.0)


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
