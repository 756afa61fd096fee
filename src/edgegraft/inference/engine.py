"""What every inference engine promises, and what engines share: scores, tables of pairs.

An engine is a stateless object: what it carries from one run to the next (messages, chains) is
a `State` that it hands out and takes back, so that a learner can start warm, keep two models
side by side and resume. Parameters are the flat vector of a :class:`~edgegraft.core.Layout`;
marginals come back in the same layout, which makes the gradient of the log-likelihood one
subtraction. Evidence is not an engine's business: the model conditions first.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.checks import check_edges
from edgegraft.core.pairs import PairTables, find_pairs, table_offsets
from edgegraft.core.types import Edges, Floats, Integers

State = Any  # each engine's own NamedTuple


class Capabilities(NamedTuple):
    """What an engine's answers are."""

    name: str
    exact: bool
    log_partition: str  # "exact", "Bethe approximation", "upper bound" or "none"
    pair_marginals: str  # how a pair without an edge is answered, e.g. "product of beliefs"


class Marginals(NamedTuple):
    """Expected sufficient statistics: node and edge marginals laid out like the parameters."""

    values: Floats
    log_partition: float  # nan if the engine gives none


class Info(NamedTuple):
    """How a run went."""

    converged: bool
    n_iter: int
    residual: float  # largest change of a message in the last sweep, or the engine's own measure
    message: str = ""
    diagnostics: dict[str, Any] | None = None  # e.g. split R-hat and effective sample size


class Assignment(NamedTuple):
    """A state for each variable, its unnormalised log score, and how the search went."""

    assignment: Integers
    value: float
    info: Info


class InferenceEngine(Protocol):
    """Marginals and log-partition function of a pairwise model."""

    @property
    def capabilities(self) -> Capabilities:
        """What the answers are."""
        ...

    def init(self, layout: Layout) -> State:
        """Return a cold state for a graph; refuse graphs that the engine cannot handle."""
        ...

    def grow(self, state: State, layout: Layout) -> State:
        """Return a state for another graph over the same variables.

        What `state` knows about edges that are in both graphs is kept; new edges start cold.
        """
        ...

    def run(
        self,
        theta: Floats,
        state: State,
        rng: np.random.Generator | None = None,
    ) -> tuple[Marginals, State, Info]:
        """Return the marginals under `theta`, the state to start from next time, and how it went.

        The state that was passed in is not changed.
        """
        ...

    def pair_marginals(self, theta: Floats, state: State, edges: Edges) -> PairTables:
        """Return joint marginals of any pairs ``(i, j)``, edges of the graph or not.

        `state` is one that `run` returned for the same `theta`.
        """
        ...


def score(theta: Floats, layout: Layout, assignment: Integers) -> float:
    """Return the sum of the potentials at an assignment.

    >>> score(np.arange(8.0), Layout([2, 2], [(0, 1)]), np.array([1, 0]))
    9.0
    """
    i, j = layout.edges.T
    nodes = theta[layout.node_offset[:-1] + assignment]
    edges = theta[layout.edge_offset[:-1] + assignment[i] * layout.states[j] + assignment[j]]
    return float(nodes.sum() + edges.sum())


def product_tables(layout: Layout, values: Floats, edges: Edges) -> tuple[PairTables, Integers]:
    """Return a table per pair, an edge's own or the product of the marginals, and the others.

    `values` are marginals laid out like the parameters; the others are pairs that are not edges.
    """
    pairs = check_edges(edges, layout.n_variables)
    shapes = layout.states[pairs]
    offsets = table_offsets(shapes)
    sizes = np.diff(offsets)
    within = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], sizes)
    row, column = np.divmod(within, np.repeat(shapes[:, 1], sizes))
    first, second = np.repeat(layout.node_offset[pairs], sizes, axis=0).T
    tables = PairTables(pairs, shapes, values[first + row] * values[second + column], offsets)
    numbers = find_pairs(pairs, layout.edges, layout.n_variables)
    for k in np.flatnonzero(numbers >= 0).tolist():
        table = layout.edge(values, int(numbers[k]))
        tables[k][:] = table if pairs[k, 0] < pairs[k, 1] else table.T
    return tables, np.flatnonzero(numbers < 0)
