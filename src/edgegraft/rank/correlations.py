"""Pair tables as correlation blocks of white contrasts.

Variable ``i`` with observed states of probabilities ``p`` has the weighted Helmert contrasts

    f_k(a) = c for a before k,  -c P / p_k for a = k,  0 after it,
    c^2 = p_k / (P (P + p_k)),  P = sum of p over the states before k,

which have mean 0, variance 1 and no correlation among themselves, so the one-hot covariance becomes
a correlation matrix with identity blocks on its diagonal; the squared norm of a block is
chi-square / N of the table. Norms of blocks, and of the blocks of the inverse, do not depend on
which state a one-hot code leaves out, and rare states have no more weight than they deserve: in a
plain one-hot inverse their entries grow like 1/p and drown the others. An ordered variable has one
contrast, its linear score: pairs of ordered variables are then ranked with the power of one
parameter.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.pairs import stretches
from edgegraft.core.threads import one_blas_thread
from edgegraft.core.types import Edges, Floats, Mask
from edgegraft.counts import PairCounts
from edgegraft.counts.pair_counts import all_pair_blocks
from edgegraft.kernels.search import Contrasts, correlate
from edgegraft.table.blocks import TableRows, add_in_order
from edgegraft.table.numbers import scores_of

PSEUDOCOUNT = 5.0  # rows added to each table, spread over its cells
_CHUNK = 1 << 22  # contrasts of rows held at a time
_BLOCK_BYTES = 1 << 25


class Blocks(NamedTuple):
    """Correlation blocks of pairs: that of pair ``k`` is ``values[start[k] :][: size[k]]``."""

    values: Floats
    start: NDArray[np.int64]
    size: NDArray[np.int64]


class Correlations:
    """Correlation blocks of any pairs of a source.

    `pseudocount` rows are added to each table, spread evenly over the cells of the states that
    occur. States that never occur have no contrast.
    """

    def __init__(self, source: PairCounts, pseudocount: float = PSEUDOCOUNT) -> None:
        if not pseudocount >= 0.0:
            raise ValueError(f"a pseudocount must not be negative, found {pseudocount}")
        margins = source.margins()
        self.source = source
        self.pseudocount = float(pseudocount)
        counts = np.array(margins.values, np.float64)
        known = np.add.reduceat(counts, margins.offsets[:-1])
        self.n_rows = float(known.max())
        self.known = known / max(self.n_rows, 1.0)
        self._scored = source.schema.widths < source.schema.n_states
        self._contrasts = _contrasts(counts, np.array(margins.offsets, np.int64), self._scored)
        self.column_start = self._contrasts.column_start  # of each variable, and their number
        _fill_contrasts(counts, self._contrasts, self.pseudocount)
        for i in np.flatnonzero(self._scored):
            self._fill_scores(int(i), counts)

    def _fill_scores(self, i: int, counts: Floats) -> None:
        """Write the linear score of an ordered variable as its only contrast."""
        state_start, _, basis_start, basis, occurs = self._contrasts
        states = slice(state_start[i], state_start[i + 1])
        own = counts[states]
        own = own + self.pseudocount / max(1, int(occurs[states].sum())) * (own > 0)
        if (own > 0).sum() > 1:
            seen = own > 0
            flat = np.zeros(len(own))
            flat[seen] = scores_of(own[seen], 1, self.source.schema[i].kind)[:, 0]
            basis[basis_start[i] : basis_start[i + 1]] = flat

    def matrix(self) -> Floats:
        """Return all blocks as one matrix, from products over the rows if most columns are scored.

        Tables of many levels take longer to count than their scores to multiply.
        """
        if 2 * self._scored.sum() > len(self._scored):
            return self._matrix_of_rows()
        starts = self.column_start
        matrix, widths = np.eye(int(starts[-1])), np.diff(starts)
        for edges in all_pair_blocks(self.source.schema.n_states, _BLOCK_BYTES):
            blocks = self.of(edges)
            (top, left), size = starts[edges.T], blocks.size
            cell = stretches(np.zeros_like(size), size)
            x, y = np.divmod(cell, np.repeat(widths[edges[:, 1]], size))
            x += np.repeat(top, size)
            y += np.repeat(left, size)
            matrix[x, y] = matrix[y, x] = blocks.values
        return matrix

    def _matrix_of_rows(self) -> Floats:
        starts, columns = self._contrasts.column_start, np.diff(self._contrasts.column_start)
        n, owner = len(columns), np.repeat(np.arange(len(columns)), np.diff(starts))
        work = partial(_products, contrasts=self._contrasts)
        sums = add_in_order(self.source.rows.map(work))
        both, known = sums[: len(owner), : len(owner)], sums[len(owner) :, len(owner) :]
        state_start, occurs = self._contrasts.state_start, self._contrasts.occurs
        observed = np.add.reduceat(occurs.astype(np.float64), state_start[:-1])
        added = self.pseudocount / np.outer(observed, observed)[np.ix_(owner, owner)]
        shown = np.split(occurs, state_start[1:-1])
        whole = np.concatenate(
            [_matrix_of(self._contrasts, i)[shown[i]].sum(axis=0) for i in range(n)]
        )
        total = (known + self.pseudocount)[np.ix_(owner, owner)]
        spread = added * observed[owner] * whole[:, None]
        means = (sums[: len(owner), len(owner) :][:, owner] + spread) / total
        matrix = (both + added * np.outer(whole, whole)) / total - means * means.T
        matrix[owner[:, None] == owner] = 0.0
        matrix[np.diag_indices_from(matrix)] = 1.0
        return np.asarray(matrix)

    def of(self, edges: Edges) -> Blocks:
        """Return the blocks of a batch of pairs."""
        tables = self.source.pairs(edges)
        columns = np.diff(self.column_start)
        size = columns[tables.edges[:, 0]] * columns[tables.edges[:, 1]]
        start = np.cumsum(size) - size
        values = np.zeros(int(size.sum()))
        correlate(
            tables.values,
            tables.offsets,
            tables.edges,
            self._contrasts,
            self.pseudocount,
            values,
            start,
        )
        return Blocks(values, start, size)

    def dependence(self, edges: Edges) -> Floats:
        """Return chi-square / N of each pair, less its expectation under independence."""
        blocks = self.of(edges)
        owner = np.repeat(np.arange(len(blocks.size)), blocks.size)
        squares = np.bincount(owner, blocks.values**2, len(blocks.size))
        return np.asarray(squares - blocks.size / self.n_rows)


def _matrix_of(contrasts: Contrasts, i: int) -> Floats:
    flat = contrasts.basis[contrasts.basis_start[i] : contrasts.basis_start[i + 1]]
    n_states, n_columns = (int(x[i + 1] - x[i]) for x in contrasts[:2])
    return flat.reshape(n_states, n_columns)


def _products(block: TableRows, contrasts: Contrasts) -> Floats:
    """Return the products of all contrasts and of "known" over the rows of a block."""
    n = len(contrasts.state_start) - 1
    size = int(contrasts.column_start[-1]) + n
    out = np.zeros((size, size))
    table, at_once = block.table, max(256, _CHUNK // size)
    bases = [
        np.vstack((_matrix_of(contrasts, i), np.zeros((1, np.diff(contrasts.column_start)[i]))))
        for i in range(n)
    ]
    with one_blas_thread():
        for first in range(0, table.n_rows, at_once):
            codes = table.cells[:, first : min(first + at_once, table.n_rows)]
            shown = np.concatenate([bases[i][codes[i]] for i in range(n)], axis=1)
            known = (codes < table.schema.n_states[:, None]).T
            rows = np.concatenate((shown, known), axis=1, dtype=np.float64)
            weights = block.weights
            weighted = rows if weights is None else rows * weights[first : first + at_once, None]
            out += rows.T @ weighted
    return out


def _contrasts(counts: Floats, state_start: NDArray[np.int64], scored: Mask) -> Contrasts:
    occurs = counts > 0
    observed = np.add.reduceat(occurs.astype(np.int64), state_start[:-1])
    columns = np.where(scored, np.minimum(observed, 2), observed)
    columns = np.maximum(columns - 1, 0)
    column_start = np.concatenate(([0], np.cumsum(columns)))
    basis_start = np.concatenate(([0], np.cumsum(columns * np.diff(state_start))))
    basis = np.zeros(int(basis_start[-1]))
    return Contrasts(state_start, column_start, basis_start, basis, occurs)


def _fill_contrasts(margins: Floats, contrasts: Contrasts, pseudocount: float) -> None:
    """Write the contrasts of every variable, ``(s_i, columns)`` row by row.

    States that never occur have rows of zeros. Variables of other numbers of columns are left.
    """
    start, columns = contrasts.state_start, np.diff(contrasts.column_start)
    occurs = contrasts.occurs
    observed = np.add.reduceat(occurs.astype(np.int64), start[:-1])
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
