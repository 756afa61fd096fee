"""Gibbs chains: a state and a random stream each, run in blocks side by side.

A chain depends on its own stream alone, never on its company, so results are the same for any
number of threads. Sums of floating-point numbers over chains are taken block by block and then
over the blocks in order, with blocks of a fixed size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.core import Layout
from edgegraft.core.adjacency import neighbours_of
from edgegraft.core.backend import Backend, BackendChains, MovedChains
from edgegraft.core.edge_tables import fit_margins
from edgegraft.core.threads import resolve_jobs, run, run_in_order
from edgegraft.core.types import Floats, Integers, Mask
from edgegraft.errors import ModelError
from edgegraft.kernels.gibbs.fields import Wiring, relate
from edgegraft.kernels.gibbs.gibbs_moments import measure_indicators, observe
from edgegraft.kernels.gibbs.gibbs_tables import GibbsTables, refill, tabulate
from edgegraft.kernels.gibbs.sweeps import fill_uniform, sweep

RandomState = int | np.random.Generator | None
Streams = NDArray[np.uint64]

#: Chains per block if sums are kept: what one variable's tables are reused for in cache.
BLOCK = 32
#: Draws per chain below which halves mean nothing.
MIN_DRAWS = 4
#: Chains agree if R-hat is below this.
AGREEMENT = 1.05
_VARIABLES_PER_TASK = 32
#: Chains per block otherwise: enough that tables are reused, few enough to share out.
_MIN_BLOCK, _MAX_BLOCK = 16, 128


class Chains(NamedTuple):
    """Where the chains are, and where their random streams are."""

    state: NDArray[np.uint16]  # (n, n_chains)
    streams: Streams  # (4, n_chains); see edgegraft.kernels.gibbs.sweeps

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return int(self.state.shape[1])

    def cut(self, block: int | None, n_jobs: int) -> Iterator[tuple[slice, Chains]]:
        """Yield copies of blocks of chains, which kernels may change, and which ones they are.

        Blocks follow the number of threads if `block` is None.
        """
        if block is None:
            block = min(max(-(-self.n_chains // n_jobs), _MIN_BLOCK), _MAX_BLOCK)
        for first in range(0, self.n_chains, block):
            own = slice(first, min(first + block, self.n_chains))
            state, streams = self.state[:, own], self.streams[:, own]
            yield own, Chains(np.ascontiguousarray(state).copy(), streams.copy())


def run_chains(
    work: Callable[[slice, Chains], int], chains: Chains, n_jobs: int | None, block: int | None
) -> tuple[Chains, int]:
    """Return the chains after `work` has moved them, block by block, and the sum of its results.

    `work` gets the chains of a block, to be changed, and which ones they are.
    """
    jobs = resolve_jobs(n_jobs)
    blocks = list(chains.cut(block, jobs))
    total = sum(run_in_order(lambda piece: int(work(*piece)), blocks, jobs))
    parts = zip(*(own for _, own in blocks), strict=True)
    return Chains(*(np.concatenate(part, axis=1) for part in parts)), total


def tables_of(layout: Layout, theta: Floats, max_rows: int | None = None) -> GibbsTables:
    """Return the tables of a model's conditionals, for the kernels that move chains."""
    return tabulate(layout.states, layout.node_offset, neighbours_of(layout), theta, max_rows)


class Followed(NamedTuple):
    """A model for chains that follow it while it changes, as the kernels of fields take it."""

    wiring: Wiring
    nodes: Floats
    pushes: Floats


def follow_model(layout: Layout, theta: Floats) -> Followed:
    """Return a model as chains follow it."""
    graph = neighbours_of(layout)
    own = np.repeat(layout.states, np.diff(graph.start))
    push = np.concatenate(([0], np.cumsum(own * (layout.states[graph.other] - 1))))
    wiring = Wiring(np.array(layout.states), np.array(layout.node_offset), *graph, push)
    nodes, pushes = np.empty(int(layout.node_offset[-1])), np.empty(int(wiring.push[-1]))
    relate(wiring, np.asarray(theta, np.float64), nodes, pushes)
    return Followed(wiring, nodes, pushes)


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


class HostChains:
    """Chains of one model, moved by kernels."""

    def __init__(
        self,
        layout: Layout,
        theta: Floats,
        chains: Chains,
        n_jobs: int | None,
        block: int | None,
        max_rows: int | None = None,
    ) -> None:
        self.n_rescued = 0  # updates that were computed in logarithms
        self._layout, self._tables = layout, tables_of(layout, theta, max_rows)
        self._jobs = resolve_jobs(n_jobs)
        self._blocks = list(chains.cut(block, self._jobs))

    def load(self, theta: Floats) -> None:
        """Take other parameters."""
        refill(self._tables, theta)

    def sweep(self, n_sweeps: int) -> None:
        """Draw every variable of every chain anew, `n_sweeps` times."""
        self._work(lambda _, own: int(sweep(self._tables, *own, n_sweeps)))

    def codes(self) -> NDArray[np.uint16]:
        """Return the states of all chains, shape (n, n_chains)."""
        return self.ends().state

    def ends(self) -> Chains:
        """Return the chains as they are now."""
        parts = zip(*(own for _, own in self._blocks), strict=True)
        return Chains(*(np.concatenate(part, axis=1) for part in parts))

    def record(self, draws: NDArray[Any], thinning: int) -> None:
        """Fill `draws`, shape (n, records, n_chains), with states that many sweeps apart."""
        for record in range(draws.shape[1]):
            self.sweep(thinning)
            draws[:, record] = self.codes()

    def observe(self, draws: NDArray[Any], thinning: int) -> Floats:
        """Do the same, and return marginals: means of the conditionals in these states."""
        sums = {which.start: np.zeros(self._layout.n_parameters) for which, _ in self._blocks}

        def watch(which: slice, own: Chains) -> int:
            first = which.start
            return int(observe(self._tables, *own, thinning, first, draws, sums[first]))

        self._work(watch)
        return edge_marginals(self._layout, np.sum([*sums.values()], axis=0) / draws[0].size)

    def _work(self, work: Callable[[slice, Chains], int]) -> None:
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
    block: int | None = None,
) -> MovedChains:
    """Return the chains of a model where they are to be moved."""
    if (there := device_of(layout, device)) is None:
        return HostChains(layout, theta, chains, n_jobs, block)
    return put_on_device(layout, theta, chains, there)


def device_of(layout: Layout, device: Backend | None) -> Backend | None:
    """Return the device of chains; None for the processor, and where the states do not fit."""
    fits = device is not None and device.holds(int(layout.node_offset[-1]))
    return device if fits else None


def put_on_device(layout: Layout, theta: Floats, chains: Chains, device: Backend) -> BackendChains:
    """Return the chains on a device; the stream of the first is the seed of all."""
    there = device.chains(layout, chains.state, int(chains.streams[0, 0] >> np.uint64(1)))
    there.load(theta)
    return there


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


class Mixing(NamedTuple):
    """Whether chains agree, and how many independent draws theirs are worth, by variable.

    Each chain is cut into halves, so that a chain that still drifts disagrees with itself. With
    ``W`` the mean variance within the ``m`` halves of ``n`` draws, and ``B / n`` the variance of
    their means,

        R-hat = sqrt(((n - 1) / n W + B / n) / W),      ESS = m n / (1 + 2 sum_t rho_t),

    ``rho_t`` being the autocorrelation at lag ``t`` over all halves (Gelman et al., "Bayesian Data
    Analysis", 2013; Vehtari et al., "Rank-normalization, folding, and localization", 2021). The
    series are indicators of each variable's most frequent state, for which rank-normalisation
    changes neither figure.
    """

    #: (n,); 1 if the indicator is constant, infinite if chains are stuck in different states
    r_hat: Floats
    effective_size: Floats  # (n,); independent draws that would give the probability as precisely


def mixing(draws: NDArray[Any], modes: Integers, n_jobs: int | None = 1) -> Mixing:
    """Return the diagnostics of `draws`, states of shape ``(n, n_draws, n_chains)``.

    The indicators of the states `modes`, one per variable, are followed. There are at least 4
    draws; of an odd number the middle one is left out.

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
