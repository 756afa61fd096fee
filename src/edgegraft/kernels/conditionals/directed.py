"""Between the flat parameters of a model and tables seen from one end of an edge.

    table_{i<-j}[x_j, a - 1] = w_ij(a, x_j) - w_ij(0, x_j)        (a >= 1, state 0 the reference)

An edge has two such tables, one for each end that is the target. The gradient goes back the
same way: what state 0 receives is minus the sum of the others.
"""

from typing import Any, NamedTuple

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
