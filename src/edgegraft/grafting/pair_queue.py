"""Pairs and their numbers: a queue by priority, and whatever waits to be put into one."""

from __future__ import annotations

import numpy as np

from edgegraft.core.types import Floats, Ids, Integers, Mask


class PairQueue:
    """Pairs in the order of their keys, the smallest first; equal keys in a random order.

    Pairs are kept as they come, each once, and put in order when some are taken. Equal keys are
    ordered by a keyed mixing of their ids, which is a random permutation, so what is taken depends
    on the entries alone and not on their history.
    """

    def __init__(self) -> None:
        self.salt: np.uint64 | None = None  # which permutation orders equal keys
        self._batches: list[tuple[Ids, Floats]] = []
        self._count = 0
        self._in_order = True

    def __len__(self) -> int:
        return self._count

    def add(self, ids: Ids, keys: Floats) -> None:
        """Queue pairs that are not in the queue."""
        if len(ids):
            self._batches.append((ids, keys))
            self._count += len(ids)
            self._in_order = False

    def all(self) -> tuple[Ids, Floats]:
        """Return all pairs and their keys."""
        if len(self._batches) != 1:
            parts = self._batches or [(np.empty(0, np.int64), np.empty(0))]
            ids, keys = (np.concatenate(part) for part in zip(*parts, strict=True))
            self._batches = [(ids, keys)]
        return self._batches[0]

    def take(self, k: int, below: float | None) -> Ids:
        """Take out up to `k` pairs, best first; with `below`, only those of a smaller key."""
        if not self._in_order:
            self._sort()
        ids, keys = self.all()
        stop = min(k, len(ids))
        if below is not None:
            stop = int(np.searchsorted(keys[:stop], below))
        self._keep(ids[stop:], keys[stop:])
        return ids[:stop]

    def lower(self, marked: Mask, by: float) -> None:
        """Lower the key of every pair by `by` for each of its variables that is marked."""
        ids, keys = self.all()
        for ends in np.divmod(ids, len(marked)):
            keys = keys - by * marked[ends]
        self._keep(ids, keys)
        self._in_order = False

    def discard(self, ids: Ids) -> None:
        """Take out those of `ids` that are there."""
        held, keys = self.all()
        kept = ~np.isin(held, ids)
        self._keep(held[kept], keys[kept])

    def clear(self) -> tuple[Ids, Floats]:
        """Take all pairs out; return them and their keys."""
        out = self.all()
        self._keep(out[0][:0], out[1][:0])
        return out

    def _keep(self, ids: Ids, keys: Floats) -> None:
        self._batches, self._count = [(ids, keys)], len(ids)

    def _sort(self) -> None:
        ids, keys = self.all()
        order = np.argsort(keys, kind="stable")  # which is quick if most are in order
        ids, keys = ids[order], keys[order]
        same = keys[1:] == keys[:-1]
        if same.any():
            tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
            ids[tied] = ids[tied[np.lexsort((_mixed(ids[tied], self.salt), keys[tied]))]]
        self._keep(ids, keys)
        self._in_order = True


def _mixed(ids: Ids, salt: np.uint64 | None) -> Integers:
    # The finaliser of SplitMix64, a bijection: two pairs are never equal.
    word = ids.astype(np.uint64) ^ (salt or np.uint64(0))
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
