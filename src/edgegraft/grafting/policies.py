"""How a search treats its penalty and its candidates.

The loop is one for all searches; every difference between them is a field of a :class:`Policy`, and
which policy a search has is decided by :func:`choose_policy` alone.

- A *relaxed* search uses the penalty as the threshold of the activation test and fits the active
  edges with the ridge. Nothing is shrunk, so nothing returns to zero; what should not have entered
  is for the tests of edges to find, so activations may be bold.
- Any other fits with the penalty, as the paper does.

Best choice keeps a reservoir of as many candidates as there are variables and activates those of
high score that hardly touch; first hit is its special case of a reservoir of one and one test;
exhaustive grafting scores all pairs at every step and activates the best.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from edgegraft.config import Settings
from edgegraft.core.types import Edges, Integers
from edgegraft.grafting import ActivationRule, BestChoice, Reservoir
from edgegraft.objective.penalty import Penalty
from edgegraft.rank.ranking import Ranking


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

    rule: ActivationRule  #: which candidates are activated
    capacity: int | None  #: of the reservoir; None is unlimited
    max_tests: int  #: pairs tested between two activations
    #: tests per active edge while few candidates are found; 0 stops at `max_tests`
    patience: float
    batch: int  #: pairs scored together
    iterations: int = 2  #: of the solver after an activation
    slack: float = 0.0  #: largest violation of optimality that counts as none
    exhaustive: bool = False  #: whether every pair is scored at every step
    #: whether what follows the first violating pair of a batch is returned unseen
    first_hit: bool = False
    #: whether the fits have the penalty: strengths are then those of a refit
    shrinks: bool = True
    drops_zeros: bool = False  #: whether edges that the fit sets to zero leave the graph
    #: whether the first step takes all significant pairs of a ranking, and the last ones a handful
    #: whole: a fit for each would cost more than the edges that a choice keeps out
    bulk: bool = False

    def fit_penalty(self, penalty: Penalty) -> Penalty:
        """Return the penalty that active edges are fitted with: of a relaxed search, the ridge."""
        return penalty if self.shrinks else replace(penalty, penalty=0.0)

    def first_pairs(self, ranking: Ranking) -> tuple[Edges, int]:
        """Return the ranked pairs in the order of testing; how many the first step activates.

        A ranking conditions on all variables at once, so pairs that touch can all be significant.
        """
        if not self.bulk:
            return ranking.edges, 0
        order = np.argsort(~ranking.significant, kind="stable")
        return ranking.edges[order], int(ranking.significant.sum())

    def enough(self, n_tests: int, n_waiting: int, n_edges: int, *, all_scored: bool) -> bool:
        """Return whether to fit rather than look for more candidates.

        A fit passes over all edges several times: not for a handful of new ones, as long as
        looking for more is cheaper, or costs nothing because all pairs are scored together.
        """
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
    if settings.relaxed:  # no penalty holds an activated edge at zero, so there is no slack
        policy = _choose(settings, n_variables, touching=16, patience=5.0)
        bulk = settings.strategy == "best-choice"
        iterations = settings.growth_iterations or 5
        return replace(policy, iterations=iterations, shrinks=False, bulk=bulk)
    policy = _choose(settings, n_variables, touching=4, patience=1.0)
    return replace(
        policy,
        iterations=settings.growth_iterations or 2,
        slack=_PACE.slack * settings.tol,
        drops_zeros=not settings.keep_zeros,
    )


def _choose(settings: Settings, n_variables: int, touching: int, patience: float) -> Policy:
    """Return how candidates are chosen; `touching` and `patience` unless settings differ."""
    if settings.strategy == "exhaustive":
        n_pairs = max(1, n_variables * (n_variables - 1) // 2)
        return Policy(BestChoice(1.0), None, n_pairs, 0.0, n_pairs, exhaustive=True)
    size = settings.reservoir_size
    capacity = None if size == "unlimited" else size or n_variables
    max_tests = settings.max_tests or max(_PACE.min_tests, n_variables // 4)
    if settings.strategy == "first-hit" or (capacity == 1 and max_tests == 1):
        return Policy(BestChoice(1.0), 1, 1, 0.0, _PACE.hit_batch, first_hit=True)
    rule = BestChoice(settings.selectivity, settings.max_touching or touching)
    patience = 0.0 if settings.max_tests else patience
    return Policy(rule, capacity, max_tests, patience, max_tests)
