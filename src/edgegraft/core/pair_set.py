"""Growing sets of pairs, filled and asked in batches, with a number for each pair."""

from __future__ import annotations

import numpy as np

from edgegraft.core.types import Ids, Integers
from edgegraft.kernels.compiler import for_size
from edgegraft.kernels.structures import find, insert

_SMALLEST = 1024


class PairMap:
    """A map from pair ids to integers that are not negative, 0 for those given at first.

    Its hash map `keys` and `values` may be handed to kernels that enter new pairs; they say how
    many by :meth:`entered`.

    >>> kinds = PairMap()
    >>> kinds.put(np.array([3, 7, 3]), 5)
    array([-1, -1,  5])
    >>> kinds.get(np.array([7, 8]))
    array([ 5, -1])
    """

    def __init__(self, ids: Ids | None = None) -> None:
        self.keys = np.full(_SMALLEST, -1, np.int64)
        self.values = np.empty(_SMALLEST, np.int64)
        self._count = 0
        if ids is not None:
            self.put(ids)

    def __len__(self) -> int:
        return self._count

    def get(self, ids: Ids) -> Integers:
        """Return the number of each pair, -1 if it has none."""
        return np.asarray(for_size(find, len(ids))(self.keys, self.values, ids))

    def put(self, ids: Ids, value: int = 0) -> Integers:
        """Give pairs a number, one after another; return the one that each had, -1 for none."""
        self.reserve(len(ids))
        enter = for_size(insert, len(ids))
        old = np.asarray(enter(self.keys, self.values, ids, np.full(len(ids), value)))
        self._count += int(np.count_nonzero(old < 0))
        return old

    def with_value(self, value: int = 0) -> Ids:
        """Return the ids of the pairs that have this number, ascending."""
        return np.sort(self.keys[(self.keys >= 0) & (self.values == value)])

    def reserve(self, n_pairs: int) -> None:
        """Make room for so many more pairs."""
        needed = 2 * (self._count + n_pairs)
        if needed > len(self.keys):
            held = self.keys >= 0
            keys, values = self.keys[held], self.values[held]
            self.keys = np.full(1 << needed.bit_length(), -1, np.int64)
            self.values = np.empty(len(self.keys), np.int64)
            insert(self.keys, self.values, keys, values)

    def entered(self, n_pairs: int) -> None:
        """Count pairs that a kernel has entered."""
        self._count += n_pairs
