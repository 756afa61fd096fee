"""What every objective promises: a smooth loss of the parameters, and its gradient anywhere.

    F(theta) = L(theta) + penalty * sum_e d_e ||w_e||_2 + ridge * ||w||_2^2

An objective is ``L``, the mean loss per row in nats; the rest is a
:class:`~edgegraft.objective.penalty.Penalty`. Like an engine, an objective is stateless: what it
carries from one evaluation to the next (messages, logits) is a `State` that it hands out and
takes back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.conditional.features import Features
from edgegraft.core import Layout
from edgegraft.core.pairs import PairTables
from edgegraft.core.types import Edges, Floats
from edgegraft.kernels.solver import dot
from edgegraft.table import Schema
from edgegraft.table.blocks import Rows

State = Any  # each objective's own NamedTuple
#: Curvature of tilted losses added everywhere, as a share of the whole's: a sample may be unlucky.
CAUTION = 0.001


class Evaluation(NamedTuple):
    """The loss at one point."""

    value: float  # mean loss per row, nats
    gradient: Floats  # laid out like the parameters
    state: State  # to start the next evaluation from
    trusted: bool  # False if inference did not converge: the value must not be relied on
    message: str = ""


class Objective(ABC):
    """A smooth loss of a pairwise model's parameters.

    A new objective is a subclass with the abstract members, `schema`, `n_rows` and `terms`. The
    others have defaults; one that knows more of its data, or can fall back on another engine,
    overrides them, and the solver makes use of it.
    """

    schema: Schema
    """Names and categories of the variables."""

    n_rows: float
    """Number of rows, or the sum of their weights."""

    terms: int
    """How often the loss counts a pair: once in a likelihood, twice if both ends do."""

    accuracy: float = 0.0
    """Relative error of the gradient's probabilities; zero if they are exact."""

    rows: Rows | None = None
    """The rows that the loss is of."""

    stand_in: Objective | None = None
    """The same loss over few of the rows, in memory, by which the solver saves passes."""

    features: Features | None = None
    """What edges of ordered columns are made of; None if parameters are tables."""

    scores_all = False
    """Whether gradients of all pairs take about as long as of some."""

    def layout(self, edges: ArrayLike | None = None) -> Layout:
        """Return where the parameters of a graph lie."""
        pairs = np.asarray([] if edges is None else edges, np.int64).reshape(-1, 2)
        return Layout(self.schema.n_states, pairs)

    def expand(self, theta: Floats, layout: Layout) -> Floats:
        """Return the tables that parameters stand for, laid out by the states."""
        return theta

    @abstractmethod
    def init(self, layout: Layout) -> State:
        """Return a cold state for a graph."""

    @abstractmethod
    def grow(self, state: State, layout: Layout) -> State:
        """Return a state for another graph over the same variables, keeping what still holds."""

    @abstractmethod
    def evaluate(self, theta: Floats, state: State) -> Evaluation:
        """Return the loss and its gradient at `theta`; `state` is not changed."""

    @abstractmethod
    def edge_gradients(self, theta: Floats, state: State, edges: Edges) -> PairTables:
        """Return the loss's gradient with respect to tables of pairs, edges of the model or not.

        `state` is one that `evaluate` returned at the same `theta`. For a pair outside the model
        this is the gradient at a table of zeros.
        """

    @abstractmethod
    def curvature(self, layout: Layout) -> Floats:
        """Return a diagonal upper bound of the Hessian, or an estimate of it, one per parameter.

        Solvers scale their steps by it; it need not be a true bound.
        """

    @abstractmethod
    def start(self, layout: Layout) -> Floats:
        """Return sensible first parameters: node vectors of the margins, edges zero."""

    def margins(self) -> Floats:
        """Return the frequencies of the states of every variable, none of them zero.

        By default those of the independent model that :meth:`start` returns.
        """
        layout = Layout(self.schema.n_states)
        p = np.exp(self.start(layout))
        p /= np.repeat(np.add.reduceat(p, layout.node_offset[:-1]), layout.states)
        return p

    def state_weights(self) -> Floats:
        """Return the weight of the rows in each state, zero for one that never occurs.

        By default that of the frequencies of :meth:`margins`.
        """
        return self.margins() * self.n_rows

    def known_shares(self) -> Floats:
        """Return the share of the rows that counts for each variable; by default all."""
        return np.ones(len(self.schema))

    def pair_frequencies(self, layout: Layout) -> Floats | None:
        """Return the data's pair frequencies on a graph, laid out like its edge tables.

        None, the default, if they are not known without another pass over the rows.
        """
        return None

    @property
    def fallback(self) -> Objective | None:
        """The same loss with an engine that is surer to converge; the same object every time."""
        return None

    @property
    def round_trips(self) -> int:
        """Calls that went over a network to where the rows are, so far."""
        return 0 if self.rows is None else self.rows.round_trips

    def engine_name(self, state: State) -> str:
        """Return the name of the engine that answered; empty if there is no inference."""
        return ""


class Tilted(Objective):
    """The loss of a sample for one graph, tilted to have the slope of all rows at one point.

        f(x) + (G - g)'(x - x0) + (x - x0)' D (x - x0) / 2

    with ``f`` and ``g`` the loss and slope of the sample, ``G`` the slope over all rows at ``x0``
    (`gradient` of `whole` at `theta`). Its minimum is nearly that of the loss over all rows, since
    the curvatures of both differ by sampling noise alone: each pass over all rows brings the
    optimum nearer by a factor of that order, where a quasi-Newton step spends a pass for a small
    part of it (Shamir, Srebro and Zhang 2014; Jordan, Lee and Yang 2019). ``D`` adds what the
    sample lacks: states of which it has less than half its share, or none, would otherwise move
    without bounds. It must not do more, since it holds back directions of little curvature.
    """

    def __init__(
        self, sample: Objective, whole: Objective, layout: Layout, theta: Floats, gradient: Floats
    ) -> None:
        self._sample, self._whole, self._at = sample, whole, theta
        self.features, self.terms = whole.features, whole.terms
        self.schema, self.n_rows = whole.schema, whole.n_rows
        here = sample.evaluate(theta, sample.init(layout))
        self._tilt = gradient - here.gradient
        needed, there = whole.curvature(layout), sample.curvature(layout)
        self._stiff = np.maximum(needed - 2.0 * there, 0.0) + CAUTION * needed

    def layout(self, edges: ArrayLike | None = None) -> Layout:
        """Return where the parameters of a graph lie."""
        return self._whole.layout(edges)

    def expand(self, theta: Floats, layout: Layout) -> Floats:
        """Return the tables that parameters stand for."""
        return self._whole.expand(theta, layout)

    def init(self, layout: Layout) -> State:
        """Return the sample's state."""
        return self._sample.init(layout)

    def grow(self, state: State, layout: Layout) -> State:
        """Return the sample's state; another graph would need another slope."""
        return self._sample.grow(state, layout)

    def evaluate(self, theta: Floats, state: State) -> Evaluation:
        """Return the tilted loss and its gradient."""
        found = self._sample.evaluate(theta, state)
        move = theta - self._at
        pull = self._stiff * move
        value = found.value + float(dot(self._tilt, move)) + 0.5 * float(dot(pull, move))
        return found._replace(value=value, gradient=found.gradient + self._tilt + pull)

    def edge_gradients(self, theta: Floats, state: State, edges: Edges) -> PairTables:
        """Return those of the sample: the tilt is known for the edges of the graph alone."""
        return self._sample.edge_gradients(theta, state, edges)

    def curvature(self, layout: Layout) -> Floats:
        """Return the curvature over all rows."""
        return self._whole.curvature(layout)

    def start(self, layout: Layout) -> Floats:
        """Return first parameters over all rows."""
        return self._whole.start(layout)
