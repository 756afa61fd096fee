"""The parts of each strategy: one loop, different reservoirs, rules and penalties.

Best choice keeps a reservoir of as many candidates as there are variables and activates those of
high score that hardly touch; first hit is its special case of a reservoir of one and one test,
and so activates the first edge that violates; exhaustive grafting scores all pairs at every step
and activates the best edge; feature grafting does the same with single parameters under plain l1.
"""

from __future__ import annotations

from typing import NamedTuple

from edgegraft.config import Settings
from edgegraft.search import ActivationRule, BestChoice

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
        return Parts(BestChoice(1.0), None, n_pairs, 0.0, n_pairs, True, False, features)
    capacity = None if size == "unlimited" else size or n_variables
    max_tests = settings.test_limit or max(_LEAST_TESTS, n_variables // 4)
    if strategy == "first-hit" or (capacity == 1 and max_tests == 1):
        return Parts(BestChoice(1.0), 1, 1, 0.0, _HIT_BATCH, False, True, False)
    touching = settings.max_touching or (_TOUCHING_RELAXED if settings.relaxed else _TOUCHING)
    rule = BestChoice(settings.selectivity, touching)
    patience = 0.0
    if settings.test_limit is None:
        patience = _PATIENCE_RELAXED if settings.relaxed else _PATIENCE
    return Parts(rule, capacity, max_tests, patience, max_tests, False, False, False)
