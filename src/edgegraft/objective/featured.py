"""A loss of the weights of features: any loss of tables, for columns of every kind.

    L(u, W) = loss(u, Phi_i W_ij Phi_j'),      d L / d W_ij = Phi_i' (d loss / d w_ij) Phi_j

Tables are made once per evaluation and gradients folded once; what reads rows goes on seeing
tables. Gradients of pairs outside of the model need no tables: those of all pairs of a
pseudolikelihood are one matrix product, whose cost follows the number of features, not of states:

    G = F' R,   F(r, x) = phi_x(state of row r),   R(r, x) = weight_r (F(r, x) - E[phi_x | rest])

The gradient of pair ``(i, j)`` is ``-(G_ij + G_ji') / N``.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.conditional.features import Features
from edgegraft.core import Layout
from edgegraft.core.checks import check_edges
from edgegraft.core.pairs import PairTables, table_offsets
from edgegraft.core.threads import one_blas_thread
from edgegraft.core.types import Edges, Floats, Integers
from edgegraft.kernels.conditionals.pseudolikelihood import Columns, Kept
from edgegraft.objective.block_sums import Job, columns_of, do_jobs
from edgegraft.objective.bundles import alternatives_of, bundle, wire
from edgegraft.objective.objective import Evaluation, Objective, State
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.table.blocks import Rows, TableRows, add_in_order


class FeaturedState(NamedTuple):
    """What an evaluation hands to the next one."""

    layout: Layout  # of the weights
    inner: State  # the state of the loss of tables
    products: dict[bytes, Floats]  # at the parameters evaluated, by the columns that they are of


class Featured(Objective):
    """A loss of tables, `inner`, as a loss of weights of features."""

    features: Features

    def __init__(self, inner: Objective, features: Features) -> None:
        self.inner, self.features, self.rows = inner, features, inner.rows
        self.schema, self.n_rows = inner.schema, inner.n_rows
        self.terms, self.accuracy = inner.terms, inner.accuracy

    @property
    def stand_in(self) -> Objective | None:  # type: ignore[override]
        """That of the loss of tables, as a loss of weights of the same features."""
        given = self.inner.stand_in
        if given is None or given.features is self.features:
            return given
        return Featured(given.inner if isinstance(given, Featured) else given, self.features)

    @cached_property
    def fallback(self) -> Objective | None:
        """The fallback of the loss of tables."""
        given = self.inner.fallback
        return None if given is None else Featured(given, self.features)

    def memoryless(self, state: FeaturedState) -> bool:
        """As the loss of tables; products are of the same parameters."""
        return self.inner.memoryless(state.inner)

    def engine_name(self, state: FeaturedState) -> str:
        """Return the name of the engine that answered."""
        return self.inner.engine_name(state.inner)

    def layout(self, edges: ArrayLike | None = None) -> Layout:
        """Return where the weights of a graph's edges lie."""
        return self.features.layout(edges)

    def expand(self, theta: Floats, layout: Layout) -> Floats:
        """Return the parameters of the tables."""
        return self.features.expand(theta, layout)

    def init(self, layout: Layout) -> FeaturedState:
        """Return a cold state for a graph."""
        return FeaturedState(layout, self.inner.init(_tables(layout)), {})

    def grow(self, state: FeaturedState, layout: Layout) -> FeaturedState:
        """Return a state for another graph, keeping what still holds."""
        if layout is state.layout:
            return state
        return FeaturedState(layout, self.inner.grow(state.inner, _tables(layout)), {})

    def evaluate(self, theta: Floats, state: FeaturedState) -> Evaluation:
        """Return the loss and its gradient at `theta`."""
        found = self.inner.evaluate(self.expand(theta, state.layout), state.inner)
        gradient = self.features.fold(found.gradient, state.layout)
        return found._replace(gradient=gradient, state=FeaturedState(state.layout, found.state, {}))

    def edge_gradients(self, theta: Floats, state: FeaturedState, edges: Edges) -> PairTables:
        """Return the loss's gradient with respect to the weights of pairs."""
        edges = check_edges(edges, len(self.schema))
        tables = self.expand(theta, state.layout)
        loss = self.inner
        if not isinstance(loss, Pseudolikelihood) or not affordable_products(
            self.features, loss.rows
        ):
            return self.features.fold_pairs(loss.edge_gradients(tables, state.inner, edges))
        chosen = self._asked(edges, loss.rows.n_blocks)
        key = chosen.tobytes()
        if key not in state.products:
            work = partial(
                block_products,
                theta=tables,
                layout=_tables(state.layout),
                features=self.features,
                chosen=chosen,
                dtype=loss.dtype,
            )
            state.products[key] = add_in_order(loss.rows.map(work)) / -loss.n_rows
        return take_pairs(state.products[key], self.features, chosen, edges)

    def _asked(self, edges: Edges, n_blocks: int) -> Edges:
        """Return the columns whose products are worth having: those asked for, or all."""
        n = len(self.schema)
        asked = np.unique(edges)
        return np.arange(n) if n_blocks > 1 or 2 * len(asked) > n else asked

    def curvature(self, layout: Layout) -> Floats:
        """Return the diagonal of the tables' Hessian, folded."""
        return self.features.squared.fold(self.inner.curvature(_tables(layout)), layout)

    def start(self, layout: Layout) -> Floats:
        """Return node vectors of the margins, edges zero."""
        nodes = int(layout.node_offset[-1])
        out = np.zeros(layout.n_parameters)
        out[:nodes] = self.inner.start(Layout(layout.states))
        return out

    def margins(self) -> Floats:
        """Return the frequencies of the states of every variable, none of them zero."""
        return self.inner.margins()

    def state_weights(self) -> Floats:
        """Return the weight of the rows in each state."""
        return self.inner.state_weights()

    def known_shares(self) -> Floats:
        """Return the share of the rows that counts for each variable."""
        return self.inner.known_shares()

    def pair_frequencies(self, layout: Layout) -> Floats | None:
        """Return the data's pair frequencies on a graph, laid out like its tables."""
        return self.inner.pair_frequencies(_tables(layout))


def _tables(layout: Layout) -> Layout:
    return Layout(layout.states, layout.edges)


_MAX_PRODUCTS = 1 << 24  # numbers in the matrix of all products
_MAX_BYTES = 1 << 29  # of the residuals of a block
_STATE_BYTES = 1 << 26  # of residuals by state, before they are folded
_ROWS = 4096


def affordable_products(features: Features, rows: Rows) -> bool:
    """Return whether the products of all columns fit."""
    n_features = int(features.widths.sum())
    per_block = -(-rows.n_rows // rows.n_blocks)
    return n_features**2 <= _MAX_PRODUCTS and 8 * n_features * per_block <= _MAX_BYTES


def block_products(
    block: TableRows,
    theta: Floats,
    layout: Layout,
    features: Features,
    chosen: Integers,
    dtype: type[np.floating],
) -> Floats:
    """Return the products of a block's features and residuals, of the chosen columns."""
    columns = columns_of(block, dtype)
    residuals = _residuals(columns, theta, layout, features, chosen, block.n_jobs)
    out = np.zeros((residuals.shape[0], residuals.shape[0]))
    n_rows = columns.codes.shape[1]
    with one_blas_thread():
        for first in range(0, n_rows, _ROWS):
            rows = slice(first, min(first + _ROWS, n_rows))
            out += feature_rows(columns.codes, features, chosen, rows) @ residuals[:, rows].T
    return out


def feature_rows(codes: np.ndarray, features: Features, chosen: Integers, rows: slice) -> Floats:
    """Return the features of some rows, one row per feature; zero where a cell is missing."""
    out = np.empty((int(features.widths[chosen].sum()), rows.stop - rows.start))
    first = 0
    for i in chosen.tolist():
        matrix = features.matrix(i)
        padded = np.vstack((matrix, np.zeros((1, matrix.shape[1]))))
        out[first : first + matrix.shape[1]] = padded.T[:, codes[i, rows]]
        first += matrix.shape[1]
    return out


def _residuals(
    columns: Columns,
    theta: Floats,
    layout: Layout,
    features: Features,
    chosen: Integers,
    n_jobs: int,
) -> Floats:
    """Return the residuals of the chosen columns' features, one row per feature."""
    widths = features.widths[chosen]
    first = np.cumsum(widths) - widths
    n_rows = columns.codes.shape[1]
    out = np.empty((int(widths.sum()), n_rows))
    alternatives = alternatives_of(layout.states[chosen])
    empty = Layout(layout.states)
    for wide in np.unique(alternatives):
        length = n_rows * int(wide)
        at_once = max(1, _STATE_BYTES // (length * columns.weights.dtype.itemsize))
        places = np.flatnonzero(alternatives == wide)
        for part in (places[k : k + at_once] for k in range(0, len(places), at_once)):
            bundles = bundle(chosen[part], int(wide), 1)
            values = np.empty(len(part) * length, columns.weights.dtype)
            kept = Kept(values, np.arange(len(part)) * length, np.zeros(len(part), bool))
            forward, nothing = (wire(graph, bundles, columns) for graph in (layout, empty))
            job = Job(forward, nothing, np.arange(len(part)), kept)
            do_jobs(columns, layout, theta, [job], n_jobs)
            by_state = values.reshape(len(part), n_rows, int(wide))
            for k, place in enumerate(part.tolist()):
                matrix = features.matrix(int(chosen[place]))
                # The residual of the first state is minus the sum of the others.
                contrast = matrix[1:] - matrix[:1]
                rows = slice(first[place], first[place] + widths[place])
                out[rows] = contrast.T @ by_state[k, :, : len(contrast)].T
    return out


def take_pairs(products: Floats, features: Features, chosen: Integers, edges: Edges) -> PairTables:
    """Return the gradients of pairs of the chosen columns, in their order and orientation."""
    shapes = features.widths[edges]
    offsets = table_offsets(shapes)
    widths = features.widths[chosen]
    start = np.zeros(len(features.widths), np.int64)
    start[chosen] = np.cumsum(widths) - widths
    sizes = np.diff(offsets)
    cell = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], sizes)
    x, y = np.divmod(cell, np.repeat(shapes[:, 1], sizes))
    x += np.repeat(start[edges[:, 0]], sizes)
    y += np.repeat(start[edges[:, 1]], sizes)
    return PairTables(edges, shapes, products[x, y] + products[y, x], offsets)
