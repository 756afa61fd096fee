"""Chains that follow a model while it is fitted: few sweeps per run, no diagnostics.

A run moves the chains by some sweeps at the given parameters and returns the shares of their
states, which are noisy. A fit by stochastic gradients averages the noise out over its steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from edgegraft.core import Layout
from edgegraft.core.backend import Backend, BackendChains
from edgegraft.core.checks import check_theta
from edgegraft.core.types import Floats
from edgegraft.inference.chains import (
    Chains,
    HostChains,
    device_of,
    make_streams,
    put_on_device,
    scattered,
)

#: Products with matrices of all states take less time than one cell per edge and chain if the
#: square of the states is at most this many times the columns and edges (timed on one core).
_DENSE = 75
#: Joint states of neighbours that are tabulated: of many, tables take longer than some sweeps.
_MAX_ROWS = 16


class HostDraws:
    """Draws in memory: the cells of the parameters that each of them is in.

    With many edges as zeros and ones, whose products are those of matrices, in single precision.

    Parameters
    ----------
    layout : Layout
    codes : array of int, shape (n_variables, n_chains)
    """

    def __init__(self, layout: Layout, codes: NDArray[np.uint16]) -> None:
        n_nodes, (i, j) = int(layout.node_offset[-1]), layout.edges.T
        self._layout, state = layout, codes.astype(np.int64)
        nodes = layout.node_offset[:-1, None] + state
        self._shown: NDArray[np.float32] | None = None
        if n_nodes**2 <= _DENSE * (layout.n_variables + layout.n_edges):
            self._shown = np.zeros((n_nodes, codes.shape[1]), np.float32)
            self._shown[nodes, np.arange(codes.shape[1])] = 1.0
            self._row, self._column = layout.cell_ends()
            return
        cells = layout.edge_offset[:-1, None] + state[i] * layout.states[j][:, None] + state[j]
        self._at = np.concatenate((nodes, cells))

    def energies(self, theta: Floats) -> Floats:
        """Return the log-potential `theta` of every state."""
        if self._shown is None:
            return np.asarray(theta[self._at].sum(axis=0))
        n_nodes = len(self._shown)
        nodes, cells = np.split(theta.astype(np.float32), [n_nodes])
        weights = csr_array((cells, (self._row, self._column)), shape=(n_nodes, n_nodes))
        fields = weights.toarray() @ self._shown + nodes[:, None]
        return np.asarray(np.einsum("sc,sc->c", self._shown, fields), np.float64)

    def means(self, weights: Floats) -> Floats:
        """Return the means of all indicators times a weight per state, laid out like `theta`."""
        if self._shown is None:
            each = np.broadcast_to(weights, self._at.shape).ravel()
            sums = np.bincount(self._at.ravel(), each, self._layout.n_parameters)
        else:
            weighted = self._shown * weights.astype(np.float32)
            cells = (weighted @ self._shown.T)[self._row, self._column]
            sums = np.concatenate((weighted.sum(axis=1), cells)).astype(np.float64)
        return np.asarray(sums / len(weights))


Draws = HostDraws | BackendChains
"""The states of chains, as products of their indicators with vectors."""


class PersistentState:
    """Where the chains are: each run changes them."""

    def __init__(self, layout: Layout, moved: HostChains | BackendChains) -> None:
        self.layout, self.warm, self._moved = layout, False, moved
        self._theta = np.empty(0)

    def move(self, theta: Floats, n_sweeps: int) -> None:
        """Move the chains in a model."""
        if theta is not self._theta:
            self._moved.load(check_theta(theta, self.layout))
        self._theta, self.warm = theta, True
        self._moved.sweep(n_sweeps)

    def codes(self) -> NDArray[np.uint16]:
        """Return the states of the chains, shape (n_variables, n_chains)."""
        return self._moved.codes()

    def draws(self) -> Draws:
        """Return the states of the chains, for products with vectors."""
        if isinstance(self._moved, HostChains):
            return HostDraws(self.layout, self.codes())
        return self._moved


@dataclass(frozen=True)
class PersistentChains:
    """Draws of a model that changes little from run to run.

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
        args = layout, np.zeros(layout.n_parameters), chains
        if (there := device_of(layout, self.device)) is not None:
            return PersistentState(layout, put_on_device(*args, there))
        return PersistentState(layout, HostChains(*args, self.n_jobs, None, _MAX_ROWS))

    def run(self, theta: Floats, state: PersistentState) -> Draws:
        """Move the chains, and return where they are."""
        state.move(theta, self.n_sweeps + (0 if state.warm else self.burn_in))
        return state.draws()
