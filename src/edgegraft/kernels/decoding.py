"""Decoding of max-product messages and local improvement of an assignment."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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
