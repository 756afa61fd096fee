"""Which edges of the reservoir are activated.

Best choice takes, from the largest score down, the edges that score at least

    tau = (1 - selectivity) * mean + selectivity * max

and share no variable with one already taken in the same batch (Chaabene and Huang 2018, section
3.2): adjacent edges may explain the same dependence, and only fitting one shows whether the other
is still needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core.pairs import as_edges, one_each
from edgegraft.core.types import Integers


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
    """Activate the best edges that hardly touch each other.

    Parameters
    ----------
    selectivity : float, default 0.5
        Between 0 (edges of at least the mean score) and 1 (the best edge alone, which with an
        unlimited reservoir is exhaustive edge grafting).
    max_touching : int, default 1
        Edges of one variable that are activated together. The paper's 1 gives a hub one edge per
        activation, and a graph as many activations as its largest hub has edges.

    Examples
    --------
    >>> edges, scores = [(0, 1), (1, 2), (2, 3), (4, 5)], [3.0, 2.9, 2.8, 1.0]
    >>> BestChoice(0.5).select(edges, scores)
    array([0, 2])
    >>> BestChoice(0.0, max_touching=2).select(edges, scores)
    array([0, 2, 1])
    """

    selectivity: float = 0.5
    max_touching: int = 1

    def __post_init__(self) -> None:
        if not 0.0 <= self.selectivity <= 1.0:
            raise ValueError(f"selectivity must lie between 0 and 1, found {self.selectivity}")
        if self.max_touching < 1:
            raise ValueError(f"max_touching must be at least 1, found {self.max_touching}")

    def threshold(self, scores: ArrayLike) -> float:
        """Return the smallest score that is considered.

        Examples
        --------
        >>> BestChoice(0.5).threshold([1.0, 2.0, 6.0])
        4.5
        """
        values = np.asarray(scores, np.float64)
        top = float(values.max())
        if self.selectivity == 1.0 or not np.isfinite(top):
            return top
        tau = (1.0 - self.selectivity) * float(values.mean()) + self.selectivity * top
        return min(tau, top)  # the mean of equal scores may exceed them by rounding

    def select(self, edges: ArrayLike, scores: ArrayLike) -> Integers:
        """Return the indices to activate, best first; ties go to the smaller pair.

        With `max_touching` above 1, edges that touch none before them come first, then those
        that touch one at either end, and so on.
        """
        pairs = as_edges(edges)
        values = one_each(scores, len(pairs), "scores")
        if not len(pairs):
            return np.empty(0, np.int64)
        considered = np.flatnonzero(values >= self.threshold(values))
        # By the pair and not by its place: the choice must not depend on the order of arrival.
        first, second = pairs[considered].T
        order = considered[np.lexsort((second, first, -values[considered]))]
        if self.selectivity == 1.0:
            return order[:1]
        rounds = np.array(_rounds(pairs[order].tolist()))
        taken = np.flatnonzero(rounds < self.max_touching)
        return order[taken[np.argsort(rounds[taken], kind="stable")]]


def _rounds(pairs: list[list[int]]) -> list[int]:
    """Return the round of each pair: the first in which no earlier pair shares a variable."""
    used: dict[int, int] = {}  # bit r of a variable is set if it has a pair in round r
    rounds = []
    for i, j in pairs:
        free = ~(used.get(i, 0) | used.get(j, 0))
        lowest = free & -free
        used[i] = used.get(i, 0) | lowest
        used[j] = used.get(j, 0) | lowest
        rounds.append(lowest.bit_length() - 1)
    return rounds
