"""From max-product messages to an assignment.

Picking the best state of every variable on its own goes wrong where two assignments tie, so
variables are decided one after another, roots of a spanning forest first:

    x_i = argmax_a  u_i(a) + sum_{j decided} w_ij(a, x_j) + sum_{j not decided} log M_ji(a)

On a forest that is a maximising assignment, ties or not. The result is then improved by changing
one variable at a time for as long as the score rises (iterated conditional modes).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.graph import Layout
from edgegraft.inference.engine import Info
from edgegraft.inference.floors import Floats
from edgegraft.inference.messages import MessageState
from edgegraft.kernels.decoding import decide, polish


class Assignment(NamedTuple):
    """A state for each variable, its unnormalised log score, and how the search went."""

    assignment: NDArray[np.int64]
    value: float
    info: Info


def decode(state: MessageState) -> NDArray[np.int64]:
    """Return the assignment that max-product messages stand for, polished."""
    assert state.potentials is not None  # a run has filled them
    assignment = np.full(state.layout.n_variables, -1, np.int64)
    decide(state.wiring, state.potentials, state.value, assignment)
    polish(state.wiring, state.potentials, assignment)
    return assignment


def score(theta: Floats, layout: Layout, assignment: NDArray[np.int64]) -> float:
    """Return the sum of the potentials at an assignment.

    Examples
    --------
    >>> score(np.arange(8.0), Layout([2, 2], [(0, 1)]), np.array([1, 0]))
    9.0
    """
    i, j = layout.edges[:, 0], layout.edges[:, 1]
    nodes = theta[layout.node_offset[:-1] + assignment]
    edges = theta[layout.edge_offset[:-1] + assignment[i] * layout.states[j] + assignment[j]]
    return float(nodes.sum() + edges.sum())
