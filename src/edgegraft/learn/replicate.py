"""One bootstrap replicate: rows drawn again, the search taken up from the fit, its graph refitted.

The rows are not copied: a replicate is the same table with other row weights, the number of times
that each row was drawn. So drawn, a replicate holds the chance of the sample and, once more, the
chance of the draw: its noise has twice the variance, and its rows are worth half as many (the
effective number of rows of Kish, ``(sum w)^2 / sum w^2``). Judged as if it were a sample of its
own, it would take that noise for signal: with tables of 25 degrees of freedom nearly every pair of
independent columns would pass. All rules are therefore those of the fit for half its rows:

- the threshold of the activation test, and the penalty of a penalised fit, grow by ``sqrt(2)``;
- the chi-squared statistics of edges are halved (:mod:`~edgegraft.learn.replicate_tests`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.pairs import pair_ids, pairs_of_ids
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.counts import PairCounts
from edgegraft.kernels.solver.gauge import strengths
from edgegraft.kernels.solver.penalty import group_norms
from edgegraft.learn.state import SearchState
from edgegraft.model import PairwiseMRF
from edgegraft.objective.likelihood import Likelihood
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import Penalty
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.optimize.solver import Solution, Stopping, minimize
from edgegraft.table import PackedTable
from edgegraft.table.blocks import TableRows

INFLATION = 2.0
"""Variance of a replicate's noise about the truth, in those of the sample."""

_NEAR = 0.5  # of the fit's threshold: pairs that came less far are not looked at again
_BLOCK = 4096  # pairs scored together
_ROUNDS = 20  # of activations: each has a fit, so their number is bounded
# Tolerances in standard deviations of a gradient, 1 / sqrt(rows): what is left undone is then far
# below the noise of the draw. On 25 items of 6 states strengths are within .05 of their standard
# deviations; one step from the fit would leave them .2 short on average, and up to 1.
_REFIT_TOL, _SEARCH_TOL, _BASE_TOL = 0.05, 0.15, 0.005
_SLACK = 1.1  # of the tolerance, as in the search itself
_LEAST_TOL = 1e-5  # where single precision begins to show
_MOST_ITERATIONS = 200


class Replicate(NamedTuple):
    """What one replicate says.

    Attributes
    ----------
    active : array of bool
        Which edges of `Replicator.pairs` its search ended with.
    strengths : array of float
        Of the kept edges, refitted with the ridge.
    moved : array of float
        Norms, in zero-sum gauge, of the differences of their tables from the fit's.
    """

    active: Mask
    strengths: Floats
    moved: Floats


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
    """Makes replicates of a fit.

    Parameters
    ----------
    growth : SearchState
        The finished search.
    kept : PairwiseMRF
        The model whose edges are refitted on every replicate.
    table : PackedTable
        The rows of the fit.
    draws : Draws
    ridge : float, optional
        Of the refits; the search's by default.

    Attributes
    ----------
    pairs : array of int, shape (m, 2)
        Edges of the search, then the other pairs that came near enough to be looked at again.
    strengths : array of float
        Of the kept edges, fitted to all rows more closely than replicates are.
    """

    def __init__(
        self,
        growth: SearchState,
        kept: PairwiseMRF,
        table: PackedTable,
        draws: Draws,
        ridge: float | None = None,
    ) -> None:
        self._growth, self._table, self._draws = growth, table, draws
        self._rows = TableRows(table, draws.base)
        rule = growth.penalty
        weight = rule.ridge if ridge is None else ridge
        self._ridge = Penalty(0.0, weight, penalize_nodes=rule.penalize_nodes)
        self._rule = replace(rule, penalty=float(np.sqrt(INFLATION)) * rule.penalty)
        self._layout = kept.layout
        self._theta = kept.theta
        self._theta = self._refit(self._objective(draws.base), _BASE_TOL)
        self.strengths = self._norms(self._theta)
        self.pairs = np.concatenate((growth.graph.layout.edges, _near_misses(growth)))

    def make(self, k: int) -> Replicate:
        """Return the `k`-th replicate."""
        loss = self._objective(self._draws.weights(k))
        theta = self._refit(loss, _REFIT_TOL)
        return Replicate(self._search(loss), self._norms(theta), self._norms(theta - self._theta))

    def _objective(self, weights: Floats) -> Objective:
        given = self._growth.solution.objective
        if isinstance(given, Likelihood):
            return Likelihood(PairCounts(self._table, 1, weights), given.engine)
        return Pseudolikelihood(self._rows.reweighted(weights, n_jobs=1), precision="single")

    def _refit(self, loss: Objective, tol: float) -> Floats:
        stopping = self._stopping(tol)
        return minimize(loss, self._ridge, self._layout, self._theta, stopping, quiet=True).theta

    def _search(self, loss: Objective) -> Mask:
        """Return which pairs are active at the end of a search that starts from the fit.

        A relaxed search activates the best of what violates, as the fit did, and drops nothing.
        The end of a penalised one does not depend on the way: all that violates enters at once.
        """
        growth, stopping = self._growth, self._stopping(_SEARCH_TOL)
        relaxed, most = not growth.policy.shrinks, growth.settings.max_edges
        fitted = growth.policy.fit_penalty(self._rule, growth.allowed)
        active = np.arange(len(self.pairs)) < len(growth.graph)
        layout, start = growth.graph.layout, growth.theta()
        for _ in range(_ROUNDS):
            found = minimize(loss, fitted, layout, start, stopping, quiet=True)
            if not relaxed:
                nonzero = layout.edges[_group_norms(found) > 0]
                active = _contains(nonzero, self.pairs, layout.n_variables)
            entering = self._entering(found, np.flatnonzero(~active), stopping.tol)
            if most is not None:
                entering = entering[: max(0, most - int(active.sum()))]
            if not len(entering):
                break
            active[entering] = True
            layout = Layout(layout.states, self.pairs[active])
            start = layout.carry(found.theta, found.layout)
        return active

    def _entering(self, found: Solution, waiting: Integers, tol: float) -> Integers:
        """Return those of the waiting pairs that violate optimality and are activated."""
        edges = self.pairs[waiting]
        if not len(edges):
            return waiting
        relaxed = not self._growth.policy.shrinks
        scores, weights = _scores(found, self._rule, edges)
        slack = 0.0 if relaxed else _SLACK * tol
        violating = np.flatnonzero((scores - self._rule.penalty) * weights > slack)
        if relaxed:
            rule = self._growth.policy.strategy.rule
            violating = violating[rule.select(edges[violating], scores[violating])]
        return waiting[violating]

    def _stopping(self, share: float) -> Stopping:
        return Stopping(max(_LEAST_TOL, share / np.sqrt(self._rows.weight)), _MOST_ITERATIONS)

    def _norms(self, theta: Floats) -> Floats:
        """Return the zero-sum-gauge norms of the kept edges' tables."""
        layout, out = self._layout, np.empty(self._layout.n_edges)
        every = np.ones(int(layout.node_offset[-1]), bool)
        strengths(
            theta, layout.states, layout.edges, layout.node_offset, layout.edge_offset, every, out
        )
        return out


def _near_misses(growth: SearchState) -> Edges:
    """Return the pairs, tested and left out by the fit, that came near to violating optimality."""
    n = len(growth.objective.schema)
    pairs = pairs_of_ids(growth.tested.ids(), n)
    pairs = pairs[~growth.graph.contains(pairs)]
    near = [np.empty((0, 2), np.int64)]
    for first in range(0, len(pairs), _BLOCK):
        block = pairs[first : first + _BLOCK]
        scores, _ = _scores(growth.solution, growth.penalty, block)
        near.append(block[scores > _NEAR * growth.penalty.penalty])
    return np.concatenate(near)


def _scores(found: Solution, rule: Penalty, edges: Edges) -> tuple[Floats, Floats]:
    """Return the activation scores of pairs and their weights."""
    tables = found.objective.edge_gradients(found.theta, found.state, edges)
    return rule.score(tables), rule.edge_weights(edges, np.diff(tables.offsets))


def _group_norms(found: Solution) -> Floats:
    out = np.empty(found.layout.n_edges)
    group_norms(found.theta, found.layout.edge_offset, out)
    return out


def _contains(edges: Edges, pairs: Edges, n: int) -> Mask:
    """Tell which pairs are among the edges."""
    return np.isin(pair_ids(pairs, n), pair_ids(edges, n))
