"""Pairs that would close a triangle of the active graph.

In real networks a neighbour of a neighbour is more likely a neighbour than a stranger is, and a
pair whose common neighbour was just activated is where indirect and direct dependence must be told
apart. Found from the edges alone, at a cost of the sum of squared degrees.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core.pairs import as_edges, pair_ids, pairs_of_ids
from edgegraft.core.types import Edges
from edgegraft.kernels.search.adjacency import wedges


def closing_pairs(edges: ArrayLike, n_variables: int, *, max_degree: int = 100) -> Edges:
    """Return the pairs at distance two in a graph, those of most common neighbours first.

    Parameters
    ----------
    edges : array of int, shape (m, 2)
        The active graph, each edge once.
    n_variables : int
    max_degree : int, default 100
        Variables of more neighbours are not looked through: that two variables share a great hub
        says little, and a star of n variables has n^2 / 2 such pairs.

    Returns
    -------
    array of int, shape (p, 2)
        Ties in the order of the pairs.

    Examples
    --------
    >>> closing_pairs([(0, 1), (1, 2), (2, 3), (0, 3), (3, 4)], 5)
    array([[0, 2],
           [1, 3],
           [0, 4],
           [2, 4]])
    """
    if max_degree < 2:
        raise ValueError(f"max_degree must be at least 2, found {max_degree}")
    pairs = as_edges(edges, n_variables)
    ends = np.concatenate((pairs, pairs[:, ::-1]))
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    start = np.zeros(n_variables + 1, np.int64)
    np.cumsum(np.bincount(ends[:, 0], minlength=n_variables), out=start[1:])
    other = np.ascontiguousarray(ends[order, 1])
    found = np.empty(int(wedges(start, other, max_degree, np.empty(0, np.int64))), np.int64)
    wedges(start, other, max_degree, found)
    ids, common = np.unique(found, return_counts=True)
    is_open = ~np.isin(ids, pair_ids(pairs, n_variables))
    ids, common = ids[is_open], common[is_open]
    return pairs_of_ids(ids[np.argsort(-common, kind="stable")], n_variables)
