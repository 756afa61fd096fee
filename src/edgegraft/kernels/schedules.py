"""In which order messages are updated: all at once, or where most has changed.

*Flooding* computes every message from those of the sweep before. *Residual* updates one node at a
time and in place: a node's priority is the sum of the changes of its incoming messages since it
last answered. A message is non-expansive in the logarithms of what it is made from, so that sum
bounds how far the node's answers are out of date: a node below the tolerance needs no work, and
after a local change of the parameters only the nodes that the change reaches are visited.

Before priorities decide, the nodes that start out of date are visited from the leaves to the
roots of a spanning forest and back: on a forest that is exact and all there is to do.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from edgegraft.kernels.heap import push_or_raise, remove
from edgegraft.kernels.linear_messages import (
    LARGEST_CHANGE,
    WIDE_BELIEF,
    linear_answers,
)
from edgegraft.kernels.log_messages import log_answers

#: What a message is: plain probabilities, logarithms, logarithms of maxima.
LINEAR, LOG, MAX = range(3)


@njit(cache=True, nogil=True)
def wide_nodes(wiring, potentials):
    """Return which nodes' beliefs may span too much for plain products."""
    span = potentials.node_span.copy()
    edge, edge_span = wiring.edge, potentials.edge_span
    for i in range(len(span)):
        for k in range(wiring.start[i], wiring.start[i + 1]):
            span[i] += edge_span[edge[k]]
    return span > WIDE_BELIEF


@njit(cache=True, nogil=True)
def flood(wiring, potentials, value, inverse, kind, damping, tol, max_iter, floor):
    """Update all messages at once until none changes by more than `tol`.

    Returns the messages, their reciprocals, the sweeps made and the largest change of the last.
    """
    start, links, states, node_offset = (
        wiring.start, wiring.links, wiring.states, wiring.node_offset,
    )  # fmt: skip
    unary, unary_exp = potentials.unary, potentials.unary_exp
    tables, log_tables = potentials.tables, potentials.log_tables
    rho = potentials.weight[wiring.edge]
    wide = wide_nodes(wiring, potentials)
    out, out_inverse = value.copy(), inverse.copy()
    widest = states.max()
    belief, cavity, product = np.empty(widest), np.empty(widest), np.empty(widest)
    change = np.zeros(len(links))
    n, nodes = len(states), np.arange(len(states))
    residual = 0.0
    for iteration in range(max_iter):
        if kind == LINEAR:
            linear_answers(
                nodes, n, start, links, states, node_offset, unary, unary_exp, wide, tables, value,
                inverse, out, out_inverse, damping, belief, cavity, product, change,
            )  # fmt: skip
        else:
            log_answers(
                nodes, n, start, links, states, node_offset, unary, rho, tables, log_tables, value,
                out, damping, floor, kind == MAX, belief, cavity, product, change,
            )  # fmt: skip
        value, out = out, value
        inverse, out_inverse = out_inverse, inverse
        residual = change.max() if len(change) else 0.0
        if residual <= tol * (1.0 - damping):
            return value, inverse, iteration + 1, residual
    return value, inverse, max_iter, residual


@njit(cache=True, nogil=True)
def chase(wiring, potentials, value, inverse, kind, damping, tol, max_updates, floor, dirty, key):
    """Update nodes in place, most out of date first, until none is by more than `tol`.

    `value`, `inverse` and `key` (how far each node is out of date) are changed. `dirty` nodes are
    visited whatever their key. Returns the number of message updates.
    """
    start, links, states, node_offset = (
        wiring.start, wiring.links, wiring.states, wiring.node_offset,
    )  # fmt: skip
    unary, unary_exp = potentials.unary, potentials.unary_exp
    tables, log_tables = potentials.tables, potentials.log_tables
    rho = potentials.weight[wiring.edge]
    wide = wide_nodes(wiring, potentials)
    n, node = len(states), np.empty(1, np.int64)
    widest = states.max()
    belief, cavity, product = np.empty(widest), np.empty(widest), np.empty(widest)
    change = np.zeros(len(links))
    heap, place, size = np.empty(n, np.int64), np.full(n, -1, np.int64), 0
    for i in range(n):
        if dirty[i]:
            key[i] = LARGEST_CHANGE
        if key[i] > tol:
            size = push_or_raise(heap, place, key, size, i)
    updates = 0
    visit = 0  # the first 2 n visits follow the order, there and back; then the heap decides
    while size > 0 and updates < max_updates:
        i = heap[0]
        if visit < 2 * n:
            i = wiring.order[visit] if visit < n else wiring.order[2 * n - 1 - visit]
            visit += 1
            if not dirty[i] or key[i] <= tol:
                continue
        if place[i] >= 0:
            size = remove(heap, place, key, size, i)
        node[0] = i
        if kind == LINEAR:
            linear_answers(
                node, 1, start, links, states, node_offset, unary, unary_exp, wide, tables, value,
                inverse, value, inverse, damping, belief, cavity, product, change,
            )  # fmt: skip
        else:
            log_answers(
                node, 1, start, links, states, node_offset, unary, rho, tables, log_tables, value,
                value, damping, floor, kind == MAX, belief, cavity, product, change,
            )  # fmt: skip
        updates += start[i + 1] - start[i]
        size = _pass_on(start, links, change, damping, tol, key, heap, place, size, i)
    return updates


@njit(cache=True, nogil=True)
def _pass_on(start, links, change, damping, tol, key, heap, place, size, i):
    """Tell the neighbours of node `i` how much its answers changed; return the heap's size."""
    largest = 0.0
    for k in range(start[i], start[i + 1]):
        moved = change[k]
        largest = max(largest, moved)
        j = links[k, 4]
        key[j] += moved
        if moved > 0.0 and key[j] > tol:
            size = push_or_raise(heap, place, key, size, j)
    key[i] = largest * damping / (1.0 - damping)  # what damping held back
    if key[i] > tol:
        size = push_or_raise(heap, place, key, size, i)
    return size
