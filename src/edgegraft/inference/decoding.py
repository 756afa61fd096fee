"""From max-product messages to an assignment.

Picking the best state of every variable on its own goes wrong where two assignments tie, so
variables are decided one after another, roots of a spanning forest first:

    x_i = argmax_a  u_i(a) + sum_{j decided} w_ij(a, x_j) + sum_{j not decided} log M_ji(a)

On a forest that is a maximising assignment, ties or not. Elsewhere the result is improved: random
induced forests, about half of a sparse graph at a time, are set to their best states given the
rest, exactly and from a fixed seed, until that no longer helps; then single variables are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgegraft.core import Layout
from edgegraft.core.types import Floats
from edgegraft.inference.messages import MessageState
from edgegraft.kernels.elimination.decoding import decide, improve_forest, polish

#: Rounds without a gain after which an assignment is left as it is.
PATIENCE = 30


def decode(state: MessageState, seed: int = 0) -> NDArray[np.int64]:
    """Return the assignment that max-product messages stand for, improved where it can be."""
    assert state.potentials is not None  # a run has filled them
    layout, wiring, potentials = state.layout, state.wiring, state.potentials
    assignment = np.full(layout.n_variables, -1, np.int64)
    if len(assignment) == 0:
        return assignment
    decide(wiring, potentials, state.value, assignment)
    rng = np.random.default_rng(seed)
    best, in_vain = score(state.theta, layout, assignment), 0
    while in_vain < PATIENCE:
        improve_forest(wiring, potentials, rng.permutation(layout.n_variables), assignment)
        value = score(state.theta, layout, assignment)
        # Rounding aside the score never falls; only a real gain is worth another round.
        in_vain = 0 if value > best + 1e-9 * (1.0 + abs(best)) else in_vain + 1
        best = max(best, value)
    polish(wiring, potentials, assignment)
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
