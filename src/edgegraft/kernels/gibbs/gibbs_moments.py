"""Expected indicators from Gibbs chains, little of them drawn, and how well the chains mix.

    P(x_i = a)          ~ mean of p_i(a | rest)
    P(x_i = a, x_j = b) ~ mean of (p_i(a | rest) [x_j = b] + [x_i = a] p_j(b | rest)) / 2

Each draw is replaced by its conditional expectation (Rao-Blackwell): unbiased, less noisy than
counts, and cells that no chain has visited still get their small probability. Sums lie where the
parameters lie.
"""

from __future__ import annotations

import numpy as np

from edgegraft.kernels.compiler import helper, kernel
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


@helper
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


@kernel
def measure_indicators(draws, modes, r_hat, size):
    """Write R-hat and effective size of the indicators ``draws[i] == modes[i]``.

    ``draws`` is ``(n, draws, chains)``; of an odd number of draws the middle one is left out.
    """
    n, n_draws, n_chains = draws.shape
    half = n_draws // 2
    halves = np.empty((2 * n_chains, half))
    for i in range(n):
        for t in range(half):
            for c in range(n_chains):
                halves[c, t] = draws[i, t, c] == modes[i]
                halves[n_chains + c, t] = draws[i, n_draws - half + t, c] == modes[i]
        r_hat[i], size[i] = measure_halves(halves)


@kernel
def measure_halves(halves):
    """Return split R-hat and effective size of one series, whose halves are centred in place.

    A series is ``(halves, draws)``, every chain cut into two. The autocorrelation time is summed
    lag by lag, so a series that mixes well, for which only a few lags count, costs a few passes
    over its draws and not a Fourier transform.
    """
    m, n = halves.shape
    means = np.empty(m)
    for c in range(m):
        means[c] = halves[c].mean()
        halves[c] -= means[c]
    between = means.var() * m / (m - 1)
    within = _lag_product(halves, 0) * n / (n - 1)
    pooled = within * (n - 1) / n + between
    if pooled <= 0.0:
        return 1.0, float(m * n)
    r_hat = np.sqrt(pooled / within) if within > 0.0 else np.inf
    # Below one over the logarithm lie only estimates that noise has made antithetic.
    time = max(_autocorrelation_time(halves, within, pooled), 1.0 / np.log10(m * n))
    return r_hat, m * n / time


@helper
def _autocorrelation_time(halves, within, pooled):
    """Geyer's initial monotone sequence: positive, decreasing pairs of lags (Vehtari et al.)."""
    time = -1.0
    before = np.inf
    for lag in range(0, halves.shape[1] - 1, 2):
        even = 1.0 - (within - _lag_product(halves, lag)) / pooled if lag > 0 else 1.0
        odd = 1.0 - (within - _lag_product(halves, lag + 1)) / pooled
        if even + odd < 0.0:
            break
        before = min(before, even + odd)
        time += 2.0 * before
    return time


@helper(fastmath={"reassoc"})
def _lag_product(halves, lag):
    """Mean product of centred draws `lag` apart, over the full length."""
    m, n = halves.shape
    total = 0.0
    for c in range(m):
        here, there = halves[c, : n - lag], halves[c, lag:]
        for t in range(n - lag):
            total += here[t] * there[t]
    return total / (m * n)
