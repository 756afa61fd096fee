"""Rows drawn from a pairwise model by Gibbs sampling.

Chains are independent, each with its own random stream, and are run in blocks of fixed size by a
pool of threads: the rows depend on the seed and the number of chains, not on the threads.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.errors import DataError
from edgegraft.graph import Layout
from edgegraft.kernels.gibbs import record, start_uniform, sweep
from edgegraft.kernels.gibbs_tables import GibbsTables, tabulate

__all__ = ["GibbsInfo", "gibbs_sample"]

Codes = NDArray[np.uint8] | NDArray[np.uint16]
RandomState = int | np.random.Generator | None

#: Chains of one task: enough that tables are reused while in cache, few enough to share out.
_BLOCK = 64


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
    n_chains: int = 256,
    burn_in: int = 500,
    thinning: int = 10,
    random_state: RandomState = None,
    n_jobs: int | None = 1,
    start: ArrayLike | None = None,
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
    n_chains : int, default 256
        Independent chains; no more are run than there are rows.
    burn_in : int, default 500
        Sweeps of every chain before anything is recorded.
    thinning : int, default 10
        Sweeps between two rows of a chain, at least 1.
    random_state : int, numpy.random.Generator or None, default None
        Seed of the chains.
    n_jobs : int or None, default 1
        Threads; None uses all cores. The rows do not depend on it.
    start : array of int, shape (n,) or (n_chains, n), optional
        First state of the chains; by default drawn uniformly.

    Returns
    -------
    X : array of uint8 or uint16, shape (n_samples, n)
        States.
    info : GibbsInfo
        What was done.

    Raises
    ------
    DataError
        If a chain is still in a state of probability zero after the burn-in. Note that with
        forbidden pairs single-variable updates may also fail to reach all possible states.

    Examples
    --------
    >>> layout = Layout([2, 2], [(0, 1)])
    >>> theta = np.array([0.0, 0.0, 0.0, 0.0, 1.0, -1.0, -1.0, 1.0])
    >>> X, info = gibbs_sample(layout, theta, 4000, random_state=0)
    >>> agree = np.mean(X[:, 0] == X[:, 1])  # in truth 1 / (1 + exp(-2)) = 0.881
    >>> bool(0.86 < agree < 0.90)
    True
    """
    theta = _check_theta(layout, theta)
    _check_counts(n_samples, n_chains, burn_in, thinning)
    n_chains = min(n_chains, max(n_samples, 1))
    streams = _streams(random_state, n_chains)
    state = _first_state(layout, streams, start)
    tables = tabulate(layout.states, layout.edges, layout.node_offset, layout.edge_offset, theta)
    small = bool((layout.states <= 256).all())
    X: Codes = np.empty((n_samples, layout.n_variables), np.uint8 if small else np.uint16)

    def run(first: int) -> int:
        chains = slice(first, first + _BLOCK)
        own_state = np.ascontiguousarray(state[:, chains])
        own_streams = np.ascontiguousarray(streams[:, chains])
        n_rescued = sweep(tables, own_state, own_streams, burn_in)
        _check_possible(layout, theta, own_state, burn_in)
        return int(
            n_rescued + record(tables, own_state, own_streams, thinning, first, n_chains, X)
        )

    with ThreadPoolExecutor(n_jobs or os.cpu_count()) as pool:
        n_rescued = sum(pool.map(run, range(0, n_chains, _BLOCK)))
    return X, _info(tables, n_samples, n_chains, burn_in, thinning, n_rescued)
