"""Growing sets of pairs, filled and asked in batches: with a number for each pair, or without."""

from __future__ import annotations

import numpy as np

from edgegraft.core.pairs import pair_ids
from edgegraft.core.types import Edges, Ids, Integers
from edgegraft.kernels.hashing import find, insert

_SMALLEST = 1024


class PairMap:
    """A map from pair ids to integers that are not negative.

    Its hash map `keys` and `values` may be handed to kernels that enter new pairs; they say how
    many by :meth:`entered`.

    Examples
    --------
    >>> kinds = PairMap()
    >>> kinds.put(np.array([3, 7, 3]), 5)
    array([-1, -1,  5])
    >>> kinds.get(np.array([7, 8]))
    array([ 5, -1])
    """

    def __init__(self) -> None:
        self.keys = np.full(_SMALLEST, -1, np.int64)
        self.values = np.empty(_SMALLEST, np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def get(self, ids: Ids) -> Integers:
        """Return the number of each pair, -1 if it has none."""
        return np.asarray(find(self.keys, self.values, ids))

    def put(self, ids: Ids, value: int) -> Integers:
        """Give pairs a number, one after another; return the one that each had, -1 for none."""
        self.reserve(len(ids))
        old = np.asarray(insert(self.keys, self.values, ids, np.full(len(ids), value)))
        self._count += int(np.count_nonzero(old < 0))
        return old

    def with_value(self, value: int) -> Ids:
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


class PairSet:
    """A set of edges over `n_variables` variables.

    Examples
    --------
    >>> seen = PairSet(10)
    >>> seen.add(np.array([(0, 1), (2, 3), (1, 0)]))
    >>> len(seen)
    2
    """

    def __init__(self, n_variables: int) -> None:
        self._n = n_variables
        self._map = PairMap()

    def __len__(self) -> int:
        return len(self._map)

    def add(self, edges: Edges) -> None:
        """Add edges, given in either direction."""
        self._map.put(pair_ids(edges, self._n), 0)

    def ids(self) -> Ids:
        """Return the ids of the members, ascending, for :meth:`from_ids`."""
        return self._map.with_value(0)

    @classmethod
    def from_ids(cls, ids: Ids, n_variables: int) -> PairSet:
        """Return the set of these ids."""
        found = cls(n_variables)
        found._map.put(np.asarray(ids, np.int64), 0)
        return found
