"""Pairs that nothing is known of: never stored, and drawn uniformly from the best level.

Every variable has a boost ``B_i``; the larger ``B_i + B_j``, the better is the pair. All pairs of
two classes of equal boosts share one sum, and a *level* is the set of class pairs of one sum.
Levels are visited from the largest sum down. A variable whose pairs have all been seen belongs to
no class.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.adjacency import PairMap
from edgegraft.core.types import Ids, Integers, Mask
from edgegraft.kernels.search import MAX_REJECTIONS, draw_from_level, draw_from_list


class UnseenPairs:
    """The unseen pairs of a stream, and how far their sampling has come.

    `n_seen` counts the pairs seen of each variable. `level` is the sum of boosts of the level that
    pairs are drawn from now, None if the classes are to be built first.
    """

    def __init__(self, n_variables: int) -> None:
        self.boosts = np.zeros(n_variables)
        self.n_seen = np.zeros(n_variables, np.int64)
        self.level: float | None = None
        self._left: Ids | None = None  # what remains of the level, once it is listed

    @property
    def bound(self) -> float:
        """The sum of boosts of the best pair, or more before the classes are built."""
        return 2.0 * float(self.boosts.max()) if self.level is None else self.level

    def boost(self, marked: Mask, by: float) -> None:
        """Raise the boosts of the marked variables."""
        self.boosts[marked] += by
        self.level = self._left = None

    def mark_seen(self, ids: Ids) -> None:
        """Count pairs that are unseen no longer."""
        for ends in np.divmod(ids, len(self.boosts)):
            np.add.at(self.n_seen, ends, 1)

    def build(self) -> None:
        """Sort the variables that have unseen pairs into classes; begin at the best level."""
        alive = np.flatnonzero(self.n_seen < len(self.boosts) - 1)
        self._classify(alive[np.argsort(-self.boosts[alive], kind="stable")])
        self._partner = np.arange(len(self._first))
        self._find_level()

    def draw(self, pairs: PairMap, k: int, words: NDArray[np.uint64]) -> Ids:
        """Draw up to `k` pairs of this level that `pairs` lacks, and enter them there.

        Fewer than `k` come when the level is exhausted; the next one has then been found.
        """
        pairs.reserve(k)
        n, hashed = len(self.boosts), (pairs.keys, pairs.values)
        out, count = np.empty(k, np.int64), 0
        if self._left is None:
            # A level of a few pairs is listed at once: that is cheaper than rejection.
            if self._blocks[-1, -1] > 2 * MAX_REJECTIONS:
                count = draw_from_level(*hashed, n, self._member, self._blocks, words, out)
            if count < k:
                self._left = self._unseen(pairs)
        if count < k and self._left is not None:
            more, n_left = draw_from_list(*hashed, self._left, len(self._left), words, out[count:])
            self._left = self._left[:n_left]
            count += more
            if count < k:
                self._partner[self._rows] += 1
                self._find_level()
        pairs.entered(count)
        self.mark_seen(out[:count])
        return out[:count]

    def _unseen(self, pairs: PairMap) -> Ids:
        """Return all pairs of this level that `pairs` lacks."""
        found = [np.empty(0, np.int64)]
        for first, size, other, other_size, _ in self._blocks.tolist():
            a, b = self._member[first : first + size], self._member[other : other + other_size]
            i, j = np.repeat(a, other_size), np.tile(b, size)
            if first == other:
                later = np.triu(np.ones((size, size), bool), 1).ravel()
                i, j = i[later], j[later]
            ids = np.minimum(i, j) * len(self.boosts) + np.maximum(i, j)
            found.append(ids[pairs.get(ids) < 0])
        return np.concatenate(found)

    def _classify(self, member: Integers) -> None:
        own = self.boosts[member]
        self._member = np.ascontiguousarray(member)
        self._first = np.flatnonzero(np.append(True, own[1:] != own[:-1])[: len(own)])
        self._size = np.diff(np.append(self._first, len(own)))
        self._boost = own[self._first]

    def _find_level(self) -> None:
        """Go to the best level that has pairs and was not visited.

        Row ``a`` of classes has come to class ``partner[a] >= a``; sums fall along a row, so the
        best level left is the largest of the rows' present sums.
        """
        while True:
            rows = np.flatnonzero(self._partner < len(self._first))
            if not len(rows):
                self._rows = rows
                return
            self._choose(float((self._boost[rows] + self._boost[self._partner[rows]]).max()))
            if self._blocks[-1, -1]:
                return
            self._partner[self._rows] += 1

    def _choose(self, level: float) -> None:
        """Gather the class pairs of a level from where the rows have come to."""
        rows = np.flatnonzero(self._partner < len(self._first))
        rows = rows[self._boost[rows] + self._boost[self._partner[rows]] == level]
        partners = self._partner[rows]
        size, other = self._size[rows], self._size[partners]
        ordered = np.where(rows == partners, size * (size - 1), 2 * size * other)
        self._rows = rows
        self._blocks = np.stack(
            (self._first[rows], size, self._first[partners], other, np.cumsum(ordered)), axis=1
        )
        self.level, self._left = level, None
