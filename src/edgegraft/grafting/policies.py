"""How a search treats its penalty and its candidates.

The loop is one for all searches; every difference between them is a field of a :class:`Policy`, and
which policy a search has is decided by :func:`choose_policy` alone.

- A *relaxed* search uses the penalty as the threshold of the activation test and fits the active
  edges with the ridge. Nothing is shrunk, so nothing returns to zero; what should not have entered
  is for the tests of edges to find, so activations may be bold.
- Any other fits with the penalty, as the paper does.

Best choice keeps a reservoir of as many candidates as there are variables and activates those of
high score that hardly touch. First hit is its special case of a reservoir of one and one test, and
exhaustive grafting that of an unlimited reservoir and a test of all pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from edgegraft.config import Settings
from edgegraft.core.types import Integers
from edgegraft.grafting.reservoir import BestChoice, Reservoir
from edgegraft.objective.penalty import Penalty


@dataclass(frozen=True)
class _Pace:
    """How much is looked at between two fits."""

    min_tests: int = 32  # between two fits of few variables
    hit_batch: int = 16  # scored together until the first hit, the others in vain
    slack: float = 1.1  # tolerances of the solver: rounding must not leave a chosen edge at zero
    worth_a_fit: float = 0.05  # candidates per active edge: a fit passes over all edges
    tests_per_edge: float = 0.5  # at least, before the next fit of a relaxed search


_PACE = _Pace()


@dataclass(frozen=True)
class Policy:
    """What differs between searches."""

    rule: BestChoice  #: which candidates are activated
    capacity: int | None  #: of the reservoir; None is unlimited
    max_tests: int  #: pairs tested between two activations
    #: tests per active edge while few candidates are found; 0 stops at `max_tests`
    patience: float
    shrinks: bool  #: whether the fits have the penalty: strengths are then those of a refit
    iterations: int  #: of the solver after an activation
    slack: float  #: largest violation of optimality that counts as none
    drops_zeros: bool  #: whether edges that the fit sets to zero leave the graph
    #: whether the first step takes all significant pairs of a ranking, and the last ones a handful
    #: whole: a fit for each would cost more than the edges that a choice keeps out
    bulk: bool

    @property
    def first_hit(self) -> bool:
        """Whether what follows the first violating pair of a batch is returned unseen."""
        return self.capacity == 1 and self.max_tests == 1

    @property
    def batch(self) -> int:
        """Pairs scored together."""
        return _PACE.hit_batch if self.first_hit else self.max_tests

    def fit_penalty(self, penalty: Penalty) -> Penalty:
        """Return the penalty that active edges are fitted with: of a relaxed search, the ridge."""
        return penalty if self.shrinks else replace(penalty, penalty=0.0)

    def enough(self, n_tests: int, n_waiting: int, n_edges: int, *, all_scored: bool) -> bool:
        """Return whether to fit rather than look for more candidates.

        A fit passes over all edges several times: not for a handful of new ones, as long as
        looking for more is cheaper, or costs nothing because all pairs are scored together.
        """
        if n_tests < self.max_tests or not n_waiting:
            return False
        if not self.patience:
            return True
        if not self.shrinks and n_tests < _PACE.tests_per_edge * n_edges:
            return False
        tired = n_tests >= self.patience * n_edges and not all_scored
        return n_waiting >= _PACE.worth_a_fit * n_edges or tired

    def choose(self, waiting: Reservoir, n_edges: int) -> Integers:
        """Return which of the waiting candidates to activate, best first."""
        if self.bulk and len(waiting) <= _PACE.worth_a_fit * n_edges:
            return np.argsort(-waiting.scores, kind="stable")
        return self.rule.select(waiting.edges, waiting.scores)


def choose_policy(settings: Settings, n_variables: int) -> Policy:
    """Return the policy that settings ask for, with this many variables.

    >>> first = choose_policy(Settings(strategy="first-hit", relaxed=False), 10)
    >>> small = Settings(reservoir_size=1, max_tests=1, selectivity=1.0, relaxed=False)
    >>> first == choose_policy(small, 10)
    True
    """
    relaxed, size, patience = settings.relaxed, settings.reservoir_size, 0.0
    if settings.strategy == "exhaustive":
        rule, capacity = BestChoice(1.0), None
        max_tests = max(1, n_variables * (n_variables - 1) // 2)
    elif settings.strategy == "first-hit" or (size == 1 and settings.max_tests == 1):
        rule, capacity, max_tests = BestChoice(1.0), 1, 1
    else:
        rule = BestChoice(settings.selectivity, settings.max_touching or (16 if relaxed else 4))
        capacity = None if size == "unlimited" else size or n_variables
        max_tests = settings.max_tests or max(_PACE.min_tests, n_variables // 4)
        if not settings.max_tests:
            patience = 5.0 if relaxed else 1.0
    return Policy(
        rule,
        capacity,
        max_tests,
        patience,
        shrinks=not relaxed,
        iterations=settings.growth_iterations or (5 if relaxed else 2),
        # Without a penalty in the fits nothing holds an activated edge at zero.
        slack=0.0 if relaxed else _PACE.slack * settings.tol,
        drops_zeros=not (relaxed or settings.keep_zeros),
        bulk=relaxed and settings.strategy == "best-choice",
    )
