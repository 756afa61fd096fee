"""Which edges of the reservoir are activated.

Best choice takes, from the largest score down, the edges that score at least

    tau = (1 - selectivity) * mean + selectivity * max

and share no variable with one already taken in the same batch (Chaabene and Huang 2018, section
3.2): adjacent edges may explain the same dependence, and only fitting one tells whether the other
is still needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core.pairs import as_edges, one_each
from edgegraft.core.types import Edges, Floats, Integers
from edgegraft.kernels.search.adjacency import greedy_matching

__all__ = ["ActivationRule", "BestChoice", "FirstHit", "Single"]


class ActivationRule(Protocol):
    """Chooses edges to activate from those that violate optimality."""

    def select(self, edges: ArrayLike, scores: ArrayLike) -> Integers:
        """Return the indices of the edges to activate, in the order of activation.

        Parameters
        ----------
        edges : array of int, shape (m, 2)
            In the order of their arrival.
        scores : array of float, shape (m,)
            Activation scores.
        """
        ...


@dataclass(frozen=True)
class BestChoice:
    """Activate the best edges that do not touch each other.

    Parameters
    ----------
    selectivity : float, default 0.5
        Between 0 (edges of at least the mean score) and 1 (the best edge alone).

    Examples
    --------
    >>> rule = BestChoice(0.5)
    >>> rule.select([(0, 1), (1, 2), (2, 3), (4, 5)], [3.0, 2.9, 2.8, 1.0])
    array([0, 2])
    """

    selectivity: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 <= self.selectivity <= 1.0:
            raise ValueError(f"selectivity must lie between 0 and 1, found {self.selectivity}")

    def threshold(self, scores: ArrayLike) -> float:
        """Return the least score that is considered.

        Examples
        --------
        >>> BestChoice(0.5).threshold([1.0, 2.0, 6.0])
        4.5
        """
        values = np.asarray(scores, np.float64)
        top = float(values.max())
        if not np.isfinite(top):
            return top
        tau = (1.0 - self.selectivity) * float(values.mean()) + self.selectivity * top
        return min(tau, top)  # the mean of equal scores may exceed them by rounding

    def select(self, edges: ArrayLike, scores: ArrayLike) -> Integers:
        """Return the indices to activate, best first; ties go to the smaller pair."""
        pairs, values = _checked(edges, scores)
        if self.selectivity == 1.0 or not len(pairs):
            return Single().select(pairs, values)
        considered = np.flatnonzero(values >= self.threshold(values))
        order = considered[_ranking(pairs[considered], values[considered])]
        out = np.empty(len(order), np.int64)
        used = np.zeros(int(pairs.max()) + 1, bool)
        return out[: greedy_matching(pairs, order, used, out)]


@dataclass(frozen=True)
class Single:
    """Activate the edge of the largest score; ties go to the smaller pair.

    With an unlimited reservoir this is exhaustive edge grafting.

    Examples
    --------
    >>> Single().select([(0, 1), (1, 2)], [3.0, 4.0])
    array([1])
    """

    def select(self, edges: ArrayLike, scores: ArrayLike) -> Integers:
        """Return the index of the best edge, or nothing where there is none."""
        pairs, values = _checked(edges, scores)
        if not len(pairs):
            return np.empty(0, np.int64)
        best = np.flatnonzero(values == values.max())
        return best[_ranking(pairs[best], values[best])[:1]]


@dataclass(frozen=True)
class FirstHit:
    """Activate the edge that arrived first, whatever its score.

    Examples
    --------
    >>> FirstHit().select([(0, 1), (1, 2)], [3.0, 4.0])
    array([0])
    """

    def select(self, edges: ArrayLike, scores: ArrayLike) -> Integers:
        """Return the index of the first edge, or nothing where there is none."""
        pairs, _ = _checked(edges, scores)
        return np.arange(min(1, len(pairs)))


def _checked(edges: ArrayLike, scores: ArrayLike) -> tuple[Edges, Floats]:
    pairs = as_edges(edges)
    return pairs, one_each(scores, len(pairs), "scores")


def _ranking(edges: Edges, scores: Floats) -> Integers:
    # By the pair and not by its place: the choice must not depend on the order of arrival.
    return np.lexsort((edges[:, 1], edges[:, 0], -scores))
