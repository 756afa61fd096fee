"""How large the effect of an edge is, on the scale of a partial correlation, and its sign."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from edgegraft.core.types import Floats, Integers, Mask

ENOUGH = 0.05  # p-value of the further scores above which the linear ones are enough


class Effects(NamedTuple):
    """Effects of edges.

    Attributes
    ----------
    effect : array of float, shape (m,)
        Of a pair whose ends are ordered or have two states the partial correlation of their linear
        scores; of others, without a sign, the norm of what the table adds, on the same scale.
    low, high : array of float, shape (m,)
        Interval of 95 %.
    signed : array of bool, shape (m,)
        Whether the effect has a sign.
    p_linear, p_rest : array of float, shape (m,)
        P-values of the linear scores, and of the further ones beside them; NaN without such.
    """

    effect: Floats
    low: Floats
    high: Floats
    signed: Mask
    p_linear: Floats
    p_rest: Floats

    @classmethod
    def unknown(cls, m: int) -> Self:
        """Return room for the effects of `m` edges."""
        effect, low, high, p_linear, p_rest = (np.full(m, np.nan) for _ in range(5))
        return cls(effect, low, high, np.zeros(m, bool), p_linear, p_rest)

    def columns(self, at: Integers) -> dict[str, Floats | Mask]:
        """Return what tables and files keep of some edges, by name."""
        linear = ~(self.p_rest <= ENOUGH)
        sure = self.signed & ~((self.low <= 0) & (self.high >= 0))
        return {
            "effect": self.effect[at],
            "effect_low": self.low[at],
            "effect_high": self.high[at],
            "sign": np.where(sure, np.sign(self.effect), 0.0)[at],
            "p_linear": self.p_linear[at],
            "p_rest": self.p_rest[at],
            "linear_is_enough": linear[at],
        }
