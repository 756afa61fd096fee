"""Tail probabilities of the number of rows in which two rare states meet.

That number is far from normal. Of 20,000 rows with 25 and 211 in two states, a quarter of a row is
expected to have both, and three or more have both with probability .002; by the variance at the
fit the p-value would be 7e-6. The score of a cell, beside the other parameters of a conditional, is
a sum over the rows of independent terms, each with one value per state of the target:

    u = sum_r t_r[x_r],     K(z) = sum_r log E exp(z t_r),     E t_r = 0     if the table is zero

Its tail is the saddlepoint approximation of Lugannani and Rice (1980) with the correction of
Daniels (1987) for whole numbers, and at most Chernoff's bound ``exp(K(z) - z u)``. For two columns
without neighbours it is a tail of Fisher's exact test to within a tenth; it is up to three times
too large when the rows of a state are nearly used up.

The scores of both ends of two-state columns are added: given the other columns, the ends are
independent if the table is zero, and a row has one term per pair of states. Of larger tables the
cell that deviates most is tested in one conditional, with a Bonferroni correction for their number.
"""

from __future__ import annotations

import numpy as np
from scipy.special import chdtri, ndtr, xlogy

from edgegraft.core.types import Floats, Integers
from edgegraft.learn.conditional import Conditional, Conditionals
from edgegraft.learn.effective_score import Ends, Verdict, simpler

_MAX_EXPONENT = 60.0  # of the term of one row
_STEPS, _TOL = 50, 1e-9
_MIN_ROOT = 1e-3  # below it the approximation divides rounding by rounding
_GRID = 65  # scores whose p-values are worked out for replicates
_TINY = float(np.finfo(float).tiny)


class CellTail:
    """The score of a cell of a table, and its distribution if the table is zero.

    Parameters
    ----------
    p, terms : array of float, shape (rows, states)
        Of every used row, the probabilities of its states, and what they add to the score.
    shown : array of float, shape (rows,)
        What the rows add to it.
    used, weights : array, shape (rows,)
        Which rows of the table these are, and their weights.
    n_cells : int
        Cells among which this one is the strangest.
    whole : float
        What one row more in the cell adds to the score.
    sampling : bool
        Whether weights are not numbers of equal rows.
    """

    def __init__(
        self,
        p: Floats,
        terms: Floats,
        shown: Floats,
        used: Integers,
        weights: Floats,
        *,
        n_cells: int,
        whole: float,
        sampling: bool,
    ) -> None:
        self._p, self._terms, self._times = p, terms, weights
        if sampling:
            self._terms, self._times = terms * weights[:, None], np.ones(len(used))
        self._shown, self._used, self._n_cells, self._whole = shown, used, n_cells, whole
        self.score = float(weights @ shown)

    def judge(self) -> Verdict:
        """Return the verdict of the score, with the statistic of one degree of freedom."""
        p = self.p_value(self.score)
        return Verdict(float(chdtri(1, p)), 1, p, p, np.nan)

    def p_value(self, score: float) -> float:
        """Return twice the probability of a score as far from zero in its direction."""
        if score == 0.0:
            return 1.0
        z, exponent, curvature = self._saddlepoint(abs(score), np.sign(score) * self._terms)
        root = np.sqrt(-2.0 * exponent)
        step = -np.expm1(-z * self._whole) / self._whole * np.sqrt(curvature)
        bound = found = float(np.exp(exponent))
        if min(root, step) > _MIN_ROOT:
            found = ndtr(-root) + bound / np.sqrt(2.0 * np.pi) * (1.0 / step - 1.0 / root)
        return float(np.clip(2.0 * self._n_cells * np.clip(found, 0.0, bound), _TINY, 1.0))

    def replicated(self, weights: Floats) -> Floats:
        """Return the p-values that other samples would have, one per row of weights.

        As in :meth:`~edgegraft.learn.effective_score.Directions.again`; p-values between some
        scores are interpolated.
        """
        statistic = max(float(chdtri(1, self.p_value(self.score))), _TINY)
        left = np.sqrt(max(statistic - 1.0, 0.0) / statistic)
        scores = weights[:, self._used] @ self._shown - (1.0 - left) * self.score
        grid = np.linspace(scores.min(), scores.max(), _GRID)
        known = np.log([self.p_value(float(score)) for score in grid])
        return np.asarray(np.exp(np.interp(scores, grid, known)))

    def _saddlepoint(self, u: float, terms: Floats) -> tuple[float, float, float]:
        """Return ``z`` with ``K'(z) = u``, or the largest in use; ``K - z u`` and ``K''`` there."""
        low, high = 0.0, _MAX_EXPONENT / max(float(np.abs(terms).max(initial=0.0)), _TINY)
        z = min(1.0, high / 2)
        for _ in range(_STEPS):
            value, slope, curvature = self._cumulants(z, terms)
            short = np.log(u / max(slope, _TINY))
            low, high = (z, high) if short > 0 else (low, z)
            if abs(short) < _TOL or high - low < _TOL * high:
                break
            # Newton's step for the logarithm of the slope: exact for a Poisson variable.
            ahead = z + short * slope / max(curvature, _TINY)
            z = ahead if low < ahead < high else (low + high) / 2
        return z, min(value - z * u, 0.0), curvature

    def _cumulants(self, z: float, terms: Floats) -> tuple[float, float, float]:
        """Return ``K`` and its first two derivatives."""
        raised = self._p * np.expm1(z * terms)
        total = 1.0 + raised.sum(axis=1)
        tilted = (self._p + raised) / total[:, None]
        first = (tilted * terms).sum(axis=1)
        second = (tilted * np.square(terms)).sum(axis=1) - np.square(first)
        value, slope, curvature = (self._times @ each for each in (np.log(total), first, second))
        return float(value), float(slope), float(curvature)


def tail_at_zero(ends: Ends, rows: Conditionals) -> CellTail:
    """Return the tail of a sparse edge, given as the usable conditionals of its ends."""
    (node, other), *_ = ends
    if len(ends) == 2 and rows.rarity.are_single(node.target, other) and not rows.known.size:
        return _of_both(ends, rows)
    ((node, other),) = simpler(ends)
    return _of_one(rows.without(node, other), other, rows)


def _of_both(ends: Ends, rows: Conditionals) -> CellTail:
    """Return the tail by the conditionals of two-state columns."""
    used = np.flatnonzero(rows.weights > 0)
    residual, expected, slope = np.zeros((3, 2, len(used)))
    correction, slopes = 0.0, []
    for k, (node, other) in enumerate(ends):
        node = rows.without(node, other)
        shown, p = rows.expect(node)
        residual[k], expected[k] = shown[used, 0], p[used, 0]
        base, added = rows.terms(node, other, (0, 0), used)
        slope[k] = base[:, 0]
        slopes.append(float(added[0, 0]))
        correction += node.correction / 2
    state = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    chance = np.where(state.T[:, None] == 1, expected[:, :, None], 1.0 - expected[:, :, None])
    left = state.T[:, None] - expected[:, :, None]
    steep = slope[:, :, None] + np.array(slopes)[:, None, None] * state.T[::-1, None]
    seen = expected + residual
    shown = (residual * (slope + np.array(slopes)[:, None] * seen[::-1])).sum(axis=0)
    return CellTail(
        chance.prod(axis=0),
        (left * steep).sum(axis=0),
        shown / np.sqrt(correction),
        used,
        rows.weights[used],
        n_cells=1,
        whole=sum(slopes),
        sampling=rows.sampling,
    )


def _of_one(node: Conditional, other: int, rows: Conditionals) -> CellTail:
    """Return the tail of the strangest cell, by the conditional of one end."""
    weights = node.weights * rows.known[other] if rows.completed else node.weights
    used = np.flatnonzero(weights > 0)
    weights, place = weights[used], rows.place_of(other)[used]
    shown, p = (part[used] for part in rows.expect(node))
    base, added = rows.terms(node, other, _strangest_cell(weights, shown, p, place), used)
    place = rows.seen_place_of(other)[used]
    slope = base + np.concatenate((added, np.zeros((1, added.shape[1]))))[place]
    mean = (p * slope).sum(axis=1, keepdims=True)
    return CellTail(
        np.concatenate((p, 1.0 - p.sum(axis=1, keepdims=True)), axis=1),
        np.concatenate((slope - mean, -mean), axis=1),
        (shown * slope).sum(axis=1) / np.sqrt(node.correction),
        used,
        weights,
        n_cells=int(rows.sizes[node.target] * rows.sizes[other]),
        whole=1.0,
        sampling=rows.sampling,
    )


def _strangest_cell(weights: Floats, shown: Floats, p: Floats, place: Integers) -> tuple[int, int]:
    """Return the cell of the largest deviance, by the state of the other end and the own one."""
    at, n = place >= 0, int(place.max(initial=0)) + 1
    expected, over = (
        np.stack([np.bincount(place[at], weights[at] * part[at], n) for part in values.T], axis=1)
        for values in (p, shown)
    )
    observed = np.maximum(expected + over, 0.0)
    deviance = xlogy(observed, observed / np.maximum(expected, _TINY)) - over
    state, own = np.unravel_index(int(deviance.argmax()), deviance.shape)
    return int(state), int(own)
