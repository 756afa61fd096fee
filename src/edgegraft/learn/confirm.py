"""From the pairs that a search found to a network: what fails its test is dismissed.

    dismiss beside a tree -> dismiss -> admit again -> look outside -> bridge

All pairs that the search has admitted are judged beside each other, with a spanning tree of the
strongest dependences spared until the others are judged. What was dropped beside edges that have
gone since is asked again. The fit of the kept edges scores all other pairs, and what violates
optimality is asked too. At last a tree edge whose ends the network leaves apart is judged by its
marginal dependence.

In a cold model columns are nearly settled by their neighbours. If more pairs of such columns nearly
pass than chance explains, the rows hardly tell who is linked, and the tree is one of chance. The
candidates are then the pairs that stand out in a fit of all pairs, dismissed in the order of their
strengths in it. Edges that stand in for such pairs go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Self

import numpy as np

from edgegraft.conditional.admission import admit, bridge, dismiss
from edgegraft.conditional.judge import UNTESTABLE, Judge, Network, Pair, Verdict, Verdicts
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.core import Layout
from edgegraft.core.pairs import all_pairs, find_pairs
from edgegraft.core.types import Edges, Mask, Tree
from edgegraft.counts import PairCounts
from edgegraft.grafting.events import StopReason
from edgegraft.grafting.loop import adopt
from edgegraft.grafting.pair_rules import PairRules
from edgegraft.grafting.problem import ALL_PAIRS, ridge_of
from edgegraft.grafting.state import SearchState
from edgegraft.learn import doubt
from edgegraft.learn.certificate import MAX_PAIRS
from edgegraft.learn.copies import Copies, find_copies
from edgegraft.learn.cut import Cut, q_values
from edgegraft.learn.edge_tests import EdgeTests, GroupTests, judge_edges
from edgegraft.learn.joint_fit import JointFit, is_affordable
from edgegraft.learn.last_fits import refit
from edgegraft.learn.reweigh import reweighed
from edgegraft.learn.stages import Stages
from edgegraft.model import PairwiseMRF
from edgegraft.objective.noise import NoiseWeights
from edgegraft.objective.penalty import Penalty
from edgegraft.optimize.solver import Solution, Stopping, minimize
from edgegraft.rank.correlations import Correlations
from edgegraft.rank.structure import spanning_tree
from edgegraft.table.blocks import TableRows

_COMPLETE = StopReason.OPTIMAL, StopReason.GIVEN_UP
_MAX_LOOKS = 3  # at pairs outside of the network; a budget, two are rarely needed


_FIT_ROWS = 0.1  # weight of the ridge of the kept edges' fit, in rows: as in the judge
_UNFITTED_ROWS, _MIN_TOL = 10.0, 1e-6  # left unfitted at most: what scores of pairs notice
_ITERATIONS = 500


class Confirmation(NamedTuple):
    """The edges of a search after their tests."""

    tests: EdgeTests  # the last test of each pair that was asked
    kept: Mask  # which of them are edges of the network
    rivals: list[Pair]  # pairs that nearly pass, if they are more than chance explains
    copies: Copies
    model: PairwiseMRF  # of the kept edges, with a negligible ridge
    rule: Penalty  # of the search, in units of the noise that this model leaves
    joint: JointFit | None = None  # of all pairs, if the network was built in its order

    def tree(self) -> Tree:
        """Return all of it in arrays, for :meth:`of_tree`."""
        noise = self.rule.noise
        groups = None if self.tests.groups is None else self.tests.groups._asdict()
        return {
            "tests": self.tests._asdict() | {"groups": groups},
            "kept": self.kept,
            "rivals": np.array(self.rivals, np.int64).reshape(-1, 2),
            "copies": self.copies.first,
            "model": {"edges": self.model.edges, "theta": self.model.theta},
            "noise": noise and vars(noise).copy(),
            "joint": self.joint and self.joint.vector,
        }

    @classmethod
    def of_tree(cls, tree: Tree, search: SearchState) -> Self:
        """Return what :meth:`tree` described, tests in the order of a search's edges."""
        edges, n = tree["tests"]["edges"], len(search.objective.schema)
        at = find_pairs(search.graph.layout.edges, edges, n)
        named = dict(tree["tests"])
        groups = named.pop("groups")
        if groups is not None:
            groups = GroupTests(**{name: values[at] for name, values in groups.items()})
        tests = EdgeTests(**{name: values[at] for name, values in named.items()}, groups=groups)
        rule = search.penalty
        if tree["noise"] is not None:
            rule = replace(rule, noise=NoiseWeights(**tree["noise"]))
        model = PairwiseMRF(search.objective.schema, **tree["model"])
        kept, copies = tree["kept"][at], Copies(tree["copies"])
        joint = None if tree["joint"] is None else JointFit.of_vector(tree["joint"], n)
        return cls(tests, kept, _pairs(tree["rivals"]), copies, model, rule, joint)


def confirm(search: SearchState, stages: Stages, drawn: Mask | None = None) -> Confirmation:
    """Judge the edges of a search, and return which of them are kept at the level of a plan.

    If missing cells have been `drawn`, the search is over the rows that are filled in so.
    """
    # A given threshold holds for every edge, and so does a spent budget.
    widen = stages.plan.penalty == "auto" and search.reason in _COMPLETE
    tree, copies = _tree(stages.sample, search.problem.rules, widen)
    network = _Decisions(search, stages, tree, copies, drawn, widen)
    network.dismiss(spared=frozenset(_pairs(tree)))
    network.dismiss()
    network.admit(network.candidates)
    network.fit()
    for _ in range(_MAX_LOOKS):
        if not network.admit(network.violating):
            break
        network.fit()
    by_tree = not (network.in_doubt and network.build_jointly())
    network.drop_stand_ins()
    if by_tree:
        network.bridge(_pairs(tree))
    network.fit()
    return network.conclude()


class _Decisions:
    """A network on its way: its judge, the last verdict on every pair, and the fit of its edges."""

    def __init__(
        self,
        search: SearchState,
        stages: Stages,
        tree: Edges,
        copies: Copies,
        drawn: Mask | None,
        widen: bool,
    ) -> None:
        self._search, self._copies, self._rules = search, copies, search.problem.rules
        objective, found = search.objective, search.graph.layout.edges
        stand_ins = copies.stand_ins(found)
        stand_ins = stand_ins[self._rules.allows(stand_ins)]
        each = found[copies.shown(found)], tree, stand_ins, self._rules.required
        candidates = np.unique(np.concatenate(each), axis=0)
        self.candidates = _pairs(candidates)
        self._n = len(objective.schema)
        self._widen = widen and self._n * (self._n - 1) // 2 <= MAX_PAIRS
        self._network = Network(self._n, candidates)
        self._cut = Cut.of(stages.plan, objective.n_rows, self._rules)
        rows = stages.filled or stages.sample
        tested = ConditionalRows(
            rows.table, rows.weights, objective.features, **stages.variance, drawn=drawn
        )
        tables = objective.expand(search.theta(), search.graph.layout)
        fitted = Layout(objective.schema.n_states, found), tables
        self._judge = Judge(tested, self._cut.decides, stages.plan.n_jobs, fitted)
        self._verdicts: dict[Pair, Verdict] = dict.fromkeys(_pairs(found), UNTESTABLE)
        self._solution: Solution | None = None
        self._rule = search.penalty
        self._joint: JointFit | None = None
        self._rivals: list[Pair] = []
        self._violating: list[Pair] | None = None  # at the last fit, once it is asked for

    def dismiss(
        self,
        spared: frozenset[Pair] = frozenset(),
        strengths: Mapping[Pair, float] | None = None,
    ) -> None:
        """Drop what fails, except for the spared."""
        self._verdicts |= dismiss(self._network, self._judge, self._cut, spared, strengths)

    def admit(self, pairs: list[Pair]) -> bool:
        """Add what passes, and drop what fails beside it; return whether anything was added."""
        before = set(self._network.edges)
        asked = admit(self._network, pairs, self._judge, self._cut)
        self._verdicts |= {
            pair: asked[pair] for pair in asked if pair in self._verdicts or self._has(pair)
        }
        if self._network.edges == before:
            return False
        self.dismiss()
        return True

    @property
    def in_doubt(self) -> bool:
        """Whether more pairs of settled columns nearly pass than chance explains."""
        near = self._near(doubt.RULE.per_column, doubt.RULE.settled)
        self._rivals = near if len(near) > doubt.RULE.limit(self._n) else []
        return bool(self._rivals)

    def _near(self, per_column: float, share: float) -> list[Pair]:
        """Return the pairs of settled columns that nearly pass, the most significant first."""
        settled = doubt.settled(self._rule, self._search.penalty, share, self._n)
        asked = [(i, j) for i, j in self.violating if settled[i] and settled[j]]
        p = np.array([verdict.p_value for verdict in self._judge.ask(self._network, asked)])
        order = np.argsort(p, kind="stable")
        return [asked[k] for k in order if p[k] <= doubt.RULE.level(per_column, self._n)]

    def build_jointly(self) -> bool:
        """Build the network of the strongest pairs of a joint fit, as many as were candidates.

        Return whether it is: the fit must be affordable, and explain about as much.
        """
        objective = self._search.solution.objective
        if not is_affordable(objective):
            return False
        joint, before, n_before = JointFit.of(objective), self._network, len(self.violating)
        pairs = self._copies.stand_ins(joint.strongest(len(self.candidates)))
        required = self._rules.required
        pairs = np.unique(np.concatenate((pairs[self._rules.allows(pairs)], required)), axis=0)
        self._network = Network(self._n, pairs)
        self.dismiss(strengths=joint.strengths)
        self.admit(_pairs(pairs))
        self.fit()
        if len(self.violating) > doubt.RULE.worse * n_before:
            self._network = before
            self.fit()
            self.dismiss()  # drops nothing: for the verdicts
            return False
        self._joint = joint
        return True

    def drop_stand_ins(self) -> None:
        """Drop edges that are not significant beside pairs which nearly pass, the weakest first."""
        rivals = set(self._near(doubt.RULE.rivals, doubt.RULE.rivals_settled))
        edges = set(self._network.edges)
        if not rivals:
            return
        strengths = {pair: self._verdicts[pair].statistic for pair in edges}
        strengths |= dict.fromkeys(rivals, np.inf)
        spared = frozenset(rivals.union(_pairs(self._rules.required)))
        self._network.add(rivals)
        asked = dismiss(self._network, self._judge, doubt.significant, spared, strengths)
        self._network.drop(rivals)
        dropped = {pair: asked[pair] for pair in edges if not self._has(pair)}
        self.dismiss()
        self._verdicts |= dropped

    def bridge(self, tree: list[Pair]) -> None:
        """Add tree edges between parts of the network, if their columns depend."""
        alone = partial(self._judge.ask, Network(self._n, np.empty((0, 2), np.int64)))
        self._verdicts |= bridge(self._network, tree, alone, self._cut)

    def fit(self) -> None:
        """Fit the kept edges with a negligible ridge, unless they are fitted."""
        search, objective = self._search, self._search.solution.objective
        edges = np.array(sorted(self._network.edges), np.int64).reshape(-1, 2)
        known = search.theta(), search.graph.layout
        if self._solution is not None:
            if np.array_equal(self._solution.layout.edges, edges):
                return
            known = self._solution.theta, self._solution.layout
        ridge = search.penalty.ridge
        if objective.terms == 2:  # messages of a likelihood need the larger ridge
            ridge = min(ridge, ridge_of(_FIT_ROWS, objective.n_rows))
        rule = replace(search.penalty, penalty=0.0, ridge=ridge)
        layout = search.graph.layout.with_edges(edges)
        tol = min(max(_UNFITTED_ROWS / objective.n_rows, _MIN_TOL), search.settings.tol)
        self._solution = minimize(
            objective, rule, layout, layout.carry(*known), Stopping(tol, _ITERATIONS), quiet=True
        )
        self._rule = reweighed(search.penalty, objective, self._solution.theta, layout)
        self._violating = None

    @property
    def violating(self) -> list[Pair]:
        """The pairs outside that violate optimality at the fit, in units of its noise."""
        if self._violating is None:
            self._violating = self._compare() if self._widen else []
        return self._violating

    def _compare(self) -> list[Pair]:
        solution, pairs = self._solution, all_pairs(self._n)
        assert solution is not None
        pairs = pairs[find_pairs(pairs, solution.layout.edges, self._n) < 0]
        pairs = pairs[self._copies.shown(pairs) & self._rules.allows(pairs)]
        if not len(pairs):
            return []
        objective = self._search.solution.objective
        tables = objective.edge_gradients(solution.theta, solution.state, pairs)
        return _pairs(pairs[self._rule.score(tables) > self._rule.penalty])

    def conclude(self) -> Confirmation:
        """Return the decisions; pairs that the search lacks become part of its graph."""
        search, solution, objective = self._search, self._solution, self._search.objective
        assert solution is not None
        adopt(search, np.array(list(self._verdicts), np.int64).reshape(-1, 2))
        edges = search.graph.layout.edges
        each = Verdicts.of([self._verdicts.get(pair, UNTESTABLE) for pair in _pairs(edges)])
        kept = np.array([self._has(pair) for pair in _pairs(edges)], bool)
        q = q_values(self._cut.weighted(edges, each.p_value), self._rules.n_allowed)
        tests = EdgeTests.of(edges, each, q, ordered=objective.features is not None)
        tables = objective.expand(solution.theta, solution.layout)
        return Confirmation(
            tests,
            kept,
            self._rivals,
            self._copies,
            PairwiseMRF(objective.schema, solution.layout.edges, tables),
            self._rule,
            self._joint,
        )

    def _has(self, pair: Pair) -> bool:
        return pair in self._network.edges


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
        model = refit(search, search.penalty.ridge)
    n, kept = len(objective.schema), np.ones(len(edges), bool)
    return Confirmation(tests, kept, [], Copies(np.arange(n)), model, search.penalty)


def _pairs(edges: Edges) -> list[Pair]:
    return [(i, j) for i, j in edges.tolist()]


def _tree(rows: TableRows, rules: PairRules, wanted: bool) -> tuple[Edges, Copies]:
    """Return the spanning forest of significant dependences, and the copies among the columns.

    Neither is looked for if it is not wanted, or if there are too many columns to compare all.
    """
    n = len(rows.schema)
    if not wanted or n * (n - 1) // 2 > ALL_PAIRS:
        return np.empty((0, 2), np.int64), Copies(np.arange(n))
    counts = PairCounts(rows)
    tree = spanning_tree(Correlations(counts))
    copies = find_copies(counts, tree)
    tree = copies.stand_ins(tree)
    return tree[rules.allows(tree)], copies
