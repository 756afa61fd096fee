"""Pairs in the order in which they should be tested, and the priorities that say so.

The strongest partners of every variable by pairwise dependence, out of all pairs: strength is
chi-square / N less its expectation under independence. All pairs stream by in bounded memory,
two-state columns sixteen at a time through the registers. Time is quadratic in the variables with a
small constant; that a sample of the rows can do the first cut keeps it from growing with the rows
as well.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from edgegraft.core.pairs import pairs_of_ids
from edgegraft.core.threads import run
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.counts import PairCounts
from edgegraft.counts.pair_counts import all_pair_blocks
from edgegraft.kernels.search import offer_binary, offer_pairs
from edgegraft.rank.correlations import BLOCK_BYTES, Correlations
from edgegraft.table.blocks import TableRows

_FALSE = 1e-3  # pairs expected among the significant ones if no pair were dependent


class Ranking(NamedTuple):
    """Pairs by strength, the strongest first."""

    edges: Edges
    strengths: Floats  #: descending; comparable within one ranking only
    method: str  #: what the strengths are, approximations named
    #: which pairs are not due to chance, as far as the approximation of `method` holds
    significant: Mask
    p_values: Floats | None = None  #: chance of such strengths, if the method tells

    def of(self, chosen: Mask | Integers) -> Ranking:
        """Return the ranking of some of the pairs."""
        edges, strengths = self.edges[chosen], self.strengths[chosen]
        p_values = None if self.p_values is None else self.p_values[chosen]
        return Ranking(edges, strengths, self.method, self.significant[chosen], p_values)

    def priorities(self) -> Floats:
        """Return ``rank - m``: below the default priority 0, one apart.

        Ranks and not strengths: a boost of 1 then moves a pair past one neighbour in the order,
        whatever the scale of the data.

        Examples
        --------
        >>> edges = np.array([(0, 1), (0, 2), (1, 2)])
        >>> Ranking(edges, np.array([5.0, 4.0, 1.0]), "example", np.zeros(3, bool)).priorities()
        array([-3., -2., -1.])
        """
        return np.arange(-len(self.edges), 0, dtype=np.float64)


class Chance(NamedTuple):
    """What strengths of independent variables would be, by variable.

    The block of a pair has ``columns_i columns_j`` entries of variance ``scale_i scale_j / N``.
    """

    columns: Integers  # number of a variable's contrasts
    scale: Floats  # mean of the inverse's diagonal over them
    rows: Floats  # share of the rows in which a variable is known
    n_rows: float

    def p_values(self, edges: Edges, strengths: Floats) -> Floats:
        """Return the chance of such strengths, by chi-square."""
        i, j = edges.T
        n_rows = self.n_rows * self.rows[i] * self.rows[j]
        scaled = n_rows * strengths**2 / np.maximum(self.scale[i] * self.scale[j], 1e-300)
        return np.asarray(chdtrc(np.maximum(self.columns[i] * self.columns[j], 1), scaled))


def strongest(
    edges: Edges, strengths: Floats, n_top: int | None, method: str, chance: Chance
) -> Ranking:
    """Return the `n_top` strongest pairs (all by default); ties go to the earlier pair.

    Chance gives a false significant pair in fewer than one of a thousand rankings.
    """
    kept = np.arange(len(strengths))
    if n_top is not None and n_top < len(strengths):
        smallest = np.partition(strengths, len(strengths) - n_top)[len(strengths) - n_top]
        kept = np.flatnonzero(strengths >= smallest)
    order = kept[np.argsort(-strengths[kept], kind="stable")][:n_top]
    n = len(chance.scale)
    p_values = chance.p_values(edges[order], strengths[order])
    significant = p_values * (n * (n - 1) // 2) < _FALSE
    return Ranking(edges[order], strengths[order], method, significant, p_values)


_BATCH = 1 << 18  # pairs whose tables are held at a time
_WORTH_IT = 4  # rows over sampled rows; below, decoding the sample costs more than it saves

Heaps = tuple[NDArray[np.int64], Floats]


class Partners(NamedTuple):
    """The strongest partners of each variable, strongest first."""

    partner: NDArray[np.int64]  #: (n, k); -1 if there are fewer than k
    strength: Floats  #: (n, k)
    method: str  #: how they were found, approximations named
    n_tables: int  #: pair tables computed


def screen(
    source: PairCounts,
    k: int,
    *,
    sample_rows: int | None = None,
    rng: np.random.Generator | None = None,
) -> Partners:
    """Find the `k` strongest partners of every variable among all pairs.

    Parameters
    ----------
    source : PairCounts
    k : int
        Partners per variable.
    sample_rows : int, optional
        Make the first cut, to ``2 k`` partners, on this many rows; those pairs alone are then
        counted on all rows. An approximation: a pair that is not among the ``2 k`` strongest of
        either end on the sample is missed. Only a table in memory has rows to sample; other
        sources, and tables of fewer than four times the rows, are counted in full.
    rng : numpy.random.Generator, optional
        Chooses the rows; needed with `sample_rows`.

    Returns
    -------
    Partners
        The same for any number of threads of the source.

    Examples
    --------
    >>> from edgegraft.table import PackedTable
    >>> X = np.array([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> screen(PairCounts(PackedTable.from_codes(X)), 1).partner.ravel().tolist()
    [1, 0, 0]
    """
    if k < 1:
        raise ValueError(f"the number of partners must be positive, found {k}")
    n = len(source.schema)
    n_pairs = n * (n - 1) // 2
    if sample_rows is not None and rng is None:
        raise ValueError("sample_rows needs rng, to choose the rows")
    if isinstance(source.rows, TableRows) and source.rows.device is not None:
        heaps = source.rows.device.partners(source.rows, k)
        if heaps is not None:
            return _sorted(heaps, "all pairs", n_pairs)
    if (
        sample_rows is None
        or rng is None
        or not isinstance(source.rows, TableRows)
        or source.n_rows < _WORTH_IT * sample_rows
    ):
        return _sorted(_all_pairs(source, k), "all pairs", n_pairs)
    first_cut, _ = _all_pairs(_sampled(source.rows, sample_rows, rng), 2 * k)
    edges = pairs_of_ids(partner_ids(first_cut), n)
    heaps = _empty(n, k)
    correlations = Correlations(source, pseudocount=0.0)
    for first in range(0, len(edges), _BATCH):
        batch = edges[first : first + _BATCH]
        offer_pairs(*heaps, batch, correlations.dependence(batch))
    method = f"all pairs on {sample_rows:,} random rows, the strongest on all (approximate)"
    return _sorted(heaps, method, n_pairs + len(edges))


def partner_ids(partner: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the ids of all pairs of a variable and a partner, each once.

    >>> partner_ids(np.array([[1], [0], [1], [-1]]))
    array([1, 6])
    """
    n, k = partner.shape
    own, other = np.repeat(np.arange(n), k), partner.ravel()
    ids = np.minimum(own, other) * n + np.maximum(own, other)
    return np.unique(ids[other >= 0])


def _all_pairs(source: PairCounts, k: int) -> Heaps:
    rows = source.rows
    if isinstance(rows, TableRows) and rows.weights is None:
        one_plane = bool((np.diff(rows.table.planes.start) == 1).all())
        if one_plane and bool((rows.schema.n_states == 2).all()):
            return _all_binary_pairs(source, rows, k)
    heaps = _empty(len(source.schema), k)
    correlations = Correlations(source, pseudocount=0.0)
    for edges in all_pair_blocks(source.schema.n_states, BLOCK_BYTES):
        offer_pairs(*heaps, edges, correlations.dependence(edges))
    return heaps


def _all_binary_pairs(source: PairCounts, rows: TableRows, k: int) -> Heaps:
    heaps = [_empty(len(source.schema), k) for _ in range(rows.n_jobs)]
    ones = np.array(source.margins().values[::2], np.int64)
    binary = rows.table.planes.words, ones, source.n_rows

    def sweep(share: int) -> None:
        offer_binary(*binary, *heaps[share], share, len(heaps))

    run(sweep, range(rows.n_jobs), rows.n_jobs)
    partner, score = (np.concatenate(part, axis=1) for part in zip(*heaps, strict=True))
    return _strongest_first(partner, score, heaps[0][0].shape[1])


def _sampled(source: TableRows, sample_rows: int, rng: np.random.Generator) -> PairCounts:
    """Return counts over random rows."""
    table = source.table
    rows = np.sort(rng.choice(table.n_rows, sample_rows, replace=False))
    weights = None if source.weights is None else source.weights[rows]
    sample = table.take(rows)
    if weights is not None and not weights.any():
        weights = None  # heavy rows alone have weight, and none was drawn
    return PairCounts(sample, n_jobs=source.n_jobs, weights=weights)


def _empty(n: int, k: int) -> Heaps:
    width = max(1, min(k, n - 1))
    return np.full((n, width), -1, np.int64), np.full((n, width), -np.inf)


def _sorted(heaps: Heaps, method: str, n_tables: int) -> Partners:
    return Partners(*_strongest_first(*heaps), method, n_tables)


def _strongest_first(partner: Integers, score: Floats, k: int | None = None) -> Heaps:
    """Return the `k` best of each row in order, the smaller partner first among equal ones."""
    order = np.lexsort((partner, -score), axis=1)[:, :k]
    return np.take_along_axis(partner, order, axis=1), np.take_along_axis(score, order, axis=1)
