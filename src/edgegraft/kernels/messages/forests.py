"""Forests of a graph: log-partition functions, and assignments that are decided along them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgegraft.kernels.compiler import helper, kernel
from edgegraft.kernels.messages.updates import log_belief, sum_product


class Forests(NamedTuple):
    """Spanning forests of a graph, all equally likely."""

    order: np.ndarray  # int64 (k, n) nodes of each, subtrees before their roots
    upward: np.ndarray  # int64 (k, n) message into a node from its parent; -1 at roots
    probability: np.ndarray  # float64 (m,) share of the forests that hold an edge


@helper
def find_root(parent, i):
    """Return the root of `i` in a union-find forest, halving the path to it."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


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
    start, links = wiring.start, wiring.links
    states, node_offset = wiring.states, wiring.node_offset
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


@kernel
def decide(wiring, potentials, value, assignment):
    """Choose states one variable after another; -1 marks the undecided."""
    start, links = wiring.start, wiring.links
    states, node_offset = wiring.states, wiring.node_offset
    unary, log_tables = potentials.unary, potentials.log_tables
    scores = np.empty(states.max())
    for i in wiring.order[::-1]:
        for a in range(states[i]):
            total = unary[node_offset[i] + a]
            for k in range(start[i], start[i + 1]):
                x = assignment[links[k, 4]]
                if x < 0:
                    total += value[links[k, 0] + a]
                else:
                    total += log_tables[links[k, 2] + a * links[k, 3] + x]
            scores[a] = total
        assignment[i] = np.argmax(scores[: states[i]])


@kernel
def polish(wiring, potentials, assignment):
    """Change single variables while that raises the score; return the number of changes."""
    start, links = wiring.start, wiring.links
    states, node_offset = wiring.states, wiring.node_offset
    unary, log_tables = potentials.unary, potentials.log_tables
    scores = np.empty(states.max())
    waiting = np.ones(len(states), np.bool_)
    n_changes = 0
    while waiting.any():
        for i in range(len(states)):
            if not waiting[i]:
                continue
            waiting[i] = False
            for a in range(states[i]):
                total = unary[node_offset[i] + a]
                for k in range(start[i], start[i + 1]):
                    total += log_tables[links[k, 2] + a * links[k, 3] + assignment[links[k, 4]]]
                scores[a] = total
            best = np.argmax(scores[: states[i]])
            # Rounding must not make two equal states take turns for ever.
            if scores[best] > scores[assignment[i]] + 1e-9 * (1.0 + abs(scores[best])):
                assignment[i] = best
                n_changes += 1
                for k in range(start[i], start[i + 1]):
                    waiting[links[k, 4]] = True
    return n_changes


@kernel
def improve_forest(wiring, potentials, turn, assignment):
    """Set a random induced forest to its best states given all the others.

    Nodes join the forest in the order `turn` unless they would close a loop. The score never
    falls: the states that the forest had are among those compared.
    """
    start, links = wiring.start, wiring.links
    states, node_offset = wiring.states, wiring.node_offset
    unary, log_tables = potentials.unary, potentials.log_tables
    inside = _induced_forest(start, links, turn)
    all_edges = np.ones(len(wiring.into_first), np.bool_)
    order, upward = root_forest(
        np.arange(len(inside)), start, links, wiring.reverse, wiring.edge, inside, all_edges
    )
    scores = unary.copy()
    for i in order:
        at = node_offset[i]
        for k in range(start[i], start[i + 1]):
            t, r, j = links[k, 2], links[k, 3], links[k, 4]
            if not inside[j]:
                for a in range(states[i]):
                    scores[at + a] += log_tables[t + a * r + assignment[j]]
        k = upward[i]
        if k >= 0:
            t, r, j = links[k, 2], links[k, 3], links[k, 4]
            for b in range(r):
                best = -np.inf
                for a in range(states[i]):
                    best = max(best, scores[at + a] + log_tables[t + a * r + b])
                scores[node_offset[j] + b] += best
    for i in order[::-1]:
        at, k = node_offset[i], upward[i]
        if k >= 0:
            t, r, x = links[k, 2], links[k, 3], assignment[links[k, 4]]
            for a in range(states[i]):
                scores[at + a] += log_tables[t + a * r + x]
        assignment[i] = np.argmax(scores[at : at + states[i]])


@helper
def _induced_forest(start, links, turn):
    n = len(turn)
    tree = np.arange(n)  # union-find over the nodes inside
    inside = np.zeros(n, np.bool_)
    met = np.full(n, -1, np.int64)
    for i in turn:
        inside[i] = True
        for k in range(start[i], start[i + 1]):
            j = links[k, 4]
            if inside[j] and j != i:
                root = find_root(tree, j)
                if met[root] == i:  # a second edge into the same tree would close a loop
                    inside[i] = False
                    break
                met[root] = i
        if inside[i]:
            for k in range(start[i], start[i + 1]):
                if inside[links[k, 4]]:
                    tree[find_root(tree, links[k, 4])] = i
    return inside
