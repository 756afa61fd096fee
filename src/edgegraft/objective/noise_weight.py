"""Weights that ask of every pair the same evidence, however common its states are.

    d_e = sqrt(s_i s_j) sqrt(G_i G_j),     G_i = (1 - sum_a p_i(a)^2) / (1 - 1/s_i)

Under independence the gradient of a pair's table has the squared norm ``c G_i G_j / N`` with the
same ``c`` for all pairs of as many states: with ``d_e = sqrt(s_i s_j)`` alone a variable that is
nearly constant can never pass the activation test, whatever depends on it. With these weights the
noise of every score is the same, and for equally common states nothing changes (``G = 1``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgegraft.graph import Layout
from edgegraft.objective.objective import Objective

_LEAST_ROWS = 20.0  # off the most common state: with fewer, chance is no longer Gaussian


def noise_spread(objective: Objective) -> NDArray[np.float64]:
    """Return ``sqrt(s_i G_i)`` of each variable; ``d_e`` is the product over a pair.

    Examples
    --------
    >>> from edgegraft.data import PackedTable
    >>> from edgegraft.objective.pseudolikelihood import Pseudolikelihood
    >>> table = PackedTable.from_codes([[0, 0], [1, 0], [0, 0], [1, 1]] * 50)
    >>> noise_spread(Pseudolikelihood(table)).round(3)
    array([1.414, 1.225])
    """
    layout = Layout(objective.schema.n_states)
    p = np.exp(objective.start(layout))  # node vectors of the margins
    first, states = layout.node_offset[:-1], layout.states
    p /= np.repeat(np.add.reduceat(p, first), states)
    least = min(1.0, _LEAST_ROWS / objective.n_rows)
    spread = np.maximum(1.0 - np.add.reduceat(p * p, first), least)
    evenness = np.minimum(1.0, spread / np.maximum(1.0 - 1.0 / states, least))
    return np.asarray(np.sqrt(states * evenness))
