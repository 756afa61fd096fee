"""Small models for the message-passing engines, with exact results by enumeration."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from edgegraft.core import Layout

FORESTS = {
    "one edge": Layout([2, 3], [(0, 1)]),
    "empty": Layout([2, 3, 2]),
    "singleton": Layout([4]),
    "chain": Layout([2, 3, 4, 2, 5], [(0, 1), (1, 2), (2, 3), (3, 4)]),
    "star": Layout([2, 3, 2, 2, 3, 2], [(0, 5), (1, 5), (2, 5), (3, 5), (4, 5)]),
    "forest": Layout([2, 2, 3, 2, 2, 2, 2], [(0, 3), (3, 5), (1, 2), (2, 6)]),
    "mixed": Layout([21, 2, 9, 4], [(1, 2), (0, 1), (1, 3)]),
}
LOOPY = {
    "cycle": Layout([2, 3, 2, 3, 2], [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]),
    "grid": Layout(
        [2] * 9,
        [(r, r + 1) for r in (0, 1, 3, 4, 6, 7)] + [(r, r + 3) for r in range(6)],
    ),
    "complete": Layout([3] * 4, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]),
    "two parts": Layout([2] * 7, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (5, 6), (3, 6)]),
}


class Truth(NamedTuple):
    """Exact marginals in the layout of the parameters, log Z, the best score, all joint tables."""

    values: np.ndarray
    log_partition: float
    best: float
    rows: np.ndarray
    probabilities: np.ndarray

    def joint(self, i, j, layout):
        table = np.zeros((layout.states[i], layout.states[j]))
        np.add.at(table, (self.rows[:, i], self.rows[:, j]), self.probabilities)
        return table


def enumerate_all(theta, layout):
    """Sum over every configuration in plain NumPy."""
    rows = np.array(list(itertools.product(*(range(s) for s in layout.states))))
    score = sum(layout.node(theta, i)[rows[:, i]] for i in range(layout.n_variables))
    for k, (i, j) in enumerate(layout.edges):
        score = score + layout.edge(theta, k)[rows[:, i], rows[:, j]]
    top = score.max()
    p = np.exp(score - top)
    log_z = top + np.log(p.sum())
    p /= p.sum()
    values = np.zeros(layout.n_parameters)
    for i in range(layout.n_variables):
        np.add.at(layout.node(values, i), rows[:, i], p)
    for k, (i, j) in enumerate(layout.edges):
        np.add.at(layout.edge(values, k), (rows[:, i], rows[:, j]), p)
    return Truth(values, float(log_z), float(top), rows, p)


def draw(layout, scale=1.0, seed=0):
    """Return normally distributed parameters."""
    return scale * np.random.default_rng(seed).normal(size=layout.n_parameters)


def disagreement(values, layout):
    """Return the largest difference between a margin of an edge belief and the node belief."""
    worst = 0.0
    for k, (i, j) in enumerate(layout.edges):
        table = layout.edge(values, k)
        worst = max(worst, abs(table.sum(axis=1) - layout.node(values, i)).max())
        worst = max(worst, abs(table.sum(axis=0) - layout.node(values, j)).max())
    return worst
