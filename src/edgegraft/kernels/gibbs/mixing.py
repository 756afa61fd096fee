"""How well chains mix: split R-hat and effective size of the indicators of states."""

from __future__ import annotations

import numpy as np

from edgegraft.kernels.compiler import helper, kernel


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
