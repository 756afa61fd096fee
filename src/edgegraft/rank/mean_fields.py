"""Dependence of two variables given others, by mean field: which pairs to test first.

In the mean-field approximation the couplings of a Markov random field are minus the blocks of the
inverse covariance of its one-hot variables. Here in white contrasts and shrunk,

    K = ((1 - r) R + r I)^-1,    strength_ij = || K_ij ||_F,

with ``R`` the correlation matrix of :mod:`edgegraft.rank.correlations`: an approximation, exact
for weak couplings. Whatever feeds the queue, the activation test stays the same; a good order only
means that few tests are wasted. There are two forms, each the better one in its place (average
precision):

    rows per column  data                                one inverse  local, 20 partners
    24               scale-free, 200 variables, 5 states  .997         .992
    8                scale-free, 600 variables, 5 states  .990         .970
    2.5              Ising, 2,000 variables               .995         .9995
    .6               scale-free, 200 variables, 5 states  .80          .89

One inverse sees all of a hub's neighbours at once, but its noise grows with its columns. Local ones
have few columns each and cost a fraction: every variable gets its own, over itself and its ``k``
strongest partners, and the strength of a pair is the mean of what its two ends give it. That
partners outside the ``k`` explain nothing is a second approximation; the cost is ``n k^2 / 2``
tables at most and ``n`` small inverses.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from edgegraft.core.pairs import all_pairs, pair_ids, pairs_of_ids, stretches
from edgegraft.core.threads import one_blas_thread, run
from edgegraft.core.types import Floats, Integers
from edgegraft.counts import PairCounts
from edgegraft.errors import MemoryBudgetError
from edgegraft.objective.penalty import Penalty
from edgegraft.rank.correlations import PSEUDOCOUNT, Correlations
from edgegraft.rank.ranking import Chance, Partners, Ranking, screen, strongest
from edgegraft.table.blocks import TableRows

MAX_COLUMNS = 6000  # of one inverse: two matrices of 290 MB, and ten seconds
RANKED_COLUMNS = 3000  # up to which one inverse is chosen: about two seconds
ROWS_PER_COLUMN = 5
N_PARTNERS = 20
PAIRS_PER_VARIABLE = 5
SAMPLE_ROWS = 4096
SHRINKAGE = 0.05  # of local inverses
_MIN_PIVOT = 1e-5  # one that is all rounding passes the factorisation and spoils the inverse
_CHUNK_CELLS = 1 << 23  # of tables and blocks held at a time
_BATCH_CELLS = 1 << 20  # of matrices that are inverted together


def rank_pairs(
    source: PairCounts,
    rng: np.random.Generator,
    n_top: int | None = None,
    *,
    n_partners: int = N_PARTNERS,
    max_columns: int = RANKED_COLUMNS,
    penalty: Penalty | None = None,
) -> Ranking:
    """Rank the pairs that are worth testing first.

    Parameters
    ----------
    source : PairCounts
    rng : numpy.random.Generator
        Chooses the rows of the first cut of the local form; the mean field takes nothing from it.
    n_top : int, optional
        Number of pairs, 5 per variable by default.
    n_partners : int, default 20
        Partners per variable of the local form.
    max_columns : int, default 3000
        Columns of the largest mean-field inverse; a variable of ``s`` states has ``s - 1``. Beyond,
        or with fewer than 5 rows per column, the local form is used.
    penalty : Penalty, optional
        Of a search by pseudolikelihood. Rows on a device are then ranked by a fit of all pairs with
        this penalty, if that fits its memory; edges of the fit are significant.

    Returns
    -------
    Ranking
        Its `method` says which form was used.

    Examples
    --------
    >>> from edgegraft.table import PackedTable
    >>> from edgegraft.grafting import CandidateStream
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 3, (300, 6))
    >>> X[:, 4] = X[:, 2]
    >>> ranking = rank_pairs(PairCounts(PackedTable.from_codes(X)), rng)
    >>> stream = CandidateStream(6)
    >>> stream.prioritise(ranking.edges, ranking.priorities())
    15
    >>> stream.draw(1)
    array([[2, 4]])
    """
    n_top = PAIRS_PER_VARIABLE * len(source.schema) if n_top is None else n_top
    if penalty is not None and (ranking := penalised_fit(source, penalty, n_top)) is not None:
        return ranking
    states, widths = source.schema.n_states, source.schema.widths
    n_columns = int(np.where(widths < states, 1, states - 1).sum())
    margins = source.margins()
    n_rows = float(np.add.reduceat(margins.values, margins.offsets[:-1]).max())  # weighted
    if n_columns <= min(max_columns, n_rows / ROWS_PER_COLUMN):
        return mean_field(source, n_top, max_columns=max_columns)
    partners = screen(source, n_partners, sample_rows=SAMPLE_ROWS, rng=rng)
    return local_field(source, partners, n_top)


def penalised_fit(source: PairCounts, penalty: Penalty, n_top: int) -> Ranking | None:
    """Rank pairs by the penalised fit of all pairs, if a device has room for it.

    At least the edges of the fit are returned. Ordered columns have no such fit; a missing cell
    counts as its column's mean, an approximation.
    """
    rows, schema = source.rows, source.schema
    if not isinstance(rows, TableRows) or rows.device is None or schema.scored:
        return None
    pairs, threshold = all_pairs(len(schema)), np.zeros((len(schema), len(schema)))
    weights = penalty.edge_weights(pairs, schema.n_states[pairs].prod(axis=1))
    threshold[tuple(pairs.T)] = penalty.penalty * weights
    if not len(pairs) or not (penalty.penalty * weights).all():
        return None
    strengths = rows.device.fit_pairs(rows, threshold + threshold.T)
    if strengths is None:
        return None
    strengths = strengths[tuple(pairs.T)]
    edges = int((strengths > 1).sum())
    order = np.argsort(-strengths, kind="stable")[: max(n_top, edges)]
    significant = np.arange(len(order)) < edges
    return Ranking(pairs[order], strengths[order], "penalised fit of all pairs", significant)


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
        less: at N of 5 columns or more, by up to .02 of average precision. If cells are
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
    matrix, columns = correlations.matrix(), np.diff(correlations.column_start)
    if shrinkage is None:
        squares = float(np.vdot(matrix, matrix)) - n_columns
        by_chance = (n_columns**2 - int((columns**2).sum())) / correlations.n_rows
        shrinkage = min(1.0, by_chance / squares) ** 2 if squares > 0.0 else 1.0
    # One thread: the last bits would depend on their number, and on a busy machine threads that
    # wait for each other took a hundred times as long.
    with one_blas_thread():
        inverse, used = _inverse(matrix, shrinkage)
    n = len(columns)
    owner = np.repeat(np.arange(n), columns)
    scale = np.bincount(owner, inverse.diagonal(), n) / np.maximum(columns, 1)
    chance = Chance(columns, scale, correlations.known, correlations.n_rows)
    strengths = _block_norms(inverse, correlations.column_start)
    return strongest(all_pairs(n), strengths, n_top, f"mean field, shrinkage {used:.3g}", chance)


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
        Of :func:`~edgegraft.rank.screen`, for instance.
    n_top : int, optional
        Number of pairs to return; all that have a strength by default.
    pseudocount : float, default 5.0
        Rows added to each table, spread over its cells.
    shrinkage : float, default 0.05
        Weight ``r`` of the identity, in 0 to 1; grows if a neighbourhood is not positive
        definite. One for all: strengths of neighbourhoods that are shrunk differently do not
        compare.

    Returns
    -------
    Ranking

    Examples
    --------
    A chain: the ends depend on each other, but not given the middle.

    >>> from edgegraft.table import PackedTable
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
    n, k = partners.partner.shape
    one_sided, scale = np.zeros((n, k)), np.zeros(n)
    n_jobs = 1
    if isinstance(source.rows, TableRows):
        rows = source.rows  # a thread counts the pairs of one chunk: faster than on a device
        n_jobs = rows.n_jobs
        source = PairCounts(TableRows(rows.table, rows.weights, 1, rows.n_rows))
    correlations = Correlations(source, pseudocount)

    def work(nodes: Integers) -> None:
        one_sided[nodes], scale[nodes] = _neighbourhoods(
            correlations, nodes, partners.partner[nodes], shrinkage
        )

    with one_blas_thread():  # the threads are ours
        run(work, _chunks(correlations, partners.partner), n_jobs)
    ids, strengths = _both_sides(partners.partner, one_sided)
    method = f"local mean field given {k} partners, found by: {partners.method}"
    columns = np.diff(correlations.column_start)
    chance = Chance(columns, scale, correlations.known, correlations.n_rows)
    return strongest(pairs_of_ids(ids, n), strengths, n_top, method, chance)


def _block_norms(matrix: Floats, column_start: Integers) -> Floats:
    """Return the norm of every pair's block, ``i < j`` in order, read from the lower triangle."""
    n = len(column_start) - 1
    out, wide = np.zeros(n * (n - 1) // 2), np.flatnonzero(np.diff(column_start))
    for k, j in enumerate(wide.tolist()):
        rows = matrix[column_start[j] : column_start[j + 1], : column_start[j]]
        i = wide[:k]
        squares = np.add.reduceat(np.square(rows).sum(axis=0), column_start[i]) if k else 0.0
        out[i * (2 * n - i - 1) // 2 + j - i - 1] = np.sqrt(squares)
    return out


def _inverse(matrix: Floats, shrinkage: float) -> tuple[Floats, float]:
    """Return the inverse (its lower triangle) and the shrinkage that made it possible."""
    if not len(matrix):
        return matrix, shrinkage
    while True:
        shrunk = (1.0 - shrinkage) * matrix.T  # symmetric: the transpose is LAPACK's order
        shrunk[np.diag_indices_from(shrunk)] = 1.0
        inverse = _invert(shrunk)
        if inverse is not None:
            return inverse, shrinkage
        shrinkage = shrinkage + 0.25 * (1.0 - shrinkage) + 1e-9


def _invert(matrix: Floats) -> Floats | None:
    factor, failed = lapack.dpotrf(matrix, lower=1, overwrite_a=1)
    if failed or factor.diagonal().min() <= _MIN_PIVOT:
        return None
    inverse: Floats = lapack.dpotri(factor, lower=1, overwrite_c=1)[0]
    return inverse


def _neighbourhoods(
    correlations: Correlations, nodes: Integers, partner: Integers, shrinkage: float
) -> tuple[Floats, Floats]:
    """Return the strength of each node's pairs with its partners, and its own scale."""
    n = len(correlations.column_start) - 1
    members = np.column_stack((nodes, partner))
    x, y = np.triu_indices(members.shape[1], 1)
    first, second = members[:, x], members[:, y]
    absent = (first < 0) | (second < 0)
    ids = pair_ids(np.stack((first, second), axis=1), n)
    unique, index = np.unique(ids[~absent], return_inverse=True)
    place = np.zeros(ids.shape, np.int64)
    place[~absent] = index
    blocks = correlations.of(pairs_of_ids(unique, n))
    widths = np.where(members >= 0, np.diff(correlations.column_start)[members], 0)
    out, scale = np.zeros(partner.shape), np.zeros(len(nodes))
    # Neighbourhoods of one shape together; all have it if columns have as many states.
    shapes, group = np.unique(widths, axis=0, return_inverse=True)
    for g, shape in enumerate(shapes):
        own, start = int(shape[0]), np.cumsum(shape) - shape
        at_once = max(1, _BATCH_CELLS // max(1, int(shape.sum())) ** 2)
        chosen = np.flatnonzero(group.ravel() == g) if own else np.empty(0, np.int64)
        high, wide = shape[x], shape[y]
        pair = np.repeat(np.arange(len(x)), high * wide)
        cell = stretches(np.zeros_like(high), high * wide)
        a, b = np.divmod(cell, wide[pair])
        for some in (chosen[k : k + at_once] for k in range(0, len(chosen), at_once)):
            turned = (first > second)[some][:, pair]
            at = np.where(turned, b * high[pair] + a, cell)
            values = blocks.values[blocks.start[place[some][:, pair]] + at]
            matrix = np.tile(np.eye(int(shape.sum())), (len(some), 1, 1))
            row, column = start[x][pair] + a, start[y][pair] + b
            matrix[:, row, column] = matrix[:, column, row] = values
            rows = _own_rows(matrix, own, shrinkage)
            scale[some] = np.trace(rows[:, :, :own], axis1=1, axis2=2) / own
            there = np.flatnonzero(shape[1:])
            squares = np.add.reduceat(np.square(rows).sum(axis=1), start[1:][there], axis=1)
            out[some[:, None], there] = np.sqrt(squares)
    return out, scale


def _own_rows(matrix: Floats, own: int, shrinkage: float) -> Floats:
    """Return the first rows of the inverse of each shrunk matrix, shrunk until it is definite."""
    size = matrix.shape[1]
    shrunk = (1.0 - shrinkage) * matrix
    shrunk[:, np.arange(size), np.arange(size)] = 1.0
    try:
        np.linalg.cholesky(shrunk)
    except np.linalg.LinAlgError:
        # Correlations over the rows known to each pair need not fit together.
        if len(matrix) > 1:
            return np.concatenate([_own_rows(each[None], own, shrinkage) for each in matrix])
        return _own_rows(matrix, own, shrinkage + 0.25 * (1.0 - shrinkage) + 1e-9)
    return np.asarray(np.linalg.solve(shrunk, np.eye(size)[:, :own]).transpose(0, 2, 1))


def _chunks(correlations: Correlations, partner: Integers) -> list[Integers]:
    """Cut the variables into runs whose tables fit the memory allowed."""
    states = correlations.source.schema.n_states
    of_partners = np.where(partner >= 0, states[partner], 0).sum(axis=1) + states
    cells = np.cumsum(of_partners.astype(np.int64) ** 2)
    cuts = np.flatnonzero(np.diff(cells // _CHUNK_CELLS)) + 1
    return np.split(np.arange(len(partner)), cuts)


def _both_sides(partner: Integers, one_sided: Floats) -> tuple[Integers, Floats]:
    """Return the id of each pair and the mean of the strengths that its ends give it."""
    n, k = partner.shape
    own = np.repeat(np.arange(n), k)
    other = partner.ravel()
    there = other >= 0
    own, other, values = own[there], other[there], one_sided.ravel()[there]
    ids, index = np.unique(pair_ids(np.stack((own, other), axis=1), n), return_inverse=True)
    return ids, np.bincount(index, values) / np.bincount(index)
