"""Whether chains agree, and how many independent draws theirs are worth.

Each chain is cut into halves, so that a chain that still drifts disagrees with itself. With ``W``
the mean variance within the ``m`` halves of ``n`` draws, and ``B / n`` the variance of their means,

    R-hat = sqrt(((n - 1) / n W + B / n) / W),      ESS = m n / (1 + 2 sum_t rho_t),

``rho_t`` being the autocorrelation at lag ``t`` over all halves (Gelman et al., "Bayesian Data
Analysis", 2013; Vehtari et al., "Rank-normalization, folding, and localization", 2021). The series
are indicators of a state, for which rank-normalisation is an affine map and changes neither figure.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.threads import resolve_jobs, run
from edgegraft.core.types import Floats, Integers
from edgegraft.kernels.gibbs.mixing import measure_indicators

#: Draws per chain below which halves mean nothing.
MIN_DRAWS = 4
#: Chains agree if R-hat is below this.
AGREEMENT = 1.05
_VARIABLES_PER_TASK = 32


class Mixing(NamedTuple):
    """Diagnostics of each variable.

    Attributes
    ----------
    r_hat : array of float, shape (n,)
        Split R-hat of the indicator of the variable's most frequent state; 1 if it is constant,
        infinite if chains are stuck in different states.
    effective_size : array of float, shape (n,)
        Independent draws that would give that state's probability as precisely.
    """

    r_hat: Floats
    effective_size: Floats


def mixing(draws: NDArray[Any], modes: Integers, n_jobs: int | None = 1) -> Mixing:
    """Return the diagnostics of chains from their states.

    Parameters
    ----------
    draws : array of int, shape (n, n_draws, n_chains)
        At least 4 draws; of an odd number the middle one is left out.
    modes : array of int, shape (n,)
        The state of each variable whose indicator is followed.
    n_jobs : int or None, default 1
        Threads.

    Examples
    --------
    >>> draws = np.random.default_rng(0).integers(0, 2, (1, 1000, 4))
    >>> bool(mixing(draws, np.array([1])).r_hat < 1.01)
    True
    >>> draws[0, :, 0] = 1
    >>> bool(mixing(draws, np.array([1])).r_hat > 1.1)
    True
    """
    found = Mixing(np.empty(len(modes)), np.empty(len(modes)))

    def measure(first: int) -> None:
        own = slice(first, first + _VARIABLES_PER_TASK)
        measure_indicators(draws[own], modes[own], found.r_hat[own], found.effective_size[own])

    run(measure, range(0, len(modes), _VARIABLES_PER_TASK), resolve_jobs(n_jobs))
    return found
