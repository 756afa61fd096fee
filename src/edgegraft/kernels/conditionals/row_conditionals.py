"""Energies and conditionals of rows under a pairwise model; missing cells filled in from them.

    log p(x_i = a | rest) = u_i(a) + sum_j w_ij(a, x_j) - log of the sum over a of the same

A missing cell has code -1: it has no energy and no conditional of its own, and its terms are
left out of its neighbours' conditionals.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from edgegraft.kernels.compiler import kernel


class Neighbours(NamedTuple):
    """The neighbours of every variable: those of ``i`` are entries ``start[i]:start[i + 1]``."""

    start: np.ndarray  # int64 (n + 1,)
    other: np.ndarray  # int64 (2m,) the neighbour
    table: np.ndarray  # int64 (2m,) where the edge's table begins in theta
    step: np.ndarray  # int64 (2m,) distance in theta between the neighbour's states
    own_step: np.ndarray  # int64 (2m,) distance between the variable's own states


@kernel
def row_energies(theta, codes, states, edges, node_offset, edge_offset, out):
    """Write the unnormalised log-probability of each complete row to `out`."""
    for r in range(codes.shape[0]):
        total = 0.0
        for i in range(states.shape[0]):
            total += theta[node_offset[i] + codes[r, i]]
        for k in range(edges.shape[0]):
            a = codes[r, edges[k, 0]]
            b = codes[r, edges[k, 1]]
            total += theta[edge_offset[k] + a * states[edges[k, 1]] + b]
        out[r] = total


@njit(inline="always")
def conditional_scores(theta, row, i, states, node_offset, neighbours, out):
    """Write the unnormalised log-conditional of variable `i` given the known cells of `row`."""
    for a in range(states[i]):
        out[a] = theta[node_offset[i] + a]
    for e in range(neighbours.start[i], neighbours.start[i + 1]):
        x = row[neighbours.other[e]]
        if x >= 0:
            at = neighbours.table[e] + x * neighbours.step[e]
            for a in range(states[i]):
                out[a] += theta[at + a * neighbours.own_step[e]]


@njit(inline="always")
def normalise(scores, n):
    """Replace the first `n` scores by probabilities; return the logarithm of what divides them."""
    top = -np.inf
    for a in range(n):
        top = max(top, scores[a])
    total = 0.0
    for a in range(n):
        scores[a] = np.exp(scores[a] - top)
        total += scores[a]
    for a in range(n):
        scores[a] /= total
    return top + np.log(total)


@kernel
def log_conditionals(theta, codes, states, node_offset, neighbours, scores, out):
    """Write ``log p(x_i | known rest)`` of every known cell to `out`, nan if it is missing.

    `scores` has room for the states of any variable.
    """
    for r in range(codes.shape[0]):
        for i in range(states.shape[0]):
            if codes[r, i] < 0:
                out[r, i] = np.nan
                continue
            conditional_scores(theta, codes[r], i, states, node_offset, neighbours, scores)
            out[r, i] = scores[codes[r, i]]
            if out[r, i] > -np.inf:
                out[r, i] -= normalise(scores, states[i])


@kernel
def state_conditionals(theta, codes, i, states, node_offset, neighbours, out):
    """Write ``p(x_i = a | known rest)`` of one variable for every row to `out`."""
    for r in range(codes.shape[0]):
        conditional_scores(theta, codes[r], i, states, node_offset, neighbours, out[r])
        normalise(out[r], states[i])


@kernel
def fill_alone(theta, codes, missing, states, node_offset, neighbours, uniform, out):
    """Fill the missing cells none of whose neighbours are missing: their conditional is exact.

    `uniform` holds one number for each cell to draw by, or nothing to take the likeliest state.
    """
    scores = np.empty(states.max())
    for r in range(codes.shape[0]):
        for i in range(codes.shape[1]):
            if not missing[r, i]:
                continue
            first, last = neighbours.start[i], neighbours.start[i + 1]
            if not missing[r][neighbours.other[first:last]].any():
                conditional_scores(theta, codes[r], i, states, node_offset, neighbours, scores)
                if uniform.size:
                    out[r, i] = draw(scores[: states[i]], uniform[r, i])
                else:
                    out[r, i] = np.argmax(scores[: states[i]])


@kernel
def draw(scores, uniform):
    """Return a state with probability proportional to the exponential of its score."""
    top = scores.max()
    total = 0.0
    for a in range(scores.shape[0]):
        total += np.exp(scores[a] - top)
    goal = uniform * total
    running = 0.0
    last = 0
    for a in range(scores.shape[0]):
        weight = np.exp(scores[a] - top)
        running += weight
        if weight > 0.0:
            last = a
            if running > goal:
                return a
    return last


@kernel
def sweep_cells(theta, codes, cells, starts, states, node_offset, neighbours, cooling, uniform):
    """Draw the missing cells of many rows by Gibbs sweeps, each given the rest of its row.

    Those of row `r` are the columns ``cells[starts[r]:starts[r + 1]]``; they hold states already.
    There is one sweep per temperature in `cooling`: a row that is cooled down to zero ends in a
    state that no single change improves. `uniform` has one number for each sweep and cell.
    """
    scores = np.empty(states.max())
    for r in range(codes.shape[0]):
        for t in range(cooling.shape[0]):
            changed = False
            for k in range(starts[r], starts[r + 1]):
                i = cells[k]
                own = scores[: states[i]]
                conditional_scores(theta, codes[r], i, states, node_offset, neighbours, own)
                before = codes[r, i]
                if cooling[t] > 0.0:
                    for a in range(states[i]):
                        own[a] /= cooling[t]
                    codes[r, i] = draw(own, uniform[t, k - starts[0]])
                else:
                    codes[r, i] = np.argmax(own)
                changed |= codes[r, i] != before
            if cooling[t] == 0.0 and not changed:
                break
