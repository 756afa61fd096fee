"""Pairs with a number each: kept in batches as they come, or given out smallest number first.

A stream as plain arrays, and back, stores pairs by id in ascending order: what is drawn does not
depend on how they are held. The level that unseen pairs are drawn from is stored as it is, since
the number of random words that a draw takes depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.types import Floats, Ids, Integers, Mask

_SHARE = 8  # of what waits, this fraction is sorted at a time
_MIN_FRONT = 1024


class PairList:
    """Pairs and their numbers, each pair once, in the batches in which they came."""

    def __init__(self) -> None:
        self._batches: list[tuple[Ids, Floats]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, ids: Ids, numbers: Floats) -> None:
        """Append pairs that are not in the list."""
        if len(ids):
            self._batches.append((ids, numbers))
            self._count += len(ids)

    def all(self) -> tuple[Ids, Floats]:
        """Return all pairs and their numbers."""
        if len(self._batches) != 1:
            parts = self._batches or [(np.empty(0, np.int64), np.empty(0))]
            ids, numbers = (np.concatenate(part) for part in zip(*parts, strict=True))
            self._batches = [(ids, numbers)]
        return self._batches[0]

    def clear(self) -> tuple[Ids, Floats]:
        """Take all pairs out; return them and their numbers."""
        out = self.all()
        self._batches, self._count = [], 0
        return out

    def discard(self, ids: Ids) -> None:
        """Take out those of `ids` that are there."""
        held, numbers = self.clear()
        kept = ~np.isin(held, ids)
        self.add(held[kept], numbers[kept])


class PairQueue:
    """Pairs in the order of their keys, the smallest first; equal keys in a random order.

    The *front* is sorted and holds every pair whose key is at most `_horizon`. The others wait
    unsorted, and an eighth of them at a time moves to the front when it is empty: a queue whose
    keys change often is never sorted as a whole.

    Equal keys are ordered by a keyed mixing of their ids, which is a random permutation, so what
    is taken depends on the entries alone and not on their history.
    """

    def __init__(self) -> None:
        self.salt = np.uint64(0)  # which permutation orders equal keys
        self._ids = np.empty(0, np.int64)
        self._keys = np.empty(0)
        self._horizon = -np.inf
        self._waiting = PairList()

    def __len__(self) -> int:
        return len(self._ids) + len(self._waiting)

    def shuffle(self, salt: np.uint64) -> None:
        """Choose another order of equal keys."""
        self._waiting.add(*self.clear())
        self.salt = salt

    def add(self, ids: Ids, keys: Floats) -> None:
        """Queue pairs that are not in the queue."""
        if not len(self._ids):
            self._horizon = -np.inf
        near = keys <= self._horizon
        if near.any():
            merged = np.append(self._ids, ids[near]), np.append(self._keys, keys[near])
            self._sort(*merged)
            ids, keys = ids[~near], keys[~near]
        self._waiting.add(ids, keys)

    def take(self, k: int, below: float | None) -> Ids:
        """Take out up to `k` pairs, best first; with `below`, only those of a smaller key."""
        parts = []
        while k > 0 and len(self):
            if not len(self._ids):
                self._advance(k)
            stop = min(k, len(self._ids))
            if below is not None:
                stop = int(np.searchsorted(self._keys[:stop], below))
            parts.append(self._ids[:stop])
            self._ids, self._keys = self._ids[stop:], self._keys[stop:]
            k -= stop
            if len(self._ids):
                break
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def lower(self, marked: Mask, by: float) -> None:
        """Lower the key of every pair by `by` for each of its variables that is marked."""
        ids, keys = self.clear()
        for ends in np.divmod(ids, len(marked)):
            keys[marked[ends]] -= by
        self._waiting.add(ids, keys)

    def discard(self, ids: Ids) -> None:
        """Take out those of `ids` that are there."""
        self._waiting.add(*self.clear())
        self._waiting.discard(ids)

    def all(self) -> tuple[Ids, Floats]:
        """Return all pairs and their keys, in no order."""
        self._waiting.add(*self.clear())
        return self._waiting.all()

    def clear(self) -> tuple[Ids, Floats]:
        """Take all pairs out; return them and their keys."""
        self._waiting.add(self._ids, self._keys)
        self._ids, self._keys, self._horizon = self._ids[:0], self._keys[:0], -np.inf
        return self._waiting.clear()

    def _advance(self, k: int) -> None:
        """Move the best pairs that wait to the front."""
        ids, keys = self._waiting.clear()
        wanted = max(k, _MIN_FRONT, len(ids) // _SHARE)
        if wanted < len(ids):
            self._horizon = float(np.partition(keys, wanted - 1)[wanted - 1])
            near = keys <= self._horizon
            self._waiting.add(ids[~near], keys[~near])
            ids, keys = ids[near], keys[near]
        else:
            self._horizon = float(keys.max())
        self._sort(ids, keys)

    def _sort(self, ids: Ids, keys: Floats) -> None:
        order = np.argsort(keys, kind="stable")
        self._ids, self._keys = ids[order], keys[order]
        if (self._keys[1:] == self._keys[:-1]).any():
            order = np.lexsort((_mixed(ids, self.salt), keys))
            self._ids, self._keys = ids[order], keys[order]


def _mixed(ids: Ids, salt: np.uint64) -> Integers:
    # The finaliser of SplitMix64, a bijection: two pairs are never equal.
    word = ids.astype(np.uint64) ^ salt
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


Arrays = dict[str, NDArray[Any]]

_SCALARS = {
    "default_priority": np.float64,
    "salt": np.uint64,
    "salted": np.bool_,
    "ready": np.bool_,
    "listed": np.bool_,
    "level": np.float64,
}
DTYPES = _SCALARS | {
    "boosts": np.float64,
    "queued": np.int64,
    "queued_priorities": np.float64,
    "frozen": np.int64,
    "frozen_offsets": np.float64,
    "out": np.int64,
    "members": np.int64,
    "partners": np.int64,
    "left": np.int64,
}


def read_state(state: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return the parts of a state; one that is missing or does not fit is an error."""
    missing = sorted(set(DTYPES) - set(state))
    if missing:
        raise ValueError(f"the stream's state lacks {', '.join(missing)}")
    part: Arrays = {
        name: np.ascontiguousarray(state[name], dtype) for name, dtype in DTYPES.items()
    }
    part |= {name: part[name].reshape(()) for name in _SCALARS}
    n = len(part["boosts"])
    ids = np.concatenate((part["queued"], part["frozen"], part["out"]))
    first, second = np.divmod(ids, max(n, 1))
    if (ids < 0).any() or (first >= second).any():
        raise ValueError(f"the stream's state names pairs that {n} variables do not have")
    if not np.diff(np.sort(ids)).all():
        raise ValueError("the stream's state has a pair in two places")
    for pairs, numbers in (("queued", "queued_priorities"), ("frozen", "frozen_offsets")):
        if len(part[pairs]) != len(part[numbers]):
            raise ValueError(
                f"the stream's state has {len(part[pairs])} {pairs} pairs but "
                f"{len(part[numbers])} {numbers}"
            )
    return part
