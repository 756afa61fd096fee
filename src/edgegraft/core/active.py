"""The active graph of a learner: edges come and go, parameters keep their values.

A learner holds one of these. It answers which pairs are active and how many neighbours a
variable has without touching the n(n-1)/2 pairs that are not there, and hands out immutable
layouts; :meth:`Layout.carry` moves a parameter vector from one layout to the next.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.core.layout import Layout
from edgegraft.core.pairs import as_edges, pair_ids
from edgegraft.errors import EdgeError


class ActiveGraph:
    """A growing (and shrinking) set of edges over fixed variables.

    Parameters
    ----------
    states : array of int, shape (n,)
    edges : array of int, shape (m, 2), optional

    Examples
    --------
    >>> graph = ActiveGraph([2, 2, 3])
    >>> graph.add([(0, 1), (2, 1)])
    >>> graph.contains([(1, 2), (0, 2)])
    array([ True, False])
    >>> graph.degree
    array([1, 2, 1])
    >>> graph.remove([(0, 1)])
    >>> graph.layout.edges
    array([[1, 2]])
    """

    def __init__(self, states: ArrayLike, edges: ArrayLike | None = None) -> None:
        self._layout = Layout(np.asarray(states))
        self._ids = np.empty(0, np.int64)  # of the active pairs, ascending
        self._degree = np.zeros(self._layout.n_variables, np.int64)
        if edges is not None:
            self.add(edges)

    @property
    def layout(self) -> Layout:
        """The parameters' layout now, edges in the order in which they came."""
        return self._layout

    @property
    def degree(self) -> NDArray[np.int64]:
        """Number of neighbours of each variable."""
        return self._degree.copy()

    def __len__(self) -> int:
        return self._layout.n_edges

    def add(self, edges: ArrayLike) -> None:
        """Append `edges`, given in either direction; one that is active already is an error."""
        new = as_edges(edges)
        self._layout = self._layout.grow(new)
        self._ids = np.sort(np.concatenate((self._ids, pair_ids(new, self._layout.n_variables))))
        np.add.at(self._degree, new.ravel(), 1)

    def remove(self, edges: ArrayLike) -> None:
        """Take `edges` out; the others keep their order."""
        gone = as_edges(edges)
        absent = ~self.contains(gone)
        if absent.any():
            i, j = gone[int(np.argmax(absent))]
            raise EdgeError(f"edge ({i}, {j}) is not active and cannot be removed")
        ids = pair_ids(gone, self._layout.n_variables)
        kept = ~np.isin(pair_ids(self._layout.edges, self._layout.n_variables), ids)
        self._layout = Layout(self._layout.states, self._layout.edges[kept])
        self._ids = self._ids[~np.isin(self._ids, ids)]
        np.subtract.at(self._degree, np.unique(gone, axis=0).ravel(), 1)

    def contains(self, edges: ArrayLike) -> NDArray[np.bool_]:
        """Return whether each of `edges`, given in either direction, is active."""
        ids = pair_ids(np.asarray(edges, np.int64).reshape(-1, 2), self._layout.n_variables)
        if not len(self._ids):
            return np.zeros(len(ids), bool)
        at = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        return np.asarray(self._ids[at] == ids)
