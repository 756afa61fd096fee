"""Exact joint marginals of pairs that need not be edges.

Four cases, from the cheapest:

- an edge of the graph: its table is among the marginals;
- a pair that some clique holds: an edge with a table of ones is added, which changes neither the
  distribution nor the cliques, and the pair is an edge;
- variables of different components: independent, the product of their marginals;
- the rest: ``p(x_i = a, x_j) = p(x_i = a) p(x_j | x_i = a)``, one run for each state ``a`` with
  ``x_i`` clamped to it, which serves every ``j`` at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from edgegraft.core import Layout
from edgegraft.core.pairs import pair_ids, pairs_of_ids
from edgegraft.core.tables import PairTables
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.inference.elimination import Elimination
from edgegraft.inference.pair_tables import product_tables

#: Exact marginals of parameters under a layout.
Run = Callable[[Floats, Layout], Floats]


def exact_pair_tables(
    theta: Floats, layout: Layout, found: Elimination, pairs: Edges, run: Run
) -> PairTables:
    """Return the joint marginals of `pairs`."""
    extended = _with_clique_pairs(layout, found, pairs)
    values = run(np.concatenate((theta, np.zeros(extended.n_parameters - len(theta)))), extended)
    tables, others = product_tables(extended, values, pairs)
    left = others[_are_connected(layout, pairs[others])]
    for i, chosen in _cover(pairs, left, layout.states):
        for a, probability in enumerate(layout.node(values, i)):
            given = np.zeros_like(theta)
            if probability > 0:
                clamped = theta.copy()
                layout.node(clamped, i)[:] = -np.inf
                layout.node(clamped, i)[a] = 0.0
                given = run(clamped, layout)
            for k in chosen.tolist():
                first, second = pairs[k]
                table, other = (tables[k], second) if first == i else (tables[k].T, first)
                table[a] = probability * layout.node(given, other)
    return tables


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
    graph = coo_array((np.ones(layout.n_edges), tuple(layout.edges.T)), shape=(n, n))
    component = connected_components(graph, directed=False)[1]
    return np.asarray(component[pairs[:, 0]] == component[pairs[:, 1]])
