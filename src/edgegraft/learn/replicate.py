"""One bootstrap replicate: rows drawn again, the search continued from the fit, its graph refitted.

The rows are not copied: a replicate is the same table with other row weights, the number of times
that each row was drawn. So drawn, a replicate holds the chance of the sample and, once more, the
chance of the draw: its noise has twice the variance, and its rows are worth half as many (the
effective number of rows of Kish, ``(sum w)^2 / sum w^2``). Judged as if it were a sample of its
own, it would take that noise for signal: with tables of 25 degrees of freedom nearly every pair of
independent columns would pass. The threshold of its activation test, and the penalty of a penalised
fit, are therefore those for half of the rows: larger by ``sqrt(2)``.

The search of a replicate is the loop itself, on the reweighted loss, over the pairs that came near
enough: a policy of the fit's kind that scores all of them at every step and fits to a tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.config import Settings
from edgegraft.core import Layout
from edgegraft.core.edge_tables import strengths
from edgegraft.core.pairs import pairs_of_ids
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.counts import PairCounts
from edgegraft.grafting import CandidateStream, steps
from edgegraft.grafting.loop import run_search
from edgegraft.grafting.policies import Policy
from edgegraft.grafting.problem import Problem
from edgegraft.grafting.state import SearchState
from edgegraft.model import PairwiseMRF
from edgegraft.objective.featured import Featured, featured
from edgegraft.objective.likelihood import Likelihood
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import Penalty
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.optimize.solver import Stopping, minimize
from edgegraft.table import PackedTable
from edgegraft.table.blocks import TableRows

INFLATION = 2.0
"""Variance of a replicate's noise about the truth, in those of the sample."""

_NEAR = 0.5  # of the fit's threshold: pairs that came less far are not looked at again
_BLOCK = 4096  # pairs scored together
# Tolerances in standard deviations of a gradient, 1 / sqrt(rows): what is left undone is then far
# below the noise of the draw. On 25 items of 6 states strengths are within .05 of their standard
# deviations; one step from the fit would leave them .2 short on average, and up to 1.
_REFIT_TOL, _SEARCH_TOL, _BASE_TOL = 0.05, 0.15, 0.005
_MIN_TOL = 1e-5  # where single precision begins to show
_MAX_ITERATIONS = 200
_BEYOND = 1e300  # a priority after that of any candidate


class Replicate(NamedTuple):
    """The result of one replicate."""

    active: Mask  # which edges of `Replicator.pairs` its search ended with
    strengths: Floats  # of the kept edges, refitted with the ridge
    moved: Floats  # norms, in zero-sum gauge, of the differences of their tables from the fit's


@dataclass(frozen=True)
class Draws:
    """Row weights of replicates: one seed each, so any of them can be drawn at any time.

    ``round(sum of the base weights)`` rows are drawn, each with a chance in proportion to its
    base weight, and weighed so that their sum is that of the base weights. For integers that is
    to draw from the repeated rows.
    """

    base: Floats
    seeds: tuple[np.random.SeedSequence, ...]

    def weights(self, k: int) -> Floats:
        """Return the row weights of the `k`-th replicate."""
        total = float(self.base.sum())
        size = max(1, round(total))
        rng = np.random.default_rng(self.seeds[k])
        return np.asarray(rng.multinomial(size, self.base / total) * (total / size))


class Replicator:
    """Makes replicates of a finished search of the rows of `table`.

    The edges of `kept` are refitted on every replicate with `ridge`, by default the search's.
    `pairs` are the edges of the search, then the other pairs that came near enough to be looked at
    again; `strengths` those of the kept edges, fitted to all rows more closely than replicates are.
    """

    def __init__(
        self,
        search: SearchState,
        kept: PairwiseMRF,
        table: PackedTable,
        draws: Draws,
        ridge: float | None = None,
    ) -> None:
        self._given, self._table, self._draws = search.solution.objective, table, draws
        self._rows = TableRows(table, draws.base)
        rule = search.penalty
        weight = rule.ridge if ridge is None else ridge
        self._ridge = Penalty(0.0, weight, penalize_nodes=rule.penalize_nodes)
        features = self._given.features
        self._layout = self._given.layout(kept.edges)
        self._theta = (
            kept.theta if features is None else features.weights_of(kept.theta, kept.edges)
        )
        self._theta = self._refit(self._objective(draws.base), _BASE_TOL)
        self.strengths = self._norms(self._theta)
        near = _near_misses(search)
        self.pairs = np.concatenate((search.graph.layout.edges, near))
        self._near, self._fit = near, search
        self._rule = replace(rule, penalty=float(np.sqrt(INFLATION)) * rule.penalty)
        tol = self._tol(_SEARCH_TOL)
        self._policy = _replicate_policy(search.policy, tol / search.settings.tol, len(self.pairs))
        budget = search.settings.max_edges
        self._settings = Settings(tol=tol, max_edges=budget, hub_threshold=None)

    def make(self, k: int) -> Replicate:
        """Return the `k`-th replicate."""
        loss = self._objective(self._draws.weights(k))
        theta = self._refit(loss, _REFIT_TOL)
        return Replicate(self._search(loss), self._norms(theta), self._norms(theta - self._theta))

    def _objective(self, weights: Floats) -> Objective:
        given = self._given
        loss: Objective
        inner = given.inner if isinstance(given, Featured) else given
        if isinstance(inner, Likelihood):
            loss = Likelihood(PairCounts(self._table, 1, weights), inner.engine)
        else:
            loss = Pseudolikelihood(self._rows.reweighted(weights, n_jobs=1), precision="single")
        return featured(loss, given.features)

    def _refit(self, loss: Objective, share: float) -> Floats:
        stopping = Stopping(self._tol(share), _MAX_ITERATIONS)
        return minimize(loss, self._ridge, self._layout, self._theta, stopping, quiet=True).theta

    def _search(self, loss: Objective) -> Mask:
        """Return which pairs are active at the end of a search that starts from the fit."""
        problem = Problem(loss, self._rule, self._settings, self._policy, quiet=True)
        fit = self._fit
        state = SearchState.begin(problem, fit.graph.layout.edges, fit.theta(), _MAX_ITERATIONS)
        state.filled, state.n_activations = True, fit.n_activations
        state.stream = CandidateStream(len(loss.schema), default_priority=_BEYOND)
        state.stream.remove(state.graph.layout.edges)
        state.stream.prioritise(self._near, np.zeros(len(self._near)))
        steps.drop_zeros(state)
        return run_search(state).graph.contains(self.pairs)

    def _tol(self, share: float) -> float:
        return float(max(_MIN_TOL, share / np.sqrt(self._rows.weight)))

    def _norms(self, theta: Floats) -> Floats:
        """Return the zero-sum-gauge norms of the kept edges' tables."""
        tables = self._given.expand(theta, self._layout)
        layout = Layout(self._layout.states, self._layout.edges)
        out = np.empty(layout.n_edges)
        every = np.ones(int(layout.node_offset[-1]), bool)
        strengths(
            tables, layout.states, layout.edges, layout.node_offset, layout.edge_offset, every, out
        )
        return out


class AllAtOnce:
    """An activation rule that takes everything.

    The end of a penalised search does not depend on the order of its activations.
    """

    def select(self, edges: ArrayLike, scores: ArrayLike) -> Integers:
        """Return all indices, best first."""
        return np.argsort(-np.asarray(scores, np.float64), kind="stable")


def _replicate_policy(policy: Policy, looser: float, n_pairs: int) -> Policy:
    """Return a policy that scores all candidates at every step, at parameters that are fitted."""
    n = max(1, n_pairs)
    return replace(
        policy,
        rule=AllAtOnce() if policy.shrinks else policy.rule,
        capacity=None,
        max_tests=n,
        patience=0.0,
        batch=n,
        iterations=_MAX_ITERATIONS,
        slack=looser * policy.slack,
        exhaustive=True,
        first_hit=False,
        listed=True,
        bulk=False,
    )


def _near_misses(search: SearchState) -> Edges:
    """Return the pairs, tested and left out by the fit, that came near to violating optimality."""
    pairs = pairs_of_ids(search.tested.with_value(), len(search.objective.schema))
    pairs = pairs[~search.graph.contains(pairs)]
    near = [np.empty((0, 2), np.int64)]
    for first in range(0, len(pairs), _BLOCK):
        block = pairs[first : first + _BLOCK]
        scores = search.penalty.score(search.gradients(block))
        near.append(block[scores > _NEAR * search.penalty.penalty])
    return np.concatenate(near)
