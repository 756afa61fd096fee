"""First parameters in closed form, for likelihoods without a penalty.

    u_i(a) = log p_i(a),    w_ij(a, b) = log p_ij(a, b) / (p_i(a) p_j(b))

On a forest this is the maximum of the likelihood, and on any graph it is a fixed point of belief
propagation whose beliefs are the data's frequencies. With a penalty, shrunk by it or not, it was
measured to save no iterations, and on dense graphs it starts far too high: there edges start at
zero.
"""

from __future__ import annotations

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.types import Floats
from edgegraft.objective.likelihood import NEVER, Likelihood


def bethe_start(objective: Likelihood, layout: Layout) -> Floats:
    """Return the parameters whose Bethe marginals are the data's frequencies.

    Examples
    --------
    >>> from edgegraft.table import PackedTable
    >>> from edgegraft.inference import ExactEngine
    >>> from edgegraft.counts import LocalCounts
    >>> table = PackedTable.from_codes([[0, 0], [0, 1], [1, 1], [0, 0], [1, 0]])
    >>> loss = Likelihood(LocalCounts(table), ExactEngine())
    >>> layout = Layout([2, 2], [(0, 1)])
    >>> found = loss.evaluate(bethe_start(loss, layout), loss.init(layout))
    >>> bool(np.abs(found.gradient).max() < 1e-12)
    True
    """
    pairs, product = objective.pair_frequencies(layout)
    theta = objective.start(layout)
    possible = np.maximum(product, NEVER * NEVER)
    theta[int(layout.edge_offset[0]) :] = np.log(np.maximum(pairs, NEVER * possible) / possible)
    return theta
