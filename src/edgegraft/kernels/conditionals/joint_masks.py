"""Sums of residuals of pairs from bit planes, for targets whose neighbours have few joint states.

The conditional of a target ``i`` depends on the joint state ``c`` of its neighbours alone, so its
residuals sum to

    sum_r R_i(r, a) 1[x_rj = b] = n(x_i = a, x_j = b) - sum_c p_i(a | c) n(c, x_j = b)

The rows of a joint state are a mask of bits, and ``n(c, x_j = b)`` is the population count of the
mask and a plane of the source ``j``: 512 rows per vector operation. Columns are complete here.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from edgegraft.kernels.compiler import kernel
from edgegraft.kernels.counting.pairs import TILE, add_tile, popcount


class Asked(NamedTuple):
    """Sources of targets: those of ``target[t]`` are entries ``start[t]:start[t + 1]``."""

    target: np.ndarray  # int64 (targets,)
    start: np.ndarray  # int64 (targets + 1,)
    source: np.ndarray  # int64 (pairs,)
    table: np.ndarray  # int64 (pairs,) where the pair's table begins
    own_step: np.ndarray  # int64 (pairs,) distance in it between the states of the target
    step: np.ndarray  # int64 (pairs,) distance between the states of the source


@kernel
def subtract_expected(planes, n_rows, at, neighbours, asked, chosen, max_joint, out):
    """Subtract what the conditionals of the `chosen` targets expect from the tables of their pairs.

    `at` has the parameters and the offsets of the nodes among them. No target has more than
    `max_joint` joint states.
    """
    theta, node_offset = at
    widest = planes.states.max()
    masks = np.empty((max_joint, planes.words.shape[1]), np.uint64)
    chances, totals = np.empty((max_joint, widest)), np.empty(max_joint, np.int64)
    counts, expected = np.empty(max_joint * widest, np.int64), np.empty((widest, widest))
    for t in chosen:
        i = asked.target[t]
        _select_rows(n_rows, masks[0])
        n_joint = _find_joint(planes, theta, node_offset, neighbours, i, masks, chances)
        _softmax(chances[:n_joint, : planes.states[i]])
        for c in range(n_joint):
            totals[c] = _n_rows(masks[c])
        for e in range(asked.start[t], asked.start[t + 1]):
            j = asked.source[e]
            _count(planes, j, masks, n_joint, counts)
            cells = expected[: planes.states[i], : planes.states[j]]
            _expect(chances, totals, counts, n_joint, cells)
            for a in range(cells.shape[0]):
                for b in range(cells.shape[1]):
                    to = asked.table[e] + a * asked.own_step[e] + b * asked.step[e]
                    out[to] -= cells[a, b]


@njit
def _select_rows(n_rows, mask):
    mask[:] = 0
    mask[: n_rows // 64] = ~np.uint64(0)
    if n_rows % 64:
        mask[n_rows // 64] = (np.uint64(1) << np.uint64(n_rows % 64)) - np.uint64(1)


@njit
def _n_rows(mask):
    total = np.uint64(0)
    for w in range(len(mask)):
        total += popcount(mask[w])
    return total


@njit
def _find_joint(planes, theta, node_offset, neighbours, i, masks, logits):
    """Write the rows and the logits of every joint state; return how many there are.

    The first mask has all rows. With each neighbour, a joint state keeps the rows of the
    neighbour's last state, which has no plane, and hands the others to new ones.
    """
    own, words = planes.states[i], planes.words
    for a in range(own):
        logits[0, a] = theta[node_offset[i] + a]
    n = 1
    for e in range(neighbours.start[i], neighbours.start[i + 1]):
        k = neighbours.other[e]
        others = planes.states[k] - 1
        for c in range(n):
            for b in range(others):
                to, plane = n + c * others + b, planes.start[k] + b
                for w in range(words.shape[1]):
                    masks[to, w] = masks[c, w] & words[plane, w]
                    masks[c, w] &= ~words[plane, w]
            for b in range(others + 1):
                to = n + c * others + b if b < others else c
                table = neighbours.table[e] + b * neighbours.step[e]
                for a in range(own):
                    logits[to, a] = logits[c, a] + theta[table + a * neighbours.own_step[e]]
        n *= others + 1
    return n


@njit
def _softmax(logits):
    for c in range(logits.shape[0]):
        top = logits[c].max()
        for a in range(logits.shape[1]):
            logits[c, a] = np.exp(logits[c, a] - top)
        logits[c] /= logits[c].sum()


@njit
def _count(planes, j, masks, n_joint, counts):
    """Count the rows of every joint state in every state of variable `j` but its last."""
    n = planes.states[j] - 1
    counts[: n_joint * n] = 0
    for c in range(0, n_joint, TILE):
        for b in range(0, n, TILE):
            high, wide = min(TILE, n_joint - c), min(TILE, n - b)
            plane, width = planes.start[j] + b, masks.shape[1]
            add_tile(masks, c, planes.words, plane, 0, width, high, wide, counts, c * n + b, n)


@njit
def _expect(chances, totals, counts, n_joint, expected):
    """Write the expected numbers of rows in each pair of states."""
    expected[:] = 0.0
    last = expected.shape[1] - 1
    for c in range(n_joint):
        rest = totals[c]
        for b in range(last):
            count = counts[c * last + b]
            rest -= count
            for a in range(expected.shape[0]):
                expected[a, b] += chances[c, a] * count
        for a in range(expected.shape[0]):
            expected[a, last] += chances[c, a] * rest
