"""The size of an edge's weights, to which effects of groups are proportional."""

from __future__ import annotations

import numpy as np

from edgegraft.conditional.conditional import Conditional
from edgegraft.conditional.coordinates import Coordinates
from edgegraft.core.types import Floats

_TINY = float(np.finfo(float).tiny)


class EdgeSizes:
    """Sizes of weights: the norm of their table, cells weighted by the product of the margins.

    Of ordered columns, or of two states, the linear weight counts alone, with its sign. `left` are
    the shares of the columns' variances that the conditionals leave.
    """

    def __init__(self, columns: list[Coordinates], left: Floats) -> None:
        self._columns, self._left = columns, left

    def signed(self, i: int, j: int) -> bool:
        """Return whether an edge has a sign: its ends are ordered or have two states."""
        ends = (self._columns[i], self._columns[j])
        return all(end.own.size and (end.scored or end.own.shape[1] == 1) for end in ends)

    def effect(self, i: int, j: int, weights: Floats) -> float:
        """Return the size of weights, with a sign if the edge has one."""
        slope = self.slope(i, j, weights)
        return float(slope @ weights)

    def slope(self, i: int, j: int, weights: Floats) -> Floats:
        """Return how much the size changes with the weights, at these ones."""
        spreads = [spread_of(self._columns[v]) for v in (i, j)]
        scale = float(np.sqrt(self._left[i] * self._left[j]))
        if self.signed(i, j):
            out = np.zeros(len(weights))
            out[0] = scale * np.sqrt(spreads[0][0, 0] * spreads[1][0, 0])
            for v in (i, j):  # towards later states
                first = self._columns[v].own[:, 0]
                out[0] *= 1.0 if first[-1] >= first[0] else -1.0
            return out
        pull = np.kron(*spreads) @ weights
        return np.asarray(scale * pull / np.sqrt(max(float(weights @ pull), _TINY)))


def spread_of(column: Coordinates) -> Floats:
    """Return the covariance of a column's coordinates."""
    share = column.margin / max(column.margin.sum(), _TINY)
    mean = share @ column.own
    return np.asarray((column.own.T * share) @ column.own - np.outer(mean, mean))


def share_left(given: Conditional) -> float:
    """Return the share of a column's variance, of its linear scores, that a conditional leaves."""
    column = given.rows.columns[given.target]
    first = column.own[:, :1] if column.scored else column.own
    p, counts = given.probabilities(given.fit), given.seen.counts.sum(axis=1)
    left = float(counts @ (p @ first**2 - (p @ first) ** 2).sum(axis=1)) / max(given.weight, _TINY)
    whole = float(np.trace(spread_of(column)[: first.shape[1], : first.shape[1]]))
    return left / whole if whole > 0 else 1.0
