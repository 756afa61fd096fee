"""The step of a proximal quasi-Newton method: a quadratic model plus the penalty, minimised.

    z = argmin_z  g'(z - x) + (z - x)' B (z - x) / 2 + R(z)

No inference and no rows: products with the low-rank ``B`` only. Accelerated proximal steps in the
metric's diagonal, with the momentum that the known spectrum of ``B`` asks for, started at ``x``.
Without norms in the penalty the answer is closed.

Only groups that violate their condition by a fair share of the largest violation take part: after
edges were added those are the new edges and, as they settle, what lies around them; elsewhere
they are nearly all groups but those at zero that stay there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.types import Floats
from edgegraft.kernels.solver.products import dot
from edgegraft.objective.penalty import Groups
from edgegraft.optimize.metric import Metric, Model

#: A step is good enough when its own residual has fallen to this share.
ACCURACY = 0.3
#: Share of the largest violation from which a group takes part in a step.
WORTHWHILE = 0.03
#: Inner iterations.
MOST = 200


def solve_step(
    x: Floats, slope: Floats, violation: Floats, metric: Metric, groups: Groups
) -> Floats:
    """Return the minimum of the model at `x`, where it is worth the work to know it.

    Parameters
    ----------
    x, slope : array, shape (n_parameters,)
        The point and the gradient of the whole smooth part.
    violation : array, shape (n_groups,)
        How far each group is from stationary.
    metric : Metric
    groups : Groups
        Without a ridge: it belongs to the smooth part.
    """
    if not groups.strength.any():
        return x - metric.solve(slope)
    taking_part = violation >= WORTHWHILE * violation.max()
    sizes = np.diff(groups.offsets)
    if sizes[taking_part].sum() > 0.8 * len(x):
        return _accelerate(x, slope, metric.model(), groups)
    chosen = np.flatnonzero(np.repeat(taking_part, sizes))
    offsets = np.concatenate(([0], np.cumsum(sizes[taking_part])))
    some = Groups(offsets, groups.strength[taking_part], groups.ridge[taking_part])
    target = x.copy()
    target[chosen] = _accelerate(x[chosen], slope[chosen], metric.model(chosen), some)
    return target


def _accelerate(x: Floats, slope: Floats, model: Model, groups: Groups) -> NDArray[np.float64]:
    low, high = model.spectrum
    steps = 1.0 / (high * model.diagonal)
    root = np.sqrt(low / high)
    momentum = (1.0 - root) / (1.0 + root)
    z, ahead, first = x, x, 0.0
    for k in range(MOST):
        moved = groups.prox(ahead - steps * (slope + model.times(ahead - x)), steps)
        change = float(np.max(np.abs(moved - ahead) * model.diagonal))
        first = max(first, change)
        # Momentum that points uphill is dropped (O'Donoghue & Candes 2015).
        uphill = float(dot((ahead - moved) * model.diagonal, moved - z)) > 0.0
        ahead = moved if uphill else moved + momentum * (moved - z)
        z = moved
        # A diagonal model has low == high: its first proximal step is its minimum.
        if low == high or (k and change <= ACCURACY * first):
            break
    return z
