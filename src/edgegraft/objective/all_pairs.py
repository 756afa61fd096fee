"""Gradients of all pairs at one point, from one matrix product.

A pass over a few pairs reads only their columns. If most pairs of a table are tested at the same
parameters, as at the end of a search, the products of all one-hot columns with all residuals cost
less: one multiply-add per row and pair of states, at the speed of a matrix product.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from edgegraft.core.threads import one_blas_thread, run_in_order
from edgegraft.core.types import Edges, Floats, Integers
from edgegraft.kernels.compiler import for_size
from edgegraft.kernels.conditionals.directed import Places, gather_tables
from edgegraft.kernels.conditionals.pseudolikelihood import Columns, Kept

MAX_CELLS = 1 << 24  # of the matrix of products: 128 MiB
_ROWS = 4096  # per product; products are added in double precision
_MULTIPLY, _WRITE = 0.03, 0.6  # nanoseconds per row: a multiply-add in single precision, a cell


def price(columns: Columns) -> float:
    """Return the estimated nanoseconds per row of all products; infinity if they are too many.

    In the measure of :func:`~edgegraft.objective.bundles.estimate`.
    """
    n_columns = float((columns.states - 1).sum())
    if n_columns**2 > MAX_CELLS:
        return float("inf")
    double = columns.weights.dtype.itemsize / 4
    return double * (_MULTIPLY * n_columns**2 + _WRITE * n_columns)


class AllPairs:
    """Sums of the residuals of every variable over the states of every other.

    `kept` has the residuals of the targets, those of as many alternatives together.
    """

    def __init__(self, columns: Columns, kept: list[tuple[Integers, Kept]], n_jobs: int) -> None:
        states = columns.states
        gaps = columns.radix > states
        sizes = states - 1 + gaps
        target = np.empty(len(states), np.int64)
        first = 0
        for targets, _ in kept:
            used = _used(states, targets)
            target[targets] = first + used * np.arange(len(targets))
            first += used * len(targets)
        self._places = Places(states, np.cumsum(sizes) - sizes, gaps, target)
        self._sums = np.zeros((int(sizes.sum()) + 1, first))
        owner = np.repeat(np.arange(len(states)), sizes)
        state = np.arange(len(owner)) - np.repeat(self._places.source, sizes) + 1
        state[state == states[owner]] = 0  # the row of a variable with missing cells
        sources = owner, state.astype(columns.codes.dtype)
        starts = range(0, columns.codes.shape[1], _ROWS)
        with one_blas_thread():  # the threads are ours
            for part in run_in_order(partial(_product, columns, kept, sources), starts, n_jobs):
                self._sums += part

    def tables(self, edges: Edges, offsets: Integers, scale: float) -> Floats:
        """Return `scale` times the sums of both ends of each pair, table after table."""
        out = np.empty(int(offsets[-1]))
        gather = for_size(gather_tables, len(out), 1000)
        gather(self._sums, self._places, edges, offsets, scale, out)
        return out


def _product(
    columns: Columns,
    kept: list[tuple[Integers, Kept]],
    sources: tuple[Integers, Integers],
    first: int,
) -> Floats:
    """Return the products of a block of rows."""
    owner, state = sources
    n_rows = columns.codes.shape[1]
    rows = slice(first, min(first + _ROWS, n_rows))
    codes = columns.codes[:, rows]
    shown = np.ones((len(owner) + 1, codes.shape[1]), columns.weights.dtype)
    np.equal(codes[owner], state[:, None], out=shown[:-1], casting="unsafe")
    residuals = []
    for targets, (values, _, _) in kept:
        used = _used(columns.states, targets)
        wide = values.reshape(len(targets), n_rows, -1)[:, rows, :used]
        residuals.append(wide.transpose(0, 2, 1).reshape(-1, codes.shape[1]))
    return np.asarray(shown @ np.concatenate(residuals).T)


def _used(states: Integers, targets: Integers) -> int:
    """Return the most alternatives that one of the targets has."""
    return max(1, int(states[targets].max()) - 1)
