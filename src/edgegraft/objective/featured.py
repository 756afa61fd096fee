"""A loss of the weights of features: any loss of tables, for columns of every kind.

    L(u, W) = loss(u, Phi_i W_ij Phi_j'),      d L / d W_ij = Phi_i' (d loss / d w_ij) Phi_j

Tables are made once per evaluation and gradients folded once; what reads rows goes on seeing
tables. Gradients of pairs outside of the model need no tables: those of all pairs of a
pseudolikelihood are one matrix product of features and residuals of features
(:mod:`edgegraft.objective.feature_products`).
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core import Layout
from edgegraft.core.checks import check_edges
from edgegraft.core.tables import PairTables
from edgegraft.core.types import Edges, Floats
from edgegraft.objective.feature_products import affordable_products, block_products, take_pairs
from edgegraft.objective.features import Features
from edgegraft.objective.objective import Evaluation, Objective, State
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.table import Schema
from edgegraft.table.blocks import add_in_order


class FeaturedState(NamedTuple):
    """What an evaluation hands to the next one."""

    layout: Layout  # of the weights
    inner: State  # the state of the loss of tables
    products: dict[bytes, Floats]  # at the parameters evaluated, by the columns that they are of


class Featured(Objective):
    """A loss of tables, `inner`, as a loss of weights of features.

    >>> from edgegraft.table import PackedTable, Schema, Variable
    >>> schema = Schema(Variable(name, (1, 2, 3), kind="ordinal") for name in "ab")
    >>> table = PackedTable.from_codes([[0, 0], [1, 1], [2, 2], [1, 0]], schema)
    >>> inner = Pseudolikelihood(table)
    >>> loss = Featured(inner, Features.of(schema, inner.state_weights()))
    >>> layout = loss.layout([(0, 1)])
    >>> found = loss.evaluate(loss.start(layout), loss.init(layout))
    >>> layout.edge(found.gradient, 0).shape
    (2, 2)
    """

    features: Features

    def __init__(self, inner: Objective, features: Features) -> None:
        self.inner = inner
        self.features = features
        self._fallback: Objective | None = None

    @property
    def stand_in(self) -> Objective | None:  # type: ignore[override]
        """That of the loss of tables, as a loss of weights of the same features."""
        given = self.inner.stand_in
        if given is None or given.features is self.features:
            return given
        return Featured(given.inner if isinstance(given, Featured) else given, self.features)

    @property
    def schema(self) -> Schema:
        """Names and categories of the variables."""
        return self.inner.schema

    @property
    def n_rows(self) -> float:
        """Number of rows, or the sum of their weights."""
        return self.inner.n_rows

    @property
    def terms(self) -> int:
        """As the loss of tables."""
        return self.inner.terms

    @property
    def accuracy(self) -> float:
        """As the loss of tables."""
        return self.inner.accuracy

    @property
    def round_trips(self) -> int:
        """As the loss of tables."""
        return self.inner.round_trips

    @property
    def fallback(self) -> Objective | None:
        """The fallback of the loss of tables."""
        given = self.inner.fallback
        if given is not None and self._fallback is None:
            self._fallback = Featured(given, self.features)
        return self._fallback

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
