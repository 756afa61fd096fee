"""What every objective promises: a smooth loss of the parameters, and its gradient anywhere.

    F(theta) = L(theta) + penalty * sum_e d_e ||w_e||_2 + ridge * ||w||_2^2

An objective is ``L``, the mean loss of a row in nats; the rest is a
:class:`~edgegraft.objective.penalty.Penalty`. Like an engine, an objective is stateless: what it
carries from one evaluation to the next (messages, logits) is a `State` that it hands out and
takes back.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from edgegraft.core import Layout
from edgegraft.core.tables import PairTables
from edgegraft.core.types import Edges, Floats
from edgegraft.table import Schema

State = Any  # each objective's own NamedTuple


class Evaluation(NamedTuple):
    """The loss at one point."""

    value: float  # mean loss of a row, nats
    gradient: Floats  # laid out like the parameters
    state: State  # to start the next evaluation from
    trusted: bool  # False where inference did not converge: the value must not be relied on
    message: str = ""


class Objective(Protocol):
    """A smooth loss of a pairwise model's parameters."""

    @property
    def schema(self) -> Schema:
        """Names and categories of the variables."""
        ...

    @property
    def n_rows(self) -> float:
        """Number of rows, or the sum of their weights."""
        ...

    @property
    def terms(self) -> int:
        """How often the loss counts a pair: once in a likelihood, twice where both ends do."""
        ...

    def init(self, layout: Layout) -> State:
        """Return a cold state for a graph."""
        ...

    def grow(self, state: State, layout: Layout) -> State:
        """Return a state for another graph over the same variables, keeping what still holds."""
        ...

    def evaluate(self, theta: Floats, state: State) -> Evaluation:
        """Return the loss and its gradient at `theta`; `state` is not changed."""
        ...

    def edge_gradients(self, theta: Floats, state: State, edges: Edges) -> PairTables:
        """Return the loss's gradient with respect to tables of pairs, edges of the model or not.

        `state` is one that `evaluate` returned at the same `theta`. For a pair outside the model
        this is the gradient at a table of zeros.
        """
        ...

    def curvature(self, layout: Layout) -> Floats:
        """Return a diagonal upper bound of the Hessian, or an estimate of it, one a parameter.

        Solvers scale their steps by it; it need not be a true bound.
        """
        ...

    def start(self, layout: Layout) -> Floats:
        """Return sensible first parameters: node vectors of the margins, edges zero."""
        ...
