"""The coordinates in which the solver works: node vectors that take what they can from edges.

    theta = (u, w),    v_i = u_i + sum_j f_ij[w_ij],    v_j = u_j + sum_i g_ij[w_ij]

with ``f + g`` the projection of a table on functions of one end alone, in ``L2`` of the data's
pair frequencies. A table's entry and the entries of its two node vectors speak of the same rows:
a hub with forty edges has forty-one parameters that pull nearly the same way, and in ``(u, w)``
the Hessian of the likelihood is hundreds of times steeper in their common direction than its
diagonal says. In ``(v, w)`` an edge acts on what the nodes leave unexplained; if the model
agrees with the data on a forest, edges are then uncorrelated with nodes and with each other.
Edge tables are the same in both, so the penalty and its zeros are too; node vectors must be free
of penalty, otherwise the plain coordinates are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from edgegraft.conditional.features import Features
from edgegraft.core import Layout
from edgegraft.core.edge_tables import by_shape
from edgegraft.core.types import Floats
from edgegraft.kernels.solver import Projection, centre_gradient, shift_nodes

#: Minimum share of its curvature that an entry keeps.
MIN_SHARE = 0.02
#: Edges with more states than this, both ends together, are treated as independent.
WIDEST = 48
#: Share of the uniform table mixed in, so that states never seen have an inverse.
SOFTENING = 1e-6
_CONTRAST = np.array([1.0, -1.0, -1.0, 1.0])


class Coordinates:
    """Linear maps between the parameters and the solver's coordinates.

    `margins` are the frequencies of all states, `pairs` those of the pairs of every edge, laid out
    like its parameters, by default of independent variables. Without `centred` the coordinates are
    the parameters.

    >>> centred = Coordinates(Layout([2, 2], [(0, 1)]), np.full(4, 0.5))
    >>> centred.inward(np.array([0, 0, 0, 0, 4.0, 0, 0, 0]))
    array([2., 0., 2., 0., 4., 0., 0., 0.])
    """

    def __init__(
        self,
        layout: Layout,
        margins: Floats,
        pairs: Floats | None = None,
        *,
        centred: bool = True,
    ) -> None:
        self._projection = _project(layout, margins, pairs) if centred else None

    def inward(self, theta: Floats) -> Floats:
        """Return parameters in the solver's coordinates."""
        return self._mapped(theta, shift_nodes, 1.0)

    def outward(self, inner: Floats) -> Floats:
        """Return the parameters of the solver's coordinates."""
        return self._mapped(inner, shift_nodes, -1.0)

    def gradient(self, gradient: Floats) -> Floats:
        """Return a gradient in the solver's coordinates."""
        return self._mapped(gradient, centre_gradient)

    def curvature(self, diagonal: Floats) -> Floats:
        """Return a diagonal Hessian in the solver's coordinates."""
        out = diagonal.copy()
        if self._projection is not None:
            _centre_curvature(self._projection, out)
        return out

    def _mapped(self, values: Floats, change: Any, *arguments: float) -> Floats:
        """Return a copy that a kernel has changed in place."""
        out = values.copy()
        if self._projection is not None:
            change(self._projection, out, *arguments)
        return out


class ContrastCoordinates:
    """The same maps for tables of two by two under a norm, one number each instead of four.

    Whatever is a function of one end alone is left to the node vectors, which no penalty shrinks,
    so a table of least norm is ``t`` times ``(1, -1, -1, 1)``.

    >>> layout = Layout([2, 2], [(0, 1)])
    >>> contrasts = ContrastCoordinates(layout, np.full(4, 0.5))
    >>> contrasts.outward(contrasts.inward(np.array([0, 0, 0, 0, 4.0, 0, 0, 0])))
    array([ 2.,  0.,  2.,  0.,  1., -1., -1.,  1.])
    """

    def __init__(self, layout: Layout, margins: Floats) -> None:
        self._tables, self._nodes = Coordinates(layout, margins), int(layout.node_offset[-1])

    def inward(self, theta: Floats) -> Floats:
        """Return parameters in the solver's coordinates."""
        inner = self._tables.inward(theta)
        return np.concatenate((inner[: self._nodes], 0.25 * self._fold(theta)))

    def outward(self, inner: Floats) -> Floats:
        """Return the parameters of the solver's coordinates."""
        tables = inner[self._nodes :, None] * _CONTRAST
        return self._tables.outward(np.concatenate((inner[: self._nodes], tables.ravel())))

    def gradient(self, gradient: Floats) -> Floats:
        """Return a gradient in the solver's coordinates."""
        centred = self._tables.gradient(gradient)
        return np.concatenate((centred[: self._nodes], self._fold(centred)))

    def curvature(self, diagonal: Floats) -> Floats:
        """Return a diagonal Hessian: of a table, that of its contrast alone."""
        centred = self._tables.curvature(diagonal)
        sums = centred[self._nodes :].reshape(-1, 4).sum(axis=1)
        return np.concatenate((centred[: self._nodes], 4.0 * sums))

    def _fold(self, values: Floats) -> Floats:
        return np.asarray(values[self._nodes :].reshape(-1, 4) @ _CONTRAST)


class FeatureCoordinates:
    """The same maps for weights of features, which act on nodes through their tables."""

    def __init__(
        self, layout: Layout, features: Features, tables: Coordinates, margins: Floats
    ) -> None:
        self._layout, self._features, self._tables = layout, features, tables
        self._margins = margins
        self._nodes = int(layout.node_offset[-1])

    def inward(self, theta: Floats) -> Floats:
        """Return parameters in the solver's coordinates."""
        return self._moved(theta, self._tables.inward)

    def outward(self, inner: Floats) -> Floats:
        """Return the parameters of the solver's coordinates."""
        return self._moved(inner, self._tables.outward)

    def _moved(self, theta: Floats, move: Callable[[Floats], Floats]) -> Floats:
        out = theta.copy()
        out[: self._nodes] = move(self._features.expand(theta, self._layout))[: self._nodes]
        return out

    def gradient(self, gradient: Floats) -> Floats:
        """Return a gradient in the solver's coordinates."""
        nodes = self._features.expand(np.zeros_like(gradient), self._layout)
        nodes[: self._nodes] = gradient[: self._nodes]
        out = gradient + self._features.fold(self._tables.gradient(nodes), self._layout)
        out[: self._nodes] = gradient[: self._nodes]
        return np.asarray(out)

    def curvature(self, diagonal: Floats) -> Floats:
        """Return a diagonal Hessian: scores are centred, states are as if independent."""
        layout, out = self._layout, diagonal.copy()
        left = np.ones(int(layout.widths.sum()))
        left[np.repeat(~layout.scored, layout.widths)] -= self._margins[
            np.repeat(~layout.scored, layout.states)
        ]
        rows, columns = Layout(layout.widths, layout.edges).cell_ends()
        out[self._nodes :] *= np.clip(left[rows] * left[columns], MIN_SHARE, 1.0)
        return out


def _project(layout: Layout, margins: Floats, pairs: Floats | None) -> Projection:
    states, edges = layout.states, layout.edges
    cells = np.diff(layout.edge_offset)
    ends = states[edges].sum(axis=1)
    narrow = ends <= WIDEST if pairs is not None else np.zeros(len(ends), np.bool_)
    table = np.zeros(0) if pairs is None else pairs
    softened = (1.0 - SOFTENING) * table + np.repeat(SOFTENING / cells, cells)[: len(table)]
    offset = np.concatenate(([0], np.cumsum(np.where(narrow, ends**2, 0))))
    projection = Projection(
        states=states,
        edges=edges,
        node_offset=layout.node_offset,
        edge_offset=layout.edge_offset,
        pairs=softened,
        margins=np.ascontiguousarray(margins),
        inverse=np.empty(int(offset[-1])),
        inverse_offset=offset,
    )
    _prepare(projection)
    return projection


def _prepare(p: Projection) -> None:
    """Fill the inverse matrices of a `Projection` whose other fields are set."""
    exact = np.flatnonzero(np.diff(p.inverse_offset))
    cells_from = p.edge_offset - p.edge_offset[0]
    for which, cells in by_shape(p.states, p.edges, cells_from, exact):
        tables = p.pairs[cells]
        _, r, s = tables.shape
        # A constant may move from f to g: pin it, which leaves f + g as it is.
        side = np.arange(r + s) < r
        matrix = np.where(side == side[:, None], 1.0, -1.0) + np.zeros((len(which), 1, 1))
        matrix[:, :r, r:] += tables
        matrix[:, r:, :r] += tables.transpose(0, 2, 1)
        diagonal = np.concatenate((tables.sum(axis=2), tables.sum(axis=1)), axis=1)
        matrix[:, np.arange(r + s), np.arange(r + s)] += diagonal
        at = p.inverse_offset[which, None, None] + np.arange((r + s) ** 2).reshape(r + s, r + s)
        p.inverse[at] = np.linalg.inv(matrix)


def _centre_curvature(p: Projection, diagonal: Floats) -> None:
    """Scale the diagonal of each entry by the share of its indicator that no node explains."""
    for which, cells in by_shape(p.states, p.edges, p.edge_offset):
        _, r, s = cells.shape
        if p.inverse_offset[which[0]] < p.inverse_offset[which[0] + 1]:
            at = p.inverse_offset[which, None, None] + np.arange((r + s) ** 2).reshape(r + s, r + s)
            inverse = p.inverse[at]
            own = np.diagonal(inverse, axis1=1, axis2=2)
            lever = own[:, :r, None] + own[:, None, r:] + 2.0 * inverse[:, :r, r:]
            left = 1.0 - p.pairs[cells - p.edge_offset[0]] * lever
        else:
            first, second = p.node_offset[p.edges[which].T]
            left = 1.0 - p.margins[first[:, None] + np.arange(r)][:, :, None]
            left = left * (1.0 - p.margins[second[:, None] + np.arange(s)][:, None, :])
        diagonal[cells] *= np.clip(left, MIN_SHARE, 1.0)
