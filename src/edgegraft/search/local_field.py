"""Dependence of a variable on its strongest partners, each given the others: a local mean field.

Where one inverse over all variables is too large, each variable gets its own, over itself and its
``k`` strongest partners:

    K(i) = ((1 - r) R(i, partners of i) + r I)^-1,    strength_ij = mean of || K(i)_ij ||_F and
                                                                   || K(j)_ji ||_F.

Two approximations: mean field, and that partners outside the ``k`` explain nothing. The cost is
``n k^2 / 2`` tables at most and ``n`` small inverses.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.pairs import pair_ids, pairs_of_ids
from edgegraft.core.types import Floats
from edgegraft.counts import PairCounts
from edgegraft.kernels.search.precision import local_strengths
from edgegraft.search.correlations import PSEUDOCOUNT, Correlations
from edgegraft.search.ranking import Chance, Ranking, strongest
from edgegraft.search.screening import Partners

SHRINKAGE = 0.05
_CHUNK_CELLS = 1 << 23  # of tables and blocks held at a time


def local_field(
    source: PairCounts,
    partners: Partners,
    n_top: int | None = None,
    *,
    pseudocount: float = PSEUDOCOUNT,
    shrinkage: float = SHRINKAGE,
) -> Ranking:
    """Rank the pairs of variables and their partners by dependence given the other partners.

    Parameters
    ----------
    source : PairCounts
    partners : Partners
        Of :func:`edgegraft.search.screening.screen`, for instance.
    n_top : int, optional
        Number of pairs to return; all that have a strength by default.
    pseudocount : float, default 5.0
        Rows added to each table, spread over its cells.
    shrinkage : float, default 0.05
        Weight ``r`` of the identity, in 0 to 1; grows where a neighbourhood is not positive
        definite. One for all: strengths of neighbourhoods that are shrunk differently do not
        compare.

    Returns
    -------
    Ranking

    Examples
    --------
    A chain: the ends depend on each other, but not given the middle.

    >>> from edgegraft.table import PackedTable
    >>> from edgegraft.search.screening import screen
    >>> from edgegraft.counts import PairCounts
    >>> rng = np.random.default_rng(0)
    >>> X = np.zeros((2000, 3), int)
    >>> X[:, 1] = rng.random(2000) < 0.5
    >>> X[:, 0], X[:, 2] = (X[:, 1] ^ (rng.random(2000) < 0.2) for _ in range(2))
    >>> source = PairCounts(PackedTable.from_codes(X))
    >>> sorted(local_field(source, screen(source, 2), n_top=2).edges.tolist())
    [[0, 1], [1, 2]]
    """
    if not 0.0 <= shrinkage <= 1.0:
        raise ValueError(f"shrinkage must lie between 0 and 1, found {shrinkage}")
    correlations = Correlations(source, pseudocount)
    n, k = partners.partner.shape
    one_sided, scale = np.zeros((n, k)), np.zeros(n)
    for nodes in _chunks(correlations, partners.partner):
        one_sided[nodes], scale[nodes] = _neighbourhoods(
            correlations, nodes, partners.partner[nodes], shrinkage
        )
    ids, strengths = _both_sides(partners.partner, one_sided)
    method = f"local mean field given {k} partners, found by: {partners.method}"
    columns = np.diff(correlations.column_start)
    chance = Chance(columns, scale, correlations.known, correlations.n_rows)
    return strongest(pairs_of_ids(ids, n), strengths, n_top, method, chance)


def _neighbourhoods(
    correlations: Correlations,
    nodes: NDArray[np.int64],
    partner: NDArray[np.int64],
    shrinkage: float,
) -> tuple[Floats, Floats]:
    """Return the strength of each node's pairs with its partners, and its own scale."""
    n = len(correlations.column_start) - 1
    members = np.column_stack((nodes, partner))
    x, y = np.triu_indices(members.shape[1], 1)
    first, second = members[:, x], members[:, y]
    absent = (first < 0) | (second < 0)
    ids = pair_ids(np.stack((first, second), axis=1), n)
    unique, index = np.unique(ids[~absent], return_inverse=True)
    between = np.zeros((len(nodes), members.shape[1], members.shape[1]), np.int64)
    signed = np.zeros(ids.shape, np.int64)
    signed[~absent] = index
    between[:, x, y] = np.where(first > second, -1 - signed, signed)
    blocks = correlations.of(pairs_of_ids(unique, n))
    out, scale = np.zeros(partner.shape), np.zeros(len(nodes))
    local_strengths(
        nodes,
        partner,
        between,
        blocks.values,
        blocks.start,
        correlations.column_start,
        shrinkage,
        out,
        scale,
    )
    return out, scale


def _chunks(correlations: Correlations, partner: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Cut the variables into runs whose tables fit the memory allowed."""
    states = correlations.source.schema.n_states
    of_partners = np.where(partner >= 0, states[partner], 0).sum(axis=1) + states
    cells = np.cumsum(of_partners.astype(np.int64) ** 2)
    cuts = np.flatnonzero(np.diff(cells // _CHUNK_CELLS)) + 1
    return np.split(np.arange(len(partner)), cuts)


def _both_sides(partner: NDArray[np.int64], one_sided: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Return the id of each pair and the mean of the strengths that its ends give it."""
    n, k = partner.shape
    own = np.repeat(np.arange(n), k)
    other = partner.ravel()
    there = other >= 0
    own, other, values = own[there], other[there], one_sided.ravel()[there]
    ids, index = np.unique(pair_ids(np.stack((own, other), axis=1), n), return_inverse=True)
    return ids, np.bincount(index, values) / np.bincount(index)
