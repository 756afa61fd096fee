"""The pseudolikelihood of a table of ordered columns alone, at the cost of their scores.

What :class:`~edgegraft.objective.featured.Featured` computes by way of tables, without them: a row
costs two numbers per neighbour and the states of the target once. Residuals stay with the state, so
gradients of pairs outside of the model are one matrix product.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.conditional.features import Features
from edgegraft.core import Layout
from edgegraft.core.checks import check_edges, check_theta
from edgegraft.core.pairs import PairTables
from edgegraft.core.threads import one_blas_thread, run
from edgegraft.core.types import Edges, Floats, Integers
from edgegraft.kernels.conditionals.scored import score_conditional
from edgegraft.objective.block_sums import columns_of
from edgegraft.objective.featured import Featured, affordable_products, feature_rows, take_pairs
from edgegraft.objective.objective import Evaluation, Objective
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.table.blocks import TableRows


class Target(NamedTuple):
    """Where the weights of a column's edges lie, seen from it."""

    sources: Integers  # (m,) features of its neighbours
    weights: Integers  # (k, m) positions among the parameters
    side: Integers  # (m,) 1 if the column is the second end


class ScoredState(NamedTuple):
    """What an evaluation hands to the next one."""

    layout: Layout
    targets: list[Target]
    residuals: NDArray[np.floating] | None  # (features, rows) at the parameters evaluated
    products: dict[bytes, Floats]
    inner: None = None  # no state of a loss of tables


class ScoredPseudolikelihood(Featured):
    """The pseudolikelihood of ordered columns in memory, as a loss of weights of scores.

    All columns of `inner` are ordered or have two states.
    """

    scores_all = True

    def __init__(self, inner: Pseudolikelihood, features: Features) -> None:
        super().__init__(inner, features)
        assert isinstance(inner.rows, TableRows)
        self._n_jobs = inner.rows.n_jobs
        self._columns = columns_of(inner.rows, inner.dtype)
        every, n_rows = np.arange(len(features.states)), self._columns.codes.shape[1]
        shown = feature_rows(self._columns.codes, features, every, slice(0, n_rows))
        self._shown = np.ascontiguousarray(shown, inner.dtype)
        self._start = np.concatenate(([0], np.cumsum(features.widths)))
        self._phi = [np.ascontiguousarray(features.matrix(i), inner.dtype) for i in every.tolist()]

    def init(self, layout: Layout) -> ScoredState:  # type: ignore[override]
        """Return a cold state for a graph."""
        ends = np.concatenate((layout.edges, layout.edges[:, ::-1]))
        order = np.argsort(ends[:, 0], kind="stable")
        # A place per feature of each neighbour, the neighbours of a column after each other.
        width = layout.widths[ends[order, 1]]
        of_end = np.repeat(np.arange(len(order)), width)
        feature = np.arange(len(of_end)) - np.repeat(np.cumsum(width) - width, width)
        side, edge = np.divmod(order[of_end], max(layout.n_edges, 1))
        sources = self._start[ends[order, 1]][of_end] + feature
        # Cell (a, feature) of an edge seen from its first end, (feature, a) from its second.
        own = layout.widths[ends[order, 0]][of_end]
        first = layout.edge_offset[edge] + np.where(side == 1, feature * own, feature)
        step = np.where(side == 1, 1, width[of_end])
        bounds = np.searchsorted(ends[order, 0][of_end], np.arange(layout.n_variables + 1))
        targets = []
        for i, (begin, end) in enumerate(pairwise(bounds.tolist())):
            at = slice(begin, end)
            weights = first[at] + np.arange(layout.widths[i])[:, None] * step[at]
            targets.append(Target(sources[at], weights, side[at]))
        return ScoredState(layout, targets, None, {})

    def grow(self, state: ScoredState, layout: Layout) -> ScoredState:  # type: ignore[override]
        """Return a state for another graph."""
        return state if layout is state.layout else self.init(layout)

    def evaluate(self, theta: Floats, state: ScoredState) -> Evaluation:  # type: ignore[override]
        """Return the loss and its gradient at `theta`."""
        layout = state.layout
        theta = check_theta(theta, layout, finite=True)
        residuals = np.empty_like(self._shown)
        gradient, sides = np.zeros(layout.n_parameters), np.zeros((2, layout.n_parameters))
        losses = np.zeros(layout.n_variables)

        def work(i: int) -> None:
            target, own = state.targets[i], slice(self._start[i], self._start[i + 1])
            sums, nodes = np.zeros(target.weights.shape), np.zeros(int(layout.states[i]))
            losses[i] = score_conditional(
                self._columns.codes[i],
                self._columns.weights,
                self._shown,
                target.sources,
                theta[target.weights].astype(self._shown.dtype),
                layout.node(theta, i).astype(self._shown.dtype),
                self._phi[i],
                residuals[own],
                sums,
                nodes,
            )
            layout.node(gradient, i)[:] = nodes
            sides[target.side, target.weights] = -sums  # which no other target writes to

        run(work, range(layout.n_variables), self._n_jobs)
        gradient += sides[0] + sides[1]
        gradient /= self.n_rows
        nodes = int(layout.node_offset[-1])
        gradient[:nodes] -= self.state_weights() / self.n_rows
        value = float(losses.sum() / self.n_rows)
        return Evaluation(value, gradient, state._replace(residuals=residuals, products={}), True)

    def edge_gradients(self, theta: Floats, state: ScoredState, edges: Edges) -> PairTables:  # type: ignore[override]
        """Return the loss's gradient with respect to the weights of pairs."""
        edges = check_edges(edges, len(self.schema))
        if state.residuals is None:
            state = self.evaluate(theta, state).state
        assert state.residuals is not None
        chosen = self._asked(edges, 1)
        key = chosen.tobytes()
        if key not in state.products:
            rows = np.concatenate([np.arange(*self._start[i : i + 2]) for i in chosen])
            with one_blas_thread():
                products = self._shown[rows] @ state.residuals[rows].T
            state.products[key] = products.astype(np.float64) / -self.n_rows
        return take_pairs(state.products[key], self.features, chosen, edges)


def featured(loss: Objective, features: Features | None = None) -> Objective:
    """Return the loss of weights if any column is ordered, otherwise the loss of tables itself.

    `features` are those of the data's margins by default.
    """
    if not loss.schema.scored:
        return loss
    features = features or Features.of(loss.schema, loss.state_weights())
    if (
        isinstance(loss, Pseudolikelihood)
        and isinstance(loss.rows, TableRows)
        and bool((features.widths < features.states).all())
        and affordable_products(features, loss.rows)
    ):
        return ScoredPseudolikelihood(loss, features)
    return Featured(loss, features)
