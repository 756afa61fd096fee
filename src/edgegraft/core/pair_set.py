"""Which pairs were looked at: a growing set of pair ids, asked and filled in batches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.pairs import pair_ids
from edgegraft.kernels.counting.hashing import insert

_SMALLEST = 1024


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
        self._count = 0
        self._keys = np.full(_SMALLEST, -1, np.int64)

    def __len__(self) -> int:
        return self._count

    def add(self, edges: NDArray[np.int64]) -> None:
        """Add edges, given in either direction."""
        self._insert(pair_ids(edges, self._n))

    def ids(self) -> NDArray[np.int64]:
        """Return the ids of the members, ascending, for :meth:`from_ids`."""
        return np.sort(self._keys[self._keys >= 0])

    @classmethod
    def from_ids(cls, ids: NDArray[np.int64], n_variables: int) -> PairSet:
        """Return the set of these ids."""
        found = cls(n_variables)
        found._insert(np.asarray(ids, np.int64))
        return found

    def _insert(self, ids: NDArray[np.int64]) -> None:
        needed = 2 * (self._count + len(ids))
        if needed > len(self._keys):
            kept = self._keys[self._keys >= 0]
            self._keys = np.full(1 << needed.bit_length(), -1, np.int64)
            insert(self._keys, np.empty_like(self._keys), kept, kept)
        # Only membership counts: the values beside the keys are not read.
        self._count += int(insert(self._keys, np.empty_like(self._keys), ids, ids))
