"""Rows drawn by Gibbs sampling, with a word on whether the chains agree.

Chains are run side by side and more rows are drawn than asked for where that is needed to compare
them. Rows that follow each other come from different chains.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from edgegraft.core import Layout
from edgegraft.errors import Argument, ConvergenceWarning
from edgegraft.inference import gibbs_sample
from edgegraft.inference.diagnostics import AGREEMENT, mixing

_CHAINS = 64
_DRAWS = 32  # of a chain at least: fewer and R-hat is mostly noise
_BURN_IN = 1000


def draw_by_gibbs(
    layout: Layout,
    theta: NDArray[np.float64],
    n_rows: int,
    rng: np.random.Generator,
    n_jobs: int | None,
    names: tuple[str, ...],
) -> NDArray[np.int64]:
    """Return rows of codes; warn, naming the worst variable, where the chains do not agree."""
    n_draws = max(_DRAWS, -(-n_rows // _CHAINS))
    codes, _ = gibbs_sample(
        layout,
        theta,
        n_draws * _CHAINS,
        n_chains=_CHAINS,
        burn_in=_BURN_IN,
        random_state=rng,
        n_jobs=n_jobs,
    )
    draws = np.ascontiguousarray(codes.reshape(n_draws, _CHAINS, -1).transpose(2, 0, 1))
    modes = np.array([np.bincount(column.ravel()).argmax() for column in draws], np.int64)
    found = mixing(draws, modes, n_jobs)
    worst = int(np.argmax(found.r_hat))
    if not found.r_hat[worst] < AGREEMENT:
        warnings.warn(
            ConvergenceWarning(
                f"the Gibbs chains do not agree: R-hat of {names[worst]!r} is "
                f"{found.r_hat[worst]:.3g} (below {AGREEMENT} is wanted), so the rows may be far "
                "from the model's distribution; use ",
                Argument("engine", "exact"),
                " if it is affordable",
            ),
            stacklevel=4,
        )
    return codes[:n_rows].astype(np.int64)
