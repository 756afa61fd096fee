"""Edge appearance probabilities: how often an edge is in a random spanning forest.

Tree-reweighted inference needs a distribution over spanning forests in which every edge has
positive probability ``rho_e``. Here it is the uniform distribution over a few explicit forests,
each of which prefers the edges that were taken least often so far (ties at random, from a fixed
seed). That covers the graph with about as few forests as can be, evens out the probabilities, and
makes the bound on log Z computable forest by forest. A bridge is in every forest; the edges of a
forest have probability one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.core import Layout
from edgegraft.kernels.messages.spanning import root_forest, spanning_forest
from edgegraft.kernels.messages.wiring import Wiring

#: With fewer forests the probabilities are coarse; more hardly tighten the bound.
LEAST_FORESTS = 12


class Forests(NamedTuple):
    """Spanning forests of a graph, all equally likely."""

    order: NDArray[np.int64]  # (k, n) nodes of each, subtrees before their roots
    upward: NDArray[np.int64]  # (k, n) message into a node from its parent; -1 at roots
    probability: NDArray[np.float64]  # (m,) share of the forests that hold an edge


def cover(layout: Layout, wiring: Wiring, seed: int = 0) -> Forests:
    """Return spanning forests that together hold every edge.

    Examples
    --------
    >>> from edgegraft.inference.wiring import wire
    >>> triangle = Layout([2, 2, 2], [(0, 1), (0, 2), (1, 2)])
    >>> cover(triangle, wire(triangle)).probability
    array([0.66666667, 0.66666667, 0.66666667])
    """
    m, n = layout.n_edges, layout.n_variables
    rng = np.random.default_rng(seed)
    taken = np.zeros(m, np.int64)
    members: list[NDArray[np.bool_]] = []
    least = LEAST_FORESTS
    while len(members) < least or (taken == 0).any():
        member = np.empty(m, np.bool_)
        size = spanning_forest(layout.edges, np.lexsort((rng.random(m), taken)), n, member)
        members.append(member)
        taken += member
        if size == m:  # the graph is a forest
            least = 1
    order = np.empty((len(members), n), np.int64)
    upward = np.empty((len(members), n), np.int64)
    for t, member in enumerate(members):
        root_forest(
            wiring.start, wiring.links, wiring.reverse, wiring.edge, member, order[t], upward[t]
        )
    return Forests(order, upward, taken / len(members))
