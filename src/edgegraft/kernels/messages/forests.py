"""Forests of a graph, and the log-partition function of a model reparametrised on them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgegraft.kernels.compiler import kernel
from edgegraft.kernels.messages.log_messages import log_belief, sum_product


class Forests(NamedTuple):
    """Spanning forests of a graph, all equally likely."""

    order: np.ndarray  # int64 (k, n) nodes of each, subtrees before their roots
    upward: np.ndarray  # int64 (k, n) message into a node from its parent; -1 at roots
    probability: np.ndarray  # float64 (m,) share of the forests that hold an edge


@kernel
def find_root(parent, i):
    """Return the root of `i` in a union-find forest, halving the path to it."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@kernel
def spanning_forest(ends, order, n, member):
    """Mark in `member` the edges that join two components when taken in `order`; count them."""
    parent = np.arange(n)
    member[:] = False
    size = 0
    for e in order:
        i, j = find_root(parent, ends[e, 0]), find_root(parent, ends[e, 1])
        if i != j:
            parent[i] = j
            member[e] = True
            size += 1
    return size


@kernel
def root_forest(roots, start, links, reverse, edge, inside, member):
    """Return the nodes of a forest, subtrees first, and the message into each from its parent.

    The forest has the nodes `inside` and those of the edges `member` that join two of them; it is
    searched breadth first from the first of `roots`, all nodes in some order, in each component.
    What a node sends up answers the message from its parent, which is -1 at a root.
    """
    n = len(inside)
    order, upward = np.empty(n, np.int64), np.full(n, -1, np.int64)
    seen = ~inside
    head = place = n
    for root in roots:
        if seen[root]:
            continue
        seen[root] = True
        place -= 1
        order[place] = root
        while head > place:
            head -= 1
            i = order[head]
            for k in range(start[i], start[i + 1]):
                j = links[k, 4]
                if member[edge[k]] and not seen[j]:
                    seen[j] = True
                    place -= 1
                    order[place] = j
                    upward[j] = reverse[k]
    return order[place:], upward


@kernel
def forest_log_partition(wiring, potentials, value, order, upward):
    """Return the mean over forests of the log-partition function of the tree-structured parts.

    Any messages split the model exactly into node terms ``log B_i`` and edge terms
    ``rho_e (w_e / rho_e - log M_ij - log M_ji)``; forest ``t`` takes all node terms and its own
    edges' terms without ``rho_e``. The mean over the forests gives the model back, and the
    log-partition function is convex: the result bounds it from above, whatever the messages.
    """
    start, links, states, node_offset = (
        wiring.start, wiring.links, wiring.states, wiring.node_offset,
    )  # fmt: skip
    edge = wiring.edge
    tables, log_tables = potentials.tables, potentials.log_tables
    edge_top, weight = potentials.edge_top, potentials.weight
    rho = weight[edge]
    beliefs = np.empty(node_offset[-1])
    for i in range(len(states)):
        at, s = node_offset[i], states[i]
        log_belief(start, links, potentials.unary, rho, at, value, i, s, beliefs[at : at + s])
    below = np.empty_like(beliefs)
    cavity, product = np.empty(states.max()), np.empty(states.max())
    total = 0.0
    for f in range(len(order)):
        below[:] = beliefs
        for i in order[f]:
            at, s = node_offset[i], states[i]
            k = upward[f, i]
            if k < 0:
                top = below[at : at + s].max()
                total += top + np.log(np.exp(below[at : at + s] - top).sum())
                continue
            m, o, t, r, j = links[k, 0], links[k, 1], links[k, 2], links[k, 3], links[k, 4]
            for a in range(s):
                cavity[a] = below[at + a] - value[m + a]
            shift = sum_product(tables, log_tables, t, cavity, product, s, r)
            total += shift + edge_top[edge[k]] / rho[k]
            for b in range(r):
                below[node_offset[j] + b] += product[b] - value[o + b]
    return total / len(order) + potentials.node_top.sum()
