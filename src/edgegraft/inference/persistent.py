"""Chains that follow a model while it is fitted: few sweeps per run, no diagnostics.

A run moves the chains by some sweeps at the given parameters and returns their marginals, which
are noisy. A fit by stochastic gradients averages the noise out over its steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from edgegraft.core import Layout
from edgegraft.core.checks import check_theta
from edgegraft.core.types import Floats
from edgegraft.device import Device
from edgegraft.device.chains import DeviceChains
from edgegraft.inference.chains import (
    BLOCK,
    Chains,
    Followed,
    edge_marginals,
    follow_model,
    make_streams,
    put_on_device,
    run_chains,
    scattered,
)
from edgegraft.inference.engine import Info, Marginals
from edgegraft.kernels.gibbs.fields import follow, relate

_DENSE = 16  # a matrix of cells is dense if more than one in this many is used
_AT_A_TIME = 4096  # cells


class HostDraws:
    """Draws in memory, as zeros and ones: products are those of matrices, in single precision.

    Parameters
    ----------
    layout : Layout
    codes : array of int, shape (n_variables, n_chains)
    """

    def __init__(self, layout: Layout, codes: NDArray[np.uint16]) -> None:
        self._n_nodes, n_chains = int(layout.node_offset[-1]), codes.shape[1]
        self._shown = np.zeros((self._n_nodes, n_chains), np.float32)
        self._shown[layout.node_offset[:-1, None] + codes, np.arange(n_chains)] = 1.0
        self._row, self._column = layout.cell_ends()
        self._dense = _DENSE * len(self._row) > self._n_nodes**2

    def energies(self, theta: Floats) -> Floats:
        """Return the log-potential `theta` of every state."""
        nodes, cells = np.split(theta.astype(np.float32), [self._n_nodes])
        shape = (self._n_nodes, self._n_nodes)
        weights = csr_array((cells, (self._row, self._column)), shape=shape)
        fields = (weights.toarray() if self._dense else weights) @ self._shown
        fields += nodes[:, None]
        return np.asarray(np.einsum("sc,sc->c", self._shown, fields), np.float64)

    def means(self, weights: Floats) -> Floats:
        """Return the means of all indicators times a weight per state, laid out like `theta`."""
        shown, row, column = self._shown, self._row, self._column
        weighted = shown * weights.astype(np.float32)
        if self._dense:
            cells = (weighted @ shown.T)[row, column]
        else:
            starts = range(_AT_A_TIME, len(row), _AT_A_TIME)
            ends = zip(np.split(row, starts), np.split(column, starts), strict=True)
            parts = [np.einsum("kc,kc->k", weighted[a], shown[b]) for a, b in ends]
            cells = np.concatenate(parts)
        return np.concatenate((weighted.sum(axis=1), cells)).astype(np.float64) / len(weights)


Draws = HostDraws | DeviceChains
"""The states of chains, as products of their indicators with vectors."""


class PersistentState(NamedTuple):
    """Where the chains are: here, or on a device, where each run changes them."""

    layout: Layout
    chains: Chains
    followed: Followed  # the model of the last run
    there: DeviceChains | None
    warm: bool

    def codes(self) -> NDArray[np.uint16]:
        """Return the states of the chains, shape (n_variables, n_chains)."""
        return self.chains.state if self.there is None else self.there.codes()

    def draws(self) -> Draws:
        """Return the states of the chains, for products with vectors."""
        if self.there is not None:
            return self.there
        return HostDraws(self.layout, self.chains.state)


@dataclass(frozen=True)
class PersistentChains:
    """Marginals of a model that changes little from run to run.

    Parameters
    ----------
    n_chains : int, default 512
    n_sweeps : int, default 4
        Sweeps per run.
    burn_in : int, default 200
        Sweeps before the first run.
    n_jobs : int or None, default 1
    random_state : int or None, default 0
    device : Device, optional
        Where the chains run; by default on the processor, by kernels.
    """

    n_chains: int = 512
    n_sweeps: int = 4
    burn_in: int = 200
    n_jobs: int | None = 1
    random_state: int | None = 0
    device: Device | None = None

    @property
    def on_gpu(self) -> bool:
        """Whether the chains run on a GPU."""
        return self.device is not None and self.device.is_gpu

    def init(self, layout: Layout, codes: NDArray[np.uint16] | None = None) -> PersistentState:
        """Return chains at given states, shape (n_variables, n_chains), or scattered over all."""
        streams = make_streams(self.random_state, self.n_chains)
        chains = scattered(layout, streams) if codes is None else Chains(codes, streams)
        followed = follow_model(layout, np.zeros(layout.n_parameters))
        return PersistentState(layout, chains, followed, None, False)

    def run(
        self, theta: Floats, state: PersistentState, rng: np.random.Generator | None = None
    ) -> tuple[Marginals, PersistentState, Info]:
        """Move the chains; return their marginals and the state to continue from."""
        n_sweeps = self.n_sweeps if state.warm else self.burn_in + self.n_sweeps
        if self.device is None:
            chains, values = self._move(theta, state, n_sweeps)
            after = state._replace(chains=chains, warm=True)
        else:
            there = state.there or put_on_device(state.layout, theta, state.chains, self.device)
            there.load(theta)
            there.sweep(n_sweeps)
            values = there.means(np.ones(self.n_chains))
            after = state._replace(there=there, warm=True)
        return Marginals(values, np.nan), after, Info(True, n_sweeps, 0.0)

    def _move(self, theta: Floats, state: PersistentState, n_sweeps: int) -> tuple[Chains, Floats]:
        layout, (wiring, nodes, pushes) = state.layout, state.followed
        relate(wiring, check_theta(theta, layout), nodes, pushes)
        sums = np.zeros((-(-self.n_chains // BLOCK), layout.n_parameters))

        def move(which: slice, own: Chains) -> int:
            follow(wiring, nodes, pushes, *own, n_sweeps, sums[which.start // BLOCK])
            return 0

        chains, _ = run_chains(move, state.chains, self.n_jobs, BLOCK)
        return chains, edge_marginals(layout, sums.sum(axis=0) / self.n_chains)
