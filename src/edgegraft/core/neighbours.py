"""The neighbours of every variable of a layout, ready for the row kernels."""

from __future__ import annotations

import numpy as np

from edgegraft.core.layout import Layout
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
