"""How a search treats its penalty: relaxed or penalised.

The loop is one for all searches; every difference between them is a member of a :class:`Policy`,
and which policy a search has is decided by :func:`choose_policy` alone.

- :class:`Relaxed` uses the penalty as the threshold of the activation test and fits the active
  edges with the ridge. Nothing is shrunk, so nothing returns to zero; what should not have entered
  is for the tests of edges to find, so activations may be bold.
- A plain :class:`Policy` fits with the penalty, as the paper does.

A :class:`SearchStrategy` is what the strategy amounts to: best choice keeps a reservoir of as many
candidates as there are variables and activates those of high score that hardly touch; first hit is
its special case of a reservoir of one and one test; exhaustive grafting scores all pairs at every
step and activates the best.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from edgegraft.config import Settings
from edgegraft.core.types import Edges, Integers
from edgegraft.grafting import ActivationRule, BestChoice, Reservoir
from edgegraft.objective.penalty import Penalty
from edgegraft.rank.ranking import Ranking

if TYPE_CHECKING:
    from edgegraft.grafting.state import SearchState

FINAL_ITERATIONS = 500
_MIN_TESTS = 32
_HIT_BATCH = 16  # pairs scored together until the first hit
_SLACK = 1.1  # in tolerances of the solver: rounding must not let it leave a chosen edge at zero
_WORTH_A_FIT = 0.05  # candidates per active edge


class SearchStrategy(NamedTuple):
    """How candidates are tested, and which of them are activated."""

    rule: ActivationRule
    capacity: int | None  # of the reservoir; None is unlimited
    max_tests: int  # pairs tested between two activations
    patience: float  # tests per active edge while few candidates are found; 0 stops at `max_tests`
    batch: int  # pairs scored together
    exhaustive: bool = False  # whether every pair is scored at every step
    #: whether what follows the first violating pair of a batch is returned unseen
    first_hit: bool = False
    listed: bool = False  # whether only queued pairs are candidates


@dataclass(frozen=True)
class Policy:
    """What differs between searches; of itself, one whose fits have the penalty."""

    strategy: SearchStrategy
    iterations: int  #: of the solver after an activation
    slack: float  #: largest violation of optimality that counts as none
    drops_zeros: bool  #: whether edges that the fit sets to zero leave the graph

    #: whether the fits have the penalty: strengths are then those of a refit
    shrinks: ClassVar[bool] = True
    tests_per_edge: ClassVar[float] = 0.0  #: at least, before the next fit

    def fit_penalty(self, penalty: Penalty) -> Penalty:
        """Return the penalty that active edges are fitted with."""
        return penalty

    def first_pairs(self, ranking: Ranking) -> tuple[Edges, int]:
        """Return the ranked pairs in the order of testing; how many the first step activates."""
        return ranking.edges, 0

    def enough(self, n_tests: int, n_waiting: int, n_edges: int, *, all_scored: bool) -> bool:
        """Return whether to fit rather than look for more candidates.

        A fit passes over all edges several times: not for a handful of new ones, as long as
        looking for more is cheaper, or costs nothing because all pairs are scored together.
        """
        patience = self.strategy.patience
        if not patience:
            return True
        if n_tests < self.tests_per_edge * n_edges:
            return False
        tired = n_tests >= patience * n_edges and not all_scored
        return n_waiting >= _WORTH_A_FIT * n_edges or tired

    def choose(self, waiting: Reservoir, n_edges: int) -> Integers:
        """Return which of the waiting candidates to activate, best first."""
        return self.strategy.rule.select(waiting.edges, waiting.scores)

    def activate(self, state: SearchState) -> bool:
        """Move the chosen candidates into the graph; return whether there were any."""
        chosen = self.choose(state.reservoir, len(state.graph))[: state.room]
        if not len(chosen):
            return False
        state.graph.add(state.reservoir.take(chosen).edges)
        state.n_activations += 1
        return True


@dataclass(frozen=True)
class Relaxed(Policy):
    """The penalty is a threshold; fits have the ridge alone.

    With `bulk` the first step takes all significant pairs of the ranking, and the last ones take a
    handful whole: a fit for each would cost more than the edges that a choice keeps out.
    """

    bulk: bool = True

    shrinks: ClassVar[bool] = False
    tests_per_edge: ClassVar[float] = 0.5

    def fit_penalty(self, penalty: Penalty) -> Penalty:
        """Return the ridge alone."""
        return replace(penalty, penalty=0.0)

    def first_pairs(self, ranking: Ranking) -> tuple[Edges, int]:
        """Return the significant pairs first.

        A ranking conditions on all variables at once, so pairs that touch can all be significant.
        """
        if not self.bulk:
            return super().first_pairs(ranking)
        order = np.argsort(~ranking.significant, kind="stable")
        return ranking.edges[order], int(ranking.significant.sum())

    def choose(self, waiting: Reservoir, n_edges: int) -> Integers:
        """Return a handful whole, otherwise what the rule selects."""
        if self.bulk and len(waiting) <= _WORTH_A_FIT * n_edges:
            return np.argsort(-waiting.scores, kind="stable")
        return super().choose(waiting, n_edges)


def choose_policy(settings: Settings, n_variables: int) -> Policy:
    """Return the policy that settings ask for, with this many variables.

    >>> first = choose_policy(Settings(strategy="first-hit"), 10)
    >>> small = Settings(reservoir_size=1, max_tests=1, selectivity=1.0)
    >>> first.strategy == choose_policy(small, 10).strategy
    True
    """
    slack = _SLACK * settings.tol
    best = settings.strategy == "best-choice"
    if settings.relaxed:  # no penalty holds an activated edge at zero, so there is no slack
        strategy = _select(settings, n_variables, touching=16, patience=5.0)
        return Relaxed(strategy, settings.growth_iterations or 5, 0.0, False, bulk=best)
    strategy = _select(settings, n_variables, touching=4, patience=1.0)
    return Policy(strategy, settings.growth_iterations or 2, slack, not settings.keep_zeros)


def _select(settings: Settings, n_variables: int, touching: int, patience: float) -> SearchStrategy:
    """Return the selection of whole edges; `touching` and `patience` unless settings differ."""
    if settings.strategy == "exhaustive":
        return _exhaustive(n_variables)
    size = settings.reservoir_size
    capacity = None if size == "unlimited" else size or n_variables
    max_tests = settings.max_tests or max(_MIN_TESTS, n_variables // 4)
    if settings.strategy == "first-hit" or (capacity == 1 and max_tests == 1):
        return SearchStrategy(BestChoice(1.0), 1, 1, 0.0, _HIT_BATCH, first_hit=True)
    rule = BestChoice(settings.selectivity, settings.max_touching or touching)
    patience = 0.0 if settings.max_tests else patience
    return SearchStrategy(rule, capacity, max_tests, patience, max_tests)


def _exhaustive(n_variables: int) -> SearchStrategy:
    n_pairs = max(1, n_variables * (n_variables - 1) // 2)
    return SearchStrategy(BestChoice(1.0), None, n_pairs, 0.0, n_pairs, exhaustive=True)
