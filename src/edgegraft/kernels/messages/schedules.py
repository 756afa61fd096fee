"""In which order messages are updated: first those most out of date.

One node at a time is updated, in place: its priority is the sum of the changes of its incoming
messages since it last answered. A message is non-expansive in the logarithms of what it is made
from, so that sum bounds how far the node's answers are out of date: a node below the tolerance
needs no work, and after a local change of the parameters only the nodes that the change reaches are
visited.

Before priorities decide, the nodes that start out of date are swept from the leaves to the roots
of a spanning forest and back: on a forest that is exact and all there is to do. While much of a
graph is out of date the sweeps continue.
"""

from __future__ import annotations

import numpy as np

from edgegraft.kernels.compiler import helper, kernel
from edgegraft.kernels.messages.beliefs import wide_nodes
from edgegraft.kernels.messages.updates import linear_answers, log_answers
from edgegraft.kernels.structures import empty_heap, pop, put

#: Nodes are swept in order, which is cheaper than a heap, while more than this share of them is
#: out of date, but no more often than this: sweeps may go round in circles when a heap does not.
SHARE_FOR_TRIP, MAX_TRIPS = 0.25, 10
#: What a message is: plain probabilities, logarithms, logarithms of maxima.
LINEAR, LOG, MAX = range(3)


@kernel
def chase(wiring, potentials, value, inverse, kind, damping, tol, max_updates, floor, dirty, key):
    """Update nodes in place, most out of date first, until none is by more than `tol`.

    `value`, `inverse` and `key` (how far each node is out of date) are changed. `dirty` nodes are
    visited whatever their key. Returns the number of message updates.
    """
    start, links = wiring.start, wiring.links
    states, node_offset = wiring.states, wiring.node_offset
    unary, unary_exp = potentials.unary, potentials.unary_exp
    tables, log_tables = potentials.tables, potentials.log_tables
    rho = potentials.weight[wiring.edge]
    wide = wide_nodes(wiring, potentials)
    n, widest = len(states), states.max()
    belief, cavity, product = np.empty(widest), np.empty(widest), np.empty(widest)
    change = np.zeros(len(links))
    heap = empty_heap(n)
    order = wiring.order
    nodes = order[dirty[order]]
    count, trips, updates = len(nodes), 0, 0
    while updates < max_updates:
        if trips == MAX_TRIPS:
            nodes[0] = pop(heap)
            if nodes[0] < 0:
                break
        if kind == LINEAR:
            linear_answers(
                nodes, count, start, links, states, node_offset, unary, unary_exp, wide, tables,
                value, inverse, damping, belief, cavity, product, change,
            )  # fmt: skip
        else:
            log_answers(
                nodes, count, start, links, states, node_offset, unary, rho, tables, log_tables,
                value, damping, floor, kind == MAX, belief, cavity, product, change,
            )  # fmt: skip
        updates += _pass_on(nodes, count, start, links, change, damping, key)
        if trips == MAX_TRIPS:
            _enqueue(start, links, change, tol, key, heap, nodes[0])
            continue
        trips += 1
        order = order[::-1]
        nodes = nodes[::-1].copy() if trips == 1 else order[key[order] > tol]
        count = len(nodes)
        if trips > 1 and (trips == MAX_TRIPS or count < SHARE_FOR_TRIP * n):
            # Little is left to do, or sweeps do not settle it: take the worst node first.
            trips = MAX_TRIPS
            for i in range(n):
                if key[i] > tol:
                    put(heap, i, -key[i], 0.0)
            nodes, count = np.empty(1, np.int64), 1
    return updates


@helper
def _pass_on(nodes, count, start, links, change, damping, key):
    """Notify neighbours how much the answers of `nodes` changed; return the number of answers.

    The nodes answered one after another: each has taken note of what came before its turn.
    """
    updates = 0
    for q in range(count):
        i = nodes[q]
        largest = 0.0
        for k in range(start[i], start[i + 1]):
            largest = max(largest, change[k])
            key[links[k, 4]] += change[k]
        key[i] = largest * damping / (1.0 - damping)  # what damping held back
        updates += start[i + 1] - start[i]
    return updates


@helper
def _enqueue(start, links, change, tol, key, heap, i):
    """Put node `i` and the neighbours that it has changed into their places."""
    for k in range(start[i], start[i + 1]):
        j = links[k, 4]
        if change[k] > 0.0 and key[j] > tol:
            put(heap, j, -key[j], 0.0)
    if key[i] > tol:
        put(heap, i, -key[i], 0.0)
