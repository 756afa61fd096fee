"""Pairs of columns with states so rare that the normal approximation is doubted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from edgegraft.core.types import Floats, Integers, Mask

_FEW_MEETINGS = 20.0  # expected rows below which the normal approximation is doubted
_MAX_SKEWNESS = 0.07  # of the number of meetings of two-state columns: that of 200 expected rows
_HARDLY_ANY = 2.5  # expected rows below which no direction at zero has enough of them
MARGIN_STEPS, MARGIN_TOL = 20, 1e-6  # of intercepts refitted by scaling
_TINY = float(np.finfo(float).tiny)


class Rarity(NamedTuple):
    """How rare the states of columns are; infinite and without skewness if it does not matter."""

    rarest: Floats  # (n,) rows with the rarest of the observed states
    second: Floats  # (n,) rows with the second most common one
    skewness: Floats  # (n,) of two-state columns; the number of meetings has the product of both
    single: Mask  # (n,) columns of two observed states
    total: float  # weight of all rows

    @classmethod
    def of(cls, margins: Sequence[Floats], total: float, counts: Mask | None = None) -> Self:
        """Return that of columns by the weights of their states; only of those that count."""
        rarest, second = np.full((2, len(margins)), np.inf)
        single = np.zeros(len(margins), bool)
        for i, margin in enumerate(margins):
            if counts is None or counts[i]:
                shown = np.sort(margin[margin > 0])
                rarest[i] = shown.min(initial=np.inf)
                second[i] = shown[-2] if len(shown) > 1 else _TINY
                single[i] = len(shown) == 2
        whole = max(total, 1.0)
        share = np.clip(second / whole, 0.0, 0.5)
        spread = np.sqrt(np.maximum(share * (1.0 - share), _TINY))
        skewness = (1.0 - 2.0 * share) / (spread * np.sqrt(whole))
        return cls(rarest, second, skewness, single, total)

    def are_sparse(self, i: int | Integers, j: int | Integers) -> Mask:
        """Return whether rare states of two columns would meet in few rows by chance.

        The number of meetings of two-state columns, which need not be few, is skewed. Both a step
        from the fit and the score at zero are doubted.
        """
        few = self.rarest[i] * self.rarest[j] < _FEW_MEETINGS * self.total
        skewness = self.skewness[i] * self.skewness[j] * np.sqrt(self.total)
        return np.asarray(few | (self.are_single(i, j) & (skewness > _MAX_SKEWNESS)))

    def are_single(self, i: int | Integers, j: int | Integers) -> Mask:
        """Return whether both of two columns have two states."""
        return np.asarray(self.single[i] & self.single[j])

    def are_few(self, i: int | Integers, j: int | Integers) -> Mask:
        """Return whether no states of two columns but the most common would meet in many rows.

        They are to be tested at zero whatever a step from the fit shows.
        """
        return np.asarray(self.second[i] * self.second[j] < _HARDLY_ANY * self.total)


def intercept_shift(weights: Floats, shown: Floats, p: Floats) -> Floats:
    """Return by how much intercepts have to move for the states to have the shares that they have.

    `p` are the expected states of the rows, without the most common one, and `shown` what the rows
    show beyond it.
    """
    observed, total = weights @ (p + shown), weights.sum()
    common, moved = np.maximum(1.0 - p.sum(axis=1, keepdims=True), 0.0), np.zeros(p.shape[1])
    for _ in range(MARGIN_STEPS):
        scaled = p * np.exp(moved)
        expected = weights @ (scaled / (common + scaled.sum(axis=1, keepdims=True)))
        if np.abs(observed - expected).max(initial=0.0) <= MARGIN_TOL * total:
            break
        moved += _log_ratio(observed, expected)
        moved -= _log_ratio(total - observed.sum(), total - expected.sum())
    return moved


def _log_ratio(observed: Floats, expected: Floats) -> Floats:
    """Return the logarithm of a ratio of rows, of which there is half a one at least."""
    return np.asarray(np.log(np.maximum(observed, 0.5) / np.maximum(expected, 1e-12)))
