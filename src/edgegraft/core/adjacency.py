"""Graphs as others take them: neighbours and maps of pairs for kernels, matrices for SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from edgegraft.core.layout import Layout
from edgegraft.core.types import Edges, Ids, Integers
from edgegraft.kernels.conditionals.row_conditionals import Neighbours
from edgegraft.kernels.structures import find, insert


def neighbours_of(layout: Layout) -> Neighbours:
    """Return each variable's neighbours and how to walk their edge tables from its side.

    >>> neighbours_of(Layout([2, 3, 2], [(0, 1), (1, 2)])).other.tolist()
    [1, 2, 0, 1]
    """
    low, high = layout.edges[:, 0], layout.edges[:, 1]
    own = np.concatenate((low, high))
    order = np.argsort(own, kind="stable")
    start = np.zeros(layout.n_variables + 1, np.int64)
    np.cumsum(np.bincount(own, minlength=layout.n_variables), out=start[1:])
    ones = np.ones(layout.n_edges, np.int64)
    wide = layout.states[high]
    return Neighbours(
        start,
        np.concatenate((high, low))[order],
        np.tile(layout.edge_offset[:-1], 2)[order],
        np.concatenate((ones, wide))[order],
        np.concatenate((wide, ones))[order],
    )


def link_matrix(values: NDArray[Any], edges: Edges, n: int) -> Any:
    """Return a sparse matrix with a value for each edge among `n` vertices.

    Its indices are 32-bit integers: older releases of SciPy refuse others.

    >>> link_matrix(np.ones(1), np.array([(0, 2)]), 3).toarray()
    array([[0., 0., 1.],
           [0., 0., 0.],
           [0., 0., 0.]])
    """
    return coo_array((values, tuple(edges.T.astype(np.int32))), shape=(n, n))


_SMALLEST = 1024


class PairMap:
    """A map from pair ids to integers that are not negative, 0 for those given at first."""

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
        return np.asarray(find(self.keys, self.values, ids))

    def put(self, ids: Ids, value: int = 0) -> Integers:
        """Give pairs a number, one after another; return the one that each had, -1 for none."""
        self._reserve(len(ids))
        old = np.asarray(insert(self.keys, self.values, ids, np.full(len(ids), value)))
        self._count += int(np.count_nonzero(old < 0))
        return old

    def with_value(self, value: int = 0) -> Ids:
        """Return the ids of the pairs that have this number, ascending."""
        return np.sort(self.keys[(self.keys >= 0) & (self.values == value)])

    def _reserve(self, n_pairs: int) -> None:
        needed = 2 * (self._count + n_pairs)
        if needed > len(self.keys):
            held = self.keys >= 0
            keys, values = self.keys[held], self.values[held]
            self.keys = np.full(1 << needed.bit_length(), -1, np.int64)
            self.values = np.empty(len(self.keys), np.int64)
            insert(self.keys, self.values, keys, values)
