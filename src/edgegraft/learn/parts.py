"""The parts of each strategy: one loop, different reservoirs, rules and penalties.

Best choice keeps a reservoir of as many candidates as there are variables and activates those of
high score that hardly touch; first hit is its special case of a reservoir of one and one test,
and so activates the first edge that violates; exhaustive grafting scores all pairs at every step
and activates the best edge; feature grafting does the same with single parameters under plain l1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.config import Settings
from edgegraft.kernels.search.adjacency import greedy_matching
from edgegraft.search import ActivationRule, BestChoice, Single

_LEAST_TESTS = 32
_TOUCHING, _TOUCHING_RELAXED = 4, 16
_PATIENCE, _PATIENCE_RELAXED = 1.0, 5.0
_HIT_BATCH = 16  # pairs scored together while the first hit is looked for


class Parts(NamedTuple):
    """What the loop is made of."""

    rule: ActivationRule
    capacity: int | None  # of the reservoir
    max_tests: int  # between two activations
    patience: float  # tests an active edge, while few candidates are found
    batch: int  # pairs scored together
    exhaustive: bool  # every pair is scored at every step
    first_hit: bool
    single_features: bool


def choose_parts(settings: Settings, n_variables: int) -> Parts:
    """Return the parts of a strategy for so many variables.

    Examples
    --------
    >>> first = choose_parts(Settings(strategy="first-hit"), 10)
    >>> first == choose_parts(Settings(reservoir_size=1, max_tests=1, selectivity=1.0), 10)
    True
    """
    n_pairs = max(1, n_variables * (n_variables - 1) // 2)
    strategy, size = settings.strategy, settings.reservoir_size
    if strategy != "best-choice" and strategy != "first-hit":
        features = strategy in ("feature", "feature-light")
        return Parts(Single(), None, n_pairs, 0.0, n_pairs, True, False, features)
    capacity = None if size == "unlimited" else size or n_variables
    max_tests = settings.test_limit or max(_LEAST_TESTS, n_variables // 4)
    if strategy == "first-hit" or (capacity == 1 and max_tests == 1):
        return Parts(Single(), 1, 1, 0.0, _HIT_BATCH, False, True, False)
    rule: ActivationRule = BestChoice(settings.selectivity)
    touching = settings.max_touching or (_TOUCHING_RELAXED if settings.relaxed else _TOUCHING)
    if touching > 1 and settings.selectivity < 1:
        rule = Rounds(BestChoice(settings.selectivity), touching)
    patience = 0.0
    if settings.test_limit is None:
        patience = _PATIENCE_RELAXED if settings.relaxed else _PATIENCE
    return Parts(rule, capacity, max_tests, patience, max_tests, False, False, False)


@dataclass(frozen=True)
class Rounds:
    """Best choice, several times over what is left: a variable gets up to one edge a round.

    Non-touching edges alone give a hub one edge an activation, and a graph as many activations as
    its largest hub has edges.

    Parameters
    ----------
    rule : BestChoice
    n_rounds : int

    Examples
    --------
    >>> rule = Rounds(BestChoice(0.0), 2)
    >>> rule.select([(0, 1), (1, 2), (2, 3), (4, 5)], [3.0, 2.9, 2.8, 1.0])
    array([0, 2, 1])
    """

    rule: BestChoice
    n_rounds: int

    def select(self, edges: ArrayLike, scores: ArrayLike) -> NDArray[np.int64]:
        """Return the indices to activate, round by round, best first."""
        pairs, values = np.asarray(edges, np.int64).reshape(-1, 2), np.asarray(scores, np.float64)
        if not len(pairs):
            return np.empty(0, np.int64)
        considered = np.flatnonzero(values >= self.rule.threshold(values))
        # Ties go to the smaller pair, as in a single round.
        left = considered[
            np.lexsort((pairs[considered, 1], pairs[considered, 0], -values[considered]))
        ]
        found = []
        for _ in range(self.n_rounds):
            out, used = np.empty(len(left), np.int64), np.zeros(int(pairs.max()) + 1, bool)
            found.append(out[: greedy_matching(pairs, left, used, out)])
            left = left[~np.isin(left, found[-1])]
        return np.concatenate(found)
