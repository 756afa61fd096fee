"""The stream of candidate edges: what to test next, without listing the n(n-1)/2 pairs.

Every pair of variables is in one of four states, and the stream gives out the best of the first two

    queued   with a priority of its own
    unseen   never stored: its priority is 0, and unseen pairs come in a random order
    frozen   tested without success, with its violation offset v_e = 1 - s_e / penalty
    out      in the caller's hands: drawn, in the reservoir, or active

until they are exhausted; `refill` then queues the frozen ones, their offsets as priorities, and
`boost` queues the pairs of hubs before others (Chaabene and Huang 2018, sections 3.1 and 3.2,
algorithms 2 and 3). Memory grows with the pairs that were looked at and the pairs of hubs, never
with n^2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core.adjacency import PairMap
from edgegraft.core.pairs import as_edges, one_each, pair_ids, pairs_of_ids
from edgegraft.core.types import Edges, Floats, Ids, Integers
from edgegraft.errors import EdgeError

_UNSEEN, _OUT, _QUEUED, _FROZEN = -1, 0, 1, 2
_MOST_QUEUED = 1 << 21  # budget: pairs in the queue when hubs are listed, 80 bytes each
_ROUNDS = 4  # theory: of a Feistel network, for a permutation that passes for a random one
_HALF = np.uint64(32)  # bits of half a word
_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)  # theory: of SplitMix64, mixes the bits of a word


class CandidateStream:
    """Candidate edges in the order of their priorities, the smallest first.

    Parameters
    ----------
    n_variables : int
        Number of variables, at least 1.
    random_state : int, default 0
        Seed of the order of unseen pairs.

    Notes
    -----
    An unseen pair goes before a queued one of priority 0: the untested one is the more informative.
    Queued pairs of equal priority come in the order in which they were queued. The same seed and
    the same calls give the same edges, and so do a draw of ten and two draws of five.

    Examples
    --------
    >>> stream = CandidateStream(4)
    >>> stream.prioritise([(2, 3)], [-1.0])
    1
    >>> stream.draw(1)
    array([[2, 3]])
    >>> stream.freeze([(2, 3)], [0.25])
    >>> len(stream.draw(10)), stream.n_unseen
    (5, 0)
    >>> stream.refill()
    1
    >>> stream.draw(10)
    array([[2, 3]])
    """

    def __init__(self, n_variables: int, random_state: int = 0) -> None:
        if n_variables < 1:
            raise ValueError(f"a stream needs at least 1 variable, found {n_variables}")
        self.n_variables = int(n_variables)
        self.n_pairs = self.n_variables * (self.n_variables - 1) // 2
        self._places = PairMap()
        self._queue, self._frozen = _Pairs(), _Pairs()
        self._listed = np.zeros(self.n_variables, bool)  # variables whose pairs are all queued
        self._rng = np.random.default_rng(random_state)
        self._words = self._rng.integers(0, 2**64, _ROUNDS, dtype=np.uint64)
        self._n_ordered = 0  # pairs of numbers of the random order that are behind

    def __repr__(self) -> str:
        return (
            f"CandidateStream({self.n_variables:,} variables: {self.n_prioritised:,} prioritised, "
            f"{self.n_unseen:,} unseen, {self.n_frozen:,} frozen)"
        )

    @property
    def n_unseen(self) -> int:
        """Number of pairs that were never drawn, prioritised, frozen or removed."""
        return self.n_pairs - len(self._places)

    @property
    def n_prioritised(self) -> int:
        """Number of pairs in the queue."""
        return len(self._queue)

    @property
    def n_frozen(self) -> int:
        """Number of pairs that wait for a refill."""
        return len(self._frozen)

    def draw(self, k: int) -> Edges:
        """Take out up to `k` edges ``(i, j)``, ``i < j``, best first; fewer, or none, at the end.

        They come in the order of their priorities, as an array of shape (m, 2).
        """
        if k < 0:
            raise ValueError(f"the number of edges to draw must not be negative, found {k}")
        better = self._queue.take(k, below=0.0)
        unseen = self._take_unseen(min(k - len(better), self.n_unseen))
        worse = self._queue.take(k - len(better) - len(unseen))
        ids = np.concatenate((better, unseen, worse))
        self._places.put(ids, _OUT)
        return pairs_of_ids(ids, self.n_variables)

    def freeze(self, edges: ArrayLike, offsets: ArrayLike) -> None:
        """Set edges aside until the next refill, with their violation offsets.

        An offset, one for each edge or one for all, is ``1 - score / penalty``: what nearly
        violated comes back first. An edge is taken from wherever it is; one that is frozen already
        gets the new offset.
        """
        ids = self._ids(edges)
        values = one_each(offsets, len(ids), "offsets")
        self._move(ids, _FROZEN)
        self._frozen.add(ids, values)

    def refill(self) -> int:
        """Queue all frozen edges, with their offsets as priorities; return how many.

        Boosts that were given while they were frozen do not count: the offset is newer knowledge
        of the edge itself.
        """
        ids, offsets = self._frozen.all()
        self._frozen = _Pairs()
        self._places.put(ids, _QUEUED)
        self._queue.add(ids, offsets)
        return len(ids)

    def boost(self, nodes: ArrayLike, by: float = 1.0) -> None:
        """Lower the priority of all queued and unseen edges by `by` for each end in `nodes`.

        Unseen edges of `nodes` are queued for it, at a cost of n for each of `nodes` the first
        time. Approximation: once millions of pairs are queued, those of further nodes stay unseen.

        Examples
        --------
        >>> stream = CandidateStream(1000)
        >>> stream.boost([7, 3])
        >>> stream.draw(3)[0]
        array([3, 7])
        """
        if not np.isfinite(by) or by < 0:
            raise ValueError(f"a boost must be finite and not negative, found {by}")
        chosen = np.unique(nodes)
        if not chosen.size or by == 0:
            return
        if chosen.dtype.kind not in "iu" or chosen[0] < 0 or chosen[-1] >= self.n_variables:
            raise ValueError(f"nodes must be integers in 0..{self.n_variables - 1}")
        self._list(chosen[~self._listed[chosen]])
        marked = np.zeros(self.n_variables)
        marked[chosen] = by
        ids, keys = self._queue.all()
        i, j = np.divmod(ids, self.n_variables)
        self._queue = _Pairs()
        self._queue.add(ids, keys - marked[i] - marked[j])

    def prioritise(self, edges: ArrayLike, priorities: ArrayLike) -> int:
        """Give unseen or queued edges explicit priorities; return how many edges got theirs.

        Priorities are one for each edge or one for all; earlier boosts no longer count. Edges that
        are frozen or out are passed over.
        """
        ids = self._ids(edges)
        keys = one_each(priorities, len(ids), "priorities")
        place = self._places.get(ids)
        taken = (place == _UNSEEN) | (place == _QUEUED)
        self._move(ids[taken], _QUEUED)
        self._queue.add(ids[taken], keys[taken])
        return int(taken.sum())

    def remove(self, edges: ArrayLike) -> None:
        """Take edges out of the stream, wherever they are: drawn edges are out already.

        Examples
        --------
        >>> stream = CandidateStream(3)
        >>> stream.remove([(0, 1), (0, 2)])
        >>> stream.draw(5)
        array([[1, 2]])
        """
        self._move(self._ids(edges), _OUT)

    def restore(self, edges: ArrayLike, priority: ArrayLike) -> None:
        """Queue edges that are out (drawn or removed) again; any other edge is an error."""
        ids = self._ids(edges)
        keys = one_each(priority, len(ids), "priorities")
        bad = self._places.get(ids) != _OUT
        if bad.any():
            i, j = divmod(int(ids[int(np.argmax(bad))]), self.n_variables)
            raise EdgeError(
                f"edge ({i}, {j}) is in the stream already and cannot be restored: restore takes "
                "edges that were drawn or removed"
            )
        self._places.put(ids, _QUEUED)
        self._queue.add(ids, keys)

    def _ids(self, edges: ArrayLike) -> Ids:
        """Return the numbers of edges, each of which may be there once."""
        ids = pair_ids(as_edges(edges, self.n_variables), self.n_variables)
        if len(np.unique(ids)) < len(ids):
            raise EdgeError("the same edge is there twice: the stream takes each edge once")
        return ids

    def _move(self, ids: Ids, place: int) -> None:
        """Note where pairs are now, and take them from where they were."""
        before = self._places.put(ids, place)
        for kind, pairs in ((_QUEUED, self._queue), (_FROZEN, self._frozen)):
            if (before == kind).any():
                pairs.discard(ids[before == kind])

    def _list(self, nodes: Integers) -> None:
        """Queue the unseen pairs of these variables, in random order, as far as there is room."""
        n = self.n_variables
        new = nodes[: max(0, (_MOST_QUEUED - self.n_prioritised) // n)]
        i, j = np.repeat(new, n), np.tile(np.arange(n), len(new))
        ids = np.unique(np.minimum(i, j) * n + np.maximum(i, j))
        ids = ids[(ids // n != ids % n) & (self._places.get(ids) == _UNSEEN)]
        self._places.put(ids, _QUEUED)
        self._queue.add(self._rng.permutation(ids), np.zeros(len(ids)))
        self._listed[new] = True

    def _take_unseen(self, k: int) -> Ids:
        """Return the next `k` unseen pairs in the random order of all pairs.

        The order is a Feistel network, a permutation of all ``(i, j)`` below a power of two: it
        needs no memory, and any stretch of it is worked out at once.
        """
        parts, n = [np.empty(0, np.int64)], self.n_variables
        bits = (n - 1).bit_length()
        mask, half, rest = (np.uint64(x) for x in ((1 << bits) - 1, bits, 64 - bits))
        while k > 0:
            stop = min(self._n_ordered + max(256, 8 * k), 1 << 2 * bits)
            places = np.arange(self._n_ordered, stop, dtype=np.uint64)
            i, j = places >> half, places & mask
            for word in self._words:
                mixed = (j + word) * _MULTIPLIER
                i, j = j, i ^ (((mixed ^ (mixed >> _HALF)) * _MULTIPLIER) >> rest)
            pairs = np.flatnonzero((i < j) & (j < n))
            ids = (i[pairs] * np.uint64(n) + j[pairs]).astype(np.int64)
            new = np.flatnonzero(self._places.get(ids) == _UNSEEN)[:k]
            parts.append(ids[new])
            k -= len(new)
            self._n_ordered = stop if k else self._n_ordered + int(pairs[new[-1]]) + 1
        return np.concatenate(parts)


class _Pairs:
    """Pairs and their keys as they come; put in order when some are taken."""

    def __init__(self) -> None:
        self._parts: list[tuple[Ids, Floats]] = [(np.empty(0, np.int64), np.empty(0))]
        self._count = 0
        self._in_order = True

    def __len__(self) -> int:
        return self._count

    def add(self, ids: Ids, keys: Floats) -> None:
        if len(ids):
            self._parts.append((ids, keys))
            self._count += len(ids)
            self._in_order = False

    def all(self) -> tuple[Ids, Floats]:
        """Return all pairs and their keys."""
        ids, keys = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        self._set(ids, keys)
        return ids, keys

    def take(self, k: int, below: float | None = None) -> Ids:
        """Take out up to `k` pairs, best first; with `below`, only those of a smaller key."""
        ids, keys = self._parts[0] if len(self._parts) == 1 else self.all()
        if not self._in_order:
            order = np.argsort(keys, kind="stable")  # which is quick if most are in order
            ids, keys, self._in_order = ids[order], keys[order], True
        stop = k if below is None else min(k, int(np.searchsorted(keys, below)))
        self._set(ids[stop:], keys[stop:])
        return ids[:stop]

    def discard(self, ids: Ids) -> None:
        """Take out those of `ids` that are there."""
        held, keys = self.all()
        kept = ~np.isin(held, ids)
        self._set(held[kept], keys[kept])

    def _set(self, ids: Ids, keys: Floats) -> None:
        self._parts, self._count = [(ids, keys)], len(ids)
