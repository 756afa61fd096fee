"""Chains that follow a model while it is fitted: few sweeps per run, no diagnostics.

A run moves the chains by some sweeps at the given parameters and returns their marginals, which
are noisy. A fit by stochastic gradients averages the noise out over its steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from edgegraft.core import Layout
from edgegraft.core.types import Floats
from edgegraft.inference.chains import (
    BLOCK,
    Chains,
    code_type,
    make_streams,
    put_on_device,
    run_chains,
    scattered,
    tables_of,
)
from edgegraft.inference.engine import Info, Marginals
from edgegraft.inference.gibbs import edge_marginals
from edgegraft.kernels.gibbs.gibbs_moments import observe
from edgegraft.kernels.gibbs.sweeps import sweep

if TYPE_CHECKING:
    from edgegraft.device import Device
    from edgegraft.device.chains import DeviceChains


class Draws(Protocol):
    """The states of chains, as products of their indicators with vectors."""

    def energies(self, theta: Floats) -> Floats:
        """Return the log-potential `theta` of every state."""
        ...

    def means(self, weights: Floats) -> Floats:
        """Return the means of all indicators times a weight per state, laid out like `theta`."""
        ...


class HostDraws:
    """Draws in memory.

    Parameters
    ----------
    layout : Layout
    codes : array of int, shape (n_variables, n_chains)
    """

    def __init__(self, layout: Layout, codes: NDArray[np.uint16]) -> None:
        i, j = layout.edges.T
        wide = layout.states[j][:, None]
        nodes = layout.node_offset[:-1, None] + codes
        cells = layout.edge_offset[:-1, None] + codes[i].astype(np.int64) * wide + codes[j]
        self._at, self._size = np.concatenate((nodes, cells)), layout.n_parameters

    def energies(self, theta: Floats) -> Floats:
        """Return the log-potential `theta` of every state."""
        return np.asarray(theta[self._at].sum(axis=0))

    def means(self, weights: Floats) -> Floats:
        """Return the means of all indicators times a weight per state, laid out like `theta`."""
        each = np.broadcast_to(weights, self._at.shape).ravel()
        sums = np.bincount(self._at.ravel(), each, self._size)
        return np.asarray(sums / len(weights))


class PersistentState(NamedTuple):
    """Where the chains are: here, or on a device, where each run changes them."""

    layout: Layout
    chains: Chains
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

    def init(self, layout: Layout) -> PersistentState:
        """Return chains scattered over all states."""
        chains = scattered(layout, make_streams(self.random_state, self.n_chains))
        return PersistentState(layout, chains, None, False)

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
        layout, tables = state.layout, tables_of(state.layout, theta)
        draws = np.empty((layout.n_variables, 1, self.n_chains), code_type(layout))
        sums = np.zeros((-(-self.n_chains // BLOCK), layout.n_parameters))

        def move(which: slice, own: Chains) -> int:
            sweep(tables, *own, n_sweeps - 1)
            return int(observe(tables, *own, 1, which.start, draws, sums[which.start // BLOCK]))

        chains, _ = run_chains(move, state.chains, self.n_jobs, BLOCK)
        return chains, edge_marginals(layout, sums.sum(axis=0) / self.n_chains)
