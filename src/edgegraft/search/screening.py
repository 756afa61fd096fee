"""The strongest partners of every variable by pairwise dependence, out of all pairs.

Strength of a pair is chi-square / N less its expectation under independence. All pairs stream by
in bounded memory, two-state columns sixteen at a time through the registers. Time is quadratic in
the variables with a small constant; that a sample of the rows can do the first cut keeps it from
growing with the rows as well.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.pairs import pairs_of_ids
from edgegraft.core.threads import run
from edgegraft.core.types import Floats
from edgegraft.counts import PairCounts
from edgegraft.counts.pair_counts import all_pair_blocks
from edgegraft.device.partners import can_screen, screen_on_device
from edgegraft.kernels.search.partners import merge, offer_binary, offer_pairs
from edgegraft.search.correlations import Correlations
from edgegraft.table.blocks import TableRows

_BLOCK_BYTES = 1 << 25
_BATCH = 1 << 18  # pairs whose tables are held at a time
_WORTH_IT = 4  # rows over sampled rows; below, decoding the sample costs more than it saves

Heaps = tuple[NDArray[np.int64], Floats]


class Partners(NamedTuple):
    """The strongest partners of each variable, strongest first.

    Attributes
    ----------
    partner : array of int, shape (n, k)
        -1 if there are fewer than k.
    strength : array of float, shape (n, k)
    method : str
        How they were found, approximations named.
    n_tables : int
        Pair tables computed.
    """

    partner: NDArray[np.int64]
    strength: Floats
    method: str
    n_tables: int


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
        Make the first cut, to ``2 k`` partners, on so many random rows; those pairs alone are then
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
    if isinstance(source.rows, TableRows) and can_screen(source.rows):
        return _sorted(screen_on_device(source.rows, k), "all pairs", n_pairs)
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
    if isinstance(source.rows, TableRows) and _all_binary(source.rows):
        return _all_binary_pairs(source, source.rows, k)
    heaps = _empty(len(source.schema), k)
    correlations = Correlations(source, pseudocount=0.0)
    for edges in all_pair_blocks(source.schema.n_states, _BLOCK_BYTES):
        offer_pairs(*heaps, edges, correlations.dependence(edges))
    return heaps


def _all_binary_pairs(source: PairCounts, rows: TableRows, k: int) -> Heaps:
    heaps = [_empty(len(source.schema), k) for _ in range(rows.n_jobs)]
    ones = np.array(source.margins().values[::2], np.int64)
    sweep = partial(_sweep, rows.table.planes.words, ones, source.n_rows, heaps)
    run(sweep, range(rows.n_jobs), rows.n_jobs)
    for other in heaps[1:]:
        merge(*heaps[0], *other)
    return heaps[0]


def _sweep(
    words: NDArray[np.uint64], ones: NDArray[np.int64], n_rows: int, heaps: list[Heaps], share: int
) -> None:
    offer_binary(words, ones, n_rows, *heaps[share], share, len(heaps))


def _all_binary(rows: TableRows) -> bool:
    one_plane = bool((np.diff(rows.table.planes.start) == 1).all())
    return one_plane and rows.weights is None and bool((rows.schema.n_states == 2).all())


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
    """Sort the heaps, strongest first and then the smaller partner."""
    partner, score = heaps
    order = np.lexsort((partner, -score), axis=1)
    strength = np.take_along_axis(score, order, axis=1)
    return Partners(np.take_along_axis(partner, order, axis=1), strength, method, n_tables)
