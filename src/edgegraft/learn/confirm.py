"""From the pairs that a search found to a network: what fails its test is dismissed.

    dismiss beside a tree -> dismiss -> admit again -> look outside -> ask both ends -> bridge

All pairs that the search has admitted are judged beside each other, with a spanning tree of the
strongest dependences spared until the others are judged. What was dropped beside edges that have
gone since is asked again. The fit of the kept edges scores all other pairs, and what violates
optimality is asked too. At last a tree edge whose ends the network leaves apart is judged by its
marginal dependence.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from edgegraft.conditional.admission import admit, bridge, dismiss
from edgegraft.conditional.judge import UNTESTABLE, Judge, Network, Pair, Verdict, Verdicts
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.core import Layout
from edgegraft.core.pairs import all_pairs, find_pairs
from edgegraft.core.types import Edges, Mask
from edgegraft.counts import PairCounts
from edgegraft.grafting import steps
from edgegraft.grafting.events import StopReason
from edgegraft.grafting.problem import ALL_PAIRS, ridge_of
from edgegraft.grafting.state import SearchState
from edgegraft.learn.certificate import MAX_PAIRS
from edgegraft.learn.copies import Copies, find_copies
from edgegraft.learn.cut import Cut, q_values
from edgegraft.learn.edge_tests import EdgeTests, judge_edges
from edgegraft.learn.last_fits import refit
from edgegraft.learn.reweigh import reweighed
from edgegraft.learn.stages import Stages
from edgegraft.model import PairwiseMRF
from edgegraft.optimize.solver import Solution, Stopping, minimize
from edgegraft.rank.correlations import Correlations
from edgegraft.rank.structure import spanning_tree
from edgegraft.table.blocks import TableRows

_COMPLETE = StopReason.OPTIMAL, StopReason.GIVEN_UP
_MAX_LOOKS = 3  # at pairs outside of the network; a budget, two are rarely needed
_FEW = 10  # untestable edges that are not worth a warning
_MANY_UNTESTABLE = 0.1  # share of the edges
_FIT_ROWS = 0.1  # weight of the ridge of the kept edges' fit, in rows: as in the judge
_UNFITTED_ROWS, _MIN_TOL = 10.0, 1e-6  # left unfitted at most: what scores of pairs notice
_ITERATIONS = 500


class Confirmation(NamedTuple):
    """The edges of a search after their tests."""

    tests: EdgeTests  # the last test of each pair that was asked
    kept: Mask  # which of them are edges of the network
    untestable: float  # share of them whose test had no information
    copies: Copies
    model: PairwiseMRF  # of the kept edges, with a negligible ridge

    @property
    def doubtful(self) -> bool:
        """Whether tests could not decide about many of the edges."""
        many = self.untestable > _MANY_UNTESTABLE and self.untestable * len(self.kept) >= _FEW
        return many and bool(self.kept.any())


def confirm(search: SearchState, stages: Stages, drawn: Mask | None = None) -> Confirmation:
    """Judge the edges of a search, and return which of them are kept at the level of a plan.

    If missing cells have been `drawn`, the search is over the rows that are filled in so.
    """
    plan, objective, rules = stages.plan, search.objective, search.problem.rules
    # A given threshold holds for every edge, and so does a spent budget.
    widen = plan.penalty == "auto" and search.reason in _COMPLETE
    tree, copies = _tree(stages.sample, widen)
    tree = tree[rules.allows(tree)]
    found = search.graph.layout.edges
    stand_ins = copies.stand_ins(found)
    stand_ins = stand_ins[rules.allows(stand_ins)]
    shown = found[copies.shown(found)]
    rows = stages.filled or stages.sample
    tested = ConditionalRows(
        rows.table, rows.weights, objective.features, **stages.variance, drawn=drawn
    )
    cut = Cut.of(plan, objective.n_rows, rules)
    tables = objective.expand(search.theta(), search.graph.layout)
    fitted = Layout(objective.schema.n_states, found), tables
    judge = Judge(tested, cut.decides, plan.n_jobs, fitted)
    n = len(objective.schema)
    candidates = np.unique(np.concatenate((shown, tree, stand_ins, rules.required)), axis=0)
    network = Network(n, candidates)
    spared = frozenset(_pairs(tree) if not __import__("os").environ.get("NT") else [])
    verdicts: dict[Pair, Verdict] = dict.fromkeys(_pairs(found), UNTESTABLE)
    verdicts |= dismiss(network, judge, cut, spared)
    verdicts |= dismiss(network, judge, cut)
    before = set(network.edges)
    verdicts |= admit(network, _pairs(candidates), judge, cut)
    if network.edges != before:
        verdicts |= dismiss(network, judge, cut)
    solution = _fit(search, network, None)
    for _ in range(_MAX_LOOKS if widen and n * (n - 1) // 2 <= MAX_PAIRS else 0):
        new = _violating(search, solution, copies)
        new = [pair for pair in new if pair not in network.edges]
        before = set(network.edges)
        asked = admit(network, new, judge, cut)
        if network.edges == before:
            break
        verdicts |= {pair: verdict for pair, verdict in asked.items() if pair in network.edges}
        verdicts |= dismiss(network, judge, cut)
        solution = _fit(search, network, solution)
    before = set(network.edges)
    verdicts |= dismiss(network, judge, cut, both_ends=True)
    if network.edges != before:
        solution = _fit(search, network, solution)
    alone = partial(judge.ask, Network(n, np.empty((0, 2), np.int64)))
    bridges = bridge(network, _pairs(tree), alone, cut)
    if bridges:
        verdicts |= bridges
        solution = _fit(search, network, solution)
    layout = solution.layout
    model = PairwiseMRF(objective.schema, layout.edges, objective.expand(solution.theta, layout))
    edges = np.array(list(verdicts), np.int64).reshape(-1, 2)
    steps.adopt(search, edges)
    edges = search.graph.layout.edges
    ordered = [verdicts.get(pair, UNTESTABLE) for pair in _pairs(edges)]
    kept = np.array([pair in network.edges for pair in _pairs(edges)], bool)
    each = Verdicts.of(ordered)
    q_value = q_values(cut.weighted(edges, each.p_value), rules.n_allowed)
    ordinal = objective.features is not None
    untestable = float((each.dof == 0)[kept].mean()) if kept.any() else 0.0
    tests = EdgeTests.of(edges, each, q_value, ordered=ordinal)
    return Confirmation(tests, kept, untestable, copies, model)


def test_all(search: SearchState, stages: Stages) -> Confirmation:
    """Test the edges of a search beside each other, and keep all of them."""
    objective, edges = search.objective, search.graph.layout.edges
    rows = ConditionalRows(
        stages.sample.table, stages.sample.weights, objective.features, **stages.variance
    )
    found = judge_edges(rows, edges, stages.plan.n_jobs)
    q = q_values(found.p_value, search.problem.rules.n_allowed)
    tests = EdgeTests.of(edges, found, q, ordered=objective.features is not None)
    model = search.model()
    if search.policy.shrinks:
        model = refit(search, search.penalty.ridge, watch=search.problem.watch)
    n, kept = len(objective.schema), np.ones(len(edges), bool)
    return Confirmation(tests, kept, 0.0, Copies(np.arange(n)), model)


def _pairs(edges: Edges) -> list[Pair]:
    return [(i, j) for i, j in edges.tolist()]


def _fit(search: SearchState, network: Network, start: Solution | None) -> Solution:
    """Return the fit of the network's edges, with a negligible ridge."""
    objective = search.solution.objective
    ridge = search.penalty.ridge
    if objective.terms == 2:  # messages of a likelihood need the larger ridge
        ridge = min(ridge, ridge_of(_FIT_ROWS, objective.n_rows))
    rule = replace(search.penalty, penalty=0.0, ridge=ridge)
    layout = search.graph.layout
    known = (search.theta(), layout) if start is None else (start.theta, start.layout)
    edges = np.array(sorted(network.edges), np.int64).reshape(-1, 2)
    grown = layout.with_edges(edges)
    tol = min(max(_UNFITTED_ROWS / objective.n_rows, _MIN_TOL), search.settings.tol)
    return minimize(
        objective, rule, grown, grown.carry(*known), Stopping(tol, _ITERATIONS), quiet=True
    )


def _violating(search: SearchState, solution: Solution, copies: Copies) -> list[Pair]:
    """Return the pairs that violate optimality at the fit of a network."""
    objective, layout, rules = search.solution.objective, solution.layout, search.problem.rules
    pairs = all_pairs(layout.n_variables)
    pairs = pairs[find_pairs(pairs, layout.edges, layout.n_variables) < 0]
    pairs = pairs[copies.shown(pairs) & rules.allows(pairs)]
    if not len(pairs):
        return []
    rule = reweighed(search.penalty, objective, solution.theta, layout)
    scores = rule.score(objective.edge_gradients(solution.theta, solution.state, pairs))
    return _pairs(pairs[scores > rule.penalty])


def _tree(rows: TableRows, wanted: bool) -> tuple[Edges, Copies]:
    """Return the spanning forest of significant dependences, and the copies among the columns.

    Neither is looked for if it is not wanted, or if there are too many columns to compare all.
    """
    n = len(rows.schema)
    if not wanted or n * (n - 1) // 2 > ALL_PAIRS:
        return np.empty((0, 2), np.int64), Copies(np.arange(n))
    counts = PairCounts(rows)
    tree = spanning_tree(Correlations(counts))
    copies = find_copies(counts, tree)
    return copies.stand_ins(tree), copies
