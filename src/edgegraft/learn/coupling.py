"""The table that an edge's weights make of two margins, and how it follows both.

    q(a, b) = exp(w(a, b) + x_a + y_b)      with the margins of the two columns

On a tree it is the distribution of the pair; elsewhere it is what the edge alone would make of the
two columns. It depends on neither the gauge of the weights nor on what else a column's neighbours
say, so it is the same beside one neighbour or a hundred.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from edgegraft.core.types import Floats

TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class _Coupling:
    """How the shifts `x` and `y` of a table are found."""

    tolerance: float = 1e-9  # of a margin: far below the noise of any number of rows
    max_steps: int = 200  # a budget; weights of normal size take 4 to 10, of 25 times that 36
    lengths: tuple[float, ...] = (1 / 16, 1 / 4, 1.0)  # of Newton's step
    max_shift: float = 30.0  # of one step in logs, so that none overflows
    regular: float = 1e-12  # added to a diagonal: of copies a direction has no information


_COUPLING = _Coupling()


def couple(weights: Floats, first: Floats, second: Floats) -> Floats:
    """Return the tables of many edges of one shape, given their weights and the margins.

    The shifts `x` maximise a concave function. Each step is a part of Newton's or, where that gains
    less, the proportional fitting of the rows; columns fit exactly.
    """
    rule = _COUPLING
    a, b = np.maximum(first, TINY), np.maximum(second, TINY)

    def value(x: Floats) -> Floats:
        return np.asarray((a * x).sum(1) - (b * logsumexp(weights + x[:, :, None], axis=1)).sum(1))

    x = np.log(a) - logsumexp(weights + np.log(b)[:, None], axis=2)
    eye = np.eye(a.shape[1])
    for _ in range(rule.max_steps):
        z = weights + x[:, :, None]
        p = np.exp(z - logsumexp(z, axis=1, keepdims=True))
        tables = p * b[:, None]
        rows = np.maximum(tables.sum(axis=2), TINY)
        if np.abs(rows - a).max(initial=0.0) <= rule.tolerance:
            break
        bend = (rows + rule.regular)[:, :, None] * eye - tables @ p.transpose(0, 2, 1)
        bend += 1.0  # a shift of all states changes nothing
        step = np.linalg.solve(bend, (a - rows)[:, :, None])[:, :, 0]
        step /= np.maximum(np.abs(step).max(axis=1, keepdims=True) / rule.max_shift, 1.0)
        best = x + np.log(a) - np.log(rows)
        most = value(best)
        for length in rule.lengths:
            there = x + length * step
            gain = value(there)
            better = gain >= most
            best = np.where(better[:, None], there, best)
            most = np.where(better, gain, most)
        x = best
    return np.asarray(tables)


class Slopes(NamedTuple):
    """Derivatives of a number of each table by the weights and by the two margins."""

    weights: Floats
    first: Floats
    second: Floats


def slopes_of(tables: Floats, by_table: Floats) -> Slopes:
    """Return the derivatives of numbers of tables, given those by the cells of the table.

    They are the solution of the adjoint of ``dq = q (dw + dx + dy)`` with the margins' changes.
    """
    s, t = tables.shape[1:]
    margins = np.concatenate((tables.sum(axis=2), tables.sum(axis=1)), axis=1)
    system = (margins + _COUPLING.regular + (margins <= TINY))[:, :, None] * np.eye(s + t)
    system[:, :s, s:] = tables
    system[:, s:, :s] = tables.transpose(0, 2, 1)
    sign = np.repeat([1.0, -1.0], [s, t])
    system += np.outer(sign, sign)  # x and -y may shift together
    cells = by_table * tables
    right = np.concatenate((cells.sum(axis=2), cells.sum(axis=1)), axis=1)
    pull = np.linalg.solve(system, right[:, :, None])[:, :, 0]
    first, second = pull[:, :s], pull[:, s:]
    return Slopes(tables * (by_table - first[:, :, None] - second[:, None]), first, second)
