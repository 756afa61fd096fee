"""In which order to sum variables out, what that would cost, and the tree that follows from it.

The cost of exact inference is decided here: summing out a variable makes one table over it and
its remaining neighbours, and the best order is NP-hard to find. Weighted min-fill is cheap and
good, but far from the best if its ties matter (on a 20 x 20 grid it needs tables of 2**27
cells, a plain sweep 2**21). So, for about as long as one run of inference would take, further
greedy orders are tried, with noise and with sweeps across the graph, from a fixed seed, and the
one with the fewest cells is kept. Every try ends at the budget or once it costs more than the best.
Nothing is allocated before the cost is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components

from edgegraft.core import Layout
from edgegraft.core.adjacency import link_matrix, neighbours_of
from edgegraft.core.pairs import stretches
from edgegraft.core.types import Floats, Integers
from edgegraft.kernels.elimination.buckets import JunctionTree
from edgegraft.kernels.elimination.ordering import Rule, eliminate
from edgegraft.kernels.structures import depth_first, sweep_levels

CELL_BYTES = 8
#: What both sweeps take per cell of a clique, measured on grids, complete and bipartite graphs.
CELL_SECONDS = 3e-8


@dataclass(frozen=True)
class _Cost:
    """How long an order is searched."""

    retries: int = 32  # at most; where a run is short, its time allows fewer
    cells_per_pair: int = 16  # that a run works off while a try looks up a pair of neighbours
    soft: float = 3.0  # missing pairs that a level of a sweep counts
    strict: float = 1e6  # so many that the direction decides


_COST = _Cost()


class ExactCost(NamedTuple):
    """What exact inference on a graph would take.

    If the search for an order stopped at the budget, it is not `complete`: the other figures are
    what it had reached, and the true ones are larger.
    """

    treewidth: int  # of the order that was found, an upper bound of the graph's
    n_cliques: int  # maximal cliques of the triangulated graph
    largest_table: int  # cells of the largest clique
    nbytes: int  # of a run: messages, the clique in hand, its part in original potentials
    seconds: float  # on a usual core; strong potentials can take three times as long
    complete: bool = True


class Elimination(NamedTuple):
    """An elimination order with the remaining neighbours of each variable at its turn."""

    order: Integers
    scope_start: Integers
    scope: Integers
    cells: float  # of all cliques together
    blocking: int  # the variable whose table was over budget, or -1

    def parents(self, n: int) -> Integers:
        """Return the place in the order of the first of each scope; after all, if there is none."""
        place = np.full(n, len(self.order))  # those that the search did not reach come after all
        place[self.order] = np.arange(len(self.order))
        owner = np.repeat(np.arange(len(self.order)), np.diff(self.scope_start))
        parent = np.full(len(self.order), len(self.order))
        np.minimum.at(parent, owner, place[self.scope])
        return parent


def order_variables(layout: Layout, max_cells: float) -> Elimination:
    """Return the cheapest elimination order found, cut short at messages of `max_cells`."""
    neighbours, rng = neighbours_of(layout), np.random.default_rng(0)
    graph = neighbours.start, neighbours.other
    states = layout.states.astype(np.float64)
    weight = states / states.mean() if len(states) else states
    max_log = math.log2(max(max_cells / 2, 1.0)) + 1e-9

    def attempt(bias: Floats, limit: float) -> Elimination:
        return Elimination(*eliminate(*graph, np.log2(states), Rule(weight, bias), max_log, limit))

    best = attempt(np.zeros(len(states)), max_cells)
    for retry in range(_n_retries(best, max_cells)):
        # Noise, or a sweep across the graph, soft or strict. Sweeps are what grids want: min-fill
        # leaves wide fronts that meet in the middle.
        bias = 2.0 * rng.random(len(states))
        if retry % 2:
            level = sweep_levels(*graph, rng.permutation(len(states)))
            bias = (_COST.soft if retry % 4 == 1 else _COST.strict) * level + bias / 2.0
        # A try ends once it costs more than the best.
        least = best.cells / states.min() if best.blocking < 0 else np.inf
        best = min(best, attempt(bias, min(max_cells, least)), key=_rank)
    return best


def cost_of(layout: Layout, found: Elimination) -> ExactCost:
    """Return what inference in the order `found` takes; see :class:`ExactCost`."""
    widths = np.diff(found.scope_start)
    segment = np.repeat(np.arange(len(found.order)), widths)
    messages = np.ones(len(found.order))
    np.multiply.at(messages, segment, layout.states[found.scope])
    tables = messages * layout.states[found.order]
    treewidth = int(widths.max(initial=0))
    largest = int(tables.max(initial=0.0))
    total = int(messages.sum())
    if found.blocking >= 0:
        members = _remaining_clique(layout, found)
        treewidth = max(treewidth, len(members) - 1)
        largest = max(largest, math.prod(int(s) for s in layout.states[members]))
    # A clique that is in no other: a child's scope is all of its parent otherwise.
    parent = found.parents(layout.n_variables)
    child = np.flatnonzero(parent < len(parent))
    same = widths[child] == widths[parent[child]] + 1
    return ExactCost(
        treewidth,
        len(parent) - len(np.unique(parent[child[same]])),
        largest,
        nbytes=CELL_BYTES * (total + 2 * largest),
        seconds=CELL_SECONDS * (max(found.cells, largest) if largest < 1e300 else math.inf),
        complete=found.blocking < 0,
    )


def _rank(found: Elimination) -> tuple[bool, float]:
    return found.blocking >= 0, found.cells if found.blocking < 0 else -len(found.order)


def _n_retries(found: Elimination, max_cells: float) -> int:
    """Return how many tries are worth it: together they may take as long as one run."""
    widths = np.diff(found.scope_start).astype(np.float64)
    if found.blocking < 0 and widths.max(initial=0.0) < 2:  # a forest: nothing to gain
        return 0
    cells = found.cells if found.blocking < 0 else max_cells
    one_try = len(found.order) + (widths**2).sum()
    return min(_COST.retries, int(cells / (_COST.cells_per_pair * one_try + 1.0)))


def _remaining_clique(layout: Layout, found: Elimination) -> Integers:
    """Return the variable that blocked and those joined to it by then, by edges or by fill.

    Fill joins what a path through eliminated variables joins.
    """
    n, (i, j) = layout.n_variables, layout.edges.T
    through = np.zeros(n, np.bool_)
    through[found.order] = through[found.blocking] = True
    both = through[i] & through[j]
    paths = link_matrix(both[both], layout.edges[both], n)
    component = connected_components(paths, directed=False)[1]
    inside = component == component[found.blocking]
    members = np.concatenate((j[inside[i]], i[inside[j]], [found.blocking]))
    return np.unique(members[~through[members] | (members == found.blocking)])


def build_tree(layout: Layout, found: Elimination) -> JunctionTree:
    """Return the bucket tree of a complete elimination order.

    It depends on the graph alone: each new parameter vector only runs the kernels over it.
    """
    n = layout.n_variables
    before = found.parents(n)
    # Children right before their parents: any order with children first has the same cliques, and
    # this one uses a message soon after it was written, while it is still in cache.
    by_rank = depth_first(np.where(before == n, -1, before))
    rank = np.empty(n + 1, np.int64)  # the new place of each bucket
    rank[by_rank], rank[n] = np.arange(n), n
    variable, parent = found.order[by_rank], rank[before[by_rank]]
    position = np.empty(n, np.int64)
    position[variable] = np.arange(n)
    states = layout.states[variable]

    owner = rank[np.repeat(np.arange(n), np.diff(found.scope_start))]
    scope = position[found.scope]
    falling = np.argsort(owner * n - scope)  # by owner, and within each by falling position
    owner, scope = owner[falling], scope[falling]
    message_cells = _products(n, owner, states[scope])

    ends = position[layout.edges]
    first, other = ends.min(axis=1, initial=n), ends.max(axis=1, initial=-1)
    by_bucket = np.argsort(first * n - other)
    first, other = first[by_bucket], other[by_bucket]
    i, j = layout.edges[by_bucket].T
    cells = states[first] * states[other]
    total = states.copy()
    np.add.at(total, first, cells)
    node_block = _starts(total)
    # Edges are by bucket: before one are all earlier edges, and nodes up to its own.
    edge_block = _starts(cells)[:-1] + _starts(states)[first + 1]
    place = np.empty(layout.n_parameters, np.int64)
    place[stretches(node_block[:-1], states)] = stretches(layout.node_offset[variable], states)
    row, column = np.divmod(stretches(np.zeros_like(cells), cells), np.repeat(states[first], cells))
    # The own states run fastest, whether they are the rows of the edge's table or its columns.
    own_is_row, wide = np.repeat([position[i] == first, layout.states[j]], cells, axis=1)
    within = np.where(own_is_row, column * wide + row, row * wide + column)
    at = np.repeat(layout.edge_offset[:-1][by_bucket], cells)
    place[stretches(edge_block, cells)] = at + within
    local_cells = _products(n, first, states[other]) * states
    axes = np.bincount(owner, minlength=n) + 1
    largest = [x.max(initial=0) for x in (message_cells * states, local_cells, axes)]
    return JunctionTree(
        variable=variable,
        states=states,
        scope_start=_starts(axes - 1),
        scope=scope,
        message_start=_starts(message_cells),
        child_start=_starts(np.bincount(parent, minlength=n + 1)[:n]),
        child=np.argsort(parent, kind="stable")[: int((parent < n).sum())],
        local_start=_starts(np.bincount(first, minlength=n)),
        other=other,
        node_block=node_block,
        edge_block=edge_block,
        place=place,
        largest=np.array(largest, np.int64),
    )


def _products(n: int, owner: Integers, values: Integers) -> Integers:
    product = np.ones(n, np.int64)
    np.multiply.at(product, owner, values)
    return product


def _starts(lengths: Integers) -> Integers:
    start = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=start[1:])
    return start
