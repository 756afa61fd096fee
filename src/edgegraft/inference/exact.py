"""Exact inference by elimination, if the graph allows it.

    log Z = log sum_x exp(sum_i u_i(x_i) + sum_{(i,j)} w_ij(x_i, x_j))

The graph alone decides the cost, so it is known, and refused if it is too high, before a table is
allocated. The state is the bucket tree of the graph (see
:mod:`edgegraft.kernels.elimination.junction`) and knows nothing of the parameters: each run is one
sweep up and one down, from scratch, and leaves no tables behind. Forests need no other code: their
bucket tree is the forest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.sparse.csgraph import connected_components

from edgegraft.core import Layout
from edgegraft.core.adjacency import link_matrix
from edgegraft.core.checks import check_edges, check_theta
from edgegraft.core.pairs import PairTables, pair_ids, pairs_of_ids
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.errors import ModelError, TreewidthError
from edgegraft.inference.affordability import (
    ExactBudget,
    ExactState,
    affordable,
    exact_cost,
    readable_bytes,
)
from edgegraft.inference.elimination import Elimination, ExactCost, build_tree
from edgegraft.inference.engine import (
    Assignment,
    Capabilities,
    Info,
    Marginals,
    product_tables,
    score,
)
from edgegraft.kernels.elimination import buckets, junction

#: Uniform numbers held at once while sampling: 256 MiB.
_DRAWS_AT_ONCE = 1 << 25


class ExactEngine:
    """Exact marginals, log-partition function, most probable state and samples.

    Cost and memory grow with the largest table of a good elimination order, about
    ``states ** (treewidth + 1)``: linear in the number of variables on trees, hopeless on dense
    graphs. :meth:`estimate` finds out which, in milliseconds.

    Parameters
    ----------
    max_bytes : int, optional
        Memory that a run may use, by default half of what the machine has. Graphs that need more
        are refused by :meth:`init`; time is not limited.

    Examples
    --------
    >>> layout = Layout([2, 2, 2], [(0, 1), (1, 2), (0, 2)])
    >>> theta = np.zeros(layout.n_parameters)
    >>> layout.edge(theta, 0)[:] = [[1.0, 0.0], [0.0, 1.0]]
    >>> engine = ExactEngine()
    >>> state = engine.init(layout)
    >>> marginals, state, info = engine.run(theta, state)
    >>> layout.edge(marginals.values, 0).round(3)
    array([[0.366, 0.134],
           [0.134, 0.366]])
    >>> round(marginals.log_partition, 4)
    2.6996
    """

    #: What the answers are.
    capabilities = Capabilities("exact", exact=True, log_partition="exact", pair_marginals="exact")

    def __init__(self, max_bytes: int | None = None) -> None:
        self.budget = ExactBudget(math.inf, max_bytes)

    def __repr__(self) -> str:
        return f"ExactEngine(max_bytes={self.budget.nbytes})"

    def estimate(self, layout: Layout) -> ExactCost:
        """Return what inference on a graph would take, without doing it."""
        return exact_cost(layout, self.budget)

    def init(self, layout: Layout) -> ExactState:
        """Return the bucket tree of a graph; a TreewidthError if a run needs too much memory."""
        state = affordable(layout, self.budget)
        if state is None:
            raise TreewidthError(_refusal(self.estimate(layout), self.budget.max_bytes))
        return state

    def grow(self, state: ExactState, layout: Layout) -> ExactState:
        """Return the state of another graph: exact inference has nothing to keep."""
        return state if layout is state.layout else self.init(layout)

    def run(
        self, theta: Floats, state: ExactState, rng: np.random.Generator | None = None
    ) -> tuple[Marginals, ExactState, Info]:
        """Return the exact marginals and log-partition function; `rng` is not used.

        A model in which no state has positive probability is refused with a ModelError.
        """
        return _calibrate(check_theta(theta, state.layout), state.tree), state, describe_run(state)

    def pair_marginals(self, theta: Floats, state: ExactState, edges: Edges) -> PairTables:
        """Return the exact joint marginals of any pairs.

        One run answers all edges of the graph, all pairs that share a clique (as edges with tables
        of ones, which change neither the distribution nor the cliques), and all pairs in different
        components, which are independent. For the others variables are clamped: one run for each
        state of a variable answers all pairs that it is in, and variables are chosen greedily by
        the pairs that they answer per state.
        """
        layout, theta = state.layout, check_theta(theta, state.layout)
        pairs = check_edges(edges, layout.n_variables)
        extended = _with_clique_pairs(layout, state.elimination, pairs)
        tree = state.tree if extended is layout else build_tree(extended, state.elimination)
        padded = np.concatenate((theta, np.zeros(extended.n_parameters - len(theta))))
        values = _calibrate(padded, tree).values
        tables, others = product_tables(extended, values, pairs)
        left = others[_are_connected(layout, pairs[others])]
        for i, chosen in _cover(pairs, left, layout.states):
            for a, probability in enumerate(layout.node(values, i)):
                given = _given(theta, state, i, a) if probability > 0 else np.zeros_like(theta)
                for k in chosen.tolist():
                    first, second = pairs[k]
                    table, other = (tables[k], second) if first == i else (tables[k].T, first)
                    table[a] = probability * layout.node(given, other)
        return tables

    def map(self, theta: Floats, graph: ExactState | Layout) -> Assignment:
        """Return a most probable assignment and its log score, ``log Z`` not subtracted."""
        state = self.init(graph) if isinstance(graph, Layout) else graph
        layout = state.layout
        potentials = buckets.scale_potentials(
            state.tree, check_theta(theta, layout)[state.tree.place]
        )
        messages, _ = junction.collect(state.tree, potentials, True)
        assignment = np.empty(layout.n_variables, np.int64)
        junction.trace_back(state.tree, potentials.logs, messages, assignment)
        value = score(theta, layout, assignment)
        if value == -np.inf:
            raise _impossible()
        return Assignment(assignment, value, describe_run(state))

    def sample(
        self, theta: Floats, state: ExactState, n_samples: int, rng: np.random.Generator
    ) -> Integers:
        """Return independent exact samples, one per row."""
        potentials, messages, _ = _collect(check_theta(theta, state.layout), state.tree)
        n = state.layout.n_variables
        parts, at_once = [], max(_DRAWS_AT_ONCE // max(n, 1), 1)
        for first in range(0, max(n_samples, 1), at_once):
            columns = np.empty((n, min(at_once, n_samples - first)), np.int64)
            uniform = rng.random(columns.shape[::-1]).T  # row by row: parts change no draw
            junction.draw(state.tree, potentials, messages, uniform, columns)
            parts.append(columns.T)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _calibrate(theta: Floats, tree: buckets.JunctionTree) -> Marginals:
    potentials, messages, log_partition = _collect(theta, tree)
    junction.distribute(tree, potentials, messages, potentials.logs)
    values = np.empty_like(theta)
    values[tree.place] = potentials.logs
    return Marginals(values, log_partition)


def _given(theta: Floats, state: ExactState, i: int, a: int) -> Floats:
    """Return the marginals if variable `i` is in state `a`."""
    clamped = theta.copy()
    own = state.layout.node(clamped, i)
    own[:] = -np.inf
    own[a] = 0.0
    return _calibrate(clamped, state.tree).values


def _collect(
    theta: Floats, tree: buckets.JunctionTree
) -> tuple[buckets.BucketPotentials, buckets.Messages, float]:
    """Go up the tree, refusing a model in which nothing is possible."""
    potentials = buckets.scale_potentials(tree, theta[tree.place])
    messages, log_partition = junction.collect(tree, potentials, False)
    if log_partition == -np.inf:
        raise _impossible()
    return potentials, messages, log_partition


def _impossible() -> ModelError:
    return ModelError(
        "no state has positive probability: zero entries (log-potentials of -inf) exclude all"
    )


def describe_run(state: ExactState) -> Info:
    """Return what is to be said of a run."""
    return Info(
        converged=True,
        n_iter=1,
        residual=0.0,
        message=f"exact, treewidth {state.cost.treewidth}",
        diagnostics=state.cost._asdict(),
    )


def _refusal(cost: ExactCost, max_bytes: int) -> str:
    least, cells = "" if cost.complete else "at least ", cost.largest_table
    readable = f"{cells:,}" if cells < 10**9 else f"10^{math.log10(cells):.0f}"
    return (
        f"exact inference on this graph needs {least}{readable_bytes(cost.nbytes)} by the best "
        f"elimination order found (treewidth {least}{cost.treewidth}, {least}"
        f"{readable} cells in one table), but max_bytes allows "
        f"{readable_bytes(max_bytes)}: use the engine 'bp', 'trw' or "
        "'gibbs' instead, or raise max_bytes"
    )


def _cover(pairs: Edges, left: Integers, states: Integers) -> Iterator[tuple[int, Integers]]:
    """Yield variables to clamp with the pairs each answers: most pairs per state first."""
    while len(left):
        count = np.bincount(pairs[left].ravel(), minlength=len(states))
        i = int(np.argmax(count / states))
        mine = (pairs[left] == i).any(axis=1)
        yield i, left[mine]
        left = left[~mine]


def _with_clique_pairs(layout: Layout, found: Elimination, pairs: Edges) -> Layout:
    """Return the layout with those pairs as edges that are in a clique and not edges yet.

    A pair is in a clique exactly if it is an edge of the triangulated graph.
    """
    n = layout.n_variables
    owner = np.repeat(found.order, np.diff(found.scope_start))
    filled = pair_ids(np.stack((owner, found.scope), axis=1), n)
    new = np.setdiff1d(np.intersect1d(pair_ids(pairs, n), filled), pair_ids(layout.edges, n))
    return layout.grow(pairs_of_ids(new, n)) if len(new) else layout


def _are_connected(layout: Layout, pairs: Edges) -> Mask:
    """Return whether the variables of each pair are in the same component."""
    n = layout.n_variables
    graph = link_matrix(np.ones(layout.n_edges), layout.edges, n)
    component = connected_components(graph, directed=False)[1]
    return np.asarray(component[pairs[:, 0]] == component[pairs[:, 1]])
