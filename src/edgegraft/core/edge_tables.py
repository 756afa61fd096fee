"""Edge tables, those of one shape together: gauges, strengths, and tables fitted to margins.

*The zero-sum gauge*, and the strengths of edges in it:

    w'(a, b) = w(a, b) - mean_b w(a, .) - mean_a w(., b) + mean w

What is taken from a table goes to its two node vectors, so the distribution stays the same.

*Raking*, or iterative proportional fitting: rows and columns are scaled in turn until both margins
hold; zeros and odds ratios, which are what a pair table knows and its margins do not, stay as they
are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgegraft.core.types import Floats, Integers, Mask

_MAX_SWEEPS = 2000  # counts have a solution, and reach it sooner; noisy tables may have none
_CLOSE = 1e-13


def by_shape(
    states: Integers, edges: Integers, edge_offset: Integers, chosen: Integers | None = None
) -> Iterator[tuple[Integers, Integers]]:
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
    theta: Floats, states: Integers, edges: Integers, node_offset: Integers, edge_offset: Integers
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
    theta: Floats,
    states: Integers,
    edges: Integers,
    node_offset: Integers,
    edge_offset: Integers,
    counted: Mask,
    out: Floats,
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


def pair_frequencies(
    counts: Floats, edges: Integers, offsets: Integers, node_offset: Integers, margins: Floats
) -> Floats:
    """Return the frequencies of every pair table, with the margins of its two variables.

    `margins` are the frequencies of the states of every variable. A table that has these margins
    is only divided by its total. One that does not (some cells are missing) is raked; it first
    gets the weight of one row spread by independence, so that a state which is never seen
    together with the other variable can be raked at all.
    """
    out = np.empty(len(counts))
    for which, cells in by_shape(np.diff(node_offset), edges, offsets):
        rows, columns = _ends(margins, node_offset, edges[which], cells.shape)
        seen, product = counts[cells], rows[:, :, None] * columns[:, None, :]
        total = seen.sum(axis=(1, 2), keepdims=True)
        tables = np.where(total > 0, seen / np.where(total > 0, total, 1.0), product)
        apart = [
            np.abs(tables.sum(axis=axis) - goal).max(axis=1)
            for axis, goal in ((2, rows), (1, columns))
        ]
        off = np.flatnonzero(np.maximum(*apart) > 1e-12)
        raked = (seen[off] + product[off]) / (total[off] + 1.0)
        _rake(raked, rows[off], columns[off])
        tables[off] = raked
        out[cells] = tables
    return out


def fit_margins(
    values: Floats, states: Integers, edges: Integers, node_offset: Integers, edge_offset: Integers
) -> None:
    """Change the edge tables of `values` in place to have its node vectors as margins.

    If noise has left margins that no table with these zeros has, the little that is missing is
    spread as an outer product (Altschuler, Weed & Rigollet 2017, "Near-linear time approximation
    algorithms for optimal transport via Sinkhorn iteration").
    """
    for which, cells in by_shape(states, edges, edge_offset):
        rows, columns = _ends(values, node_offset, edges[which], cells.shape)
        tables = values[cells]
        left = np.flatnonzero(~_rake(tables, rows, columns))
        some, rows, columns = tables[left], rows[left], columns[left]
        _scale(some, rows, 2, 1.0)
        _scale(some, columns, 1, 1.0)
        more_rows, more_columns = rows - some.sum(axis=2), columns - some.sum(axis=1)
        missing = more_rows.sum(axis=1)
        share = np.where(missing > 0.0, 1.0 / np.where(missing > 0.0, missing, 1.0), 0.0)
        spread = np.maximum(more_rows, 0.0)[:, :, None] * np.maximum(more_columns, 0.0)[:, None, :]
        tables[left] = some + spread * share[:, None, None]
        values[cells] = tables


def _ends(
    nodes: Floats, node_offset: Integers, edges: Integers, shape: tuple[int, ...]
) -> tuple[Floats, Floats]:
    """Return the node vectors of both ends of edges whose cells have this shape."""
    first, second = node_offset[edges.T]
    return nodes[first[:, None] + np.arange(shape[1])], nodes[second[:, None] + np.arange(shape[2])]


def _rake(tables: Floats, rows: Floats, columns: Floats) -> Mask:
    """Scale tables in place until both margins hold; return for which of them they do."""
    left = np.arange(len(tables))
    for _ in range(_MAX_SWEEPS):
        if not len(left):
            break
        some = tables[left]
        _scale(some, rows[left], 2, np.inf)
        _scale(some, columns[left], 1, np.inf)
        tables[left] = some
        left = left[np.abs(some.sum(axis=2) - rows[left]).max(axis=1) > _CLOSE]
    return ~np.isin(np.arange(len(tables)), left)


def _scale(tables: Floats, goal: Floats, axis: int, most: float) -> None:
    """Scale sums over an axis to their goals, by a factor of at most `most`."""
    total = tables.sum(axis=axis)
    factor = np.divide(goal, total, out=np.zeros_like(total), where=total > 0.0)
    tables *= np.expand_dims(np.minimum(factor, most), axis)
