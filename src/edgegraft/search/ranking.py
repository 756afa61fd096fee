"""Pairs in the order in which they should be tested, and the priorities that say so."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgegraft.search.pairs import Edges, Floats


class Ranking(NamedTuple):
    """Pairs by strength, the strongest first.

    Attributes
    ----------
    edges : array of int, shape (m, 2)
    strengths : array of float, shape (m,)
        Descending; comparable within one ranking only.
    method : str
        What the strengths are, approximations named.
    """

    edges: Edges
    strengths: Floats
    method: str

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


def strongest(edges: Edges, strengths: Floats, n_top: int | None, method: str) -> Ranking:
    """Return the `n_top` strongest pairs (all by default); ties go to the earlier pair."""
    kept = np.arange(len(strengths))
    if n_top is not None and n_top < len(strengths):
        least = np.partition(strengths, len(strengths) - n_top)[len(strengths) - n_top]
        kept = np.flatnonzero(strengths >= least)
    order = kept[np.argsort(-strengths[kept], kind="stable")][:n_top]
    return Ranking(edges[order], strengths[order], method)
