"""Blocks of inverse correlation matrices: dependence of two variables given the others.

``K = ((1 - r) R + r I)^-1``; the strength of a pair is the Frobenius norm of its block of ``K``.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.kernels.compiler import kernel

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
