"""The numbers that states of a column stand for, how they are spread within a level, and scores.

A level of a numeric column is an interval of which the data's mean is known. Within it numbers are
taken to have the density ``exp(rate x)`` that has this mean: the one of largest entropy, uniform if
the mean is in the middle, falling in the level of a long tail. A state whose label is a number is
an interval of one point. Whole numbers are rounded, within their level.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from edgegraft.core.types import Floats
from edgegraft.table.schema import Kind, Variable

_MAX_RATE = 700.0  # beyond which exp overflows
_BISECTIONS = 60
_FRACTIONS = ("double", "float", "half", "decimal")


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers of one variable.

    Attributes
    ----------
    low, width, mean : array of float, shape (n_states,)
        The interval of each state and the mean of its numbers.
    rate : array of float, shape (n_states,)
        Of the density in the interval, whose width counts as 1.
    whole : bool
        Whether the numbers are whole.
    """

    low: Floats
    width: Floats
    mean: Floats
    rate: Floats
    whole: bool

    @property
    def middle(self) -> NDArray[np.generic]:
        """One number per state, in its level: the mean, rounded if numbers are whole."""
        return self._cells(self.mean, np.arange(len(self.low)))

    def draw(self, states: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.generic]:
        """Return a random number of each state."""
        return self.within(states, rng.random(len(states)))

    def within(self, states: NDArray[np.integer], share: Floats) -> NDArray[np.generic]:
        """Return the number below which a share of the numbers of a state lie, for each state."""
        rate = self.rate[states]
        u = np.where(rate > 0, 1.0 - share, share)
        falling = -np.maximum(np.abs(rate), 1e-9)
        place = np.log1p(u * np.expm1(falling)) / falling
        place = np.where(rate > 0, 1.0 - place, place)
        return self._cells(self.low[states] + place * self.width[states], states)

    def expectation(self, p: Floats) -> Floats:
        """Return the mean under probabilities of the states, along the last axis."""
        return np.asarray(p @ self.mean)

    def quantiles(self, p: Floats, shares: ArrayLike) -> NDArray[np.generic]:
        """Return quantiles under probabilities of the states, one per share in the last axis."""
        wanted = np.atleast_1d(np.asarray(shares, np.float64))
        upto = np.cumsum(p, axis=-1)
        upto = upto / upto[..., -1:]
        states = (upto[..., None, :] < wanted[:, None]).sum(axis=-1).clip(max=len(self.low) - 1)
        below = np.take_along_axis(np.concatenate((0 * upto[..., :1], upto), -1), states, -1)
        own = np.maximum(np.take_along_axis(upto, states, -1) - below, np.finfo(float).tiny)
        inside = np.clip((wanted - below) / own, 0.0, 1.0)
        return self.within(states.ravel(), inside.ravel()).reshape(states.shape)

    def _cells(self, values: Floats, states: NDArray[np.integer]) -> NDArray[np.generic]:
        if not self.whole:
            return np.asarray(values)
        # Half a unit belongs to each side of a whole number.
        low = np.ceil(self.low[states])
        high = np.floor(self.low[states] + self.width[states])
        return np.clip(np.rint(values), low, high).astype(np.int64)


def numbers_of(variable: Variable) -> Numbers | None:
    """Return the numbers of a binned or ordered variable, None if its states are not numbers.

    Codes without an order (a region's) have no numbers.
    """
    if variable.edges is None:
        types = {type(label) for label in variable.categories}
        if variable.kind == "nominal" or not types <= {int, float}:
            return None
        values, nothing = np.array(variable.categories, np.float64), np.zeros(variable.n_states)
        return Numbers(values, nothing, values, nothing, types == {int})
    whole = not variable.dtype.startswith(_FRACTIONS)
    edges = np.array(variable.edges, np.float64)
    low, high = edges[:-1].copy(), edges[1:].copy()
    if whole:  # the last one that is in the level, and half a unit on each side
        high[:-1] = np.ceil(high[:-1]) - 1.0
        low, high = np.ceil(low) - 0.5, np.floor(high) + 0.5
    with np.errstate(over="ignore"):
        width = np.minimum(high - low, np.finfo(np.float64).max)
    mean = low + width / 2 if variable.means is None else np.array(variable.means)
    share = np.divide(mean - low, width, out=np.full(len(width), 0.5), where=width > 0)
    return Numbers(low, width, mean, _rates(share), whole)


def level_means(
    edges: tuple[float, ...], values: Floats, counts: NDArray[np.int64]
) -> tuple[float, ...]:
    """Return the mean of different values, ascending, in each level; its middle if it has none."""
    state = np.searchsorted(np.array(edges[1:-1]), values, side="right")
    n = np.bincount(state, counts, len(edges) - 1)
    scale = max(float(np.abs(values).max(initial=0.0)), 1.0)  # sums of huge numbers overflow
    total = np.bincount(state, counts * (values / scale), len(edges) - 1)
    low, high = np.array(edges[:-1]), np.array(edges[1:])
    mean = np.divide(total, n, out=np.zeros(len(n)), where=n > 0) * scale
    inside = np.append(np.nextafter(high[:-1], low[:-1]), high[-1])  # bins are open on the right
    mean = np.where(n > 0, np.clip(mean, low, inside), low / 2 + high / 2)
    return tuple(mean.tolist())


def _rates(mean: Floats) -> Floats:
    """Return the rates of densities on the interval from 0 to 1 that have these means."""
    low, high = np.full(len(mean), -_MAX_RATE), np.full(len(mean), _MAX_RATE)
    for _ in range(_BISECTIONS):
        rate = (low + high) / 2
        steep = np.where(np.abs(rate) < 1e-4, 1.0, rate)
        found = np.where(
            np.abs(rate) < 1e-4, 0.5 + rate / 12, -1.0 / np.expm1(-steep) - 1.0 / steep
        )
        low, high = np.where(found < mean, rate, low), np.where(found < mean, high, rate)
    return np.asarray((low + high) / 2)


_EDGE = 1e-4  # rank of states beyond all that occur


def scores_of(margin: Floats, n_scores: int, kind: Kind = "ordinal") -> Floats:
    """Return a linear, a quadratic and further scores of states, one column each.

    The linear one is the middle rank, of counts and numbers its normal quantile; each further one
    is the next power of it without what the others are in it. All have mean 0 and variance 1, or
    are zero if the states that occur are too few. Middle ranks predicted held-out rows of surveys
    better than normal quantiles (docs/kinds.md); columns that are nearly Gaussian ask for
    quantiles.
    """
    p = margin / margin.sum()
    linear = np.cumsum(p) - p / 2
    if kind in ("count", "numeric"):
        linear = ndtri(np.clip(linear, _EDGE, 1.0 - _EDGE))
    out = np.zeros((len(p), n_scores))
    for k in range(n_scores):
        raw = (linear - p @ linear) ** (k + 1)
        score = raw - p @ raw
        for earlier in out.T[:k]:
            score = score - (p @ (score * earlier)) * earlier
        spread = np.sqrt(p @ score**2)
        if spread > 1e-9:
            out[:, k] = score / spread
    return out
