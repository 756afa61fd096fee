"""The tables of a bucket tree: their wiring, their potentials, and how they meet each other.

Tables are mixed-radix arrays whose axes follow one global order, so a table over a subset of a
clique's variables meets the clique's table in alternating groups of axes,

    clique = [ ... | absent | shared | absent | shared ],

the last group being shared. A group is one axis of the walk: neighbouring axes of one kind are
merged, the two innermost groups are plain loops, and only the rest is counted like an odometer.

Numbers are kept plain and scaled, which is exact as long as nothing underflows; every factor
knows the logarithm of the ratio of its largest to its smallest positive entry, and a bucket
whose ratios add up to more than `SAFE_RANGE` is computed in logarithms instead. Zero stays zero.
"""

from typing import NamedTuple

import numpy as np

from edgegraft.kernels.compiler import helper, kernel

SPREAD, MULTIPLY, ADD, REDUCE = range(4)  # what `meet` does
#: exp(-600) is far from the smallest normal number, exp(-708), even after a sum's rounding.
SAFE_RANGE = 600.0


class JunctionTree(NamedTuple):
    """Buckets in a depth-first elimination order; scopes list buckets, the latest first.

    Potentials and marginals are kept in the order of the buckets (*blocks*: a bucket's node
    vector, then the tables of the edges that end in it, the own state running fastest), so that
    both sweeps read and write memory in sequence; `theta` is touched once on either side.
    """

    variable: np.ndarray  # (n,) the variable of a bucket
    states: np.ndarray  # (n,)
    scope_start: np.ndarray  # (n + 1,)
    scope: np.ndarray  # N_k; its last entry is the parent of k
    message_start: np.ndarray  # (n + 1,) cells of the messages
    child_start: np.ndarray  # (n + 1,)
    child: np.ndarray
    local_start: np.ndarray  # (n + 1,) edges that end in a bucket
    other: np.ndarray  # (m,) the later bucket of an edge, ordered like a scope
    node_block: np.ndarray  # (n + 1,) where a bucket's blocks start
    edge_block: np.ndarray  # (m,) where an edge's block starts
    place: np.ndarray  # where in theta each cell of the blocks lies
    largest: np.ndarray  # (3,) cells of a clique, cells of a product of locals, axes of a clique


class BucketPotentials(NamedTuple):
    """Log-potentials in blocks, and the same scaled to a largest entry of one, block by block."""

    logs: np.ndarray
    weight: np.ndarray  # exp(logs - peak of the block)
    peak: np.ndarray  # (n,) sum of the peaks of a bucket's blocks
    range: np.ndarray  # (n,) sum of the logarithms of their ratios of largest to smallest


@kernel
def scale_potentials(tree, logs):
    """Return the potentials whose logarithms, in blocks, are `logs`."""
    n = tree.variable.shape[0]
    out = BucketPotentials(logs, np.empty_like(logs), np.empty(n), np.empty(n))
    for k in range(n):
        at = tree.node_block[k]
        end = at + tree.states[k]
        out.peak[k], out.range[k] = _scale(out.logs[at:end], out.weight[at:end])
        for e in range(tree.local_start[k], tree.local_start[k + 1]):
            at = tree.edge_block[e]
            end = at + tree.states[k] * tree.states[tree.other[e]]
            peak, ratio = _scale(out.logs[at:end], out.weight[at:end])
            out.peak[k] += peak
            out.range[k] += ratio
    return out


@helper
def _scale(logs, weight):
    peak = -np.inf
    least = np.inf
    for value in logs:
        peak = max(peak, value)
        if value > -np.inf:
            least = min(least, value)
    for t in range(logs.shape[0]):
        weight[t] = np.exp(logs[t] - peak) if peak > -np.inf else 0.0
    return peak, max(peak - least, 0.0)


class Walk(NamedTuple):
    """How a table's cells meet those of a smaller one, innermost group first."""

    size: np.ndarray  # int64, cells of a group
    stride: np.ndarray  # int64, how far a step of the group moves in the smaller table
    counter: np.ndarray  # int64, the odometer
    groups: np.ndarray  # int64 (1,)


@helper
def new_walk(max_axes):
    """Return a walk of tables of at most so many axes, to be planned again and again."""
    size, stride = np.empty(max_axes, np.int64), np.empty(max_axes, np.int64)
    return Walk(size, stride, np.zeros(max_axes, np.int64), np.zeros(1, np.int64))


@helper
def plan(walk, own, scope, part, states):
    """Plan the walk of a table over ``scope + [own]`` beside one over ``part + [own]``.

    `part` is a subsequence of `scope`.
    """
    cells = states[own]
    walk.size[0] = cells
    walk.stride[0] = 1
    group = 0
    shared = True
    last = part.shape[0] - 1
    for at in range(scope.shape[0] - 1, -1, -1):
        s = states[scope[at]]
        is_shared = last >= 0 and part[last] == scope[at]
        if is_shared == shared:
            walk.size[group] *= s
        else:
            group += 1
            walk.size[group] = s
            walk.stride[group] = cells if is_shared else 0
            shared = is_shared
        if is_shared:
            cells *= s
            last -= 1
    walk.groups[0] = group + 1


@helper
def _advance(walk, position):
    """Step the odometer; return the new position in the smaller table, -1 at the end."""
    for group in range(2, walk.groups[0]):
        position += walk.stride[group]
        walk.counter[group] += 1
        if walk.counter[group] < walk.size[group]:
            return position
        position -= walk.stride[group] * walk.size[group]
        walk.counter[group] = 0
    return -1


@helper
def meet(walk, small, large, how):
    """Copy the smaller table to every place of the larger, multiply or add it there, or sum to it.

    The sum is over the axes that the smaller does not have. `how` is a constant: one version for
    all is compiled .9 s sooner and takes exact inference 2.5 times as long.
    """
    if how == REDUCE:
        small[:] = 0.0
    run = walk.size[0]
    times = walk.size[1] if walk.groups[0] > 1 else 1
    cell = 0
    position = np.int64(0)
    while position >= 0:
        few = small[position : position + run]
        for _ in range(times):
            many = large[cell : cell + run]
            if how == SPREAD:
                for t in range(run):
                    many[t] = few[t]
            elif how == MULTIPLY:
                for t in range(run):
                    many[t] *= few[t]
            elif how == ADD:
                for t in range(run):
                    many[t] += few[t]
            else:
                for t in range(run):
                    few[t] += many[t]
            cell += run
        position = _advance(walk, position)


class Messages(NamedTuple):
    """Messages, each scaled to a largest entry of one (or of zero in logarithms)."""

    values: np.ndarray
    spread: np.ndarray  # (n,) log of largest over smallest positive
    in_logs: np.ndarray  # (n,) bool


@helper
def is_safe(k, tree, potentials, messages):
    """Return whether plain numbers cannot underflow in bucket `k`."""
    total = potentials.range[k]
    for x in range(tree.child_start[k], tree.child_start[k + 1]):
        total += messages.spread[tree.child[x]]
        if messages.in_logs[tree.child[x]]:
            return False
    return total <= SAFE_RANGE


@helper
def _local_product(k, tree, values, in_logs, local):
    """Write the product (sum, in logs) of what ends in bucket `k` over its original neighbours.

    Axes are added from the innermost outwards, so all steps together cost twice the last.
    """
    s = tree.states[k]
    for a in range(s):
        local[a] = values[tree.node_block[k] + a]
    cells = s
    for e in range(tree.local_start[k + 1] - 1, tree.local_start[k] - 1, -1):
        s_other = tree.states[tree.other[e]]
        inner = local[:cells]
        for b in range(s_other - 1, -1, -1):  # b = 0 last: it overwrites what the others read
            at = tree.edge_block[e] + b * s
            outer = local[b * cells : (b + 1) * cells]
            if in_logs:
                _add_cyclic(inner, values[at : at + s], outer)
            else:
                _multiply_cyclic(inner, values[at : at + s], outer)
        cells *= s_other
    return cells


@helper
def _multiply_cyclic(inner, factor, outer):
    s = factor.shape[0]
    if s == 2:  # by far the most common size, and the only one that vectorises
        first, second = factor
        for r in range(inner.shape[0] // 2):
            outer[2 * r] = inner[2 * r] * first
            outer[2 * r + 1] = inner[2 * r + 1] * second
    else:
        for r in range(inner.shape[0] // s):
            for a in range(s):
                outer[r * s + a] = inner[r * s + a] * factor[a]


@helper
def _add_cyclic(inner, term, outer):
    s = term.shape[0]
    for r in range(inner.shape[0] // s):
        for a in range(s):
            outer[r * s + a] = inner[r * s + a] + term[a]


@helper
def fill_clique(k, tree, potentials, messages, in_logs, walk, local, clique):
    """Write ``f_k`` (its logarithm, if `in_logs`) to `clique`; return its number of cells."""
    values = potentials.logs if in_logs else potentials.weight
    n_local = _local_product(k, tree, values, in_logs, local)
    scope = tree.scope[tree.scope_start[k] : tree.scope_start[k + 1]]
    own = tree.other[tree.local_start[k] : tree.local_start[k + 1]]
    cells = (tree.message_start[k + 1] - tree.message_start[k]) * tree.states[k]
    plan(walk, k, scope, own, tree.states)
    meet(walk, local[:n_local], clique, SPREAD)
    for x in range(tree.child_start[k], tree.child_start[k + 1]):
        c = tree.child[x]
        message = messages.values[tree.message_start[c] : tree.message_start[c + 1]]
        part = tree.scope[tree.scope_start[c] : tree.scope_start[c + 1] - 1]
        plan(walk, k, scope, part, tree.states)
        if not in_logs:
            meet(walk, message, clique[:cells], MULTIPLY)
        else:
            logs = message if messages.in_logs[c] else np.log(message)
            meet(walk, logs, clique[:cells], ADD)
    return cells
