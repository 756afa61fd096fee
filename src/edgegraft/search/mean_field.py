"""Dependence of every pair given all other variables, from one inverse.

In the mean-field approximation the couplings of a Markov random field are minus the blocks of the
inverse covariance of its one-hot variables. Here in white contrasts and shrunk,

    K = ((1 - r) R + r I)^-1,    strength_ij = || K_ij ||_F,

with ``R`` the correlation matrix of :mod:`edgegraft.search.correlations`. An approximation, exact
for weak couplings, and a very good order in which to test pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from edgegraft.core.pairs import all_pairs
from edgegraft.core.types import Floats
from edgegraft.counts import PairCounts
from edgegraft.counts.pair_counts import all_pair_blocks
from edgegraft.errors import MemoryBudgetError
from edgegraft.kernels.search.precision import lower_block_norms, place_blocks
from edgegraft.search.correlations import PSEUDOCOUNT, Correlations
from edgegraft.search.ranking import Chance, Ranking, strongest

MAX_COLUMNS = 6000  # two matrices of 290 MB, and ten seconds
_BLOCK_BYTES = 1 << 25


def mean_field(
    source: PairCounts,
    n_top: int | None = None,
    *,
    pseudocount: float = PSEUDOCOUNT,
    shrinkage: float | None = None,
    max_columns: int = MAX_COLUMNS,
) -> Ranking:
    """Rank pairs by the norm of their block of a regularised inverse correlation matrix.

    Parameters
    ----------
    source : PairCounts
    n_top : int, optional
        Number of pairs to return; all by default.
    pseudocount : float, default 5.0
        Rows added to each table, spread over its cells.
    shrinkage : float, optional
        Weight ``r`` of the identity, in 0 to 1. By default the square of the share of the squared
        correlations that chance explains, their number / N over their sum. The share itself makes
        ``R`` most accurate (Schafer and Strimmer 2005), but the order of the pairs is better with
        less: at N of 5 columns or more, by up to .02 of average precision. Where cells are
        missing, correlations over the rows known to each pair need not be positive definite; the
        weight then grows until they are.
    max_columns : int, default 6000
        Refuse larger matrices; a variable of ``s`` observed states has ``s - 1`` columns.

    Returns
    -------
    Ranking

    Examples
    --------
    >>> from edgegraft.table import PackedTable
    >>> from edgegraft.counts import PairCounts
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (500, 4))
    >>> X[:, 3] = X[:, 1] ^ (rng.random(500) < 0.2)
    >>> mean_field(PairCounts(PackedTable.from_codes(X)), n_top=1).edges
    array([[1, 3]])
    """
    if shrinkage is not None and not 0.0 <= shrinkage <= 1.0:
        raise ValueError(f"shrinkage must lie between 0 and 1, found {shrinkage}")
    correlations = Correlations(source, pseudocount)
    n_columns = int(correlations.column_start[-1])
    if n_columns > max_columns:
        raise MemoryBudgetError(
            f"the mean-field inverse would have {n_columns:,} columns, more than the "
            f"{max_columns:,} allowed: use the local form, or merge rare states"
        )
    matrix = _correlation_matrix(correlations)
    if shrinkage is None:
        shrinkage = _chance_share(matrix, correlations) ** 2
    # One thread: the last bits would depend on their number, and on a busy machine threads that
    # wait for each other took a hundred times as long.
    with threadpool_limits(1, "blas"):
        inverse, used = _inverse(matrix, shrinkage)
    columns = np.diff(correlations.column_start)
    n = len(columns)
    owner = np.repeat(np.arange(n), columns)
    scale = np.bincount(owner, inverse.diagonal(), n) / np.maximum(columns, 1)
    chance = Chance(columns, scale, correlations.known, correlations.n_rows)
    strengths = np.empty(n * (n - 1) // 2)
    lower_block_norms(inverse, correlations.column_start, strengths)
    edges = all_pairs(n)
    return strongest(edges, strengths, n_top, f"mean field, shrinkage {used:.3g}", chance)


def _correlation_matrix(correlations: Correlations) -> Floats:
    start = correlations.column_start
    matrix = np.eye(int(start[-1]))
    for edges in all_pair_blocks(correlations.source.schema.n_states, _BLOCK_BYTES):
        blocks = correlations.of(edges)
        place_blocks(blocks.values, blocks.start, edges, start, matrix)
    return matrix


def _chance_share(matrix: Floats, correlations: Correlations) -> float:
    widths = np.diff(correlations.column_start)
    off_diagonal = len(matrix) ** 2 - int((widths**2).sum())
    squares = float(np.vdot(matrix, matrix)) - len(matrix)
    return min(1.0, off_diagonal / correlations.n_rows / squares) if squares > 0.0 else 1.0


def _inverse(matrix: Floats, shrinkage: float) -> tuple[NDArray[np.float64], float]:
    """Return the inverse (its lower triangle) and the shrinkage that made it possible."""
    if not len(matrix):
        return matrix, shrinkage
    while True:
        shrunk = (1.0 - shrinkage) * matrix.T  # symmetric: the transpose is LAPACK's order
        shrunk[np.diag_indices_from(shrunk)] = 1.0
        factor, failed = lapack.dpotrf(shrunk, lower=1, overwrite_a=1)
        # A pivot that is all rounding passes the factorisation and spoils the inverse.
        if not failed and factor.diagonal().min() > 1e-5:
            inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
            return inverse, shrinkage
        shrinkage = shrinkage + 0.25 * (1.0 - shrinkage) + 1e-9
