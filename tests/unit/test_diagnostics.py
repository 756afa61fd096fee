"""Convergence diagnostics against series whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from edgegraft.inference.gibbs import mixing
from edgegraft.kernels.gibbs.mixing import measure_halves


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def measure(series):
    """Split R-hat and effective size of one series, shape (n_chains, n_draws)."""
    half = series.shape[1] // 2
    return measure_halves(np.concatenate((series[:, :half], series[:, -half:])).astype(float))


def split_r_hat(series):
    return measure(series)[0]


def effective_sample_size(series):
    return measure(series)[1]


def autoregressive(rng, rho, n_chains, n_draws):
    """``x_t = rho x_{t-1} + e_t``, stationary; n draws are worth n (1 - rho) / (1 + rho)."""
    noise = rng.normal(size=(n_chains, n_draws))
    noise[:, 0] /= np.sqrt(1 - rho**2)
    return lfilter([1.0], [1.0, -rho], noise, axis=1)


def plain_r_hat(series):
    """The definition, one half after another."""
    half = series.shape[1] // 2
    halves = [part for chain in series for part in (chain[:half], chain[-half:])]
    within = np.mean([np.var(part, ddof=1) for part in halves])
    between = np.var([np.mean(part) for part in halves], ddof=1)
    return np.sqrt(((half - 1) / half * within + between) / within)


@pytest.mark.parametrize("n_draws", [50, 51])
def test_r_hat_equals_its_definition(rng, n_draws):
    series = rng.normal(size=(3, 4, n_draws)) + rng.normal(size=(3, 4, 1))
    expected = [plain_r_hat(one) for one in series]
    np.testing.assert_allclose([split_r_hat(one) for one in series], expected)


def test_independent_draws(rng):
    series = rng.normal(size=(50, 4, 1000))
    r_hat, sizes = np.transpose([measure(one) for one in series])
    assert (abs(r_hat - 1.0) < 0.01).all()
    assert abs(sizes.mean() / 4000 - 1.0) < 0.05
    assert (abs(sizes / 4000 - 1.0) < 0.3).all()


def test_shifted_and_drifting_chains_disagree(rng):
    series = rng.normal(size=(4, 1000))
    shifted = series + np.array([[1.0], [0.0], [0.0], [0.0]])
    assert split_r_hat(shifted) > 1.1
    assert effective_sample_size(shifted) < 50
    drifting = series + np.linspace(0.0, 3.0, 1000)  # all chains alike: only halves can tell
    assert split_r_hat(drifting) > 1.1


@pytest.mark.parametrize("rho", [-0.3, 0.0, 0.5, 0.9, 0.97])
def test_autoregressive_series_have_their_known_size(rng, rho):
    found = [effective_sample_size(autoregressive(rng, rho, 8, 4000)) for _ in range(10)]
    assert np.mean(found) == pytest.approx(32_000 * (1 - rho) / (1 + rho), rel=0.1)


def test_the_mean_has_the_error_that_the_size_says(rng):
    series = [autoregressive(rng, 0.8, 4, 500) for _ in range(400)]
    z = [one.mean() / (one.std() / np.sqrt(effective_sample_size(one))) for one in series]
    assert 0.85 < np.std(z) < 1.15


def test_constant_series():
    constant = np.ones((3, 20))
    assert split_r_hat(constant) == 1.0
    assert effective_sample_size(constant) == 60
    apart = np.repeat([[0.0], [1.0], [1.0]], 20, axis=1)
    assert split_r_hat(apart) == np.inf
    assert effective_sample_size(apart) <= 6


def test_mixing_follows_indicators(rng):
    draws = rng.integers(0, 3, (5, 200, 6)).astype(np.uint8)
    draws[4, :, :3] = 0  # variable 4: half the chains never leave state 0
    modes = np.array([0, 1, 2, 0, 0])
    found = mixing(draws, modes)
    for i in range(5):
        series = (draws[i] == modes[i]).T.astype(float)
        assert found.r_hat[i] == pytest.approx(split_r_hat(series))
        assert found.effective_size[i] == pytest.approx(effective_sample_size(series))
    assert np.argmax(found.r_hat) == np.argmin(found.effective_size) == 4
    assert found.r_hat[4] > 1.1
