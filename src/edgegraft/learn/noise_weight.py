"""A penalty that asks of every pair the same evidence, however common its states are.

    d_e = sqrt(s_i s_j) sqrt(G_i G_j),     G_i = (1 - sum_a p_i(a)^2) / (1 - 1/s_i)

Under independence the gradient of a pair's table has the squared norm ``c G_i G_j / N`` with the
same ``c`` for all pairs of as many states: with ``d_e = sqrt(s_i s_j)`` alone a variable that is
nearly constant can never pass the activation test, whatever depends on it. With these weights the
noise of every score is the same, and for equally common states nothing changes (``G = 1``).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from edgegraft.graph import Layout
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import Groups, Penalty
from edgegraft.stats.tables import Edges, PairTables

Floats = NDArray[np.float64]

_LEAST_ROWS = 20.0  # off the most common state: with fewer, chance is no longer Gaussian


@dataclass(frozen=True, eq=False)
class NoisePenalty(Penalty):
    """Group norms weighted by the noise of each pair's gradient.

    Parameters
    ----------
    spread : array of float, shape (n,)
        ``sqrt(s_i G_i)`` of each variable.

    Examples
    --------
    >>> from edgegraft.data import PackedTable
    >>> from edgegraft.objective.pseudolikelihood import Pseudolikelihood
    >>> table = PackedTable.from_codes([[0, 0], [1, 0], [0, 0], [1, 1]] * 50)
    >>> penalty = weigh_by_noise(Penalty(0.1), Pseudolikelihood(table))
    >>> penalty.edge_weights(np.array([(0, 1)])).round(3)
    array([1.732])
    """

    spread: Floats = field(default_factory=lambda: np.zeros(0))

    def edge_weights(self, edges: Edges) -> Floats:
        """Return ``d_e``."""
        return np.asarray(self.spread[edges[:, 0]] * self.spread[edges[:, 1]])

    def groups(self, layout: Layout) -> Groups:
        """Return the groups of a graph's parameters: nodes, then edges."""
        whole = super().groups(layout)
        strength = whole.strength.copy()
        strength[layout.n_variables :] = self.penalty * self.edge_weights(layout.edges)
        return whole._replace(strength=strength)

    def score(self, gradient: Floats | PairTables, layout: Layout | None = None) -> Floats:
        """Return ``s_e`` of every edge: an edge at zero stays there while ``s_e <= penalty``."""
        if isinstance(gradient, PairTables):
            edges, cells = gradient.edges, np.diff(gradient.offsets)
        else:
            if layout is None:
                raise TypeError("the score of a flat gradient needs the layout of the parameters")
            edges, cells = layout.edges, np.diff(layout.edge_offset)
        norms = super().score(gradient, layout) * self.weights(cells)
        return np.asarray(norms / self.edge_weights(edges))


def weigh_by_noise(penalty: Penalty, objective: Objective) -> NoisePenalty:
    """Return `penalty` with the weights that the margins of the data ask for."""
    if penalty.kind != "group":
        raise ValueError("noise weights are for whole tables: kind must be 'group'")
    layout = Layout(objective.schema.n_states)
    p = np.exp(objective.start(layout))  # node vectors of the margins
    first, states = layout.node_offset[:-1], layout.states
    p /= np.repeat(np.add.reduceat(p, first), states)
    least = min(1.0, _LEAST_ROWS / objective.n_rows)
    spread = np.maximum(1.0 - np.add.reduceat(p * p, first), least)
    evenness = np.minimum(1.0, spread / np.maximum(1.0 - 1.0 / states, least))
    return NoisePenalty(
        penalty=penalty.penalty,
        ridge=penalty.ridge,
        penalize_nodes=penalty.penalize_nodes,
        spread=np.sqrt(states * evenness),
    )


def edge_weights(penalty: Penalty, edges: Edges, states: NDArray[np.int64]) -> Floats:
    """Return ``d_e`` of any pairs under any penalty."""
    if isinstance(penalty, NoisePenalty):
        return penalty.edge_weights(edges)
    return penalty.weights(states[edges].prod(axis=1))
