"""Losses and sums of residuals from counts: how often a target's neighbours are in which states.

The conditional of a target depends on the joint state ``c`` of its neighbours alone, so all rows of
one joint state are worked on at once:

    loss = sum_c [ n(c) log sum_a exp z(c, a) - sum_a n(c, a) z(c, a) ]
    R(c, a) = n(c, a) - n(c) p(c, a)

A target with few neighbours of few states has far fewer joint states than there are rows. Bundles
have one target and one group of sources here, whose joint codes are the joint states.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from edgegraft.kernels.compiler import kernel

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
