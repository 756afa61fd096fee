"""From max-product messages to an assignment, and local improvement of one."""

from __future__ import annotations

import numpy as np

from edgegraft.kernels.compiler import kernel
from edgegraft.kernels.messages.forests import find_root, root_forest


@kernel
def decide(wiring, potentials, value, assignment):
    """Choose states one variable after another; -1 marks the undecided."""
    start, links, states, node_offset = (
        wiring.start, wiring.links, wiring.states, wiring.node_offset,
    )  # fmt: skip
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
    start, links, states, node_offset = (
        wiring.start, wiring.links, wiring.states, wiring.node_offset,
    )  # fmt: skip
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
    start, links, states, node_offset = (
        wiring.start, wiring.links, wiring.states, wiring.node_offset,
    )  # fmt: skip
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


@kernel
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
