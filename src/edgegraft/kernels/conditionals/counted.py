"""Losses and sums of residuals from counts: how often a target's neighbours are in which states.

The conditional of a target depends on the joint state ``c`` of its neighbours alone, so all rows of
one joint state are worked on at once:

    loss = sum_c [ n(c) log sum_a exp z(c, a) - sum_a n(c, a) z(c, a) ]
    R(c, a) = n(c, a) - n(c) p(c, a)

A target with few neighbours of few states has far fewer joint states than there are rows. Bundles
have one target and one group of sources here, whose joint codes are the joint states.

Residuals of a pair that is not an edge sum to

    sum_r R_i(r, a) 1[x_rj = b] = n(x_i = a, x_j = b) - sum_c p_i(a | c) n(c, x_j = b)

The rows of a joint state are a mask of bits, and ``n(c, x_j = b)`` is the population count of the
mask and a plane of the source ``j``: 512 rows per vector operation. Columns are complete there.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from edgegraft.kernels.compiler import kernel
from edgegraft.kernels.counting.pairs import TILE, add_tile, popcount

from .lookup import fill_joint, find_rows, sum_out

COPIES = 4  # of the counts of a bundle, used in turn: an addition seldom waits for the one before
BLOCK = 2048  # rows


class Counted(NamedTuple):
    """Weights of rows: ``values[start[t] :]`` has those of bundle ``t``, joint state by state."""

    start: np.ndarray  # int64 (bundles + 1,)
    values: np.ndarray  # float64, (joint states, states of the target) of each bundle


@kernel
def count_bundles(columns, bundles, groups, counted, chosen):
    """Count the rows of the `chosen` bundles by the joint states of their sources."""
    rows = np.empty(BLOCK, np.int32)
    for t in chosen:
        target = bundles.member[t, 0]
        states = columns.states[target]
        # A missing target is a state beyond the last, which is dropped.
        length = groups.codes[groups.start[t]] * (states + 1)
        found = np.zeros((COPIES, length))
        for first in range(0, columns.codes.shape[1], BLOCK):
            n = min(BLOCK, columns.codes.shape[1] - first)
            find_rows(groups, groups.start[t], columns.codes, first, states + 1, rows[:n])
            own, weights = columns.codes[target, first : first + n], columns.weights[first:]
            for r in range(n):
                found[r % COPIES, rows[r] + own[r]] += weights[r]
        for c in range(length):
            if c % (states + 1) < states:
                to = counted.start[t] + c // (states + 1) * states + c % (states + 1)
                counted.values[to] = found[0, c] + found[1, c] + found[2, c] + found[3, c]


@kernel
def work_counted(columns, bundles, chosen, groups, tables, nodes, counted, out):
    """Work out losses and sums of residuals of the `chosen` bundles from their counts.

    Arguments are those of :func:`~.pseudolikelihood.work_bundles`.
    """
    sums, node_sums, losses = out
    largest = 0
    for t in chosen:
        largest = max(largest, groups.size[t])
    scratch, joint = np.empty(largest), np.empty(largest)
    for t in chosen:
        target, width = bundles.member[t, 0], bundles.alternatives[t]
        fill_joint(groups, t, columns.radix, width, tables, nodes[t], scratch, joint)
        counts = counted.values[counted.start[t] : counted.start[t + 1]]
        losses[target] = _find_sums(counts, columns.states[target], width, joint)
        sum_out(groups, t, columns.radix, width, joint, sums, node_sums[t])


@njit(inline="always")
def _find_sums(counts, states, width, joint):
    """Return the loss of a target; put sums of residuals in the place of its logits."""
    loss = 0.0
    for c in range(counts.shape[0] // states):
        z, count = joint[c * width : (c + 1) * width], counts[c * states : (c + 1) * states]
        weight, top = count[0], 0.0
        for a in range(1, states):
            weight += count[a]
            top = max(top, z[a - 1])
            loss -= count[a] * z[a - 1]
        if weight == 0.0:
            z[:] = 0.0
            continue
        total = np.exp(-top)
        for a in range(1, states):
            total += np.exp(z[a - 1] - top)
        loss += weight * (top + np.log(total))
        for a in range(1, states):
            z[a - 1] = count[a] - weight * np.exp(z[a - 1] - top) / total
        for a in range(states - 1, width):
            z[a] = 0.0
    return loss


@kernel
def count_joint(codes, weights, variables, states, out):
    """Count rows by the joint states of a few variables, the last one fastest; `out` is zeroed.

    Row ``e`` of `variables` is counted to row ``e`` of `out`; all variables have as many states.
    """
    at = np.empty(BLOCK, np.int32)
    found = np.empty((COPIES, out.shape[1]))
    for e in range(variables.shape[0]):
        found[:] = 0.0
        for first in range(0, codes.shape[1], BLOCK):
            n = min(BLOCK, codes.shape[1] - first)
            at[:n] = 0
            for k in range(variables.shape[1]):
                column = codes[variables[e, k], first : first + n]
                for r in range(n):
                    at[r] = at[r] * states + np.int32(column[r])
            for r in range(n):
                found[r % COPIES, at[r]] += weights[first + r]
        for c in range(out.shape[1]):
            out[e, c] = found[0, c] + found[1, c] + found[2, c] + found[3, c]


class Asked(NamedTuple):
    """Sources of targets: those of ``target[t]`` are entries ``start[t]:start[t + 1]``."""

    target: np.ndarray  # int64 (targets,)
    start: np.ndarray  # int64 (targets + 1,)
    source: np.ndarray  # int64 (pairs,)
    table: np.ndarray  # int64 (pairs,) where the pair's table begins
    own_step: np.ndarray  # int64 (pairs,) distance in it between the states of the target
    step: np.ndarray  # int64 (pairs,) distance between the states of the source


@kernel
def subtract_expected(planes, n_rows, at, neighbours, asked, max_joint, out, chosen):
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
        masks[0] = 0
        masks[0, : n_rows // 64] = ~np.uint64(0)
        if n_rows % 64:
            masks[0, n_rows // 64] = (np.uint64(1) << np.uint64(n_rows % 64)) - np.uint64(1)
        n_joint = _find_joint(planes, theta, node_offset, neighbours, i, masks, chances)
        for c in range(n_joint):
            own = chances[c, : planes.states[i]]
            own[:] = np.exp(own - own.max())
            own /= own.sum()
            total = np.uint64(0)
            for word in masks[c]:
                total += popcount(word)
            totals[c] = total
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
