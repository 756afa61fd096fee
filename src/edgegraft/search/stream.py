"""The stream of candidate edges: what to test next, without listing the n(n-1)/2 pairs.

Every pair of variables is in one of four states, and the stream gives out the minimum

    prioritised   in a heap, with a priority of its own
    unseen        never stored: its priority is  default - (B_i + B_j),  B the boosts of hubs
    frozen        tested without success, with its violation offset v_e = 1 - s_e / penalty
    out           in the caller's hands: drawn, in the reservoir, or active

until the first two are dry; `refill` then queues the frozen ones, their offsets as priorities
(Chaabene and Huang 2018, sections 3.1 and 3.2, algorithms 2 and 3; their appendix B is
``full=True``). Memory and time grow with the pairs that were looked at, never with n^2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.core.pairs import as_edges, one_each, pair_ids, pairs_of_ids
from edgegraft.core.types import Edges
from edgegraft.errors import EdgeError, MemoryBudgetError
from edgegraft.kernels.search import pair_moves as moves
from edgegraft.kernels.search.candidates import NEEDS_LEVELS, NEEDS_ROOM, draw_pairs
from edgegraft.kernels.search.pair_queue import FROZEN, QUEUED, SEEN, heapify
from edgegraft.kernels.search.unseen import LEFT, READY, list_level
from edgegraft.search import stream_state, stream_storage

_FULL_BYTES = 88  # of one queued pair: 24 in the heap, up to 64 in the hash table
_MAX_FULL_BYTES = 4 << 30


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
    a queued one of equal priority: what was never tested tells more. Queued pairs of equal
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
        self.default_priority = float(default_priority)
        self._boosts = np.zeros(self.n_variables)
        self._queue = stream_storage.empty_queue(self.n_variables)
        self._levels = stream_storage.no_levels()
        self._salted = False
        if full:
            self._queue_all()

    def __repr__(self) -> str:
        return (
            f"CandidateStream({self.n_variables:,} variables: {self.n_prioritised:,} prioritised, "
            f"{self.n_unseen:,} unseen, {self.n_frozen:,} frozen)"
        )

    @property
    def n_pairs(self) -> int:
        """Number of pairs of variables."""
        return self.n_variables * (self.n_variables - 1) // 2

    @property
    def n_unseen(self) -> int:
        """Number of pairs that were never drawn, prioritised, frozen or removed."""
        return self.n_pairs - int(self._queue.size[SEEN])

    @property
    def n_prioritised(self) -> int:
        """Number of pairs in the queue."""
        return int(self._queue.size[QUEUED])

    @property
    def n_frozen(self) -> int:
        """Number of pairs that wait for a refill."""
        return int(self._queue.size[FROZEN])

    def draw(self, k: int, rng: np.random.Generator) -> Edges:
        """Take out up to `k` edges, best first; fewer (none) when the stream runs (is) dry.

        Parameters
        ----------
        k : int
            Number of edges.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array of int, shape (m, 2)
            Edges ``(i, j)``, ``i < j``, in the order of their priorities.
        """
        if k < 0:
            raise ValueError(f"the number of edges to draw must not be negative, found {k}")
        if not self._salted:
            self._queue.salt[0] = rng.integers(0, 2**64, dtype=np.uint64)
            self._salted = True
            heapify(self._queue)
        state = rng.integers(0, 2**64, 4, dtype=np.uint64)
        out = np.empty(min(k, self.n_unseen + self.n_prioritised), np.int64)
        self._reserve(seen=min(len(out), self.n_unseen))
        count = 0
        while True:
            count, why = draw_pairs(
                self._queue,
                self._levels,
                self.default_priority,
                float(self._boosts.max()),
                state,
                out,
                count,
            )
            if why == NEEDS_LEVELS:
                self._levels = stream_storage.build_levels(self._boosts, self._queue)
            elif why == NEEDS_ROOM:
                self._levels = self._levels._replace(
                    left=np.empty(int(self._levels.now[LEFT]), np.int64)
                )
                list_level(self._queue, self._levels)
            else:
                return pairs_of_ids(out[:count], self.n_variables)

    def freeze(self, edges: ArrayLike, offsets: ArrayLike) -> None:
        """Set edges aside until the next refill, with their violation offsets.

        An edge is taken from wherever it is; one that is frozen already gets the new offset.

        Parameters
        ----------
        edges : array of int, shape (m, 2)
        offsets : float or array of float, shape (m,)
            ``1 - score / penalty``: what nearly violated comes back first.
        """
        ids = pair_ids(as_edges(edges, self.n_variables), self.n_variables)
        values = one_each(offsets, len(ids), "offsets")
        self._reserve(seen=len(ids), frozen=len(ids))
        moves.freeze(self._queue, ids, values)

    def refill(self) -> int:
        """Queue all frozen edges, with their offsets as priorities; return how many.

        Boosts that were given while they were frozen do not count: the offset is newer knowledge
        of the edge itself.
        """
        count = self.n_frozen
        if count:
            self._reserve(queued=count)
            moves.thaw_all(self._queue)
        return count

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
        self._boosts[marked] += by
        self._levels.now[READY] = 0
        moves.lower_keys(self._queue, marked, float(by))

    def prioritise(self, edges: ArrayLike, priorities: ArrayLike, *, thaw: bool = False) -> int:
        """Give unseen or queued edges explicit priorities; earlier boosts no longer count for them.

        Parameters
        ----------
        edges : array of int, shape (m, 2)
        priorities : float or array of float, shape (m,)
        thaw : bool, default False
            Queue frozen edges as well.

        Returns
        -------
        int
            Number of edges that have their new priority; edges that are out are passed over.
        """
        ids = pair_ids(as_edges(edges, self.n_variables), self.n_variables)
        keys = one_each(priorities, len(ids), "priorities")
        self._reserve(seen=len(ids), queued=len(ids))
        return int(moves.set_keys(self._queue, ids, keys, thaw))

    def remove(self, edges: ArrayLike) -> None:
        """Take edges out of the stream, wherever they are: drawn edges are out already.

        Examples
        --------
        >>> stream = CandidateStream(3)
        >>> stream.remove([(0, 1), (0, 2)])
        >>> stream.draw(5, np.random.default_rng(0))
        array([[1, 2]])
        """
        ids = pair_ids(as_edges(edges, self.n_variables), self.n_variables)
        self._reserve(seen=len(ids))
        moves.put_out(self._queue, ids)

    def restore(self, edges: ArrayLike, priority: ArrayLike) -> None:
        """Queue edges that are out (drawn or removed) again; any other edge is an error."""
        ids = pair_ids(as_edges(edges, self.n_variables), self.n_variables)
        keys = one_each(priority, len(ids), "priorities")
        first = int(moves.count_out(self._queue, ids))
        unique, where = np.unique(ids, return_index=True)
        if first == len(ids) and len(unique) < len(ids):
            first = int(np.setdiff1d(np.arange(len(ids)), where)[0])
        if first < len(ids):
            i, j = divmod(int(ids[first]), self.n_variables)
            raise EdgeError(
                f"edge ({i}, {j}) is in the stream already and cannot be restored: restore takes "
                "edges that were drawn or removed, each once"
            )
        self._reserve(queued=len(ids))
        moves.requeue(self._queue, ids, keys)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that the stream is as plain arrays, for :meth:`from_state`."""
        return stream_state.export(
            self.default_priority, self._salted, self._boosts, self._queue, self._levels
        )

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]]) -> Self:
        """Return the stream that :meth:`state` described: it goes on as that one would.

        Examples
        --------
        >>> stream, rng = CandidateStream(50), np.random.default_rng(0)
        >>> _ = stream.draw(10, rng)
        >>> twin = CandidateStream.from_state(stream.state())
        >>> a = stream.draw(5, np.random.default_rng(1))
        >>> b = twin.draw(5, np.random.default_rng(1))
        >>> bool((a == b).all())
        True
        """
        stored = stream_state.read(state)
        stream = cls(len(stored.boosts), default_priority=stored.default_priority)
        stream._boosts[:] = stored.boosts
        stream._salted = stored.salted
        stream._queue.salt[0] = stored.salt
        n_seen = len(stored.queued) + len(stored.frozen) + len(stored.out)
        stream._reserve(seen=n_seen, queued=len(stored.queued), frozen=len(stored.frozen))
        moves.put_out(stream._queue, stored.out)
        moves.freeze(stream._queue, stored.frozen, stored.frozen_keys)
        moves.set_keys(stream._queue, stored.queued, stored.queued_keys, False)
        if stored.members is not None:
            stream._levels = stream_storage.resume_levels(stored.boosts, stored.members)
        return stream

    def _reserve(self, *, seen: int = 0, queued: int = 0, frozen: int = 0) -> None:
        self._queue = stream_storage.with_room(self._queue, seen, queued, frozen)

    def _queue_all(self) -> None:
        needed = self.n_pairs * _FULL_BYTES
        if needed > _MAX_FULL_BYTES:
            raise MemoryBudgetError(
                f"a full queue of {self.n_variables:,} variables takes {needed:,} bytes, more than "
                f"the {_MAX_FULL_BYTES:,} allowed: leave out full=True"
            )
        self._reserve(seen=self.n_pairs, queued=self.n_pairs)
        moves.queue_all(self._queue, self.default_priority)
