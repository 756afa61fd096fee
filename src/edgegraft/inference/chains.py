"""Gibbs chains: a state and a random stream each, run in blocks side by side.

On the processor they are moved by kernels, elsewhere by a backend; both have the same operations.
A chain depends on its own stream alone, never on its company, so results are the same for any
number of threads. Sums of floating-point numbers over chains are taken block by block and then
over the blocks in order, with blocks of a fixed size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from edgegraft.core import Layout
from edgegraft.core.adjacency import neighbours_of
from edgegraft.core.backend import Backend, MovedChains
from edgegraft.core.edge_tables import fit_margins
from edgegraft.core.threads import resolve_jobs, run_in_order
from edgegraft.core.types import Floats, Mask
from edgegraft.errors import ModelError
from edgegraft.kernels.gibbs.sweeps import edge_terms, fill_uniform, observe, sweep
from edgegraft.kernels.gibbs.tables import GibbsTables, refill, tabulate

RandomState = int | np.random.Generator | None
Streams = NDArray[np.uint64]


@dataclass(frozen=True)
class _Rule:
    """Costs, timed on one core."""

    #: Chains per block, whatever the number of threads: enough that tables are reused in cache.
    block: int = 64
    #: Joint states of neighbours that are tabulated if the model changes: tables of many take
    #: longer than some sweeps.
    max_rows: int = 16
    #: Products with matrices of all states take less time than one cell per edge and chain if the
    #: square of the states is at most this many times the columns and edges.
    dense: int = 75


_RULE = _Rule()


class Chains(NamedTuple):
    """Where the chains are, and where their random streams are."""

    state: NDArray[np.uint16]  # (n, n_chains)
    streams: Streams  # (4, n_chains); see edgegraft.kernels.gibbs.sweeps

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return int(self.state.shape[1])

    def cut(self) -> Iterator[tuple[int, Chains]]:
        """Yield copies of blocks of chains, which kernels may change, after the first of each."""
        for first in range(0, self.n_chains, _RULE.block):
            block = slice(first, first + _RULE.block)
            yield first, Chains(self.state[:, block].copy(), self.streams[:, block].copy())


def tables_of(layout: Layout, theta: Floats, max_rows: int | None = None) -> GibbsTables:
    """Return the tables of a model's conditionals, for the kernels that move chains."""
    return tabulate(layout.states, layout.node_offset, neighbours_of(layout), theta, max_rows)


def code_type(layout: Layout) -> np.dtype[Any]:
    """Return the smallest type that holds a state of every variable."""
    return np.dtype(np.uint16 if layout.states.max(initial=0) > 256 else np.uint8)


def make_streams(random_state: RandomState, n_chains: int) -> Streams:
    """Return independent random streams, one per chain."""
    if isinstance(random_state, np.random.Generator):
        random_state = int(random_state.integers(1 << 63))
    seeds = np.random.SeedSequence(random_state).spawn(n_chains)
    words = [seed.generate_state(4, np.uint64) for seed in seeds]
    return np.ascontiguousarray(np.array(words, np.uint64).T)


def scattered(layout: Layout, streams: Streams) -> Chains:
    """Return chains whose variables are drawn uniformly: as far apart as chains can start."""
    state = np.empty((layout.n_variables, streams.shape[1]), np.uint16)
    uniform = np.empty(streams.shape[1])
    for own, n_states in zip(state, layout.states, strict=True):
        fill_uniform(streams, uniform)
        own[:] = uniform * n_states
    return Chains(state, streams)


class Indicators:
    """States of chains as zeros and ones, whose products with vectors are asked for.

    With many edges as a matrix in single precision, else as the places of the ones.
    """

    def __init__(self, layout: Layout, codes: NDArray[np.uint16]) -> None:
        n_nodes, (i, j) = int(layout.node_offset[-1]), layout.edges.T
        self._layout, state = layout, codes.astype(np.int64)
        nodes = layout.node_offset[:-1, None] + state
        self._matrix: NDArray[np.float32] | None = None
        if n_nodes**2 <= _RULE.dense * (layout.n_variables + layout.n_edges):
            self._matrix = np.zeros((n_nodes, codes.shape[1]), np.float32)
            self._matrix[nodes, np.arange(codes.shape[1])] = 1.0
            self._row, self._column = layout.cell_ends()
            return
        cells = layout.edge_offset[:-1, None] + state[i] * layout.states[j][:, None] + state[j]
        self._at = np.concatenate((nodes, cells))

    def energies(self, theta: Floats) -> Floats:
        """Return the log-potential `theta` of every state."""
        if self._matrix is None:
            return np.asarray(theta[self._at].sum(axis=0))
        n_nodes = len(self._matrix)
        nodes, cells = np.split(theta.astype(np.float32), [n_nodes])
        weights = csr_array((cells, (self._row, self._column)), shape=(n_nodes, n_nodes))
        fields = weights.toarray() @ self._matrix + nodes[:, None]
        return np.asarray(np.einsum("sc,sc->c", self._matrix, fields), np.float64)

    def means(self, weights: Floats) -> Floats:
        """Return the means of all indicators times a weight per state, laid out like `theta`."""
        if self._matrix is None:
            each = np.broadcast_to(weights, self._at.shape).ravel()
            sums = np.bincount(self._at.ravel(), each, self._layout.n_parameters)
        else:
            weighted = self._matrix * weights.astype(np.float32)
            cells = (weighted @ self._matrix.T)[self._row, self._column]
            sums = np.concatenate((weighted.sum(axis=1), cells)).astype(np.float64)
        return np.asarray(sums / len(weights))


class HostChains:
    """Chains of one model, moved by kernels; the operations of a backend's chains."""

    def __init__(
        self,
        layout: Layout,
        theta: Floats,
        chains: Chains,
        n_jobs: int | None,
        max_rows: int | None = None,
    ) -> None:
        self.n_rescued = 0  # updates that were computed in logarithms
        self._layout, self._theta, self._beta = layout, theta, 1.0
        self._tables = tables_of(layout, theta, max_rows)
        self._jobs = resolve_jobs(n_jobs)
        self._blocks = list(chains.cut())
        self._indicators: Indicators | None = None  # of the states now, once asked for

    def load(self, theta: Floats) -> None:
        """Take other parameters."""
        self._theta, self._beta = theta, 1.0
        refill(self._tables, theta)

    def sweep(self, n_sweeps: int, beta: float = 1.0) -> None:
        """Draw every variable of every chain anew, edge terms counting `beta` times."""
        if beta != self._beta:
            scaled = self._theta.copy()
            scaled[self._layout.node_offset[-1] :] *= beta
            refill(self._tables, scaled)
            self._beta = beta
        self._work(lambda _, block: int(sweep(self._tables, *block, n_sweeps)))

    def codes(self) -> NDArray[np.uint16]:
        """Return the states of all chains, shape (n, n_chains)."""
        return self.ends().state

    def ends(self) -> Chains:
        """Return the chains as they are now."""
        parts = zip(*(block for _, block in self._blocks), strict=True)
        return Chains(*(np.concatenate(part, axis=1) for part in parts))

    def record(self, draws: NDArray[Any], thinning: int) -> None:
        """Fill `draws`, shape (n, records, n_chains), with states `thinning` sweeps apart."""
        for record in range(draws.shape[1]):
            self.sweep(thinning)
            draws[:, record] = self.codes()

    def observe(self, draws: NDArray[Any], thinning: int) -> Floats:
        """Do the same, and return marginals: means of the conditionals in these states."""
        sums = {first: np.zeros(self._layout.n_parameters) for first, _ in self._blocks}

        def watch(first: int, block: Chains) -> int:
            return int(observe(self._tables, *block, thinning, first, draws, sums[first]))

        self._work(watch)
        return edge_marginals(self._layout, np.sum([*sums.values()], axis=0) / draws[0].size)

    def edge_terms(self) -> Floats:
        """Return the sum of the edges' log-potentials in the state of each chain."""
        terms = (edge_terms(self._tables, self._theta, block.state) for _, block in self._blocks)
        return np.concatenate([*terms])

    def energies(self, theta: Floats) -> Floats:
        """Return the log-potential `theta` in the state of each chain."""
        return self._products().energies(theta)

    def means(self, weights: Floats) -> Floats:
        """Return the means over chains of all indicators times a weight, laid out like `theta`."""
        return self._products().means(weights)

    def _products(self) -> Indicators:
        if self._indicators is None:
            self._indicators = Indicators(self._layout, self.codes())
        return self._indicators

    def _work(self, work: Callable[[int, Chains], int]) -> None:
        self._indicators = None
        done = run_in_order(lambda piece: work(*piece), self._blocks, self._jobs)
        self.n_rescued += sum(done)


def edge_marginals(layout: Layout, means: Floats) -> Floats:
    """Return means of conditionals as marginals: edge tables have the node vectors as margins."""
    means[int(layout.node_offset[-1]) :] *= 0.5  # each edge was added to from both ends
    fit_margins(means, layout.states, layout.edges, layout.node_offset, layout.edge_offset)
    return means


def move_chains(
    layout: Layout,
    theta: Floats,
    chains: Chains,
    device: Backend | None,
    n_jobs: int | None,
    *,
    changing: bool = False,
) -> MovedChains:
    """Return the chains of a model where they are to be moved: where states fit, on the device.

    There the stream of the first chain is the seed of all. Of a model that is `changing`, the
    processor's tables are small.
    """
    if device is None or not device.holds(int(layout.node_offset[-1])):
        max_rows = _RULE.max_rows if changing else None
        return HostChains(layout, theta, chains, n_jobs, max_rows)
    moved = device.chains(layout, chains.state, int(chains.streams[0, 0] >> np.uint64(1)))
    moved.load(theta)
    return moved


def ends_of(moved: MovedChains, before: Chains) -> Chains:
    """Return chains that continue those that were moved; after a device with another seed."""
    if isinstance(moved, HostChains):
        return moved.ends()
    streams = before.streams.copy()
    words = np.random.SeedSequence(streams[:, 0].tolist()).generate_state(4, np.uint64)
    streams[:, 0] = words
    return Chains(moved.codes(), streams)


def are_possible(layout: Layout, theta: Floats, state: NDArray[np.uint16]) -> Mask:
    """Return which chains are in a state of positive probability."""
    if np.isfinite(theta).all():
        return np.ones(state.shape[1], np.bool_)
    i, j = layout.edges.T
    of_node = layout.node_offset[:-1, None] + state
    of_edge = layout.edge_offset[:-1, None] + state[i].astype(np.int64) * layout.states[j][:, None]
    of_edge += state[j]
    fits = np.isfinite(theta[of_node]).all(axis=0) & np.isfinite(theta[of_edge]).all(axis=0)
    return np.asarray(fits)


def check_possible(layout: Layout, theta: Floats, state: NDArray[np.uint16], n_sweeps: int) -> None:
    """Refuse chains outside the model: once inside, a chain never leaves it."""
    outside = ~are_possible(layout, theta, state)
    if outside.any():
        raise ModelError(
            f"{outside.sum()} of {len(outside)} chains are in a state of probability zero after "
            f"{n_sweeps} sweeps: raise burn_in, or start in a possible state if the question takes "
            "one; a model in which nothing is possible looks the same"
        )


def check_at_least(**limits: tuple[int, int]) -> None:
    """Refuse numbers, given with their names, that are less than they may be."""
    for name, (value, least) in limits.items():
        if value < least:
            raise ValueError(f"{name} must be at least {least}, found {value}")
