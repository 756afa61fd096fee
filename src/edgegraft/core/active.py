"""The active graph of a learner: edges come and go, parameters keep their values.

A learner holds one of these. It answers which pairs are active and how many neighbours a
variable has without touching the n(n-1)/2 pairs that are not there, and hands out immutable
layouts; :meth:`Layout.carry` moves a parameter vector from one layout to the next.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core.layout import Layout
from edgegraft.core.pairs import as_edges, pair_ids
from edgegraft.core.types import Edges, Ids, Integers, Mask
from edgegraft.errors import EdgeError


class ActiveGraph:
    """A growing (and shrinking) set of edges over fixed variables.

    Parameters
    ----------
    states : array of int, shape (n,)
    edges : array of int, shape (m, 2), optional
    widths : array of int, shape (n,), optional
        As of :class:`Layout`.

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

    def __init__(
        self, states: ArrayLike, edges: ArrayLike | None = None, widths: ArrayLike = ()
    ) -> None:
        self._layout = Layout(np.asarray(states), widths=np.asarray(widths, np.int64))
        if edges is not None:
            self.add(edges)

    @property
    def layout(self) -> Layout:
        """The parameters' layout now, edges in the order in which they came."""
        return self._layout

    @property
    def degree(self) -> Integers:
        """Number of neighbours of each variable."""
        return np.bincount(self._layout.edges.ravel(), minlength=self._layout.n_variables)

    def __len__(self) -> int:
        return self._layout.n_edges

    def add(self, edges: ArrayLike) -> None:
        """Append `edges`, given in either direction; one that is active already is an error."""
        self._layout = self._layout.grow(as_edges(edges))

    def remove(self, edges: ArrayLike) -> None:
        """Take `edges` out; the others keep their order."""
        gone = as_edges(edges)
        absent = ~self.contains(gone)
        if absent.any():
            i, j = gone[int(np.argmax(absent))]
            raise EdgeError(f"edge ({i}, {j}) is not active and cannot be removed")
        kept = ~np.isin(self._ids(self._layout.edges), self._ids(gone))
        self._layout = self._layout.with_edges(self._layout.edges[kept])

    def contains(self, edges: ArrayLike) -> Mask:
        """Return whether each of `edges`, given in either direction, is active."""
        asked = self._ids(np.asarray(edges, np.int64).reshape(-1, 2))
        return np.isin(asked, self._ids(self._layout.edges))

    def _ids(self, edges: Edges) -> Ids:
        return pair_ids(edges, self._layout.n_variables)
