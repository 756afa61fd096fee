"""A loss of the weights of features: any loss of tables, for columns of every kind.

    L(u, W) = loss(u, Phi_i W_ij Phi_j'),      d L / d W_ij = Phi_i' (d loss / d w_ij) Phi_j

Tables are made once per evaluation and gradients folded once; what reads rows goes on seeing
tables. The products that give a pseudolikelihood's gradients of all pairs are of features.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.conditional.features import Features
from edgegraft.core import Layout
from edgegraft.core.pairs import PairTables
from edgegraft.core.types import Edges, Floats
from edgegraft.objective.objective import Evaluation, Objective, State
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.table.blocks import TableRows


class FeaturedState(NamedTuple):
    """What an evaluation hands to the next one."""

    layout: Layout  # of the weights
    inner: State  # the state of the loss of tables


class Featured(Objective):
    """A loss of tables, `inner`, as a loss of weights of features."""

    features: Features

    def __init__(self, inner: Objective, features: Features) -> None:
        self.inner, self.features, self.rows = inner, features, inner.rows
        self.schema, self.n_rows = inner.schema, inner.n_rows
        self.terms, self.accuracy = inner.terms, inner.accuracy
        in_memory = isinstance(inner, Pseudolikelihood) and isinstance(inner.rows, TableRows)
        # Products of scores alone are small. A constant column has no edges.
        self.scores_all = in_memory and not (features.is_plain & (features.states > 1)).any()

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
        return FeaturedState(layout, self.inner.init(layout.tables))

    def grow(self, state: FeaturedState, layout: Layout) -> FeaturedState:
        """Return a state for another graph, keeping what still holds."""
        if layout is state.layout:
            return state
        return FeaturedState(layout, self.inner.grow(state.inner, layout.tables))

    def evaluate(self, theta: Floats, state: FeaturedState) -> Evaluation:
        """Return the loss and its gradient at `theta`."""
        found = self.inner.evaluate(self.expand(theta, state.layout), state.inner)
        gradient = self.features.fold(found.gradient, state.layout)
        return found._replace(gradient=gradient, state=FeaturedState(state.layout, found.state))

    def edge_gradients(self, theta: Floats, state: FeaturedState, edges: Edges) -> PairTables:
        """Return the loss's gradient with respect to the weights of pairs."""
        tables = self.expand(theta, state.layout)
        if isinstance(self.inner, Pseudolikelihood):
            return self.inner.edge_gradients(tables, state.inner, edges, self.features)
        return self.features.fold_pairs(self.inner.edge_gradients(tables, state.inner, edges))

    def curvature(self, layout: Layout) -> Floats:
        """Return the diagonal of the tables' Hessian, folded."""
        return self.features.squared.fold(self.inner.curvature(layout.tables), layout)

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
        return self.inner.pair_frequencies(layout.tables)


def featured(loss: Objective, features: Features | None = None) -> Objective:
    """Return the loss of weights if any column is ordered, otherwise the loss of tables itself.

    `features` are those of the data's margins by default.
    """
    if not loss.schema.scored:
        return loss
    return Featured(loss, features or Features.of(loss.schema, loss.state_weights()))
