"""A bounded control sample of edges that violate optimality, from which the best are activated.

The best of ``R`` edges taken at random from ``C`` has the expected rank ``(C + 1) / (R + 1)``
(Chaabene and Huang 2018, section 4.1): a small reservoir already finds an edge near the top. A
capacity of one makes the search activate its first hit, an unlimited one makes it exhaustive.

Best choice takes, from the largest score down, the edges that score at least

    tau = (1 - selectivity) * mean + selectivity * max

and share no variable with one already taken in the same batch (section 3.2): adjacent edges may
explain the same dependence, and only fitting one shows whether the other is still needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core.pairs import as_edges, one_each
from edgegraft.core.types import Edges, Floats, Integers


class ScoredEdges(NamedTuple):
    """Edges and their scores."""

    edges: Edges
    scores: Floats


class Reservoir:
    """The best edges offered so far, in the order of their arrival.

    Parameters
    ----------
    capacity : int or None
        Number of edges that it holds; None for unlimited.

    Notes
    -----
    The reservoir always holds the `capacity` best of what it was offered; of equal scores those
    that came first stay. An edge must not be offered while it is held: the stream gives out each
    edge once.

    Examples
    --------
    >>> reservoir = Reservoir(2)
    >>> out = reservoir.offer([(0, 1), (1, 2), (2, 3)], [1.0, 3.0, 2.0])
    >>> out.edges, out.scores
    (array([[0, 1]]), array([1.]))
    >>> reservoir.scores
    array([3., 2.])
    >>> reservoir.take([1]).edges, reservoir.edges
    (array([[2, 3]]), array([[1, 2]]))
    """

    def __init__(self, capacity: int | None = None) -> None:
        if capacity is not None and capacity < 1:
            raise ValueError(f"a reservoir must hold at least 1 edge, found {capacity}")
        self.capacity = capacity
        self.edges: Edges = np.empty((0, 2), np.int64)  #: those held, in the order of arrival
        self.scores: Floats = np.empty(0)  #: of each edge

    def __len__(self) -> int:
        return len(self.scores)

    def __repr__(self) -> str:
        capacity = "unlimited" if self.capacity is None else f"{self.capacity:,}"
        return f"Reservoir({len(self):,} edges, capacity {capacity})"

    @property
    def full(self) -> bool:
        """Whether the next edge must be better than one that is held."""
        return self.capacity is not None and len(self) >= self.capacity

    def offer(self, edges: ArrayLike, scores: ArrayLike) -> ScoredEdges:
        """Take in what is good enough; return what is not, or no longer, in the order of arrival.

        As if the edges came one by one: all stay until the reservoir is full; then each that is
        better than the minimum takes its place, and the minimum goes out.
        """
        new = as_edges(edges)
        self.scores = np.concatenate((self.scores, one_each(scores, len(new), "scores")))
        self.edges = np.concatenate((self.edges, new))
        best = np.argsort(-self.scores, kind="stable")  # of equal scores the first ones
        return self.take(np.sort(best[self.capacity :] if self.capacity else best[:0]))

    def rescore(self, scores: ArrayLike) -> None:
        """Replace all scores, given in the order of `edges`."""
        self.scores = one_each(scores, len(self), "scores").copy()

    def take(self, indices: ArrayLike) -> ScoredEdges:
        """Take out edges by index, as a rule selected them; return them in that order."""
        chosen = np.asarray(indices, np.int64)
        if len(np.unique(chosen)) < len(chosen):
            raise ValueError("an edge was taken twice")
        out = ScoredEdges(self.edges[chosen], self.scores[chosen])
        self.edges = np.delete(self.edges, chosen, axis=0)
        self.scores = np.delete(self.scores, chosen)
        return out


@dataclass(frozen=True)
class BestChoice:
    """Activate the best edges that hardly touch each other.

    A rule of your own is a subclass with another :meth:`select`.

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
        """Return the indices of the edges to activate, best first; ties go to the smaller pair.

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
