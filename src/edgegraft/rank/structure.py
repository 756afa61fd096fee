"""Structure of graphs: hubs, pairs that close a triangle, spanning forests.

The spanning forest of the strongest dependences (Chow and Liu 1968) is the network if columns form
a tree. If one column is joined to many others, the leaves depend on each other too, and only the
tree says which pairs come first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, triu
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import chdtri

from edgegraft.core.adjacency import link_matrix
from edgegraft.core.pairs import all_pairs, as_edges, pair_ids
from edgegraft.core.types import Edges, Integers
from edgegraft.rank.correlations import Correlations


def find_hubs(degree: ArrayLike, threshold: float | str = "mean") -> Integers:
    """Return the variables whose centrality is above the threshold, ascending.

    The centrality of a variable is the share of the other variables that are its neighbours
    (Chaabene and Huang 2018, section 3.2: networks tend to be scale-free).

    Parameters
    ----------
    degree : array of int, shape (n,)
        Number of neighbours of each variable.
    threshold : float or "mean", default "mean"
        A centrality between 0 and 1, or the mean of the variables that have an edge. (Over all
        variables the mean lies below one edge until n/2 edges are there, and every variable with
        an edge would be a hub.)

    Examples
    --------
    >>> find_hubs([3, 1, 1, 1, 0])
    array([0])
    >>> find_hubs([3, 1, 1, 1, 0], threshold=0.1)
    array([0, 1, 2, 3])
    """
    own = np.asarray(degree)
    if threshold == "mean":
        joined = own[own > 0]
        # In degrees and not in centralities: whole numbers compare without rounding.
        return np.flatnonzero(own * len(joined) > joined.sum())
    if isinstance(threshold, str) or not 0.0 <= threshold <= 1.0:
        raise ValueError(f"a hub threshold is 'mean' or lies between 0 and 1, found {threshold!r}")
    return np.flatnonzero(own / max(len(own) - 1, 1) > threshold)


def closing_pairs(edges: ArrayLike, n_variables: int, *, max_degree: int = 100) -> Edges:
    """Return the pairs at distance two in a graph, pairs of most common neighbours first.

    In real networks a neighbour of a neighbour is more likely a neighbour than a stranger is, and
    a pair whose common neighbour was just activated is where indirect and direct dependence must
    be told apart. The cost is the sum of squared degrees.

    Parameters
    ----------
    edges : array of int, shape (m, 2)
        The active graph, each edge once.
    n_variables : int
    max_degree : int, default 100
        Variables of more neighbours do not count as common ones: that two variables share a great
        hub says little, and a star of n variables has n^2 / 2 such pairs.

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
    small = np.bincount(ends[:, 1], minlength=n_variables)[ends[:, 1]] <= max_degree
    shape = (n_variables, n_variables)
    joined = coo_array((np.ones(small.sum(), np.int64), ends[small].T), shape).tocsr()
    common = triu(joined @ joined.T, 1, "csr").sorted_indices().tocoo()
    found = np.stack((common.row, common.col), axis=1).astype(np.int64)
    is_open = ~np.isin(pair_ids(found, n_variables), pair_ids(pairs, n_variables))
    return found[is_open][np.argsort(-common.data[is_open], kind="stable")]


_LEVEL = 0.05  # chance that any of the pairs is significant if all columns are independent
_BLOCK = 1 << 16  # pairs compared at a time


def spanning_tree(correlations: Correlations) -> Edges:
    """Return the pairs of the spanning forest of significant dependences, smaller index first."""
    n = len(correlations.column_start) - 1
    pairs = all_pairs(n)
    if not len(pairs):
        return pairs
    strength = np.concatenate(
        [correlations.dependence(pairs[k : k + _BLOCK]) for k in range(0, len(pairs), _BLOCK)]
    )
    columns = np.diff(correlations.column_start)
    cells = columns[pairs].prod(axis=1)
    limit = chdtri(np.maximum(cells, 1), _LEVEL / len(pairs))
    n_known = correlations.n_rows * correlations.known[pairs].prod(axis=1)
    linked = (cells > 0) & ((strength + cells / correlations.n_rows) * n_known > limit)
    graph = link_matrix(1.0 / strength[linked], pairs[linked], n).tocsr()
    tree = minimum_spanning_tree(graph).tocoo()
    found = np.sort(np.column_stack((tree.row, tree.col)).astype(np.int64), axis=1)
    return found[np.lexsort((found[:, 1], found[:, 0]))]
