"""The spanning forest of the strongest dependences (Chow and Liu 1968).

If columns form a tree, it is the network. If one column is joined to many others, the leaves depend
on each other too, and only the tree says which pairs come first.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import chdtri

from edgegraft.core.links import link_matrix
from edgegraft.core.pairs import all_pairs
from edgegraft.core.types import Edges
from edgegraft.search.correlations import Correlations

_LEVEL = 1e-3  # chance that any of the pairs is significant if all columns are independent
_BLOCK = 1 << 16  # pairs compared at a time


def spanning_tree(correlations: Correlations) -> Edges:
    """Return the pairs of the spanning forest of significant dependences, smaller index first.

    >>> from edgegraft.counts import PairCounts
    >>> from edgegraft.datasets import make_chain
    >>> from edgegraft.table import PackedTable
    >>> data = make_chain(4, n_rows=2000, couplings="ising", random_state=0)
    >>> table = PackedTable.from_codes(data.X.astype(int))
    >>> spanning_tree(Correlations(PairCounts(table))).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
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
