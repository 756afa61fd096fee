"""The level at which edges are kept: of false discoveries, or of any false edge."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.conditional.judge import Level
from edgegraft.config import Plan
from edgegraft.core.types import Edges, Floats, Mask
from edgegraft.grafting.pair_rules import PairRules

_FAMILYWISE, _FAMILYWISE_ROWS = 0.05, 10.0  # fwer="auto", see Plan


class Cut(NamedTuple):
    """The level at which edges are kept."""

    level: float
    familywise: bool
    rules: PairRules

    @classmethod
    def of(cls, plan: Plan, n_rows: float, rules: PairRules) -> Cut:
        """Return the cut that a plan asks for, of the pairs that rules allow."""
        level = plan.fdr if plan.fwer is None else plan.fwer
        if level == "auto":
            level = min(_FAMILYWISE, _FAMILYWISE_ROWS / n_rows)
        assert level is not None
        return cls(level, plan.fwer is not None, rules)

    def __call__(self, edges: Edges, p_values: Floats, n_others: int) -> Mask:
        """Return which edges are kept by their p-values, beside others that are, or required.

        Edges kept so far count as found: the level of a new one depends on their number.
        """
        if self.familywise:
            kept = self.weighted(edges, p_values) * self.rules.n_allowed <= self.level
        else:
            beside = np.concatenate((self.weighted(edges, p_values), np.zeros(n_others)))
            kept = q_values(beside, self.rules.n_allowed)[: len(p_values)] <= self.level
        return np.asarray(kept | self.rules.is_required(edges))

    def weighted(self, edges: Edges, p_values: Floats) -> Floats:
        """Return p-values divided by the weights of their pairs."""
        return np.minimum(p_values / self.rules.weights(edges), 1.0)

    @property
    def decides(self) -> Level:
        """Where the decisions of a judge lie."""
        return Level(self.level, self.rules.n_allowed, self.familywise)


def q_values(p_values: ArrayLike, n_tests: int) -> Floats:
    """Return the q-values of Benjamini and Hochberg among `n_tests`; further tests have p = 1.

    Examples
    --------
    >>> q_values([0.001, 0.5, 0.02], 10)
    array([0.01, 1.  , 0.1 ])
    """
    p = np.asarray(p_values, np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise ValueError("p-values must be a vector of numbers from 0 to 1")
    if n_tests < len(p):
        raise ValueError(f"there are {len(p)} p-values, more than the {n_tests} tests stated")
    order = np.argsort(p, kind="stable")
    raised = p[order] * n_tests / np.arange(1, len(p) + 1)
    out = np.empty(len(p))
    out[order] = np.minimum.accumulate(np.minimum(raised, 1.0)[::-1])[::-1]
    return out
