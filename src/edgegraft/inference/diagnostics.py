"""Whether chains agree, and how many independent draws theirs are worth.

Each chain is cut into halves, so that a chain that still drifts disagrees with itself. With ``W``
the mean variance within the ``m`` halves of ``n`` draws, and ``B / n`` the variance of their means,

    R-hat = sqrt(((n - 1) / n W + B / n) / W),      ESS = m n / (1 + 2 sum_t rho_t),

``rho_t`` being the autocorrelation at lag ``t`` over all halves (Gelman et al., "Bayesian Data
Analysis", 2013; Vehtari et al., "Rank-normalization, folding, and localization", 2021). The series
that matter here are indicators of a state, for which rank-normalisation is an affine map and
changes neither figure.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.core.threads import resolve_jobs, run
from edgegraft.core.types import Floats
from edgegraft.kernels.gibbs.mixing import measure_indicators, measure_series

#: Draws per chain below which halves say nothing.
MIN_DRAWS = 4
#: Chains agree if R-hat is below this.
AGREEMENT = 1.05
#: Variables of a task.
_AT_ONCE = 32


class Mixing(NamedTuple):
    """Diagnostics of each variable.

    Attributes
    ----------
    r_hat : array of float, shape (n,)
        Split R-hat of the indicator of the variable's most frequent state; infinite where
        chains are stuck in different states.
    effective_size : array of float, shape (n,)
        Independent draws that would tell that state's probability as well.
    """

    r_hat: Floats
    effective_size: Floats


def split_r_hat(series: ArrayLike) -> Any:
    """Return the split R-hat of series of draws; 1 where all chains agree.

    Parameters
    ----------
    series : array, shape (..., n_chains, n_draws)
        At least 4 draws; of an odd number the middle one is left out.

    Returns
    -------
    array of float, shape (...)
        1 where a series is constant; infinite where chains are constant but differ.

    Examples
    --------
    >>> draws = np.random.default_rng(0).normal(size=(4, 1000))
    >>> bool(split_r_hat(draws) < 1.01)
    True
    >>> draws[0] += 2.0
    >>> bool(split_r_hat(draws) > 1.2)
    True
    """
    return _measure(series)[0]


def effective_sample_size(series: ArrayLike) -> Any:
    """Return how many independent draws would give means as precise as those of the series.

    Parameters
    ----------
    series : array, shape (..., n_chains, n_draws)
        At least 4 draws; of an odd number the middle one is left out.

    Returns
    -------
    array of float, shape (...)
        All draws where a series is constant.

    Examples
    --------
    >>> steps = np.random.default_rng(0).normal(size=(4, 5000))
    >>> bool(18_000 < effective_sample_size(steps) < 22_000)
    True
    >>> walk = np.cumsum(steps, axis=1)
    >>> bool(effective_sample_size(walk) < 20)
    True
    """
    return _measure(series)[1]


def mixing(draws: NDArray[Any], modes: NDArray[np.int64], n_jobs: int | None = 1) -> Mixing:
    """Return the diagnostics of chains from their states.

    Parameters
    ----------
    draws : array of int, shape (n, n_draws, n_chains)
    modes : array of int, shape (n,)
        The state of each variable whose indicator is followed.
    n_jobs : int or None, default 1
        Threads.
    """
    found = Mixing(np.empty(len(modes)), np.empty(len(modes)))

    def measure(first: int) -> None:
        own = slice(first, first + _AT_ONCE)
        measure_indicators(draws[own], modes[own], found.r_hat[own], found.effective_size[own])

    run(measure, range(0, len(modes), _AT_ONCE), resolve_jobs(n_jobs))
    return found


def _measure(series: ArrayLike) -> tuple[Any, Any]:
    values = np.asarray(series, np.float64)
    if values.ndim < 2 or values.shape[-1] < MIN_DRAWS:
        raise ValueError(
            f"series have shape {values.shape}: (..., chains, draws) with at least "
            f"{MIN_DRAWS} draws is needed"
        )
    half = values.shape[-1] // 2
    halves = np.concatenate((values[..., :half], values[..., -half:]), axis=-2)
    shape = halves.shape[:-2]
    flat = np.array(halves.reshape(-1, *halves.shape[-2:]), order="C")
    r_hat, size = np.empty(len(flat)), np.empty(len(flat))
    measure_series(flat, r_hat, size)
    return r_hat.reshape(shape)[()], size.reshape(shape)[()]
