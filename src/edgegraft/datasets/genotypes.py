"""Genotypes of made-up people: blocks of linked variants, rare alleles, relatives.

The genome is cut into blocks. In each of them all haplotypes are mosaics of a few founders': along
the block a haplotype copies one founder, and changes to another at random. Variants of one block
are therefore linked, the nearer the more; those of different blocks are independent, if people are
not related. Most alleles are rare: ``c`` of the founders carry one with chance ``~ 1 / c``, as in a
population of constant size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.types import Integers
from edgegraft.inference.chains import RandomState
from edgegraft.table import PackedTable, Schema


@dataclass(frozen=True, eq=False)
class GenotypeData:
    """Genotypes, and what is known of how they came about.

    Attributes
    ----------
    X : array of uint8, shape (n_rows, n_variants)
        Copies of the rarer allele: 0, 1 or 2.
    block : array of int, shape (n_variants,)
        Variants of different blocks are independent, but for relatives.
    carriers : array of int, shape (n_variants,)
        Founders that carry the allele; its frequency is this over `n_founders`.
    n_founders : int
    parents : array of int, shape (n_rows, 2)
        Rows of the parents, -1 for people without any.
    """

    X: NDArray[np.uint8]
    block: Integers
    carriers: Integers
    n_founders: int
    parents: Integers

    def table(self) -> PackedTable:
        """Return the genotypes as a packed table of three states each."""
        n = self.X.shape[1]
        names = [f"v{k}" for k in range(n)]
        return PackedTable.from_codes(self.X, Schema.from_states(np.full(n, 3), names))

    def __repr__(self) -> str:
        rows, n = self.X.shape
        related = int((self.parents >= 0).any(axis=1).sum())
        return (
            f"GenotypeData({rows} rows x {n} variants in {self.block[-1] + 1} blocks, {related} "
            "with parents)"
        )


def make_genotypes(
    n_variants: int,
    n_rows: int = 2000,
    *,
    block_size: int = 20,
    n_founders: int = 16,
    switch_rate: float = 0.1,
    related: float = 0.0,
    random_state: RandomState = None,
) -> GenotypeData:
    """Draw genotypes of linked variants.

    Parameters
    ----------
    n_variants, n_rows : int
    block_size : int, default 20
        Variants of a block.
    n_founders : int, default 16
        Haplotypes that a block's are mosaics of; the rarest allele has the frequency
        ``1 / n_founders``.
    switch_rate : float, default 0.1
        Chance that a haplotype copies another founder from one variant to the next.
    related : float, default 0.0
        Share of the rows that are children of two others, the last ones. A child has one haplotype
        of each parent, chosen block by block.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    GenotypeData

    Examples
    --------
    >>> data = make_genotypes(60, 500, related=0.2, random_state=0)
    >>> data
    GenotypeData(500 rows x 60 variants in 3 blocks, 100 with parents)
    >>> r = np.corrcoef(data.X.T) ** 2
    >>> bool(r[0, 1:20].mean() > 5 * r[0, 20:].mean())
    True
    """
    if n_variants < 1 or n_rows < 1 or block_size < 1 or n_founders < 2:
        raise ValueError(
            "n_variants, n_rows and block_size must be at least 1 and n_founders 2, found "
            f"{n_variants}, {n_rows}, {block_size} and {n_founders}"
        )
    for name, share in (("switch_rate", switch_rate), ("related", related)):
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"{name} must lie between 0 and 1, found {share}")
    rng = np.random.default_rng(random_state)
    n_children = min(round(related * n_rows), n_rows - 2) if n_rows > 2 else 0
    n_first = n_rows - n_children
    parents = np.full((n_rows, 2), -1)
    parents[n_first:, 0] = rng.integers(0, n_first, n_children)
    # Somebody else: one of the others, counted from the first parent on.
    steps = rng.integers(1, max(2, n_first), n_children)
    parents[n_first:, 1] = (parents[n_first:, 0] + steps) % n_first
    X = np.empty((n_rows, n_variants), np.uint8)
    carriers = np.empty(n_variants, np.int64)
    for first in range(0, n_variants, block_size):
        own = slice(first, min(first + block_size, n_variants))
        founders = _founders(own.stop - own.start, n_founders, rng)
        carriers[own] = founders.sum(axis=1)
        pairs = _mosaics(founders, 2 * n_first, switch_rate, rng).reshape(n_first, 2, -1)
        X[:n_first, own] = pairs.sum(axis=1)
        given = rng.integers(0, 2, (n_children, 2))
        X[n_first:, own] = pairs[parents[n_first:], given].sum(axis=1)
    block = np.arange(n_variants) // block_size
    return GenotypeData(X, block, carriers, n_founders, parents)


def _founders(n_sites: int, n_founders: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return who of the founders carries the rarer allele of each variant."""
    count = np.arange(1, n_founders // 2 + 1)
    carriers = rng.choice(count, n_sites, p=1 / count / (1 / count).sum())
    order = rng.random((n_sites, n_founders)).argsort(axis=1)
    return (order < carriers[:, None]).astype(np.uint8)


def _mosaics(
    founders: NDArray[np.uint8], n: int, switch_rate: float, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Return haplotypes that copy founders, one after another."""
    n_sites, n_founders = founders.shape
    drawn = rng.integers(0, n_founders, (n, n_sites))
    last = np.where(rng.random((n, n_sites)) < switch_rate, np.arange(n_sites), 0)
    copied = np.take_along_axis(drawn, np.maximum.accumulate(last, axis=1), axis=1)
    return founders[np.arange(n_sites), copied]
