"""A first metric for dense graphs with a ridge: every table knows of all the others.

    C W S + S W C = G,    S = covariance of all indicators + e I,    C = its blocks + e I

With all pairs in the model, ``W`` is one symmetric matrix over the indicators of all variables.
Near independence the Hessian of the pseudolikelihood maps it to ``C W S + S W C``: the conditional
of a variable varies with its own covariance ``C_i``, and its predictors are correlated through
``S``. ``e = sqrt(ridge)`` puts the ridge, ``2 e^2 W``, where the covariances have nothing to say.
The equation is solved in the eigenvectors of ``C^-1/2 S C^-1/2``: four matrix products, where the
diagonal metric needs several times as many passes over the rows.
"""

from __future__ import annotations

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.pairs import all_pairs
from edgegraft.core.types import Floats
from edgegraft.counts.pair_counts import PairCounts

#: Share of all pairs from which a graph counts as dense.
DENSE = 0.25
#: States of all variables together up to which the products are cheaper than passes over rows.
WIDEST = 1500


class DenseMetric:
    """Solves with the matrix of the module's equation for the edges, a diagonal for the nodes.

    Parameters
    ----------
    layout : Layout
    counts : PairCounts
        Of the rows that the loss is over.
    ridge : float
        Positive.
    diagonal : array, shape (n_parameters,)
        Of which the part of the nodes is used.
    """

    def __init__(self, layout: Layout, counts: PairCounts, ridge: float, diagonal: Floats) -> None:
        covariance = _covariance(layout, counts)
        size = len(covariance)
        self._rows, self._columns = layout.cell_ends()
        self._nodes = diagonal[:size]
        own = np.repeat(np.arange(layout.n_variables), layout.states)
        shift = np.sqrt(ridge) * np.eye(size)
        values, vectors = np.linalg.eigh(np.where(own[:, None] == own, covariance, 0.0) + shift)
        whitening = (vectors / np.sqrt(np.maximum(values, ridge))) @ vectors.T
        values, vectors = np.linalg.eigh(whitening @ (covariance + shift) @ whitening)
        # Covariances over differing rows (missing cells) may have negative eigenvalues.
        values = np.maximum(values, 1e-6 * values.max())
        self._basis = whitening @ vectors
        self._sums = values[:, None] + values[None, :]

    def solve(self, vector: Floats) -> Floats:
        """Return the solution for a vector laid out like the parameters."""
        size = len(self._nodes)
        full = np.zeros((size, size))
        full[self._rows, self._columns] = full[self._columns, self._rows] = vector[size:]
        basis = self._basis
        full = basis @ ((basis.T @ full @ basis) / self._sums) @ basis.T
        return np.concatenate((vector[:size] / self._nodes, full[self._rows, self._columns]))


def suits(layout: Layout, penalty: float, ridge: float) -> bool:
    """Whether a graph is dense enough, and small enough, and the problem smooth."""
    n = layout.n_variables
    dense = layout.n_edges >= DENSE * n * (n - 1) / 2
    return bool(
        dense and n > 2 and penalty == 0.0 and ridge > 0.0 and layout.states.sum() <= WIDEST
    )


def _covariance(layout: Layout, counts: PairCounts) -> Floats:
    n = layout.n_variables
    complete = Layout(layout.states, all_pairs(n))
    margins = counts.margins().values.astype(np.float64)
    totals = np.add.reduceat(margins, layout.node_offset[:-1])
    p = margins / np.repeat(np.maximum(totals, 1e-300), layout.states)
    tables = counts.pairs(complete.edges)
    sums = np.add.reduceat(tables.values.astype(np.float64), tables.offsets[:-1])
    known = np.repeat(sums > 0, np.diff(tables.offsets))
    joint = tables.values / np.repeat(np.where(sums > 0, sums, 1.0), np.diff(tables.offsets))
    rows, columns = complete.cell_ends()
    out = np.diag(p) - np.outer(p, p)
    own = np.repeat(np.arange(n), layout.states)
    out[own[:, None] != own] = 0.0
    out[rows, columns] = np.where(known, joint - p[rows] * p[columns], 0.0)
    out[columns, rows] = out[rows, columns]
    return out
