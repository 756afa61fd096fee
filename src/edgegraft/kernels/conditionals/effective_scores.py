"""Residuals, information and projected scores of one variable's conditional, row by row.

The conditional of a variable is a softmax regression on the states of its neighbours, written
with reference states: ``q`` logits, and design columns that are an intercept (column 0) and, for
each neighbour, one indicator a state but for its reference. The parameter of column ``c`` and
logit ``a`` is number ``c * q + a``. A row has at most one column a neighbour: nothing is ever
multiplied by the zeros of the design.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from edgegraft.kernels.compiler import kernel
from edgegraft.kernels.conditionals.lanes import LANES, sum_rows

_AT_A_TIME = 256  # rows whose sums stay in cache


class Design(NamedTuple):
    """How the rows of a table become the design of one variable's conditional."""

    target: int
    own: np.ndarray  # int64 (s + 1,) logit of a state of the variable, -1 for its reference
    sources: np.ndarray  # int64 (d,) the neighbours
    column: np.ndarray  # int64 (d, widest + 1) column of a neighbour's state, -1 for none


@kernel
def find_residuals(codes, weights, design, coefficients, first, out, p):
    """Write what rows show minus what is expected, and the expectations, for all logits.

    As many rows as `out` has, from `first` on; those without weight are left alone. `coefficients`
    has one row per design column.
    """
    q = coefficients.shape[1]
    for r in range(out.shape[0]):
        row = first + r
        if weights[row] == 0:
            continue
        for a in range(q):
            p[r, a] = coefficients[0, a]
        for k in range(design.sources.shape[0]):
            c = design.column[k, codes[design.sources[k], row]]
            if c >= 0:
                for a in range(q):
                    p[r, a] += coefficients[c, a]
        top = 0.0  # the reference's logit
        for a in range(q):
            top = max(top, p[r, a])
        total = np.exp(-top)
        for a in range(q):
            p[r, a] = np.exp(p[r, a] - top)
            total += p[r, a]
        for a in range(q):
            p[r, a] /= total
            out[r, a] = -p[r, a]
        shown = design.own[codes[design.target, row]]
        if shown >= 0:
            out[r, shown] += 1.0


def add_information(
    codes: NDArray[Any],
    weights: NDArray[Any],
    design: Design,
    p: NDArray[Any],
    out: NDArray[Any],
    first_source: int,
) -> None:
    """Add the expected information of the rows to the upper triangle of `out`.

    ``out[c, e]``, ``c <= e``, holds the packed upper triangle over pairs of logits. Only columns
    ``e`` of sources from `first_source` on are filled, where 0 is the intercept.
    """
    block = 1024  # rows whose curvatures stay in cache
    curvature = np.empty((block, out.shape[2]))
    at = np.zeros((len(design.sources) + 1, block), np.int64)
    _add_information(codes, weights, design, p, out, first_source, curvature, at)


@kernel
def _add_information(codes, weights, design, p, out, first_source, curvature, at):
    d, block = design.sources.shape[0], curvature.shape[0]
    for first in range(0, codes.shape[1], block):
        n = codes.shape[1] - first
        if n > block:
            n = block
        _find_curvatures(weights, p, first, n, curvature)
        for k in range(d):
            for r in range(n):
                at[k + 1, r] = design.column[k, codes[design.sources[k], first + r]]
        for k in range(d + 1):
            for m in range(k if k > first_source else first_source, d + 1):
                for r in range(n):
                    c, e = at[k, r], at[m, r]
                    if c >= 0 and e >= 0:
                        for t in range(curvature.shape[1]):
                            out[c, e, t] += curvature[r, t]


@njit(inline="always")
def _find_curvatures(weights, p, first, n, out):
    q = p.shape[1]
    for r in range(n):
        w = weights[first + r]
        if w == 0:
            out[r] = 0.0
            continue
        t = 0
        for a in range(q):
            out[r, t] = w * p[first + r, a] * (1.0 - p[first + r, a])
            t += 1
            for b in range(a + 1, q):
                out[r, t] = -w * p[first + r, a] * p[first + r, b]
                t += 1


def unpack_information(packed: NDArray[Any]) -> NDArray[Any]:
    """Return packed information as a symmetric matrix over all parameters."""
    n_columns, q = len(packed), (math.isqrt(8 * packed.shape[2] + 1) - 1) // 2
    whole = packed[:, :, logit_pairs(q)]
    low, high = np.tril_indices(n_columns, -1)
    whole[low, high] = whole[high, low]
    return whole.transpose(0, 2, 1, 3).reshape(n_columns * q, n_columns * q)


def logit_pairs(q: int) -> NDArray[Any]:
    """Return where a pair of logits is in a packed upper triangle."""
    place = np.zeros((q, q), np.int64)
    place[np.triu_indices(q)] = np.arange(q * (q + 1) // 2)
    return np.asarray(place + np.triu(place, 1).T)


def lay_out(projection: NDArray[Any]) -> NDArray[Any]:
    """Return a projection of shape (columns, q, size) as `project_rows` reads it.

    In tiles of the ``q * size`` numbers, with a last row of zeros for states without a column.
    """
    n_columns, q, size = projection.shape
    tables = np.zeros((n_columns + 1, -(-q * size // LANES) * LANES))
    tables[:-1, : q * size] = projection.reshape(n_columns, q * size)
    return np.ascontiguousarray(tables.reshape(n_columns + 1, -1, LANES).transpose(1, 0, 2))


def project_rows(
    codes: NDArray[Any],
    weights: NDArray[Any],
    design: Design,
    residuals: NDArray[Any],
    tables: NDArray[Any],
    first: int,
    out: NDArray[Any],
) -> None:
    """Write the projected scores of the rows from `first` on, as many as `out` has.

    `residuals` are those of these rows.
    """
    given = codes, weights, design, residuals, tables, first, out
    if residuals.shape[1] == 1 and out.shape[1] == 1:
        _project_binary(*given)  # only what is used is compiled
        return
    block = min(_AT_A_TIME, len(out))
    at = np.zeros((len(design.sources) + 1, block), np.int32)  # the intercept first
    _project_tiles(*given, at, np.empty((block, len(tables) * LANES)))


@kernel
def _project_tiles(codes, weights, design, residuals, tables, first, out, at, sums):
    """Sum a row's columns in vector registers, then multiply by its residuals.

    A tile at a time, so that the tables of a tile stay in cache.
    """
    n_tiles, block = tables.shape[0], at.shape[1]
    for begin in range(0, out.shape[0], block):
        n = out.shape[0] - begin
        if n > block:
            n = block
        for k in range(design.sources.shape[0]):
            column = codes[design.sources[k]]
            for r in range(n):
                c = design.column[k, column[first + begin + r]]
                at[k + 1, r] = (c if c >= 0 else tables.shape[1] - 1) * LANES
        for tile in range(n_tiles):
            table = tables[tile]
            for r in range(n):
                sum_rows(table, at, len(at), r, sums, (r * n_tiles + tile) * LANES, LANES)
        _multiply_out(sums, residuals, weights, first, begin, n, out)


@njit(inline="always")
def _multiply_out(sums, residuals, weights, first, begin, n, out):
    q, size = residuals.shape[1], out.shape[1]
    for r in range(n):
        target = out[begin + r]
        target[:] = 0.0
        if weights[first + begin + r] == 0:
            continue
        for a in range(q):
            x = residuals[begin + r, a]
            for t in range(size):
                target[t] += x * sums[r, a * size + t]


@kernel
def _project_binary(codes, weights, design, residuals, tables, first, out):
    """Do the same for two binary ends: column by column, since a row's work is a few additions."""
    n = out.shape[0]
    out[:, 0] = tables[0, 0, 0]
    slope = np.zeros(design.column.shape[1])
    for k in range(design.sources.shape[0]):
        for state in range(len(slope)):
            c = design.column[k, state]
            slope[state] = tables[0, c, 0] if c >= 0 else 0.0
        column = codes[design.sources[k]]
        for r in range(n):
            out[r, 0] += slope[column[first + r]]
    for r in range(n):
        out[r, 0] = out[r, 0] * residuals[r, 0] if weights[first + r] > 0 else 0.0
