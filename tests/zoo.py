"""Small models of every kind, and their exact answers by summing over all states."""

from __future__ import annotations

import itertools
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from edgegraft.core import Layout


class Truth:
    """Exact answers about a model, from the table of all its joint states in plain NumPy."""

    def __init__(self, layout, theta):
        n = layout.n_variables
        score = np.zeros(tuple(layout.states))
        for i in range(n):
            score = score + layout.node(theta, i).reshape([-1 if v == i else 1 for v in range(n)])
        for k, (i, j) in enumerate(layout.edges):
            shape = [layout.states[v] if v in (i, j) else 1 for v in range(n)]
            score = score + layout.edge(theta, k).reshape(shape)
        self.layout = layout
        self.log_partition = float(np.logaddexp.reduce(score, axis=None))
        self.joint = np.exp(score - self.log_partition)

    def pair(self, i, j):
        table = self.joint.sum(axis=tuple(v for v in range(self.joint.ndim) if v not in (i, j)))
        return table if i < j else table.T

    @cached_property
    def values(self):
        """Marginals in the layout of the parameters."""
        layout, out = self.layout, np.empty(self.layout.n_parameters)
        for i in range(layout.n_variables):
            others = tuple(v for v in range(layout.n_variables) if v != i)
            layout.node(out, i)[:] = self.joint.sum(axis=others)
        for k, (i, j) in enumerate(layout.edges):
            layout.edge(out, k)[:] = self.pair(int(i), int(j))
        return out


class Animal(NamedTuple):
    """A model of the zoo."""

    states: list[int]
    edges: list[tuple[int, int]]
    forest: bool
    scale: float = 0.6
    zeros: float = 0.0  # share of entries that are minus infinity

    @property
    def layout(self):
        return Layout(np.array(self.states, np.int64), np.array(self.edges, np.int64))

    @property
    def theta(self):
        layout, rng = self.layout, np.random.default_rng(7)
        theta = self.scale * rng.normal(size=layout.n_parameters)
        theta[rng.random(len(theta)) < self.zeros] = -np.inf
        if self.zeros:
            # State 0 is compatible with everything, so single changes lead from any state to any
            # other.
            for i in range(layout.n_variables):
                layout.node(theta, i)[0] = 0.5
            for k in range(layout.n_edges):
                layout.edge(theta, k)[0, :] = layout.edge(theta, k)[:, 0] = 0.5
        theta.flags.writeable = False
        return theta


CHAIN = [(0, 1), (1, 2), (2, 3)]
STAR = [(0, 4), (1, 4), (2, 4), (3, 4)]
CYCLE = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]
GRID = [(r, r + 1) for r in (0, 1, 3, 4, 6, 7)] + [(r, r + 3) for r in range(6)]
COMPLETE = list(itertools.combinations(range(4), 2))

ZOO = {
    "no variables": Animal([], [], True),
    "no edges": Animal([2, 3, 2], [], True),
    "singleton": Animal([4], [], True),
    "one edge": Animal([2, 3], [(0, 1)], True),
    "one state": Animal([1, 3, 1, 2], [(0, 1), (1, 2), (2, 3)], True),
    "chain": Animal([2, 3, 4, 2], CHAIN, True),
    "star": Animal([2, 3, 2, 2, 3], STAR, True),
    "cycle": Animal([2, 3, 2, 3, 2], CYCLE, False),
    "grid": Animal([2] * 9, GRID, False),
    "complete": Animal([3] * 4, COMPLETE, False),
    "disconnected": Animal([2, 3, 2, 2, 3, 2, 2], [(0, 3), (3, 5), (0, 5), (1, 4)], False),
    "mixed cardinalities": Animal([21, 2, 9, 4], [(0, 1), (1, 2), (0, 2), (2, 3)], False),
    "zero entries, tree": Animal([3, 3, 2, 4], CHAIN, True, zeros=0.3),
    "zero entries, loop": Animal([3, 2, 3, 2, 3], CYCLE, False, zeros=0.3),
    "huge potentials, tree": Animal([2, 3, 4, 2], CHAIN, True, scale=300.0),
    "huge potentials, loop": Animal([2, 3, 2, 3, 2], CYCLE, False, scale=300.0),
}


@cache
def truth(name):
    return Truth(ZOO[name].layout, ZOO[name].theta)
