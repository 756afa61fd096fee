"""Where each log-potential of a pairwise model lies in one flat vector.

    theta = [ u_0 | u_1 | ... | u_{n-1} | w_{e_0} | w_{e_1} | ... ]

Node vectors come first and edge tables follow in the order of the edges, so a model that grows
appends: the positions of what was there never change. The table of edge ``(i, j)``, ``i < j``,
is stored row by row, ``theta[edge_offset[k] + a * states[j] + b] = w_ij(a, b)``. While a model with
ordered columns is fitted, an edge has a smaller block: ``widths[i]`` by ``widths[j]`` weights of
features (:mod:`edgegraft.conditional.features`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core.checks import check_edges
from edgegraft.core.pairs import as_edges, pair_ids, stretches
from edgegraft.core.types import Edges, Floats, Ids, Integers, Mask
from edgegraft.errors import EdgeError


@dataclass(frozen=True, eq=False)
class Layout:
    """Positions of the parameters of a pairwise model.

    Parameters
    ----------
    states : array of int, shape (n,)
        Number of states of each variable.
    edges : array of int, shape (m, 2), optional
        Edges ``(i, j)`` with ``i < j``, each once.
    widths : array of int, shape (n,), optional
        Rows or columns that a variable has in the block of an edge; its states by default.

    Examples
    --------
    >>> layout = Layout([2, 3, 2], [(0, 1), (1, 2)])
    >>> layout.n_parameters
    19
    >>> theta = np.arange(19.0)
    >>> layout.edge(theta, 1)
    array([[13., 14.],
           [15., 16.],
           [17., 18.]])
    """

    states: Integers
    edges: Integers = field(default_factory=lambda: np.empty((0, 2), np.int64))
    widths: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    node_offset: Integers = field(init=False, repr=False)
    edge_offset: Integers = field(init=False, repr=False)
    #: which variables have fewer features than states: weights of scores, not of states
    scored: Mask = field(init=False, repr=False)
    n_variables: int = field(init=False, repr=False)
    n_edges: int = field(init=False, repr=False)
    n_parameters: int = field(init=False, repr=False)  # length of the flat vector

    def __post_init__(self) -> None:
        states = _frozen(self.states)
        edges = _frozen(np.asarray(self.edges, np.int64).reshape(-1, 2))
        _check_order(edges, len(states))
        widths = _frozen(self.widths) if len(self.widths) else states
        node_offset = np.concatenate(([0], np.cumsum(states)))
        sizes = widths[edges[:, 0]] * widths[edges[:, 1]]
        edge_offset = node_offset[-1] + np.concatenate(([0], np.cumsum(sizes)))
        # A frozen dataclass is filled through its dictionary.
        vars(self).update(states=states, edges=edges, widths=widths, scored=widths < states)
        vars(self).update(node_offset=_frozen(node_offset), edge_offset=_frozen(edge_offset))
        vars(self).update(n_variables=len(states), n_edges=len(edges))
        vars(self).update(n_parameters=int(edge_offset[-1]))

    def __reduce__(self) -> tuple[Any, ...]:
        # By way of the constructor, which makes the arrays read-only, as kernels expect.
        return Layout, (self.states, self.edges, self.widths)

    @cached_property
    def tables(self) -> Layout:
        """The layout of the same edges with whole tables."""
        return Layout(self.states, self.edges) if self.scored.any() else self

    def node(self, theta: Floats, i: int) -> Floats:
        """Return the view of ``theta`` that holds the node vector of variable `i`."""
        return theta[self.node_offset[i] : self.node_offset[i + 1]]

    def edge(self, theta: Floats, k: int) -> Floats:
        """Return the view of ``theta`` that holds the table of the `k`-th edge."""
        i, j = self.edges[k]
        flat = theta[self.edge_offset[k] : self.edge_offset[k + 1]]
        return flat.reshape(int(self.widths[i]), int(self.widths[j]))

    def with_edges(self, edges: ArrayLike) -> Layout:
        """Return the layout of other edges between the same variables."""
        return Layout(self.states, np.asarray(edges, np.int64).reshape(-1, 2), self.widths)

    def grow(self, edges: ArrayLike) -> Layout:
        """Return the layout with `edges` appended; existing positions stay as they are."""
        new = np.asarray(edges, np.int64).reshape(-1, 2)
        return self.with_edges(np.concatenate((self.edges, new)))

    def carry(self, theta: Floats, old: Layout) -> Floats:
        """Return `theta`, laid out by `old`, in this layout.

        Nodes and edges that both have keep their values; edges that `old` lacks are zero.

        Examples
        --------
        >>> old = Layout([2, 2, 2], [(0, 1), (1, 2)])
        >>> Layout([2, 2, 2], [(0, 2), (1, 2)]).carry(np.arange(14.0), old)
        array([ 0.,  1.,  2.,  3.,  4.,  5.,  0.,  0.,  0.,  0., 10., 11., 12., 13.])
        """
        same = np.array_equal(self.states, old.states) and np.array_equal(self.widths, old.widths)
        if not same:
            raise EdgeError("parameters can only be carried between layouts of the same variables")
        n, n_nodes = self.n_variables, int(self.node_offset[-1])
        out = np.zeros(self.n_parameters)
        out[:n_nodes] = theta[:n_nodes]
        ids, old_ids = (pair_ids(side.edges, n) for side in (self, old))
        _, here, there = np.intersect1d(ids, old_ids, assume_unique=True, return_indices=True)
        sizes = np.diff(self.edge_offset)[here]
        source = stretches(old.edge_offset[there], sizes)
        out[stretches(self.edge_offset[here], sizes)] = theta[source]
        return out

    def cell_ends(self) -> tuple[Integers, Integers]:
        """Return, for every cell of every edge table, where its two states lie in `theta`.

        Examples
        --------
        >>> Layout([2, 2], [(0, 1)]).cell_ends()
        (array([0, 0, 1, 1]), array([2, 3, 2, 3]))
        """
        sizes = np.diff(self.edge_offset)
        i, j = np.repeat(self.edges, sizes, axis=0).T
        a, b = np.divmod(stretches(np.zeros(len(sizes), np.int64), sizes), self.states[j])
        return self.node_offset[i] + a, self.node_offset[j] + b


def _frozen(values: ArrayLike) -> Integers:
    array = np.array(values, np.int64)
    array.flags.writeable = False
    return array


def _check_order(edges: Integers, n: int) -> None:
    check_edges(edges, n)
    turned = edges[:, 0] > edges[:, 1]
    if turned.any():
        i, j = edges[int(np.argmax(turned))]
        raise EdgeError(f"edge ({i}, {j}) is not written with the smaller index first")
    unique, counts = np.unique(pair_ids(edges, n), return_counts=True)
    if (counts > 1).any():
        i, j = divmod(int(unique[int(np.argmax(counts > 1))]), n)
        raise EdgeError(f"edge ({i}, {j}) is given more than once")


class ActiveGraph:
    """A growing (and shrinking) set of edges over fixed variables; arguments as of :class:`Layout`.

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
        #: of the parameters now, edges in the order in which they came
        self.layout = Layout(np.asarray(states), widths=np.asarray(widths, np.int64))
        if edges is not None:
            self.add(edges)

    @property
    def degree(self) -> Integers:
        """Number of neighbours of each variable."""
        return np.bincount(self.layout.edges.ravel(), minlength=self.layout.n_variables)

    def __len__(self) -> int:
        return self.layout.n_edges

    def add(self, edges: ArrayLike) -> None:
        """Append `edges`, given in either direction; one that is active already is an error."""
        self.layout = self.layout.grow(as_edges(edges))

    def remove(self, edges: ArrayLike) -> None:
        """Take `edges` out; the others keep their order."""
        gone = as_edges(edges)
        absent = ~self.contains(gone)
        if absent.any():
            i, j = gone[int(np.argmax(absent))]
            raise EdgeError(f"edge ({i}, {j}) is not active and cannot be removed")
        kept = ~np.isin(self._ids(self.layout.edges), self._ids(gone))
        self.layout = self.layout.with_edges(self.layout.edges[kept])

    def contains(self, edges: ArrayLike) -> Mask:
        """Return whether each of `edges`, given in either direction, is active."""
        asked = self._ids(np.asarray(edges, np.int64).reshape(-1, 2))
        return np.isin(asked, self._ids(self.layout.edges))

    def _ids(self, edges: Edges) -> Ids:
        return pair_ids(edges, self.layout.n_variables)
