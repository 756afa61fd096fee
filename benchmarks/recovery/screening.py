"""Interaction screening and pseudolikelihood of Ising models under an l1 penalty.

RISE, logRISE and RPLE of Lokhov, Vuffray, Misra and Chertkov (Science Advances 2018): for every
column, a convex loss of its products with the others, solved here by Newton steps whose quadratic
models are minimised by coordinate descent.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]
Loss = Literal["RISE", "logRISE", "RPLE"]
CONSTANTS: dict[Loss, float] = {"RISE": 0.4, "logRISE": 0.8, "RPLE": 0.2}
_MAX_STEPS, _TOL = 100, 1e-8


def penalty_of(loss: Loss, n_columns: int, n_rows: float) -> float:
    """Return the authors' penalty: ``c sqrt(log(p^2 / .05) / N)``."""
    return float(CONSTANTS[loss] * np.sqrt(np.log(n_columns**2 / 0.05) / n_rows))


def couplings(spins: Floats, counts: Floats, loss: Loss, penalty: float) -> Floats:
    """Return the couplings of all pairs, the mean of both directions."""
    n = spins.shape[1]
    share, found = counts / counts.sum(), np.zeros((n, n))
    for u in range(n):
        products = spins * spins[:, u : u + 1]
        products[:, u] = spins[:, u]  # the field, which is not penalised
        free = np.arange(n) == u
        theta = minimise(products, share, loss, np.where(free, 0.0, penalty), np.zeros(n))
        theta[u] = 0.0
        found[u] = theta
    return (found + found.T) / 2


def minimise(products: Floats, share: Floats, loss: Loss, penalty: Floats, start: Floats) -> Floats:
    """Minimise one column's loss with an l1 penalty per coordinate."""
    theta = start.copy()
    value, gradient, curvature = _expand(products, share, loss, theta)
    for _ in range(_MAX_STEPS):
        step = _descend(curvature, gradient, penalty, theta) - theta
        if np.abs(step).max() < _TOL:
            break
        whole, scale = value + penalty @ np.abs(theta), 1.0
        slope = gradient @ step + penalty @ (np.abs(theta + step) - np.abs(theta))
        while scale > 1e-10:
            trial = theta + scale * step
            if _value(products, share, loss, trial) + penalty @ np.abs(trial) <= (
                whole + 1e-4 * scale * slope
            ):
                break
            scale /= 2
        theta = theta + scale * step
        value, gradient, curvature = _expand(products, share, loss, theta)
    return theta


def _value(products: Floats, share: Floats, loss: Loss, theta: Floats) -> float:
    field = products @ theta
    if loss == "RPLE":
        return float(share @ np.logaddexp(0.0, -2.0 * field))
    least = float((-field).max())
    if loss == "logRISE":
        return least + float(np.log(share @ np.exp(-field - least)))
    return float(share @ np.exp(-field)) if least < 600 else np.inf


def _expand(
    products: Floats, share: Floats, loss: Loss, theta: Floats
) -> tuple[float, Floats, Floats]:
    """Return the value, the gradient and the second derivatives of a loss."""
    field = products @ theta
    if loss == "RPLE":
        p = expit(-2.0 * field)
        first, second = -2.0 * share * p, 4.0 * share * p * (1.0 - p)
    else:
        shift = float((-field).max()) if loss == "logRISE" else 0.0
        second = share * np.exp(-field - shift)
        if loss == "logRISE":
            second /= second.sum()
        first = -second
    gradient = first @ products
    curvature = (products * second[:, None]).T @ products
    if loss == "logRISE":
        curvature -= np.outer(gradient, gradient)
    return _value(products, share, loss, theta), gradient, curvature


@njit(cache=True)  # type: ignore[untyped-decorator]
def _descend(curvature: Floats, gradient: Floats, penalty: Floats, theta: Floats) -> Floats:
    """Minimise the quadratic model of a loss at `theta`, with the penalty, by coordinates."""
    out, n = theta.copy(), len(theta)
    slope = gradient.copy()
    for _ in range(1000):
        largest = 0.0
        for k in range(n):
            width = curvature[k, k] + 1e-12
            at = out[k] - slope[k] / width
            new = np.sign(at) * max(abs(at) - penalty[k] / width, 0.0)
            move = new - out[k]
            if move != 0.0:
                slope += curvature[:, k] * move
                out[k] = new
                largest = max(largest, abs(move))
        if largest < 1e-10:
            break
    return out
