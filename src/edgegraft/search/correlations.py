"""Pair tables as correlation blocks of white contrasts.

Each variable is written in functions of its states that have variance 1 and are uncorrelated among
themselves (:mod:`edgegraft.kernels.search.contrasts`), so the one-hot covariance becomes a
correlation matrix with identity blocks on its diagonal. Norms of its blocks, and of the blocks of
its inverse, do not depend on which state a one-hot code leaves out, and rare states have no more
weight than they deserve: in a plain one-hot inverse their entries grow like 1/p and drown the
others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.types import Edges, Floats
from edgegraft.counts import PairCounts
from edgegraft.kernels.search.contrasts import Contrasts, correlate, fill_contrasts

PSEUDOCOUNT = 5.0  # rows added to each table, spread over its cells


class Blocks(NamedTuple):
    """Correlation blocks of pairs: that of pair ``k`` is ``values[start[k] :][: size[k]]``."""

    values: Floats
    start: NDArray[np.int64]
    size: NDArray[np.int64]


class Correlations:
    """Correlation blocks of any pairs of a source.

    Parameters
    ----------
    source : PairCounts
    pseudocount : float, default 5.0
        Rows added to each table, spread evenly over the cells of the states that occur. States
        that never occur have no contrast.

    Examples
    --------
    >>> from edgegraft.table import PackedTable
    >>> from edgegraft.counts import PairCounts
    >>> source = PairCounts(PackedTable.from_codes([[0, 0], [0, 0], [1, 1], [1, 0]]))
    >>> Correlations(source, pseudocount=0.0).of([(0, 1)]).values.round(3)
    array([0.577])
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
        self._contrasts = _contrasts(counts, np.array(margins.offsets, np.int64))
        fill_contrasts(counts, self._contrasts, self.pseudocount)

    @property
    def column_start(self) -> NDArray[np.int64]:
        """Where the columns of each variable begin, and their number."""
        return self._contrasts.column_start

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


def _contrasts(counts: Floats, state_start: NDArray[np.int64]) -> Contrasts:
    occurs = counts > 0
    observed = np.add.reduceat(occurs.astype(np.int64), state_start[:-1])
    columns = np.maximum(observed - 1, 0)
    column_start = np.concatenate(([0], np.cumsum(columns)))
    basis_start = np.concatenate(([0], np.cumsum(columns * np.diff(state_start))))
    basis = np.zeros(int(basis_start[-1]))
    return Contrasts(state_start, column_start, basis_start, basis, occurs)
