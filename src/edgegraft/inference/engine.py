"""What every inference engine promises, and what engines share: scores, tables of pairs.

An engine is a stateless object: what it carries from one run to the next (messages, chains) is
a `State` that it hands out and takes back, so that a learner can start warm, keep two models
side by side and resume. Parameters are the flat vector of a :class:`~edgegraft.core.Layout`;
marginals come back in the same layout, which makes the gradient of the log-likelihood one
subtraction. Evidence is not an engine's business: the model conditions first.

An edge of the graph has its own table. For another pair the product of the two node marginals
ignores dependence through paths; *linear response* adds the covariance
``C_ij(a, b) = d b_j(b) / d u_i(a)``. The free energy as a function of the node beliefs alone has
a sparse second derivative,

    H = sum_e rho_e C_e^-1 + sum_i (1 - sum_{e at i} rho_e) C_i^-1,      C = H^-1,

with ``C_i`` and ``C_e`` the covariances of the indicators under a node's and an edge's belief (in
all but one state of each variable): the blocks of ``H`` lie on the edges of the graph. One sparse
factorisation and one solve per variable asked for give every pair (Welling & Teh 2004; on a forest
the answer is exact).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.linalg import splu

from edgegraft.core import Layout
from edgegraft.core.checks import check_edges
from edgegraft.core.pairs import PairTables, find_pairs, stretches, table_offsets
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


#: Share of independence mixed into beliefs before they are inverted: states of probability zero
#: and deterministic pairs have no inverse covariance.
SOFTENING = 1e-10


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


def add_responses(
    layout: Layout, beliefs: Floats, weight: Floats, tables: PairTables, which: Integers
) -> None:
    """Add the linear response of the beliefs to the product tables `which`."""
    factor = splu(_curvature(layout, beliefs, weight), permc_spec="MMD_AT_PLUS_A")
    kept = np.concatenate(([0], np.cumsum(layout.states - 1)))
    # One solve per variable serves all its pairs: group by whichever end is first.
    by_first = which[np.argsort(tables.edges[which, 0], kind="stable")]
    starts = np.flatnonzero(np.diff(tables.edges[by_first, 0], prepend=-1))
    for group in np.split(by_first, starts[1:]):
        i = int(tables.edges[group[0], 0])
        unit = np.zeros((int(kept[-1]), int(layout.states[i]) - 1))
        unit[kept[i] : kept[i + 1]] = np.eye(unit.shape[1])
        response = factor.solve(unit)
        for k in group:
            j = int(tables.edges[k, 1])
            known = response[kept[j] : kept[j + 1]].T
            # The last states were left out: rows and columns of the covariance sum to zero.
            rows = np.concatenate((known, -known.sum(axis=0, keepdims=True)))
            joint = tables[int(k)] + np.column_stack((rows, -rows.sum(axis=1)))
            np.maximum(joint, 0.0, out=joint)
            tables[int(k)][:] = joint / joint.sum()


def _curvature(layout: Layout, beliefs: Floats, weight: Floats) -> coo_array:
    """Return the sparse second derivative of the free energy in the node beliefs."""
    kept = np.concatenate(([0], np.cumsum(layout.states - 1)))
    soft = (1.0 - SOFTENING) * beliefs[: layout.node_offset[-1]]
    soft += np.repeat(SOFTENING / layout.states, layout.states)
    through = np.ones(layout.n_variables)
    for side in (0, 1):
        np.subtract.at(through, layout.edges[:, side], weight)
    blocks: list[Floats] = []
    rows: list[Integers] = []
    columns: list[Integers] = []

    def add(block: Floats, at: Integers) -> None:
        blocks.append(block.ravel())
        rows.append(np.repeat(at, at.shape[1], axis=1).ravel())
        columns.append(np.tile(at, (1, at.shape[1])).ravel())

    for s in np.unique(layout.states):
        nodes = np.flatnonzero(layout.states == s)
        p = soft[layout.node_offset[nodes][:, None] + np.arange(s)]
        block = through[nodes][:, None, None] * np.linalg.inv(_node_covariance(p))
        add(block, kept[nodes][:, None] + np.arange(s - 1))
    shapes, group = np.unique(layout.states[layout.edges], axis=0, return_inverse=True)
    for g, (r, s) in enumerate(shapes):
        which = np.flatnonzero(group.ravel() == g)
        i, j = layout.edges[which].T
        p = soft[layout.node_offset[i][:, None] + np.arange(r)]
        q = soft[layout.node_offset[j][:, None] + np.arange(s)]
        flat = stretches(layout.edge_offset[which], np.full(len(which), r * s))
        joint = beliefs[flat].reshape(-1, r, s)
        block = weight[which][:, None, None] * np.linalg.inv(_edge_covariance(joint, p, q))
        at = [kept[i][:, None] + np.arange(r - 1), kept[j][:, None] + np.arange(s - 1)]
        add(block, np.concatenate(at, axis=1))
    size = int(kept[-1])
    index = (np.concatenate(rows), np.concatenate(columns))
    return coo_array((np.concatenate(blocks), index), shape=(size, size)).tocsc()


def _node_covariance(p: Floats) -> Floats:
    """Return covariances of the indicators of all states but the last, one per row of `p`."""
    p = p[:, :-1]
    return p[:, :, None] * np.eye(p.shape[1]) - p[:, :, None] * p[:, None, :]


def _edge_covariance(joint: Floats, p: Floats, q: Floats) -> Floats:
    """Return covariances of the indicators of both ends, with a touch of independence."""
    r, s = p.shape[1] - 1, q.shape[1] - 1
    cross = joint[:, :-1, :-1] - joint.sum(axis=2)[:, :-1, None] * joint.sum(axis=1)[:, None, :-1]
    covariance = np.empty((len(joint), r + s, r + s))
    covariance[:, :r, :r] = _node_covariance(p)
    covariance[:, r:, r:] = _node_covariance(q)
    covariance[:, :r, r:] = (1.0 - SOFTENING) * cross
    covariance[:, r:, :r] = covariance[:, :r, r:].transpose(0, 2, 1)
    return covariance
