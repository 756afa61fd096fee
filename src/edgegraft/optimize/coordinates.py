"""The coordinates in which the solver works: node vectors that take what they can from edges.

    theta = (u, w),    v_i = u_i + sum_j f_ij[w_ij],    v_j = u_j + sum_i g_ij[w_ij]

with ``f + g`` the projection of a table on functions of one end alone, in ``L2`` of the data's
pair frequencies, the solution of

    [diag(p_i)  P      ] [f]   [sum_b p_ij(a, b) w(a, b)]
    [P'         diag(p_j)] [g] = [sum_a p_ij(a, b) w(a, b)]

A table's entry and the entries of its two node vectors speak of the same rows:
a hub with forty edges has forty-one parameters that pull nearly the same way, and in ``(u, w)``
the Hessian of the likelihood is hundreds of times steeper in their common direction than its
diagonal says. In ``(v, w)`` an edge acts on what the nodes leave unexplained; if the model
agrees with the data on a forest, edges are then uncorrelated with nodes and with each other.
Edge tables are the same in both, so the penalty and its zeros are too; node vectors must be free
of penalty, otherwise the plain coordinates are kept.

Without pair frequencies, and for tables of many states, the two ends are taken as independent. The
map from tables to node vectors is then two products of sparse matrices: sums over tables, and
inverses of the matrix above.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from edgegraft.conditional.features import Features
from edgegraft.core import Layout
from edgegraft.core.edge_tables import by_shape
from edgegraft.core.types import Floats

#: Minimum share of its curvature that an entry keeps.
MIN_SHARE = 0.02
#: Edges with more states than this, both ends together, are treated as independent.
WIDEST = 48
#: Share of the uniform table mixed in, so that states never seen have an inverse.
SOFTENING = 1e-6
_CONTRAST = np.array([1.0, -1.0, -1.0, 1.0])


class Coordinates:
    """Linear maps between the parameters and the solver's coordinates.

    `margins` are the frequencies of all states, `pairs` the frequencies of the pairs of every edge,
    laid out like its table, by default of independent variables. Weights of `features` act on nodes
    through their tables. Without `centred` the coordinates are the parameters.

    >>> centred = Coordinates(Layout([2, 2], [(0, 1)]), np.full(4, 0.5))
    >>> centred.inward(np.array([0, 0, 0, 0, 4.0, 0, 0, 0]))
    array([2., 0., 2., 0., 4., 0., 0., 0.])
    """

    def __init__(
        self,
        layout: Layout,
        margins: Floats,
        pairs: Floats | None = None,
        features: Features | None = None,
        *,
        centred: bool = True,
    ) -> None:
        self._layout, self._features = layout, features
        self._nodes = int(layout.node_offset[-1])
        self._left = np.ones(layout.n_parameters - self._nodes)
        self._maps: tuple[csr_array, ...] = ()
        if not centred:
            return
        left, plain = np.ones(int(layout.widths.sum())), ~layout.scored
        left[np.repeat(plain, layout.widths)] -= margins[np.repeat(plain, layout.states)]
        rows, columns = Layout(layout.widths, layout.edges).cell_ends()
        self._left *= left[rows] * left[columns]
        if layout.n_edges:
            self._project(layout.tables, margins, pairs)
        self._left.clip(MIN_SHARE, 1.0, out=self._left)

    def inward(self, theta: Floats) -> Floats:
        """Return parameters in the solver's coordinates."""
        return self._moved(theta, 1.0)

    def outward(self, inner: Floats) -> Floats:
        """Return the parameters of the solver's coordinates."""
        return self._moved(inner, -1.0)

    def _moved(self, theta: Floats, sign: float) -> Floats:
        out, shift = theta.copy(), theta
        if self._maps:
            if self._features is not None:
                shift = self._features.expand(theta, self._layout)
            shift = shift[self._nodes :]
            for each in self._maps:
                shift = each @ shift
            out[: self._nodes] += sign * shift
        return out

    def gradient(self, gradient: Floats) -> Floats:
        """Return a gradient in the solver's coordinates."""
        out, nodes = gradient.copy(), gradient[: self._nodes]
        if self._maps:
            for each in reversed(self._maps):
                nodes = each.T @ nodes
            if self._features is not None:
                whole = np.concatenate((np.zeros(self._nodes), nodes))
                nodes = self._features.fold(whole, self._layout)[self._nodes :]
            out[self._nodes :] -= nodes
        return out

    def curvature(self, diagonal: Floats) -> Floats:
        """Return a diagonal Hessian: of each entry the share that no node explains is left."""
        out = diagonal.copy()
        out[self._nodes :] *= self._left
        return out

    def _project(self, layout: Layout, margins: Floats, pairs: Floats | None) -> None:
        """Fill the maps from tables to sums at both their ends, and from those to node vectors."""
        rows, columns = layout.cell_ends()
        by_row, by_column = margins[columns], margins[rows]
        first, second = layout.node_offset[layout.edges.T]
        high, wide = layout.states[layout.edges.T]
        end = np.cumsum(high + wide) - high - wide  # where the sums of an edge begin
        size, cells = int((high + wide).sum()), np.arange(len(rows))
        per_cell = np.diff(layout.edge_offset)
        at_row = rows + np.repeat(end - first, per_cell)
        at_column = columns + np.repeat(end + high - second, per_cell)
        node_of_end = np.empty(size, np.int64)
        node_of_end[at_row], node_of_end[at_column] = rows, columns
        exact = np.zeros(layout.n_edges, bool)
        if pairs is not None:
            exact = high + wide <= WIDEST
            pairs = (1.0 - SOFTENING) * pairs + np.repeat(SOFTENING / per_cell, per_cell)
            known = np.repeat(exact, per_cell)
            by_row, by_column = (np.where(known, pairs, share) for share in (by_row, by_column))
        shares, ends = np.concatenate((by_row, by_column)), np.concatenate((at_row, at_column))
        sums = csr_array((shares, (ends, np.tile(cells, 2))), shape=(size, len(cells)))
        alone = np.flatnonzero(np.repeat(~exact, high + wide))
        entries = [(np.ones(len(alone)), node_of_end[alone], alone)]
        cells_from = layout.edge_offset - layout.edge_offset[0]
        chosen = np.flatnonzero(exact)
        for which, cell in by_shape(layout.states, layout.edges, cells_from, chosen):
            assert pairs is not None
            tables, inverse = pairs[cell], _inverses(pairs[cell])
            places = end[which, None] + np.arange(inverse.shape[1])
            row, column = np.broadcast_arrays(node_of_end[places][:, :, None], places[:, None])
            entries.append((inverse.ravel(), row.ravel(), column.ravel()))
            if self._features is None:
                r, own = tables.shape[1], np.diagonal(inverse, axis1=1, axis2=2)
                lever = own[:, :r, None] + own[:, None, r:] + 2.0 * inverse[:, :r, r:]
                self._left[cell] = 1.0 - tables * lever
        values, nodes, ends = (np.concatenate(part) for part in zip(*entries, strict=True))
        self._maps = sums, csr_array((values, (nodes, ends)), shape=(self._nodes, size))


class ContrastCoordinates(Coordinates):
    """The same maps for tables of two by two under a norm, one number each instead of four.

    Whatever is a function of one end alone is left to the node vectors, which no penalty shrinks,
    so a table of least norm is ``t`` times ``(1, -1, -1, 1)``.

    >>> layout = Layout([2, 2], [(0, 1)])
    >>> contrasts = ContrastCoordinates(layout, np.full(4, 0.5))
    >>> contrasts.outward(contrasts.inward(np.array([0, 0, 0, 0, 4.0, 0, 0, 0])))
    array([ 2.,  0.,  2.,  0.,  1., -1., -1.,  1.])
    """

    def inward(self, theta: Floats) -> Floats:
        """Return parameters in the solver's coordinates."""
        inner = self._folded(super().inward(theta))
        inner[self._nodes :] *= 0.25
        return inner

    def outward(self, inner: Floats) -> Floats:
        """Return the parameters of the solver's coordinates."""
        tables = inner[self._nodes :, None] * _CONTRAST
        return super().outward(np.concatenate((inner[: self._nodes], tables.ravel())))

    def gradient(self, gradient: Floats) -> Floats:
        """Return a gradient in the solver's coordinates."""
        return self._folded(super().gradient(gradient))

    def curvature(self, diagonal: Floats) -> Floats:
        """Return a diagonal Hessian: of a table, that of its contrast alone."""
        return self._folded(super().curvature(diagonal), 4.0 * np.ones(4))

    def _folded(self, values: Floats, weights: Floats = _CONTRAST) -> Floats:
        tables = values[self._nodes :].reshape(-1, 4)
        return np.concatenate((values[: self._nodes], tables @ weights))


def _inverses(tables: Floats) -> Floats:
    """Return the inverse of each table's matrix; a constant moved from f to g changes nothing."""
    _, r, s = tables.shape
    side = np.arange(r + s) < r
    matrix = np.where(side == side[:, None], 1.0, -1.0) + np.zeros((len(tables), 1, 1))
    matrix[:, :r, r:] += tables
    matrix[:, r:, :r] += tables.transpose(0, 2, 1)
    diagonal = np.concatenate((tables.sum(axis=2), tables.sum(axis=1)), axis=1)
    matrix[:, np.arange(r + s), np.arange(r + s)] += diagonal
    return np.asarray(np.linalg.inv(matrix), np.float64)
