"""Pair tables as correlations, and dependence of two variables given the others.

Variable ``i`` with observed states of probabilities ``p`` has the weighted Helmert contrasts

    f_k(a) = c for a before k,  -c P / p_k for a = k,  0 after it,
    c^2 = p_k / (P (P + p_k)),  P = sum of p over the states before k,

which have mean 0, variance 1 and no correlation among themselves. The correlations of those of
``i`` with those of ``j`` are a block of a matrix ``R``, whose squared norm is chi-square / N of the
table. ``K = ((1 - r) R + r I)^-1``; the strength of a pair given the others is the Frobenius norm
of its block of ``K``.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.kernels.compiler import kernel


class Contrasts(NamedTuple):
    """The contrasts of all variables, one after another."""

    state_start: np.ndarray  # int64 (n + 1,)
    column_start: np.ndarray  # int64 (n + 1,): one column for each observed state but the first
    basis_start: np.ndarray  # int64 (n + 1,)
    basis: np.ndarray  # float64: tables (states, columns), row by row
    occurs: np.ndarray  # bool: one per state


def fill_contrasts(margins: NDArray[Any], contrasts: Contrasts, pseudocount: float) -> None:
    """Write the contrasts of every variable, ``(s_i, columns)`` row by row.

    States that never occur have rows of zeros. Variables of other numbers of columns are left.
    """
    start, columns = contrasts.state_start, np.diff(contrasts.column_start)
    occurs = contrasts.occurs
    observed = np.add.reduceat(occurs.astype(np.int64), start[:-1]) if len(columns) else columns
    due = (observed > 1) & (columns == observed - 1)
    shapes = np.stack((np.diff(start), observed), axis=1)[due]
    for states, seen in np.unique(shapes, axis=0):
        chosen = np.flatnonzero(due)[(shapes == (states, seen)).all(axis=1)]
        places = start[chosen][:, None] + np.arange(states)
        shown = np.nonzero(occurs[places])[1].reshape(len(chosen), seen)
        counts = np.take_along_axis(margins[places], shown, axis=1)
        total = margins[places].sum(axis=1, keepdims=True)
        p = (counts + pseudocount / seen) / (total + pseudocount)
        before, own = np.cumsum(p, axis=1)[:, :-1], p[:, 1:]
        c = np.sqrt(own / (before * (before + own)))
        upper = np.arange(seen)[:, None] <= np.arange(seen - 1)
        values = np.where(upper, c[:, None], 0.0)
        at = np.arange(seen - 1)
        values[:, at + 1, at] = -c * before / own
        tables = np.zeros((len(chosen), states, seen - 1))
        np.put_along_axis(tables, shown[:, :, None], values, axis=1)
        to = contrasts.basis_start[chosen][:, None] + np.arange(states * (seen - 1))
        contrasts.basis[to] = tables.reshape(len(chosen), -1)


@kernel
def correlate(values, offsets, edges, contrasts, pseudocount, out, out_start):
    """Write the correlation block of each pair table, row by row, at its place in `out`.

    `pseudocount` rows are added to a table, spread evenly over the cells of states that occur.
    """
    state_start, column_start, basis_start, basis, occurs = contrasts
    for e in range(edges.shape[0]):
        i, j = edges[e, 0], edges[e, 1]
        rows = state_start[i + 1] - state_start[i]
        columns = state_start[j + 1] - state_start[j]
        high = column_start[i + 1] - column_start[i]
        wide = column_start[j + 1] - column_start[j]
        own_i = basis[basis_start[i] : basis_start[i + 1]].reshape(rows, high)
        own_j = basis[basis_start[j] : basis_start[j + 1]].reshape(columns, wide)
        block = out[out_start[e] : out_start[e] + high * wide].reshape(high, wide)
        if high == 0 or wide == 0:
            continue
        shown_i = occurs[state_start[i] : state_start[i + 1]].sum()
        added = pseudocount / (shown_i * occurs[state_start[j] : state_start[j + 1]].sum())
        total = pseudocount
        mean_i = np.zeros(high)
        mean_j = np.zeros(wide)
        along = np.empty(wide)
        block[:] = 0.0
        for a in range(rows):
            if not occurs[state_start[i] + a]:
                continue
            along[:] = 0.0
            of_row = 0.0
            for b in range(columns):
                if occurs[state_start[j] + b]:
                    count = values[offsets[e] + a * columns + b]
                    total += count
                    count += added
                    of_row += count
                    for y in range(wide):
                        along[y] += count * own_j[b, y]
            for y in range(wide):
                mean_j[y] += along[y]
            for x in range(high):
                mean_i[x] += of_row * own_i[a, x]
                for y in range(wide):
                    block[x, y] += own_i[a, x] * along[y]
        if total == 0.0:  # no row in which both are known, and nothing added
            continue
        # With missing cells the margins of a table are its own, not those of the variables.
        for x in range(high):
            for y in range(wide):
                block[x, y] = block[x, y] / total - mean_i[x] * mean_j[y] / (total * total)


Array = NDArray[Any]


def place_blocks(
    blocks: Array, block_start: Array, edges: Array, column_start: Array, out: Array
) -> None:
    """Write the blocks of pairs into both halves of a symmetric matrix."""
    (top, left), widths = column_start[edges.T], np.diff(column_start)
    wide = widths[edges[:, 1]]
    size = widths[edges[:, 0]] * wide
    cell = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size)
    x, y = np.divmod(cell, np.repeat(wide, size))
    x += np.repeat(top, size)
    y += np.repeat(left, size)
    out[x, y] = out[y, x] = blocks[np.repeat(block_start, size) + cell]


def lower_block_norms(matrix: Array, column_start: Array, out: Array) -> None:
    """Write the norm of every pair's block, ``i < j`` in order, read from the lower triangle."""
    n, out[:] = len(column_start) - 1, 0.0
    wide = np.flatnonzero(np.diff(column_start))
    for k, j in enumerate(wide.tolist()):
        rows = matrix[column_start[j] : column_start[j + 1], : column_start[j]]
        i = wide[:k]
        squares = np.add.reduceat(np.square(rows).sum(axis=0), column_start[i]) if k else 0.0
        out[i * (2 * n - i - 1) // 2 + j - i - 1] = np.sqrt(squares)


@kernel
def local_strengths(
    nodes, partners, between, blocks, block_start, column_start, shrinkage, out, scale
):
    """Write, for each of `nodes`, the strength of its pairs with its partners, given all of them.

    `scale` gets the mean of the inverse's diagonal over the node's own columns.
    ``between[v, x, y]`` is the index of the block of members ``x < y`` of the neighbourhood
    ``(v, partners[v])`` (or minus that less one where the block is stored transposed).
    """
    k = partners.shape[1]
    first = np.zeros(k + 2, np.int64)
    for v in range(nodes.shape[0]):
        for x in range(k + 1):
            member = nodes[v] if x == 0 else partners[v, x - 1]
            width = column_start[member + 1] - column_start[member] if member >= 0 else 0
            first[x + 1] = first[x] + width
        size = first[k + 1]
        own = first[1]
        matrix = np.eye(size)
        _gather(matrix, first, between[v], blocks, block_start)
        inverse = _own_rows(matrix, own, shrinkage)
        scale[v] = 0.0
        for a in range(own):
            scale[v] += inverse[a, a] / own
        for x in range(1, k + 1):
            total = 0.0
            for a in range(own):
                for b in range(first[x], first[x + 1]):
                    total += inverse[a, b] * inverse[a, b]
            out[v, x - 1] = np.sqrt(total)


@kernel
def _gather(matrix, first, between, blocks, block_start):
    """Fill in the correlations of a neighbourhood."""
    for x in range(first.shape[0] - 1):
        high = first[x + 1] - first[x]
        for y in range(x + 1, first.shape[0] - 1):
            wide = first[y + 1] - first[y]
            if high * wide == 0:
                continue
            index = between[x, y]
            flipped = index < 0
            start = block_start[-1 - index if flipped else index]
            for a in range(high):
                for b in range(wide):
                    value = blocks[start + (b * high + a if flipped else a * wide + b)]
                    matrix[first[x] + a, first[y] + b] = value
                    matrix[first[y] + b, first[x] + a] = value


@kernel
def _own_rows(matrix, own, mix):
    """Return the first `own` rows of ``((1 - mix) matrix + mix I)^-1``, shrunk until definite."""
    size = matrix.shape[0]
    factor = np.empty((size, size))
    while True:
        if _cholesky(matrix, mix, factor):
            break
        # Correlations over the rows known to each pair need not fit together.
        mix += 0.25 * (1.0 - mix) + 1e-9
    rows = np.zeros((own, size))
    for a in range(own):
        for x in range(size):
            value = 1.0 if x == a else 0.0
            for y in range(a, x):
                value -= factor[x, y] * rows[a, y]
            rows[a, x] = value / factor[x, x] if x >= a else 0.0
        for x in range(size - 1, -1, -1):
            value = rows[a, x]
            for y in range(x + 1, size):
                value -= factor[y, x] * rows[a, y]
            rows[a, x] = value / factor[x, x]
    return rows


@kernel
def _cholesky(matrix, mix, factor):
    size = matrix.shape[0]
    for x in range(size):
        for y in range(x + 1):
            value = 1.0 if x == y else (1.0 - mix) * matrix[x, y]
            for z in range(y):
                value -= factor[x, z] * factor[y, z]
            if x == y:
                if value <= 1e-10:
                    return False
                factor[x, x] = np.sqrt(value)
            else:
                factor[x, y] = value / factor[y, y]
    return True
