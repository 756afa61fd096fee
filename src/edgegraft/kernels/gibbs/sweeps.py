"""Gibbs sampling of a pairwise model, many chains side by side.

``state`` is ``(n, chains)`` uint16 and is changed in place: a variable is updated in all chains
before the next one, so its tables are read while they are in the first-level cache and the
updates of different chains, which do not wait for each other, overlap. ``streams`` is the
``(4, chains)`` uint64 state of one random stream per chain. One call runs on one thread without the
GIL; callers give each thread chains of its own.

If the product of several groups underflows (a hub whose neighbours disagree, or zero entries),
that conditional is computed again in logarithms.

Marginals are means of conditionals (Rao-Blackwell): unbiased, less noisy than counts of draws, and
cells that no chain has visited still get their small probability.

    P(x_i = a)          ~ mean of p_i(a | rest)
    P(x_i = a, x_j = b) ~ mean of (p_i(a | rest) [x_j = b] + [x_i = a] p_j(b | rest)) / 2
"""

from __future__ import annotations

import numpy as np
from numba import njit

from edgegraft.kernels.compiler import helper, kernel
from edgegraft.kernels.gibbs.tables import NEVER

#: Below this total a product of rows may have lost what mattered to underflow.
TINY = 1e-200
_ULP = 2.0**-53


@njit(inline="always")
def next_uniform(s0, s1, s2, s3):
    """Return a number uniform on [0, 1) with 53 random bits, and the state of the stream after it.

    The generator is xoshiro256++ of Blackman and Vigna, "Scrambled linear pseudorandom number
    generators" (2021).
    """
    mixed = s0 + s3
    mixed = ((mixed << np.uint64(23)) | (mixed >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    return (mixed >> np.uint64(11)) * _ULP, s0, s1, s2, s3


@kernel
def fill_uniform(streams, out):
    """Advance every stream one step; ``out[c]`` is uniform on [0, 1).

    What a stream yields depends on its own column alone: results do not change with the number of
    threads or with how chains are put into blocks.
    """
    for c in range(out.shape[0]):
        s0, s1, s2, s3 = streams[0, c], streams[1, c], streams[2, c], streams[3, c]
        out[c], s0, s1, s2, s3 = next_uniform(s0, s1, s2, s3)
        streams[0, c], streams[1, c], streams[2, c], streams[3, c] = s0, s1, s2, s3


@kernel
def sweep(tables, state, streams, n_sweeps):
    """Update every variable of every chain `n_sweeps` times, in order.

    Returns how many conditionals were computed in logarithms.
    """
    n, n_chains = state.shape
    uniform = np.empty(n_chains)
    row_at = np.empty(n_chains, np.int64)
    weights = np.empty((n_chains, tables.width.max()))
    n_rescued = 0
    for _ in range(n_sweeps):
        for i in range(n):
            fill_uniform(streams, uniform)
            if tables.group_start[i + 1] - tables.group_start[i] == 1:
                _find_rows(tables, tables.group_start[i], state, row_at)
                _draw_from_cumulative(tables.values, row_at, tables.width[i], uniform, state[i])
            else:
                _weigh(tables, i, state, row_at, weights)
                lowest = _draw_from_weights(weights, tables.states[i], uniform, state[i])
                if lowest < TINY:
                    n_rescued += _rescue(tables, i, state, weights)
                    _draw_from_weights(weights, tables.states[i], uniform, state[i])
    return n_rescued


@helper
def _find_rows(tables, g, state, row_at):
    """Where, for each chain, the row of group `g` starts in the values."""
    row_at[:] = tables.group_value[g]
    for e in range(tables.group_entry[g], tables.group_entry[g + 1]):
        others = state[tables.neighbour[e]]
        step = tables.step[e]
        for c in range(len(row_at)):
            row_at[c] += step * np.int64(others[c])


# The bodies below are inlined with the width, or the number of states, as a constant: the usual
# sizes become straight vector code, which is a third of the speed.


@njit(inline="always")
def _count_passed(values, row_at, width, uniform, x):
    for c in range(len(x)):
        at = row_at[c]
        passed = 0
        for a in range(width):
            passed += values[at + a] <= uniform[c]
        x[c] = np.uint16(passed)


@njit(inline="always")
def _multiply_rows(tables, i, state, row_at, width, weights):
    first = tables.group_start[i]
    for g in range(first, tables.group_start[i + 1]):
        _find_rows(tables, g, state, row_at)
        for c in range(len(row_at)):
            at = row_at[c]
            for a in range(width):
                value = tables.values[at + a]
                weights[c, a] = value if g == first else weights[c, a] * value


@njit(inline="always")
def _invert(weights, s, uniform, x):
    # The last running sum is the total, which is never passed.
    least = np.inf
    for c in range(len(x)):
        total = 0.0
        for a in range(s):
            total += weights[c, a]
        goal = uniform[c] * total
        running = 0.0
        passed = 0
        for a in range(s - 1):
            running += weights[c, a]
            passed += running <= goal
        x[c] = np.uint16(passed)
        least = min(least, total)
    return least


@helper
def _draw_from_cumulative(values, row_at, width, uniform, x):
    if width == 4:
        _count_passed(values, row_at, 4, uniform, x)
    elif width == 8:
        _count_passed(values, row_at, 8, uniform, x)
    else:
        _count_passed(values, row_at, width, uniform, x)


@helper
def _draw_from_weights(weights, s, uniform, x):
    """Draw the states `x` and return the least total; rows below TINY are not to be trusted."""
    if s == 2:
        return _invert(weights, 2, uniform, x)
    if s == 3:
        return _invert(weights, 3, uniform, x)
    if s == 4:
        return _invert(weights, 4, uniform, x)
    if s == 5:
        return _invert(weights, 5, uniform, x)
    return _invert(weights, s, uniform, x)


@helper
def _weigh(tables, i, state, row_at, weights):
    """Unnormalised conditionals of variable `i`, one row for each chain."""
    width = tables.width[i]
    if width == 4:
        _multiply_rows(tables, i, state, row_at, 4, weights)
    elif width == 8:
        _multiply_rows(tables, i, state, row_at, 8, weights)
    else:
        _multiply_rows(tables, i, state, row_at, width, weights)


@helper
def _rescue(tables, i, state, weights):
    """Replace the rows that underflowed; returns how many."""
    n_rescued = 0
    for c in range(state.shape[1]):
        if weights[c, : tables.states[i]].sum() < TINY:
            _weigh_in_logs(tables, i, state, c, weights[c])
            n_rescued += 1
    return n_rescued


@helper
def _weigh_in_logs(tables, i, state, c, weights):
    s = tables.states[i]
    for a in range(s):
        weights[a] = tables.theta[tables.node_offset[i] + a]
    first = tables.group_entry[tables.group_start[i]]
    last = tables.group_entry[tables.group_start[i + 1]]
    for e in range(first, last):
        at = tables.table[e] + np.int64(state[tables.neighbour[e], c]) * tables.other_stride[e]
        for a in range(s):
            weights[a] += tables.theta[at + a * tables.own_stride[e]]
    top = weights[:s].max()
    for a in range(s):
        weights[a] = np.exp(weights[a] - top)


@kernel
def observe(tables, state, streams, thinning, first, draws, sums):
    """Sweep `thinning` times, record, and so on; returns how many updates needed logarithms.

    ``draws`` is ``(n, records, all chains)``, and these chains are `first` and the next.
    """
    n_rescued = 0
    for t in range(draws.shape[1]):
        n_rescued += sweep(tables, state, streams, thinning)
        for i in range(state.shape[0]):
            for c in range(state.shape[1]):
                draws[i, t, first + c] = state[i, c]
        add_moments(tables, state, sums)
    return n_rescued


@kernel
def add_moments(tables, state, sums):
    """Add conditional expectations to `sums`: once per node, once from each end of an edge."""
    n, n_chains = state.shape
    row_at = np.empty(n_chains, np.int64)
    # A row of cumulative probabilities is one shorter than the conditional that it stands for.
    p = np.empty((n_chains, max(tables.width.max(), tables.states.max())))
    for i in range(n):
        s = tables.states[i]
        _conditionals(tables, i, state, row_at, p)
        node = sums[tables.node_offset[i] : tables.node_offset[i] + s]
        for c in range(n_chains):
            for a in range(s):
                node[a] += p[c, a]
        first = tables.group_entry[tables.group_start[i]]
        last = tables.group_entry[tables.group_start[i + 1]]
        for e in range(first, last):
            others = state[tables.neighbour[e]]
            own_stride, other_stride = tables.own_stride[e], tables.other_stride[e]
            for c in range(n_chains):
                at = tables.table[e] + np.int64(others[c]) * other_stride
                for a in range(s):
                    sums[at + a * own_stride] += p[c, a]


@helper
def _conditionals(tables, i, state, row_at, p):
    """Write ``p(x_i = a | rest)`` of every chain."""
    s = tables.states[i]
    if tables.group_start[i + 1] - tables.group_start[i] > 1:
        _weigh(tables, i, state, row_at, p)
        _rescue(tables, i, state, p)
        for c in range(len(row_at)):
            p[c, :s] /= p[c, :s].sum()
        return
    _find_rows(tables, tables.group_start[i], state, row_at)
    for c in range(len(row_at)):
        below = 0.0
        for a in range(s):
            upto = 1.0
            if a < s - 1 and tables.values[row_at[c] + a] != NEVER:
                upto = tables.values[row_at[c] + a]
            p[c, a] = upto - below
            below = upto


@kernel
def edge_terms(tables, theta, state):
    """Return the sum of the edges' log-potentials `theta` in the state of each chain."""
    total = np.zeros(state.shape[1])
    for i in range(state.shape[0]):
        own = state[i]
        first = tables.group_entry[tables.group_start[i]]
        last = tables.group_entry[tables.group_start[i + 1]]
        for e in range(first, last):
            if tables.neighbour[e] > i:
                others = state[tables.neighbour[e]]
                for c in range(len(total)):
                    at = tables.table[e] + np.int64(own[c]) * tables.own_stride[e]
                    total[c] += theta[at + np.int64(others[c]) * tables.other_stride[e]]
    return total
