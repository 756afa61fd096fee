"""The hard cases: each draws a table and knows its true edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.hard.samplers import (
    grid_edges,
    independent,
    sample_grid,
    sample_ising_tree,
)


class Data(NamedTuple):
    """A table with its truth, and what its columns are said to be."""

    X: Any
    edges: set[tuple[int, int]]
    weights: NDArray[np.float64] | None = None
    kinds: Any = "nominal"


class Case(NamedTuple):
    """A generator with a name and a number of seeds."""

    name: str
    draw: Callable[[np.random.Generator], Data]
    seeds: int


def _pairs(edges: NDArray[np.int64]) -> set[tuple[int, int]]:
    return {(min(i, j), max(i, j)) for i, j in edges.tolist()}


def star(coupling: float, n: int = 200, n_rows: int = 500) -> Callable[..., Data]:
    """Return a draw of one hub joined to all other columns."""

    def draw(rng: np.random.Generator) -> Data:
        X = sample_ising_tree([-1] + [0] * (n - 1), np.full(n, coupling), n_rows, rng)
        return Data(X, {(0, v) for v in range(1, n)})

    return draw


def ising_grid(
    beta: float, side: int = 8, n_rows: int = 5000, glass: bool = False
) -> Callable[..., Data]:
    """Return a draw of a grid of equal couplings, or of random signs."""

    def draw(rng: np.random.Generator) -> Data:
        edges = grid_edges(side, side)
        signs = rng.choice([-1.0, 1.0], len(edges)) if glass else np.ones(len(edges))
        return Data(sample_grid(side, side, 2, 2 * beta * signs, n_rows, rng), _pairs(edges))

    return draw


def potts_grid(
    beta: float, side: int = 5, n_states: int = 5, n_rows: int = 5000
) -> Callable[..., Data]:
    """Return a draw of a grid whose columns tend to agree with their neighbours."""

    def draw(rng: np.random.Generator) -> Data:
        edges = grid_edges(side, side)
        X = sample_grid(side, side, n_states, np.full(len(edges), beta), n_rows, rng)
        return Data(X, _pairs(edges))

    return draw


def copied_column(rng: np.random.Generator) -> Data:
    """Draw a chain of 10 columns, of which the fifth stands in the table twice."""
    X = sample_ising_tree([-1, *range(9)], np.full(10, 0.8), 2000, rng)
    return Data(np.column_stack((X, X[:, 4])), {(v, v + 1) for v in range(9)} | {(4, 10)})


def tree_of_copies(rng: np.random.Generator) -> Data:
    """Draw a random tree of 40 columns that agree with their parents in 98 % of the rows."""
    parents = [-1, *(int(rng.integers(0, v)) for v in range(1, 40))]
    X = sample_ising_tree(parents, np.full(40, 0.5 * np.log(0.98 / 0.02)), 5000, rng)
    return Data(X, {(parents[v], v) for v in range(1, 40)})


def opposite_effects(rng: np.random.Generator) -> Data:
    """Draw near-copies (96 % equal) that push a third column in opposite directions, ten times."""
    columns, edges = [], set()
    for block in range(10):
        a = (rng.random(1000) < 0.5).astype(np.int64)
        b = np.where(rng.random(1000) < 0.96, a, 1 - a)
        logit = 2.0 * (2 * a - 1) - 2.0 * (2 * b - 1)
        c = (rng.random(1000) < 1 / (1 + np.exp(-logit))).astype(np.int64)
        columns += [a, b, c]
        first = 3 * block
        edges |= {(first, first + 1), (first, first + 2), (first + 1, first + 2)}
    return Data(np.column_stack(columns), edges)


def null_rates(rng: np.random.Generator) -> Data:
    """Draw independent columns of rates from .001 to .5."""
    return Data(independent(np.geomspace(0.001, 0.5, 100), 20_000, rng), set())


def null_rare(rng: np.random.Generator) -> Data:
    """Draw independent columns of rate .1 and few rows."""
    return Data(independent(np.full(100, 0.1), 1000, rng), set())


def null_weighted(population: float) -> Callable[..., Data]:
    """Return a draw of independent columns, rows with lognormal weights of a given mean."""

    def draw(rng: np.random.Generator) -> Data:
        weights = rng.lognormal(0.0, 1.0, 2000)
        weights *= population / weights.mean()
        return Data(rng.integers(0, 4, (2000, 19)), set(), weights)

    return draw


def missing_half(rng: np.random.Generator) -> Data:
    """Draw a tree of 30 four-state columns, half of whose cells are missing."""
    n, n_rows = 30, 1000
    parents = [-1, *(int(rng.integers(0, v)) for v in range(1, n))]
    X = np.empty((n_rows, n), float)
    X[:, 0] = rng.integers(0, 4, n_rows)
    for v in range(1, n):
        kept = rng.random(n_rows) < 0.6
        X[:, v] = np.where(kept, X[:, parents[v]], rng.integers(0, 4, n_rows))
    X[rng.random(X.shape) < 0.5] = np.nan
    return Data(X, {(parents[v], v) for v in range(1, n)})


def null_wide(rng: np.random.Generator) -> Data:
    """Draw a thousand independent four-state columns."""
    return Data(rng.integers(0, 4, (2000, 1000)), set())


CASES = (
    Case("star of 200, coupling .3, N=500", star(0.3), 5),
    Case("star of 200, coupling .6, N=500", star(0.6), 5),
    Case("star of 200, coupling 1, N=500", star(1.0), 5),
    Case("ferromagnet 8 x 8, beta .6, N=1,000", ising_grid(0.6, n_rows=1000), 3),
    Case("ferromagnet 8 x 8, beta .8, N=5,000", ising_grid(0.8), 3),
    Case("ferromagnet 8 x 8, beta 1, N=5,000", ising_grid(1.0), 3),
    Case("glass 8 x 8, beta 1, N=5,000", ising_grid(1.0, glass=True), 3),
    Case("Potts 5 x 5, 5 states, beta 1.7, N=5,000", potts_grid(1.7), 3),
    Case("a column and its copy in a chain", copied_column, 5),
    Case("tree of 98 % copies, N=5,000", tree_of_copies, 3),
    Case("two near-copies with opposite effects, N=1,000", opposite_effects, 5),
    Case("null: 100 columns, rates .001 to .5, N=20,000", null_rates, 20),
    Case("null: 100 columns, rate .1, N=1,000", null_rare, 40),
    Case("null: 19 columns, survey weights of mean 1", null_weighted(1.0), 20),
    Case("null: 19 columns, population weights", null_weighted(1000.0), 20),
    Case("tree of 30, 4 states, half of the cells missing, N=1,000", missing_half, 3),
    Case("null: 1,000 columns of 4 states, N=2,000", null_wide, 1),
)
