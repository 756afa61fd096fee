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

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.pairs import stretches
from edgegraft.core.types import Edges, Floats
from edgegraft.counts import PairCounts
from edgegraft.counts.pair_counts import all_pair_blocks
from edgegraft.table.numbers import scores_of

PSEUDOCOUNT = 5.0  # rows added to each table, spread over its cells
BLOCK_BYTES = 1 << 25  # of tables counted at a time: a budget


class Blocks(NamedTuple):
    """Correlation blocks of pairs: block ``k`` is ``values[start[k] :][: size[k]]``."""

    values: Floats
    start: NDArray[np.int64]
    size: NDArray[np.int64]


class _Contrasts(NamedTuple):
    """The contrasts of variables of as many states and columns."""

    tables: Floats  # (variables, states, columns); states that never occur have rows of zeros
    occurs: Floats  # (variables, states) one for a state that occurs, else zero


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
        counts, start = np.array(margins.values, np.float64), np.array(margins.offsets)
        known = np.add.reduceat(counts, start[:-1])
        self.n_rows = float(known.max())
        self.known = known / max(self.n_rows, 1.0)
        states, scored = source.schema.n_states, source.schema.widths < source.schema.n_states
        observed = np.add.reduceat((counts > 0).astype(np.int64), start[:-1])
        columns = np.maximum(np.where(scored, np.minimum(observed, 2), observed) - 1, 0)
        self.column_start = np.concatenate(([0], np.cumsum(columns)))  # and their number
        # Variables of one kind have contrasts of one shape, which are one array.
        kinds = np.stack((states, observed, scored), axis=1)
        shapes, self._kind = np.unique(kinds, axis=0, return_inverse=True)
        self._kind, self._place = self._kind.ravel(), np.zeros(len(states), np.int64)
        self._contrasts = []
        for kind in range(len(shapes)):
            chosen = np.flatnonzero(self._kind == kind)
            self._place[chosen] = np.arange(len(chosen))
            margin = counts[start[chosen][:, None] + np.arange(states[chosen[0]])]
            if scored[chosen[0]]:
                tables = np.stack(
                    [self._scores(i, margin[k]) for k, i in enumerate(chosen.tolist())]
                )
            else:
                tables = _helmert(margin, self.pseudocount)
            self._contrasts.append(_Contrasts(tables, (margin > 0).astype(np.float64)))

    def _scores(self, i: int, counts: Floats) -> Floats:
        """Return the linear score of an ordered variable as its only contrast."""
        seen = counts > 0
        out = np.zeros((len(counts), int(seen.sum() > 1)))
        if out.shape[1]:
            weights = counts[seen] + self.pseudocount / seen.sum()
            out[seen] = scores_of(weights, 1, self.source.schema[i].kind)[:, :1]
        return out

    def matrix(self) -> Floats:
        """Return all blocks as one matrix."""
        starts = self.column_start
        matrix, widths = np.eye(int(starts[-1])), np.diff(starts)
        for edges in all_pair_blocks(self.source.schema.n_states, BLOCK_BYTES):
            blocks = self.of(edges)
            (top, left), size = starts[edges.T], blocks.size
            cell = stretches(np.zeros_like(size), size)
            x, y = np.divmod(cell, np.repeat(widths[edges[:, 1]], size))
            x += np.repeat(top, size)
            y += np.repeat(left, size)
            matrix[x, y] = matrix[y, x] = blocks.values
        return matrix

    def of(self, edges: Edges) -> Blocks:
        """Return the blocks of a batch of pairs."""
        tables = self.source.pairs(edges)
        first, second = tables.edges.T
        columns = np.diff(self.column_start)
        size = columns[first] * columns[second]
        start = np.cumsum(size) - size
        values = np.zeros(int(size.sum()))
        kinds = self._kind[first] * len(self._contrasts) + self._kind[second]
        for kind in np.unique(kinds).tolist():
            chosen = np.flatnonzero(kinds == kind)
            own, other = (self._contrasts[k] for k in divmod(kind, len(self._contrasts)))
            i, j = self._place[first[chosen]], self._place[second[chosen]]
            shape = own.tables.shape[1], other.tables.shape[1]
            at = tables.offsets[:-1][chosen, None] + np.arange(shape[0] * shape[1])
            counts = tables.values[at].reshape(-1, *shape).astype(np.float64)
            if self.pseudocount:
                occur, beside = own.occurs[i], other.occurs[j]
                spread = self.pseudocount / np.maximum(occur.sum(axis=1) * beside.sum(axis=1), 1.0)
                counts += (occur * spread[:, None])[:, :, None] * beside[:, None]
            blocks = _correlate(counts, own.tables[i], other.tables[j])
            cells = start[chosen, None] + np.arange(blocks[0].size)
            values[cells] = blocks.reshape(cells.shape)
        return Blocks(values, start, size)

    def dependence(self, edges: Edges) -> Floats:
        """Return chi-square / N of each pair, less its expectation under independence."""
        blocks = self.of(edges)
        owner = np.repeat(np.arange(len(blocks.size)), blocks.size)
        squares = np.bincount(owner, blocks.values**2, len(blocks.size))
        return np.asarray(squares - blocks.size / self.n_rows)


def _correlate(counts: Floats, own: Floats, other: Floats) -> Floats:
    """Return the correlations of the contrasts of both ends of pairs, given their tables.

    With missing cells the margins of a table are its own, not the variables'.
    """
    total = counts.sum(axis=(1, 2))
    shares = counts / np.where(total > 0.0, total, 1.0)[:, None, None]  # no row knows both: zero
    means = np.einsum("pa,pax->px", shares.sum(axis=2), own)
    beside = np.einsum("pb,pby->py", shares.sum(axis=1), other)
    both = own.transpose(0, 2, 1) @ shares @ other
    return np.asarray(both - means[:, :, None] * beside[:, None])


def _helmert(margins: Floats, pseudocount: float) -> Floats:
    """Return the contrasts of variables of as many states, of which as many occur."""
    (n, states), seen = margins.shape, int((margins[:1] > 0).sum())
    tables = np.zeros((n, states, max(seen - 1, 0)))
    if seen < 2:
        return tables
    shown = np.nonzero(margins > 0)[1].reshape(n, seen)
    counts = np.take_along_axis(margins, shown, axis=1)
    p = (counts + pseudocount / seen) / (margins.sum(axis=1, keepdims=True) + pseudocount)
    before, own = np.cumsum(p, axis=1)[:, :-1], p[:, 1:]
    c = np.sqrt(own / (before * (before + own)))
    upper = np.arange(seen)[:, None] <= np.arange(seen - 1)
    values = np.where(upper, c[:, None], 0.0)
    at = np.arange(seen - 1)
    values[:, at + 1, at] = -c * before / own
    np.put_along_axis(tables, shown[:, :, None], values, axis=1)
    return tables
