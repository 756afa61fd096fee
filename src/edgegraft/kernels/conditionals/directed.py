"""Between the flat parameters of a model and tables seen from one end of an edge.

    table_{i<-j}[x_j, a - 1] = w_ij(a, x_j) - w_ij(0, x_j)        (a >= 1, state 0 the reference)

An edge has two such tables, one for each end that is the target. The gradient goes back the
same way: what state 0 receives is minus the sum of the others.

Pairs that are not edges have theirs from the products of all one-hot columns with all residuals:

    sums[x_j = b, R_i(a)] = sum over rows with x_rj = b of R_i(r, a)          a, b >= 1

The last row of `sums` holds the totals over all rows. What state 0 of a source has is the total
less the others', or a row of its own if cells are missing.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from edgegraft.kernels.compiler import kernel

NEVER = -1e30  # logit of a lane that stands for no state: its probability is nil


class Directed(NamedTuple):
    """Where the tables of a set of bundles lie.

    `slots` names, for each entry of `neighbours`, the source that it is in the target's bundle;
    `place` is the target's lane; `width` and `table` are those of the source's bundle.
    """

    bundles: Any
    neighbours: Any
    slots: Any
    place: Any
    width: Any
    table: Any


@njit(inline="always")
def _direct_nodes(theta, node_offset, states, bundles, out):
    lanes = bundles.member.shape[1]
    for t in range(out.shape[0]):
        out[t] = NEVER
        for v in range(lanes):
            i = bundles.member[t, v]
            if i >= 0:
                for a in range(1, states[i]):
                    at = node_offset[i]
                    out[t, (a - 1) * lanes + v] = theta[at + a] - theta[at]


@kernel
def direct(theta, node_offset, states, sources, lanes, nodes, out):
    """Write the node logits of every bundle to `nodes` and its tables to the zeroed `out`."""
    _direct_nodes(theta, node_offset, states, sources.bundles, nodes)
    neighbours, slots, place = sources.neighbours, sources.slots, sources.place
    width, table = sources.width, sources.table
    for i in range(states.shape[0]):
        for e in range(neighbours.start[i], neighbours.start[i + 1]):
            k = slots[e]
            if k < 0:
                continue
            for x in range(states[neighbours.other[e]]):
                at = neighbours.table[e] + x * neighbours.step[e]
                to = table[k] + x * width[k] + place[i]
                for a in range(1, states[i]):
                    value = theta[at + a * neighbours.own_step[e]] - theta[at]
                    out[to + (a - 1) * lanes] = value


@kernel
def collect(sums, node_sums, node_offset, states, sources, lanes, scale, gradient):
    """Add ``scale`` times the sums of both ends of every edge, and of nodes, to the `gradient`."""
    neighbours, slots, place = sources.neighbours, sources.slots, sources.place
    width, table = sources.width, sources.table
    for i in range(states.shape[0]):
        for e in range(neighbours.start[i], neighbours.start[i + 1]):
            k = slots[e]
            if k < 0:
                continue
            for x in range(states[neighbours.other[e]]):
                at = neighbours.table[e] + x * neighbours.step[e]
                source = table[k] + x * width[k] + place[i]
                rest = 0.0
                for a in range(1, states[i]):
                    value = scale * sums[source + (a - 1) * lanes]
                    gradient[at + a * neighbours.own_step[e]] += value
                    rest += value
                gradient[at] -= rest
    _collect_nodes(node_sums, node_offset, states, sources.bundles, scale, gradient)


@njit(inline="always")
def _collect_nodes(sums, node_offset, states, bundles, scale, gradient):
    lanes = bundles.member.shape[1]
    for t in range(sums.shape[0]):
        for v in range(lanes):
            i = bundles.member[t, v]
            if i >= 0:
                rest = 0.0
                for a in range(1, states[i]):
                    value = scale * sums[t, (a - 1) * lanes + v]
                    gradient[node_offset[i] + a] += value
                    rest += value
                gradient[node_offset[i]] -= rest


class Places(NamedTuple):
    """Where the products of each variable lie."""

    states: np.ndarray  # int64 (n,)
    source: np.ndarray  # int64 (n,) row of state 1; the others follow
    gaps: np.ndarray  # bool (n,) whether the row of state 0 follows them
    target: np.ndarray  # int64 (n,) column of state 1


@kernel
def gather_tables(sums, places, edges, offsets, scale, out):
    """Write ``scale`` times the sums of both ends of every pair: tables, one after another."""
    states = places.states
    for e in range(edges.shape[0]):
        i, j = edges[e]
        table = out[offsets[e] : offsets[e + 1]]
        table[:] = 0.0
        wide, one = states[j], np.int64(1)  # of one type, so that the callee is compiled once
        _add_target(sums, places, i, j, wide, one, scale, table)
        _add_target(sums, places, j, i, one, wide, scale, table)


@njit(inline="always")
def _add_target(sums, places, i, j, own_step, other_step, scale, table):
    """Add the sums of residuals of `i` over the states of `j`."""
    wide = places.states[j]
    totals = sums[sums.shape[0] - 1]
    for a in range(1, places.states[i]):
        column = places.target[i] + a - 1
        rest = totals[column]
        for b in range(1, wide):
            value = sums[places.source[j] + b - 1, column]
            rest -= value
            table[a * own_step + b * other_step] += scale * value
            table[b * other_step] -= scale * value
        if places.gaps[j]:
            rest = sums[places.source[j] + wide - 1, column]
        table[a * own_step] += scale * rest
        table[0] -= scale * rest
