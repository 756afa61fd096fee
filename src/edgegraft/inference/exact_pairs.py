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
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from edgegraft.core import Layout
from edgegraft.core.pairs import pair_ids, pairs_of_ids
from edgegraft.core.tables import PairTables, table_offsets
from edgegraft.core.types import Edges
from edgegraft.inference.elimination import Elimination
from edgegraft.inference.engine import Marginals

Run = Callable[[NDArray[np.float64], Layout], Marginals]


def pair_tables(
    theta: NDArray[np.float64], layout: Layout, found: Elimination, pairs: Edges, run: Run
) -> PairTables:
    """Return the joint marginals of `pairs`; `run` is exact inference on a layout."""
    shapes = layout.states[pairs]
    offsets = table_offsets(shapes)
    tables = PairTables(pairs, shapes, np.empty(int(offsets[-1])), offsets)
    extended = _with_clique_pairs(layout, found, pairs)
    grown = np.concatenate((theta, np.zeros(extended.n_parameters - len(theta))))
    values = run(grown, extended).values
    edge = _edge_of(extended, pairs)
    apart = _components(layout)[pairs]
    pending = np.zeros(len(pairs), np.bool_)
    for k, (i, j) in enumerate(pairs):
        if edge[k] >= 0:
            table = extended.edge(values, int(edge[k]))
            tables[k][:] = table if i < j else table.T
        elif apart[k, 0] != apart[k, 1]:
            tables[k][:] = np.outer(layout.node(values, i), layout.node(values, j))
        else:
            pending[k] = True
    for i, chosen in _cover(pairs, pending, layout.states):
        _clamp(theta, layout, values, i, chosen, tables, run)
    return tables


def _clamp(
    theta: NDArray[np.float64],
    layout: Layout,
    values: NDArray[np.float64],
    i: int,
    chosen: NDArray[np.int64],
    tables: PairTables,
    run: Run,
) -> None:
    """Fill in the `chosen` tables, all of variable `i`, state by state."""
    for a, probability in enumerate(layout.node(values, i)):
        given = None
        if probability > 0:
            clamped = theta.copy()
            layout.node(clamped, i)[:] = -np.inf
            layout.node(clamped, i)[a] = 0.0
            given = run(clamped, layout).values
        for k in chosen:
            first, second = tables.edges[k]
            table = tables[k] if first == i else tables[k].T
            other = second if first == i else first
            table[a] = 0.0 if given is None else probability * layout.node(given, other)


def _cover(
    pairs: Edges, pending: NDArray[np.bool_], states: NDArray[np.int64]
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield variables to clamp with the pairs each answers: most pairs for each state first."""
    left = np.flatnonzero(pending)
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
    wanted = np.unique(pair_ids(pairs, n))
    present = pair_ids(layout.edges, n)
    new = np.setdiff1d(np.intersect1d(wanted, filled), present)
    return layout.grow(pairs_of_ids(new, n)) if len(new) else layout


def _edge_of(layout: Layout, pairs: Edges) -> NDArray[np.int64]:
    """Return the number of each pair's edge, -1 where it is none."""
    n = layout.n_variables
    keys = pair_ids(layout.edges, n)
    order = np.argsort(keys)
    wanted = pair_ids(pairs, n)
    if not len(keys):
        return np.full(len(pairs), -1, np.int64)
    at = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    return np.where(keys[at] == wanted, at, -1)


def _components(layout: Layout) -> NDArray[np.int32]:
    n = layout.n_variables
    ones = np.ones(layout.n_edges, np.bool_)
    graph = coo_array((ones, (layout.edges[:, 0], layout.edges[:, 1])), shape=(n, n))
    labels: NDArray[np.int32] = connected_components(graph, directed=False)[1]
    return labels
