"""The step of a proximal quasi-Newton method: a quadratic model plus the penalty, minimised.

    z = argmin_z  g'(z - x) + (z - x)' B (z - x) / 2 + R(z)

No inference and no rows: products with the low-rank ``B`` only. Accelerated proximal steps in the
metric's diagonal, with the momentum that the known spectrum of ``B`` asks for, started at ``x``.
Without norms in the penalty the answer is closed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgegraft.objective.penalty import Groups, prox_of
from edgegraft.optimize.metric import Floats, Metric

#: A step is good enough when its own residual has fallen to this share.
ACCURACY = 0.3


class Step(NamedTuple):
    """Where the model has its minimum, and the inner iterations that it took."""

    target: Floats
    n_inner: int


def solve_step(
    x: Floats, gradient: Floats, metric: Metric, groups: Groups, max_inner: int = 200
) -> Step:
    """Minimise the model at `x`; `gradient` is that of the whole smooth part.

    `groups` must have no ridge: it belongs to the smooth part.
    """
    if not groups.strength.any():
        return Step(x - metric.solve(gradient), 0)
    low, high = metric.spectrum
    steps = 1.0 / (high * metric.diagonal)
    root = np.sqrt(low / high)
    momentum = (1.0 - root) / (1.0 + root)
    z, ahead = x, x
    first = 0.0
    for k in range(max_inner):
        slope = gradient + metric.times(ahead - x)
        moved = prox_of(ahead - steps * slope, steps, groups)
        change = float(np.max(np.abs(moved - ahead) * metric.diagonal))
        first = max(first, change)
        # Momentum that points uphill is dropped (O'Donoghue & Candes 2015).
        uphill = float(((ahead - moved) * metric.diagonal) @ (moved - z)) > 0.0
        ahead = moved if uphill else moved + momentum * (moved - z)
        z = moved
        if change <= ACCURACY * first and k:
            break
        if not metric.n_pairs:  # a diagonal model is minimised by its first proximal step
            break
    return Step(z, k + 1)
