"""Pairs in the order in which they should be tested, and the priorities that say so."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from edgegraft.core.types import Edges, Floats, Integers, Mask

_FALSE = 1e-3  # pairs expected among the significant ones if no pair were dependent


class Ranking(NamedTuple):
    """Pairs by strength, the strongest first.

    Attributes
    ----------
    edges : array of int, shape (m, 2)
    strengths : array of float, shape (m,)
        Descending; comparable within one ranking only.
    method : str
        What the strengths are, approximations named.
    p_values : array of float, shape (m,), optional
        Chance of such a strength between variables that are independent given the others, as far
        as the approximation of `method` holds; without them no pair is significant.
    n_pairs : int
        Number of pairs of which these are the strongest.
    """

    edges: Edges
    strengths: Floats
    method: str
    p_values: Floats | None = None
    n_pairs: int = 0

    def of(self, chosen: Mask) -> Ranking:
        """Return the ranking of some of the pairs."""
        p_values = None if self.p_values is None else self.p_values[chosen]
        return self._replace(
            edges=self.edges[chosen], strengths=self.strengths[chosen], p_values=p_values
        )

    @property
    def significant(self) -> Mask:
        """Which pairs are not due to chance: a false one in fewer than one of a thousand rankings.

        Examples
        --------
        >>> edges = np.array([(0, 1), (0, 2), (1, 2)])
        >>> Ranking(edges, np.ones(3), "example", np.array([1e-9, 1e-3, 0.5]), 3).significant
        array([ True, False, False])
        """
        if self.p_values is None:
            return np.zeros(len(self.edges), bool)
        return np.asarray(self.p_values * self.n_pairs < _FALSE)

    def priorities(self) -> Floats:
        """Return ``rank - m``: below the default priority 0, one apart.

        Ranks and not strengths: a boost of 1 then moves a pair past one neighbour in the order,
        whatever the scale of the data.

        Examples
        --------
        >>> edges = np.array([(0, 1), (0, 2), (1, 2)])
        >>> Ranking(edges, np.array([5.0, 4.0, 1.0]), "example").priorities()
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
    """Return the `n_top` strongest pairs (all by default); ties go to the earlier pair."""
    kept = np.arange(len(strengths))
    if n_top is not None and n_top < len(strengths):
        smallest = np.partition(strengths, len(strengths) - n_top)[len(strengths) - n_top]
        kept = np.flatnonzero(strengths >= smallest)
    order = kept[np.argsort(-strengths[kept], kind="stable")][:n_top]
    n = len(chance.scale)
    p_values = chance.p_values(edges[order], strengths[order])
    return Ranking(edges[order], strengths[order], method, p_values, n * (n - 1) // 2)
