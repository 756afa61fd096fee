"""Several sources read with one look-up: joint codes, and tables that are sums of tables.

    code(r) = sum over sources k of step_k * x_k(r),     step_k = radix_0 ... radix_{k-1}
    table[code] = sum over k of table_k[x_k]

A conditional is a sum of rows, one for each neighbour. Neighbours of few states are put in
groups whose joint table still fits the first-level cache, so one addition does for three
neighbours of five states or for seven binary ones. The gradient goes the same way back: rows are
added to the joint table, which is then summed out to one table for each source.

A missing cell has a state of its own whose row is zero. Groups of few codes are kept in several
copies, used in turn by consecutive rows, so that an addition seldom waits for the one before.

Tables of an edge are seen from one end, the target, state 0 of which is the reference:

    table_{i<-j}[x_j, a - 1] = w_ij(a, x_j) - w_ij(0, x_j)        (a >= 1)

The gradient goes back the same way: what state 0 receives is minus the sum of the others.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from edgegraft.kernels.compiler import helper, kernel

ROOM = 16384  # bytes of a group's float64 sums: half of a first-level cache
COPIES = 8  # a group of no source has one code
NEVER = -1e30  # logit of a lane that stands for no state: its probability is nil


class Groups(NamedTuple):
    """Groups of sources: those of bundle ``t`` are ``start[t]:start[t + 1]``, never none."""

    start: np.ndarray  # int64 (bundles + 1,)
    source_start: np.ndarray  # int64 (groups + 1,) a group's sources in `source`
    source: np.ndarray  # int64 (sources,) the variable
    step: np.ndarray  # int64 (sources,) codes between states of the variable
    codes: np.ndarray  # int64 (groups,) joint codes
    copies: np.ndarray  # int64 (groups,) a power of two
    base: np.ndarray  # int64 (groups,) where the group's tables begin in the bundle's buffer
    size: np.ndarray  # int64 (bundles,) elements of the bundle's buffer
    table: np.ndarray  # int64 (sources + 1,) where the source's own table begins


@kernel
def pack_groups(source_start, source, radix, width, max_codes):
    """Put the sources of each bundle, in order, into groups of at most `max_codes[t]` codes."""
    n_bundles = width.shape[0]
    most = source.shape[0] + n_bundles
    start = np.zeros(n_bundles + 1, np.int64)
    group_source = np.zeros(most + 1, np.int64)
    step = np.empty(source.shape[0], np.int64)
    codes = np.empty(most, np.int64)
    copies = np.empty(most, np.int64)
    base = np.empty(most, np.int64)
    size = np.zeros(n_bundles, np.int64)
    table = np.zeros(source.shape[0] + 1, np.int64)
    g = -1
    for t in range(n_bundles):
        for k in range(source_start[t], source_start[t + 1]):
            own = radix[source[k]]
            table[k + 1] = table[k] + own * width[t]
            if k == source_start[t] or codes[g] * own > max_codes[t]:
                g += 1
                group_source[g] = k
                codes[g] = 1
            step[k] = codes[g]
            codes[g] *= own
        if source_start[t] == source_start[t + 1]:
            g += 1
            group_source[g] = source_start[t]
            codes[g] = 1
        start[t + 1] = g + 1
        for h in range(start[t], start[t + 1]):
            copies[h] = COPIES
            while copies[h] > 1 and copies[h] * codes[h] > 4 * COPIES:
                copies[h] //= 2
            base[h] = size[t]
            size[t] += copies[h] * codes[h] * width[t]
    group_source[g + 1] = source.shape[0]
    n = g + 1
    return Groups(
        start, group_source[: n + 1], source, step, codes[:n], copies[:n], base[:n], size, table
    )


@helper
def find_rows(groups, g, codes, first, width, out):
    """Write where, in the bundle's buffer, the row of group `g` starts for each row of a block.

    `codes` is an unsigned array (variables, rows); the block is as long as `out` (int32).
    """
    base = np.int32(groups.base[g])
    copy = np.int32(groups.codes[g] * width)
    last = np.int32(groups.copies[g] - 1)
    for r in range(out.shape[0]):
        out[r] = base + (np.int32(r) & last) * copy
    for k in range(groups.source_start[g], groups.source_start[g + 1]):
        states = codes[groups.source[k], first : first + out.shape[0]]
        step = np.int32(groups.step[k] * width)
        for r in range(out.shape[0]):
            out[r] += np.int32(states[r]) * step


@helper
def fill_joint(groups, t, radix, width, tables, constant, scratch, out):
    """Write the joint tables of bundle `t` to `out`; the first has `constant` added.

    `tables` holds each source's own table at ``groups.table``; `scratch` is float64, as long
    as `out`, so that sums are rounded once.
    """
    for g in range(groups.start[t], groups.start[t + 1]):
        base = groups.base[g]
        for a in range(width):
            scratch[base + a] = constant[a] if g == groups.start[t] else 0.0
        for k in range(groups.source_start[g], groups.source_start[g + 1]):
            filled = groups.step[k] * width
            # State 0 last: the rows of the other states start from its unchanged part.
            for x in range(radix[groups.source[k]] - 1, -1, -1):
                row = groups.table[k] + x * width
                to = base + x * filled
                for c in range(0, filled, width):
                    for a in range(width):
                        scratch[to + c + a] = scratch[base + c + a] + tables[row + a]
        length = groups.codes[g] * width
        for copy in range(groups.copies[g]):
            for c in range(length):
                out[base + copy * length + c] = scratch[base + c]


@helper
def sum_out(groups, t, radix, width, joint, tables, total):
    """Sum the joint tables of bundle `t` out to its sources' own `tables`, and to the `total`.

    `joint` is used up.
    """
    for g in range(groups.start[t], groups.start[t + 1]):
        base = groups.base[g]
        length = groups.codes[g] * width
        for copy in range(1, groups.copies[g]):
            for c in range(length):
                joint[base + c] += joint[base + copy * length + c]
        for k in range(groups.source_start[g + 1] - 1, groups.source_start[g] - 1, -1):
            filled = groups.step[k] * width
            for x in range(radix[groups.source[k]]):
                row = groups.table[k] + x * width
                part = base + x * filled
                for a in range(width):
                    tables[row + a] = 0.0
                for c in range(0, filled, width):
                    for a in range(width):
                        tables[row + a] += joint[part + c + a]
            for x in range(1, radix[groups.source[k]]):
                for c in range(filled):
                    joint[base + c] += joint[base + x * filled + c]
        if g == groups.start[t]:
            for a in range(width):
                total[a] = joint[base + a]


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


@kernel
def exchange(theta, nodes, tables, node_offset, states, sources, lanes, scale):
    """Write the logits and tables of every bundle, or add `scale` times them to a gradient.

    Zero as `scale` writes `nodes`, and `tables` that are zeros, from the parameters `theta`;
    otherwise `theta` is a gradient, to which sums of both ends of every edge, and of nodes, go.
    """
    neighbours, slots, place = sources.neighbours, sources.slots, sources.place
    width, table, member = sources.width, sources.table, sources.bundles.member
    for t in range(nodes.shape[0]):
        if scale == 0.0:
            nodes[t] = NEVER
        for v in range(lanes):
            i = member[t, v]
            if i >= 0:
                own = nodes[t, v:]
                _exchange(theta, node_offset[i], 1, own, 0, lanes, states[i], scale)
    for i in range(states.shape[0]):
        for e in range(neighbours.start[i], neighbours.start[i + 1]):
            k = slots[e]
            if k < 0:
                continue
            for x in range(states[neighbours.other[e]]):
                at = neighbours.table[e] + x * neighbours.step[e]
                to = table[k] + x * width[k] + place[i]
                step = neighbours.own_step[e]
                _exchange(theta, at, step, tables, to, lanes, states[i], scale)


@njit(inline="always")
def _exchange(theta, at, step, table, to, lanes, states, scale):
    if scale == 0.0:
        for a in range(1, states):
            table[to + (a - 1) * lanes] = theta[at + a * step] - theta[at]
        return
    rest = 0.0
    for a in range(1, states):
        value = scale * table[to + (a - 1) * lanes]
        theta[at + a * step] += value
        rest += value
    theta[at] -= rest
