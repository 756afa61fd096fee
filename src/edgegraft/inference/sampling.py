"""Rows drawn from a pairwise model by Gibbs sampling, and chains that follow a fit.

Chains are independent, each with its own random stream, and are run in blocks by a pool of
threads: the rows depend on the seed and the number of chains, not on the threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.core import Layout
from edgegraft.core.backend import Backend, MovedChains, find_backend
from edgegraft.core.checks import check_theta
from edgegraft.core.types import Floats
from edgegraft.errors import DataError
from edgegraft.inference.chains import (
    Chains,
    RandomState,
    check_at_least,
    check_possible,
    code_type,
    make_streams,
    move_chains,
    scattered,
)

Codes = NDArray[Any]  # of uint8 or uint16


class GibbsInfo(NamedTuple):
    """How the rows were drawn.

    Attributes
    ----------
    engine : str
        Name of the sampler.
    n_chains, burn_in, thinning : int
        Chains run side by side, sweeps of each before its first row, and sweeps between rows.
    n_updates : int
        Single-variable updates in all.
    n_rescued : int
        How many of them were worked out in logarithms because their product underflowed.
    """

    engine: str
    n_chains: int
    burn_in: int
    thinning: int
    n_updates: int
    n_rescued: int


def gibbs_sample(
    layout: Layout,
    theta: ArrayLike,
    n_samples: int,
    *,
    n_chains: int = 512,
    burn_in: int = 2000,
    thinning: int = 20,
    random_state: RandomState = None,
    n_jobs: int | None = 1,
    device: str = "cpu",
) -> tuple[Codes, GibbsInfo]:
    """Draw rows from the model with log-potentials `theta`.

    Row ``r`` comes from chain ``r % n_chains``, so rows that follow each other are independent
    and those of one chain are `thinning` sweeps apart.

    Parameters
    ----------
    layout : Layout
        Variables and edges of the model.
    theta : array of float, shape (layout.n_parameters,)
        Log-potentials; minus infinity forbids a state or a pair of states.
    n_samples : int
        Number of rows.
    n_chains : int, default 512
        Independent chains; no more are run than there are rows.
    burn_in : int, default 2000
        Sweeps of every chain before anything is recorded.
    thinning : int, default 20
        Sweeps between two rows of a chain, at least 1.
    random_state : int, numpy.random.Generator or None, default None
        Seed of the chains.
    n_jobs : int or None, default 1
        Threads; -1 uses all cores. The rows do not depend on it.
    device : {"cpu", "cuda", "auto", "torch"}
        Where the chains run; see :class:`~edgegraft.GraftedMRF`.

    Returns
    -------
    X : array of uint8 or uint16, shape (n_samples, n)
        States.
    info : GibbsInfo
        What was done.

    Raises
    ------
    ModelError
        If a chain is still in a state of probability zero after the burn-in. Note that with
        forbidden pairs single-variable updates may also fail to reach all possible states.

    Notes
    -----
    Hubs and strong couplings mix slowly. In the scale-free model with 200 variables and tables
    of ``N(0, 1)``, marginals over 2,048 chains are off by up to 0.43 after 100 sweeps, 0.18 after
    500, 0.13 after 1,000 and 0.07 after 2,000, the noise of the comparison included.

    Examples
    --------
    >>> layout = Layout([2, 2], [(0, 1)])
    >>> theta = np.array([0.0, 0.0, 0.0, 0.0, 1.0, -1.0, -1.0, 1.0])
    >>> X, info = gibbs_sample(layout, theta, 4000, random_state=0)
    >>> agree = np.mean(X[:, 0] == X[:, 1])  # in truth 1 / (1 + exp(-2)) = 0.881
    >>> bool(0.86 < agree < 0.90)
    True
    """
    if layout.n_variables == 0:
        raise DataError("the layout has no variables: there is nothing to sample")
    theta = check_theta(theta, layout)
    check_at_least(
        n_samples=(n_samples, 0), n_chains=(n_chains, 1), burn_in=(burn_in, 0),
        thinning=(thinning, 1),
    )  # fmt: skip
    n_chains = min(n_chains, max(n_samples, 1))
    start = scattered(layout, make_streams(random_state, n_chains))
    chains = move_chains(layout, theta, start, find_backend(device), n_jobs)
    chains.sweep(burn_in)
    check_possible(layout, theta, chains.codes(), burn_in)
    n_records = -(-n_samples // n_chains)
    rows = np.empty((n_records, n_chains, layout.n_variables), code_type(layout))
    chains.record(rows.transpose(2, 0, 1), thinning)
    n_sweeps = n_chains * burn_in + thinning * n_samples
    n_updates = n_sweeps * layout.n_variables
    info = GibbsInfo("gibbs", n_chains, burn_in, thinning, n_updates, chains.n_rescued)
    return rows.reshape(-1, layout.n_variables)[:n_samples], info


class PersistentState:
    """Chains and the model that they follow: each run changes them."""

    def __init__(self, layout: Layout, chains: MovedChains) -> None:
        self.layout, self.chains = layout, chains
        self.theta: Floats | None = None  # of the last run

    def codes(self) -> NDArray[np.uint16]:
        """Return the states of the chains, shape (n_variables, n_chains)."""
        return self.chains.codes()


@dataclass(frozen=True)
class PersistentChains:
    """Chains that follow a model while it is fitted: few sweeps per run, no diagnostics.

    Parameters
    ----------
    n_chains : int, default 512
    n_sweeps : int, default 4
        Sweeps per run.
    burn_in : int, default 200
        Sweeps before the first run.
    n_jobs : int or None, default 1
    random_state : int or None, default 0
    device : Backend, optional
        Where the chains run; by default on the processor, by kernels.
    """

    n_chains: int = 512
    n_sweeps: int = 4
    burn_in: int = 200
    n_jobs: int | None = 1
    random_state: int | None = 0
    device: Backend | None = None

    @property
    def on_gpu(self) -> bool:
        """Whether the chains run on a GPU."""
        return self.device is not None and self.device.is_gpu

    def init(self, layout: Layout, codes: NDArray[np.uint16] | None = None) -> PersistentState:
        """Return chains at given states, shape (n_variables, n_chains), or scattered over all."""
        streams = make_streams(self.random_state, self.n_chains)
        chains = scattered(layout, streams) if codes is None else Chains(codes, streams)
        args = layout, np.zeros(layout.n_parameters), chains, self.device, self.n_jobs
        return PersistentState(layout, move_chains(*args, changing=True))

    def run(self, theta: Floats, state: PersistentState) -> MovedChains:
        """Move the chains, whose states can be multiplied with vectors until the next run."""
        burn_in = self.burn_in if state.theta is None else 0
        if theta is not state.theta:
            state.chains.load(check_theta(theta, state.layout))
        state.theta = theta
        state.chains.sweep(self.n_sweeps + burn_in)
        return state.chains
