"""Gibbs chains: a state and a random stream each, run in blocks side by side.

A chain depends on its own stream alone, never on its company, so results are the same for any
number of threads. Whoever adds floating-point numbers over chains does so block by block and then
over the blocks in order, with blocks of a fixed size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.core import Layout
from edgegraft.core.threads import resolve_jobs, run
from edgegraft.kernels.gibbs.gibbs_tables import GibbsTables
from edgegraft.kernels.gibbs.sweeps import start_uniform, sweep

RandomState = int | np.random.Generator | None
Streams = NDArray[np.uint64]

#: Chains of one block where sums are kept: what one variable's tables are reused for in cache.
BLOCK = 32


class Chains(NamedTuple):
    """Where the chains are, and where their random streams are.

    Attributes
    ----------
    state : array of uint16, shape (n, n_chains)
    streams : array of uint64, shape (4, n_chains)
        See :mod:`edgegraft.kernels.gibbs.random`.
    """

    state: NDArray[np.uint16]
    streams: Streams

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return int(self.state.shape[1])

    def cut(self, block: int = BLOCK) -> Iterator[tuple[slice, Chains]]:
        """Yield copies of blocks of chains, which kernels may change, and which ones they are."""
        for first in range(0, self.state.shape[1], block):
            own = slice(first, first + block)
            state, streams = self.state[:, own], self.streams[:, own]
            yield own, Chains(np.ascontiguousarray(state).copy(), streams.copy())


def join(blocks: list[Chains]) -> Chains:
    """Return the chains of all blocks, in order."""
    return Chains(*(np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True)))


def advance(
    tables: GibbsTables, chains: Chains, n_sweeps: int, n_jobs: int | None
) -> tuple[Chains, int]:
    """Return the chains `n_sweeps` later, and how many updates needed logarithms."""
    blocks = [own for _, own in chains.cut()]
    rescued = [0] * len(blocks)

    def go(k: int) -> None:
        rescued[k] = sweep(tables, *blocks[k], n_sweeps)

    run(go, range(len(blocks)), resolve_jobs(n_jobs))
    return join(blocks), sum(rescued)


def make_streams(random_state: RandomState, n_chains: int) -> Streams:
    """Return independent random streams, one a chain."""
    if isinstance(random_state, np.random.Generator):
        random_state = int(random_state.integers(1 << 63))
    seeds = np.random.SeedSequence(random_state).spawn(n_chains)
    words = [seed.generate_state(4, np.uint64) for seed in seeds]
    return np.ascontiguousarray(np.array(words, np.uint64).T)


def scattered(layout: Layout, streams: Streams) -> NDArray[np.uint16]:
    """Return chains whose variables are drawn uniformly: as far apart as chains can start."""
    state = np.empty((layout.n_variables, streams.shape[1]), np.uint16)
    start_uniform(layout.states, state, streams)
    return state


def possible(
    layout: Layout, theta: NDArray[np.float64], state: NDArray[np.uint16]
) -> NDArray[np.bool_]:
    """Tell which chains are in a state of positive probability."""
    if np.isfinite(theta).all():
        return np.ones(state.shape[1], np.bool_)
    i, j = layout.edges.T
    of_node = layout.node_offset[:-1, None] + state
    of_edge = layout.edge_offset[:-1, None] + state[i].astype(np.int64) * layout.states[j][:, None]
    of_edge += state[j]
    fits = np.isfinite(theta[of_node]).all(axis=0) & np.isfinite(theta[of_edge]).all(axis=0)
    return np.asarray(fits)
