"""The stream of candidate edges: what to test next, without listing the n(n-1)/2 pairs.

Every pair of variables is in one of four states, and the stream gives out the best of the first two

    queued   with a priority of its own
    unseen   never stored: its priority is  default - (B_i + B_j),  B the boosts of hubs
    frozen   tested without success, with its violation offset v_e = 1 - s_e / penalty
    out      in the caller's hands: drawn, in the reservoir, or active

until they are exhausted; `refill` then queues the frozen ones, their offsets as priorities
(Chaabene and Huang 2018, sections 3.1 and 3.2, algorithms 2 and 3; their appendix B is
``full=True``). Memory and time grow with the pairs that were looked at, never with n^2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core.adjacency import PairMap
from edgegraft.core.pairs import all_pairs, as_edges, one_each, pair_ids, pairs_of_ids
from edgegraft.core.types import Edges, Ids
from edgegraft.errors import EdgeError, MemoryBudgetError
from edgegraft.grafting.pair_queue import PairQueue
from edgegraft.grafting.unseen import UnseenPairs
from edgegraft.kernels.search import OUT

_UNSEEN, _QUEUED, _FROZEN = -1, 1, 2  # what is known of a pair, beside OUT
_MAX_FULL_BYTES = 4 << 30  # budget
_FULL_BYTES = 88  # of one queued pair: 16 in the queue and as much to sort it, up to 64 in the map


class CandidateStream:
    """Candidate edges in the order of their priorities, the smallest first.

    Parameters
    ----------
    n_variables : int
        Number of variables, at least 1.
    default_priority : float, default 0.0
        Priority of pairs that nothing is known of.
    full : bool, default False
        Queue all pairs at the start instead of sampling them when they are needed (appendix B of
        the paper). The order is random as well; the memory is quadratic.

    Notes
    -----
    *Ties.* Unseen pairs of one priority come in uniformly random order. An unseen pair goes before
    a queued one of equal priority: the untested one is the more informative. Queued pairs of equal
    priority come in the order of a random permutation that the first `draw` fixes.

    *Randomness.* A draw takes four 64-bit words from the generator, the first one a fifth,
    whatever it gives out. The same generator and the same calls give the same edges; one draw of
    ten and two draws of five do not.

    *Boosts* add up in floating point: classes of equal boosts merge exactly when the sums are
    exact, as they are for whole numbers.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> stream = CandidateStream(4)
    >>> stream.prioritise([(2, 3)], [-1.0])
    1
    >>> stream.draw(1, rng)
    array([[2, 3]])
    >>> stream.freeze([(2, 3)], [0.25])
    >>> len(stream.draw(10, rng)), stream.n_unseen
    (5, 0)
    >>> stream.refill()
    1
    >>> stream.draw(10, rng)
    array([[2, 3]])
    """

    def __init__(
        self, n_variables: int, *, default_priority: float = 0.0, full: bool = False
    ) -> None:
        if n_variables < 1:
            raise ValueError(f"a stream needs at least 1 variable, found {n_variables}")
        if not np.isfinite(default_priority):
            raise ValueError(f"default_priority must be finite, found {default_priority}")
        self.n_variables = int(n_variables)
        self.n_pairs = self.n_variables * (self.n_variables - 1) // 2
        self.default_priority = float(default_priority)
        self._places = PairMap()
        self._queue = PairQueue()
        self._unseen = UnseenPairs(self.n_variables)
        self._frozen = PairQueue()
        if full:
            self._queue_all()

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

    def draw(self, k: int, rng: np.random.Generator) -> Edges:
        """Take out up to `k` edges ``(i, j)``, ``i < j``, best first; fewer, or none, at the end.

        They come in the order of their priorities, as an array of shape (m, 2).
        """
        if k < 0:
            raise ValueError(f"the number of edges to draw must not be negative, found {k}")
        if self._queue.salt is None:
            self._queue.salt = rng.integers(0, 2**64, dtype=np.uint64)
        words = rng.integers(0, 2**64, 4, dtype=np.uint64)
        k = min(k, self.n_unseen + self.n_prioritised)
        drawn: list[Ids] = []
        while k > 0:
            # An unseen pair goes before a queued one of the same priority.
            limit = self.default_priority - self._unseen.bound if self.n_unseen else None
            taken = self._queue.take(k, limit)
            if len(taken):
                self._places.put(taken, OUT)
            elif self._unseen.level is None:
                self._unseen.build()  # the limit was only a bound
            else:
                taken = self._unseen.draw(self._places, min(k, self.n_unseen), words)
            drawn.append(taken)
            k -= len(taken)
        ids = np.concatenate(drawn) if drawn else np.empty(0, np.int64)
        return pairs_of_ids(ids, self.n_variables)

    def freeze(self, edges: ArrayLike, offsets: ArrayLike) -> None:
        """Set edges aside until the next refill, with their violation offsets.

        An offset, one for each edge or one for all, is ``1 - score / penalty``: what nearly
        violated comes back first. An edge is taken from wherever it is; one that is frozen already
        gets the new offset.
        """
        ids = self._ids(edges)
        values = one_each(offsets, len(ids), "offsets").copy()
        kept = self._move(ids, _FROZEN)
        self._frozen.add(ids[kept], values[kept])

    def refill(self) -> int:
        """Queue all frozen edges, with their offsets as priorities; return how many.

        Boosts that were given while they were frozen do not count: the offset is newer knowledge
        of the edge itself.
        """
        ids, offsets = self._frozen.clear()
        self._places.put(ids, _QUEUED)
        self._queue.add(ids, offsets)
        return len(ids)

    def boost(self, nodes: ArrayLike, by: float = 1.0) -> None:
        """Lower the priority of all queued and unseen edges by `by` for each end in `nodes`.

        Costs one pass over the queue and nothing for unseen edges.

        Examples
        --------
        >>> stream = CandidateStream(1000)
        >>> stream.boost([7, 3])
        >>> stream.draw(3, np.random.default_rng(0))[0]
        array([3, 7])
        """
        if not np.isfinite(by) or by < 0:
            raise ValueError(f"a boost must be finite and not negative, found {by}")
        marked = np.zeros(self.n_variables, bool)
        chosen = np.asarray(nodes)
        if not chosen.size or by == 0:
            return
        if chosen.dtype.kind not in "iu" or chosen.min() < 0 or chosen.max() >= self.n_variables:
            raise ValueError(f"nodes must be integers in 0..{self.n_variables - 1}")
        marked[chosen] = True
        self._unseen.boost(marked, float(by))
        self._queue.lower(marked, float(by))

    def prioritise(self, edges: ArrayLike, priorities: ArrayLike) -> int:
        """Give unseen or queued edges explicit priorities; return how many edges got theirs.

        Priorities are one for each edge or one for all; earlier boosts no longer count. Edges that
        are frozen or out are passed over.
        """
        ids = self._ids(edges)
        keys = one_each(priorities, len(ids), "priorities")
        place = self._places.get(ids)
        taken = (place != OUT) & (place != _FROZEN)
        ids, keys = ids[taken], keys[taken]
        kept = self._move(ids, _QUEUED)
        self._queue.add(ids[kept], keys[kept])
        return len(ids)

    def remove(self, edges: ArrayLike) -> None:
        """Take edges out of the stream, wherever they are: drawn edges are out already.

        Examples
        --------
        >>> stream = CandidateStream(3)
        >>> stream.remove([(0, 1), (0, 2)])
        >>> stream.draw(5, np.random.default_rng(0))
        array([[1, 2]])
        """
        self._move(self._ids(edges), OUT)

    def restore(self, edges: ArrayLike, priority: ArrayLike) -> None:
        """Queue edges that are out (drawn or removed) again; any other edge is an error."""
        ids = self._ids(edges)
        keys = one_each(priority, len(ids), "priorities").copy()
        bad = self._places.get(ids) != OUT
        if not bad.any():
            bad = self._places.put(ids, _QUEUED) != OUT  # given twice
            if bad.any():
                self._places.put(ids, OUT)
        if bad.any():
            i, j = divmod(int(ids[int(np.argmax(bad))]), self.n_variables)
            raise EdgeError(
                f"edge ({i}, {j}) is in the stream already and cannot be restored: restore takes "
                "edges that were drawn or removed, each once"
            )
        self._queue.add(ids, keys)

    def _ids(self, edges: ArrayLike) -> Ids:
        return pair_ids(as_edges(edges, self.n_variables), self.n_variables)

    def _move(self, ids: Ids, place: int) -> Ids | slice:
        """Note where pairs are now, and take them from where they were.

        Return which of `ids` to enter there: of a pair that is given twice the last.
        """
        before = self._places.put(ids, place)
        if (before == OUT).all():
            return slice(None)
        self._unseen.mark_seen(ids[before == _UNSEEN])
        for kind, held in ((_QUEUED, self._queue), (_FROZEN, self._frozen)):
            if (before == kind).any():
                held.discard(ids[before == kind])
        if not (before == place).any():
            return slice(None)
        _, from_end = np.unique(ids[::-1], return_index=True)
        return np.asarray(len(ids) - 1 - from_end)

    def _queue_all(self) -> None:
        needed = self.n_pairs * _FULL_BYTES
        if needed > _MAX_FULL_BYTES:
            raise MemoryBudgetError(
                f"a full queue of {self.n_variables:,} variables takes {needed:,} bytes, more than "
                f"the {_MAX_FULL_BYTES:,} allowed: leave out full=True"
            )
        self.prioritise(all_pairs(self.n_variables), self.default_priority)
