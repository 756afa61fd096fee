"""Columns that determine each other: exact copies, whatever their categories are called.

Nothing in the rows says which of two copies a third column is linked to. So links of copies are
shown once, at the first of them, and the copies are linked to each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components

from edgegraft.core.adjacency import link_matrix
from edgegraft.core.pairs import pair_ids
from edgegraft.core.types import Edges, Integers, Mask
from edgegraft.counts import PairCounts


class Copies(NamedTuple):
    """Which columns are copies of which."""

    #: (n,), the first copy of each column: its own number if it is not a copy of an earlier one
    first: Integers

    def groups(self) -> list[list[int]]:
        """Return the groups of two or more copies, each with the first one first."""
        return [
            np.flatnonzero(self.first == i).tolist()
            for i in np.unique(self.first[self.first != np.arange(len(self.first))]).tolist()
        ]

    def shown(self, edges: Edges) -> Mask:
        """Return which pairs are those that stand for what the copies share."""
        later = self.first[edges] != edges
        within = self.first[edges[:, 0]] == self.first[edges[:, 1]]
        first = (self.first[edges] == edges).any(axis=1)
        return np.asarray(np.where(within, first, ~later.any(axis=1)))

    def stand_ins(self, edges: Edges) -> Edges:
        """Return the pairs that stand for some pairs, without repetition."""
        ends = self.first[edges]
        within = ends[:, 0] == ends[:, 1]
        later = np.where(edges[:, 0] == ends[:, 0], edges[:, 1], edges[:, 0])
        ends[within, 1] = later[within]
        ends = np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1)
        _, where = np.unique(pair_ids(ends, len(self.first)), return_index=True)
        return ends[np.sort(where)]


def find_copies(counts: PairCounts, pairs: Edges) -> Copies:
    """Return the copies among columns, given pairs that include the strongest dependences.

    >>> from edgegraft.table import PackedTable
    >>> table = PackedTable.from_codes([[0, 1, 0], [1, 0, 0], [0, 1, 1]])
    >>> find_copies(PairCounts(table), np.array([(0, 1), (1, 2)])).first
    array([0, 0, 2])
    """
    n, states = len(counts.schema), counts.schema.n_states
    tables = counts.pairs(pairs)
    same = np.zeros(len(pairs), bool)
    for k, (i, j) in enumerate(tables.edges.tolist()):
        cells = tables.values[tables.offsets[k] : tables.offsets[k + 1]] > 0
        table = cells.reshape(states[i], states[j])
        across, down = table.sum(axis=0), table.sum(axis=1)
        same[k] = across.max(initial=0) == down.max(initial=0) == 1 and table.sum() > 1
    linked = link_matrix(np.ones(same.sum()), pairs[same], n)
    _, group = connected_components(linked, directed=False)
    _, first = np.unique(group, return_index=True)
    return Copies(first[group])
