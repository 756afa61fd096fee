"""Which edges of a search are kept: none that has not passed a test.

    test all edges -> keep -> let the kept model take back what it needs -> test what changed

Edges that were found together can hide each other: two copies of a column explain each other's
links away, and in a cold model a column that its neighbours nearly determine leaves no information
to test an edge with. So what the first tests cut is tested again on the model of what they kept,
as an edge that is added to it. The strongest come first, in batches of edges that share no column,
and each that passes is part of the model that the next ones are tested on.

A spanning tree of the strongest dependences is kept while the other edges are tested on it, then
tested itself: without the edges of a hub, pairs of its leaves stand in for them and pass any test.

If many edges of the search cannot be tested, a fit of all pairs (:mod:`~edgegraft.learn.joint`)
gives further candidates, and a second network is built from nothing in the order of its strengths.
Of the two networks the one with the smaller BIC is kept.

Tests are made on a fit with a ridge that weighs as a tenth of a row: what a larger ridge leaves
unexplained makes copies of edges significant.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from edgegraft.config import Plan
from edgegraft.core import Layout
from edgegraft.core.pairs import all_pairs, pair_ids
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.counts import PairCounts
from edgegraft.learn import steps
from edgegraft.learn.certificate import MAX_PAIRS
from edgegraft.learn.copies import Copies, find_copies
from edgegraft.learn.edge_tests import EdgeTester, EdgeTests, q_values
from edgegraft.learn.effects import Effects
from edgegraft.learn.events import StopReason
from edgegraft.learn.feature_tests import FeatureTester, make_tester
from edgegraft.learn.joint import JointStrengths, fit_jointly, is_affordable
from edgegraft.learn.problem import ALL_PAIRS
from edgegraft.learn.selection.levels import ridge_of
from edgegraft.learn.state import SearchState
from edgegraft.model import PairwiseMRF
from edgegraft.objective.noise_weight import noise_weights
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalties import NoisePenalty
from edgegraft.optimize.solver import Solution, Stopping, minimize
from edgegraft.search.correlations import Correlations
from edgegraft.search.spanning import spanning_tree
from edgegraft.table.blocks import TableRows

_MAX_ROUNDS = 50
_DETERMINED = 0.3  # share of a column's variance that its neighbours leave unexplained
_COMPLETE = StopReason.OPTIMAL, StopReason.GIVEN_UP, StopReason.SECOND_LOOK
_MANY_DETERMINED = 0.3  # share of the columns
_TEST_ROWS = 0.1  # weight of the ridge of tested fits, in rows
_ITERATIONS = 500
_MAX_LOOKS = 3  # at pairs outside of the search
_FAMILYWISE, _FAMILYWISE_ROWS = 0.05, 10.0  # fwer="auto", see Plan
_FEW = 10  # untestable edges that are not worth a warning
_MANY_UNTESTABLE = 0.1  # share of the edges of a search
_MOSTLY_UNTESTABLE = 0.75  # columns are so alike that a tree of them is of chance


class Confirmation(NamedTuple):
    """The edges of a search after their tests.

    Attributes
    ----------
    tests : EdgeTests
        The last test of each edge of the search, in its order.
    kept : array of bool, shape (m,)
    strengths : array of float, shape (m,)
        In the model of all edges of the search; zero for pairs that were added to them later.
    untestable : float
        Share of the search's edges that could not be tested beside each other.
    copies : Copies
    joint : JointStrengths or None
        Strengths of all pairs, if the network was built in their order.
    """

    tests: EdgeTests
    kept: Mask
    strengths: Floats
    untestable: float
    copies: Copies
    joint: JointStrengths | None

    @property
    def doubtful(self) -> bool:
        """Whether tests could not decide about many of the edges."""
        untested = float((self.tests.dof == 0).mean()) if len(self.kept) else 0.0
        return self.joint is not None or (
            bool(self.kept.any()) and _are_many(untested, len(self.kept))
        )


def confirm(
    search: SearchState, rows: TableRows, plan: Plan, *, sampling: bool = False
) -> Confirmation:
    """Test the edges of a search, and return which of them are kept at the level of a plan.

    Edges that the search lacks, of the spanning tree or of the fit of all pairs, are added to it.
    """
    # A given threshold holds for every edge, and so does a spent budget.
    widen = plan.penalty == "auto" and search.reason in _COMPLETE
    tree, copies = _tree(rows, widen)
    joint = None
    steps.adopt(search, np.concatenate((tree, copies.stand_ins(search.graph.layout.edges))))
    tester = make_tester(search.objective.features, rows, plan.n_jobs, sampling=sampling)
    cut = _Cut.of(plan, search.objective)
    network = _Network(search, tester, cut, copies)
    network.test_all()
    untestable = network.untestable
    hard = _are_many(untestable, len(network.edges))
    if widen and (hard or _many_determined(search)) and is_affordable(search.objective):
        joint = fit_jointly(search.solution.objective)
        steps.adopt(search, copies.stand_ins(joint.strongest(len(search.graph))))
        network = _Network(search, tester, cut, copies)
        network.test_all()
    strengths = network.strengths()
    network.keep_tree(tree)
    network.take_back()
    network.test_changed()
    ranked_by = None
    if joint is not None and hard:
        other = _Network(search, tester, cut, copies)
        other.clear()
        other.take_back(joint)
        other.test_changed()
        if untestable > _MOSTLY_UNTESTABLE or other.bic() < network.bic():
            network, ranked_by = other, joint
    if widen and ranked_by is None:
        _look_outside(search, network, copies)
        strengths = np.pad(strengths, (0, len(network.edges) - len(strengths)))
    return Confirmation(network.tests(), network.kept, strengths, untestable, copies, ranked_by)


def _look_outside(search: SearchState, network: _Network, copies: Copies) -> None:
    """Test pairs that the search left out and the kept model lacks, until there are none."""
    n = len(search.objective.schema)
    if n * (n - 1) // 2 > MAX_PAIRS:
        return
    for _ in range(_MAX_LOOKS):
        pairs = all_pairs(n)
        pairs = pairs[~search.graph.contains(pairs) & copies.shown(pairs)]
        new = pairs[search.exceeds(network.scores(pairs), pairs)] if len(pairs) else pairs
        if not len(new):
            return
        steps.adopt(search, new)
        network.extend(new)
        network.take_back()
        network.test_changed()


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


def _are_many(share: float, n_edges: int) -> bool:
    return share > _MANY_UNTESTABLE and share * n_edges >= _FEW


def _many_determined(search: SearchState) -> bool:
    """Return whether a second look found many columns that their neighbours nearly determine."""
    rule = search.penalty
    if not search.sharpened or not isinstance(rule, NoisePenalty) or rule.noise is None:
        return False
    margins = noise_weights(search.objective).spread
    determined = np.square(rule.noise.spread) < _DETERMINED * np.square(margins)
    return bool(determined.mean() > _MANY_DETERMINED)


def _apart(edges: Edges, order: Integers) -> Integers:
    """Return the first edges in an order that share no variable with one before them."""
    used: set[int] = set()
    chosen = []
    for k in order.tolist():
        i, j = edges[k].tolist()
        if not {i, j} & used:
            used |= {i, j}
            chosen.append(k)
    return np.array(chosen, np.int64)


class _Cut(NamedTuple):
    """The level at which edges are kept: of false discoveries, or of any false edge."""

    level: float
    n_pairs: int
    familywise: bool

    @classmethod
    def of(cls, plan: Plan, objective: Objective) -> _Cut:
        """Return the cut that a plan asks for."""
        n, level = len(objective.schema), plan.fdr if plan.fwer is None else plan.fwer
        if level == "auto":
            level = min(_FAMILYWISE, _FAMILYWISE_ROWS / objective.n_rows)
        assert level is not None
        return cls(level, n * (n - 1) // 2, plan.fwer is not None)

    def passes(self, p_values: Floats, n_others: int) -> Mask:
        """Return which p-values are below the level, beside others that are.

        Edges kept so far count as found: the level of a new one depends on their number.
        """
        if self.familywise:
            return np.asarray(p_values * self.n_pairs <= self.level)
        beside = np.concatenate((p_values, np.zeros(n_others)))
        return q_values(beside, self.n_pairs)[: len(p_values)] <= self.level


class _Network:
    """The kept graph with its fit, and the last test of every edge."""

    def __init__(
        self, search: SearchState, tester: EdgeTester | FeatureTester, cut: _Cut, copies: Copies
    ) -> None:
        self._search, self._tester, self._cut = search, tester, cut
        self._objective = search.solution.objective
        layout = search.graph.layout
        ridge = search.penalty.ridge
        if self._objective.terms == 2:  # messages of a likelihood need the larger ridge
            ridge = min(ridge, ridge_of(_TEST_ROWS, self._objective.n_rows))
        self._rule = replace(search.penalty, penalty=0.0, ridge=ridge)
        self.edges = layout.edges
        self.kept = np.ones(len(self.edges), bool)
        self._shown = copies.shown(self.edges)  # the others stand for the same links
        self._n = layout.n_variables
        self._statistic, self._p_value = np.zeros(len(self.edges)), np.ones(len(self.edges))
        self._dof = np.zeros(len(self.edges), np.int64)
        self._effects: Effects | None = None
        self._changed = np.zeros(self._n, bool)  # variables with edges that are newer than tests
        self._solution = self._fit(layout, search.theta())

    def _fit(self, layout: Layout, start: Floats) -> Solution:
        stopping = Stopping(tol=self._search.settings.tol, max_iter=_ITERATIONS)
        return minimize(self._objective, self._rule, layout, start, stopping, quiet=True)

    def _refit(self, kept: Mask) -> None:
        """Fit the edges of `kept`, in the order of all edges."""
        if np.array_equal(kept, self.kept):
            return
        before = self._solution
        layout = before.layout.with_edges(self.edges[kept])
        self.kept = kept
        self._solution = self._fit(layout, layout.carry(before.theta, before.layout))

    def _test(self, chosen: Integers) -> None:
        """Test edges by their positions: in the fitted graph, or added to it."""
        fitted = self._solution.layout
        new = chosen[~self.kept[chosen]]
        layout = fitted.with_edges(np.concatenate((fitted.edges, self.edges[new])))
        place = np.full(len(self.edges), -1)
        place[np.flatnonzero(self.kept)] = np.arange(fitted.n_edges)
        place[new] = fitted.n_edges + np.arange(len(new))
        found = self._tester.test(layout, layout.carry(self._solution.theta, fitted), place[chosen])
        self._statistic[chosen], self._dof[chosen] = found.statistic, found.dof
        self._p_value[chosen] = found.p_value
        if found.effects is not None and self._objective.features is not None:
            if self._effects is None:
                self._effects = Effects.unknown(len(self.edges))
            for whole, part in zip(self._effects, found.effects, strict=True):
                whole[chosen] = part

    def _passes(self, chosen: Integers, kept: Mask) -> Mask:
        """Return which of the chosen edges are below the level, beside those that are kept."""
        n_others = int(kept.sum() - kept[chosen].sum())
        return self._cut.passes(self._p_value[chosen], n_others)

    @property
    def untestable(self) -> float:
        """Share of edges whose last test had no information."""
        return float((self._dof[self._shown] == 0).mean()) if self._shown.any() else 0.0

    def strengths(self) -> Floats:
        """Return the strengths of all edges, each fitted."""
        objective, layout = self._objective, self._solution.layout
        theta = objective.expand(self._solution.theta, layout)
        return PairwiseMRF(objective.schema, layout.edges, theta).edge_strengths()

    def bic(self) -> float:
        """Return the Bayesian information criterion of the fitted graph."""
        layout, n_rows = self._solution.layout, self._objective.n_rows
        free = np.diff(layout.edge_offset).sum()
        return float(2 * n_rows * self._solution.info.objective + free * np.log(n_rows))

    def test_all(self) -> None:
        """Test every edge in the model of all."""
        self._test(np.arange(len(self.edges)))

    def clear(self) -> None:
        """Begin without edges."""
        self._refit(np.zeros(len(self.edges), bool))

    def keep_tree(self, tree: Edges) -> None:
        """Keep what has passed; test it beside the tree, whose edges stay until `test_changed`."""
        every = np.arange(len(self.edges))
        passed = self._passes(every, np.zeros(len(every), bool)) & self._shown
        is_tree = np.isin(pair_ids(self.edges, self._n), pair_ids(tree, self._n))
        lacking = is_tree & ~passed
        self._refit(passed | is_tree)
        if not lacking.any():
            return
        ends = np.zeros(self._n, bool)
        ends[self.edges[lacking]] = True
        touched = np.flatnonzero(self.kept & ends[self.edges].any(axis=1))
        self._test(touched)
        kept = self.kept.copy()
        kept[touched] = self._passes(touched, self.kept) | is_tree[touched]
        self._changed |= ends
        self._refit(kept)

    def take_back(self, order: JointStrengths | None = None) -> None:
        """Test what is not kept on the model of what is, until nothing more passes.

        Those of the largest scores come first, or those of the largest strengths.
        """
        threshold = self._search.penalty.penalty
        degree_then: dict[int, tuple[int, int]] = {}
        fixed = None if order is None else order.of(self.edges)
        for _ in range(_MAX_ROUNDS):
            waiting = np.flatnonzero(~self.kept & self._shown)
            if not len(waiting):
                return
            scores = self.scores(self.edges[waiting])
            degree = np.bincount(self.edges[self.kept].ravel(), minlength=self._n)
            now = [(int(degree[i]), int(degree[j])) for i, j in self.edges[waiting]]
            fresh = [degree_then.get(int(k)) != ends for k, ends in zip(waiting, now, strict=True)]
            due = (scores > threshold) & np.array(fresh, bool)
            if not due.any():
                return
            first = np.argsort(-(scores if fixed is None else fixed[waiting])[due], kind="stable")
            chosen = waiting[due][_apart(self.edges[waiting[due]], first)]
            degree_then |= {int(k): now[int(np.searchsorted(waiting, k))] for k in chosen}
            self._test(chosen)
            kept = self.kept.copy()
            kept[chosen] = self._passes(chosen, self.kept)
            self._changed[self.edges[kept & ~self.kept]] = True
            self._refit(kept)

    def scores(self, pairs: Edges) -> Floats:
        """Return the scores of pairs at the fitted parameters."""
        solution = self._solution
        tables = self._objective.edge_gradients(solution.theta, solution.state, pairs)
        return self._search.penalty.score(tables)

    def extend(self, pairs: Edges) -> None:
        """Add pairs to the edges, none of them kept."""
        n_new = len(pairs)
        self.edges = np.concatenate((self.edges, pairs))
        self.kept = np.pad(self.kept, (0, n_new))
        self._shown = np.pad(self._shown, (0, n_new), constant_values=True)
        self._statistic = np.pad(self._statistic, (0, n_new))
        self._dof = np.pad(self._dof, (0, n_new))
        self._p_value = np.pad(self._p_value, (0, n_new), constant_values=1.0)
        if self._effects is not None:
            known = self._effects
            self._effects = Effects.unknown(len(self.edges))
            for whole, part in zip(self._effects, known, strict=True):
                whole[: len(part)] = part

    def test_changed(self) -> None:
        """Test kept edges whose ends gained others since, without them if in doubt; drop failures.

        An edge that has no information left beside its neighbours is tested on the model without
        it, as it was when it entered.
        """
        for _ in range(_MAX_ROUNDS):
            due = np.flatnonzero(self.kept & self._changed[self.edges].any(axis=1))
            self._changed[:] = False
            if not len(due):
                return
            self._test(due)
            doubtful = due[~self._passes(due, self.kept)]
            while len(doubtful):
                weakest = np.argsort(-self._p_value[doubtful], kind="stable")
                batch = _apart(self.edges[doubtful], weakest)
                chosen, doubtful = doubtful[batch], np.delete(doubtful, batch)
                kept = self.kept.copy()
                kept[chosen] = False
                self._refit(kept)
                self._test(chosen)
                kept = kept.copy()
                kept[chosen] = self._passes(chosen, kept)
                self._refit(kept)

    def tests(self) -> EdgeTests:
        """Return the last tests of all edges; links of a later copy are not tested."""
        self._statistic[~self._shown], self._dof[~self._shown] = 0.0, 0
        self._p_value[~self._shown] = 1.0
        q_value = q_values(self._p_value, self._cut.n_pairs)
        found = self._statistic, self._dof, self._p_value, q_value
        return EdgeTests(self.edges, *found, self._effects)
