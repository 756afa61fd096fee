"""The models whose graphs are to be recovered, and exact samples of them.

Models of 16 binary columns are summed over all 65,536 rows, and a sample is a draw of how often
each of them occurs, so that its size costs nothing. Larger grids are drawn by transfer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.hard.samplers import grid_edges, sample_grid

N_SMALL = 16
Edges = NDArray[np.int64]
Rng = np.random.Generator


class Sample(NamedTuple):
    """Rows of a model: distinct ones with their numbers."""

    codes: NDArray[np.int64]  # (distinct rows, columns)
    counts: NDArray[np.float64]
    edges: set[tuple[int, int]]
    coupling: float  # smallest strength of an edge: for the methods that are told it
    n_states: int

    @property
    def n_rows(self) -> float:
        """Number of rows."""
        return float(self.counts.sum())


class Point(NamedTuple):
    """A family of models at one coupling, with the limits of its measurement."""

    name: str
    coupling: float
    n_columns: int
    n_states: int
    draw: Callable[[Rng, int], Sample]
    sets: int
    max_rows: int


def torus(side: int = 4) -> Edges:
    """Return the edges of a square lattice that is closed in both directions."""
    site = np.arange(side * side).reshape(side, side)
    pairs = [np.column_stack((site.ravel(), np.roll(site, 1, axis).ravel())) for axis in (0, 1)]
    return np.unique(np.sort(np.concatenate(pairs), axis=1), axis=0)


def random_regular(n: int, degree: int, rng: Rng) -> Edges:
    """Return a random graph in which every column has `degree` neighbours."""
    while True:
        pairs = np.sort(rng.permutation(np.repeat(np.arange(n), degree)).reshape(-1, 2), axis=1)
        simple = np.unique(pairs, axis=0)
        if len(simple) == len(pairs) and (pairs[:, 0] != pairs[:, 1]).all():
            return simple


def enumerated(
    graph: Callable[[Rng], Edges], coupling: float, glass: bool
) -> Callable[..., Sample]:
    """Return a draw of an Ising model of 16 columns without fields."""

    def draw(rng: Rng, n_rows: int) -> Sample:
        edges = graph(rng)
        signs = rng.choice([-1.0, 1.0], len(edges)) if glass else np.ones(len(edges))
        rows = np.arange(1 << N_SMALL)
        bits = [(rows >> v) & 1 for v in range(N_SMALL)]
        energy = np.zeros(len(rows))
        for (i, j), sign in zip(edges.tolist(), signs, strict=True):
            energy += sign * coupling * (1 - 2 * (bits[i] ^ bits[j]))
        chance = np.exp(energy - energy.max())
        counts = rng.multinomial(n_rows, chance / chance.sum())
        shown = np.flatnonzero(counts)
        codes = np.column_stack([bit[shown] for bit in bits])
        return Sample(codes, counts[shown].astype(float), _pairs(edges), coupling, 2)

    return draw


def grid(
    height: int, width: int, coupling: float, *, glass: bool = False, n_states: int = 2
) -> Callable[..., Sample]:
    """Return a draw of an open grid; Potts columns agree with their neighbours by the coupling."""

    def draw(rng: Rng, n_rows: int) -> Sample:
        edges = grid_edges(height, width)
        signs = rng.choice([-1.0, 1.0], len(edges)) if glass else np.ones(len(edges))
        strength = (2.0 if n_states == 2 else 1.0) * coupling * signs
        codes = sample_grid(height, width, n_states, strength, n_rows, rng)
        return Sample(codes, np.ones(n_rows), _pairs(edges), coupling, n_states)

    return draw


def _pairs(edges: Edges) -> set[tuple[int, int]]:
    return {(min(i, j), max(i, j)) for i, j in edges.tolist()}


def _small(coupling: float) -> list[Point]:
    """Return the four families of 16 columns at one coupling."""
    graphs = {
        "lattice": lambda rng: torus(),
        "3-regular": lambda rng: random_regular(N_SMALL, 3, rng),
    }
    return [
        Point(
            f"{kind}, {graph}, {coupling:g}",
            coupling,
            N_SMALL,
            2,
            enumerated(make, coupling, kind == "glass"),
            45,
            10_000_000,
        )
        for graph, make in graphs.items()
        for kind in ("ferromagnet", "glass")
    ]


def _grids() -> list[Point]:
    found = []
    for side in (6, 8, 10):
        for kind in ("ferromagnet", "glass"):
            draw = grid(side, side, 0.4, glass=kind == "glass")
            name = f"{kind}, {side} x {side} grid, 0.4"
            found.append(Point(name, 0.4, side * side, 2, draw, 45, 100_000))
    return found


def _potts() -> list[Point]:
    shapes = {3: (4, 4), 5: (4, 4), 21: (4, 2)}
    return [
        Point(
            f"Potts of {s} states, {h} x {w} grid, {coupling:g}",
            coupling,
            h * w,
            s,
            grid(h, w, coupling, n_states=s),
            45 if s < 21 else 15,
            100_000,
        )
        for s, (h, w) in shapes.items()
        for coupling in ((0.5, 1.0, 1.5) if s < 21 else (1.5, 2.5))
    ]


COUPLINGS = (0.4, 0.7, 1.0, 1.3, 1.6)
POINTS = (*(point for c in COUPLINGS for point in _small(c)), *_grids(), *_potts())
