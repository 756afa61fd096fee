"""Graphs in the forms that others take: neighbours for the row kernels, matrices for SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from edgegraft.core.layout import Layout
from edgegraft.core.types import Edges
from edgegraft.kernels.conditionals.row_conditionals import Neighbours


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
