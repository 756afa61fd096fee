"""Expected indicators from Gibbs chains, with as much worked out and as little drawn as possible.

    P(x_i = a)          ~ mean of p_i(a | rest)
    P(x_i = a, x_j = b) ~ mean of (p_i(a | rest) [x_j = b] + [x_i = a] p_j(b | rest)) / 2

Each draw is replaced by its conditional expectation (Rao-Blackwell): unbiased, less noisy than
counts, and cells that no chain has visited still get their small probability. Sums lie where the
parameters lie.
"""

from __future__ import annotations

import numpy as np

from edgegraft.kernels.compiler import kernel
from edgegraft.kernels.gibbs.gibbs_tables import NEVER
from edgegraft.kernels.gibbs.sweeps import find_rows, rescue, sweep, weigh


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


@kernel
def _conditionals(tables, i, state, row_at, p):
    """Write ``p(x_i = a | rest)`` of every chain."""
    s = tables.states[i]
    if tables.group_start[i + 1] - tables.group_start[i] > 1:
        weigh(tables, i, state, row_at, p)
        rescue(tables, i, state, p)
        for c in range(len(row_at)):
            p[c, :s] /= p[c, :s].sum()
        return
    find_rows(tables, tables.group_start[i], state, row_at)
    for c in range(len(row_at)):
        below = 0.0
        for a in range(s):
            upto = 1.0
            if a < s - 1 and tables.values[row_at[c] + a] != NEVER:
                upto = tables.values[row_at[c] + a]
            p[c, a] = upto - below
            below = upto
