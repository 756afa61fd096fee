"""The zero-sum gauge of edge tables, and their strengths in it.

    w'(a, b) = w(a, b) - mean_b w(a, .) - mean_a w(., b) + mean w

What is taken from a table goes to its two node vectors, so the distribution stays the same.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
