"""A network on its way to its final edges: what is kept, how it is fitted, what was tested."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from edgegraft.config import Plan
from edgegraft.core import Layout
from edgegraft.core.pairs import pair_ids
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.grafting.journal import PendingFit
from edgegraft.grafting.pair_rules import PairRules
from edgegraft.grafting.problem import ridge_of
from edgegraft.grafting.state import SearchState
from edgegraft.learn.copies import Copies
from edgegraft.learn.edge_tests import EdgeTester, EdgeTests, q_values
from edgegraft.learn.effective_score import Verdicts
from edgegraft.learn.second_look import JointStrengths
from edgegraft.model import PairwiseMRF
from edgegraft.objective.objective import Objective
from edgegraft.optimize.solver import Stopping

_MAX_ROUNDS = 50
_TEST_ROWS = 0.1  # weight of the ridge of tested fits, in rows
_ITERATIONS = 500
_FEW_PASS = 0.1  # share of the tests of a round
_MAX_DEPTH = 16  # of edges of one variable that are tested in a round
_TOGETHER = 200  # edges whose tests are one step of a journal
_UNFITTED_ROWS, _MIN_TOL = 10.0, 1e-6  # left unfitted at most: a table's test may have as few rows
_FAMILYWISE, _FAMILYWISE_ROWS = 0.05, 10.0  # fwer="auto", see Plan


class Cut(NamedTuple):
    """The level at which edges are kept: of false discoveries, or of any false edge."""

    level: float
    familywise: bool
    rules: PairRules

    @classmethod
    def of(cls, plan: Plan, objective: Objective, rules: PairRules) -> Cut:
        """Return the cut that a plan asks for, of the pairs that rules allow."""
        level = plan.fdr if plan.fwer is None else plan.fwer
        if level == "auto":
            level = min(_FAMILYWISE, _FAMILYWISE_ROWS / objective.n_rows)
        assert level is not None
        return cls(level, plan.fwer is not None, rules)

    def passes(self, edges: Edges, p_values: Floats, n_others: int) -> Mask:
        """Return which edges are kept by their p-values, beside others that are, or required.

        Edges kept so far count as found: the level of a new one depends on their number.
        """
        if self.familywise:
            kept = self.weighted(edges, p_values) * self.rules.n_allowed <= self.level
        else:
            beside = np.concatenate((self.weighted(edges, p_values), np.zeros(n_others)))
            kept = q_values(beside, self.rules.n_allowed)[: len(p_values)] <= self.level
        return np.asarray(kept | self.rules.is_required(edges))

    def weighted(self, edges: Edges, p_values: Floats) -> Floats:
        """Return p-values divided by the weights of their pairs."""
        return np.minimum(p_values / self.rules.weights(edges), 1.0)


class KeptNetwork:
    """The kept graph with its fit, and the last test of every edge."""

    def __init__(self, search: SearchState, tester: EdgeTester, cut: Cut, copies: Copies) -> None:
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
        self._found = Verdicts.none(len(self.edges))
        self._tested = np.zeros(len(self.edges), bool)
        # Variables whose edges have changed since their tests.
        self._changed = np.zeros(self._n, bool)
        self._journal = search.problem.journal
        self._chain, theta = self._journal.chain(), search.theta()
        self._fit = self._next_fit(layout, lambda: theta)

    def _next_fit(self, layout: Layout, start: Callable[[], Floats]) -> PendingFit:
        tol = max(_UNFITTED_ROWS / self._objective.n_rows, _MIN_TOL)
        stopping = Stopping(min(tol, self._search.settings.tol), _ITERATIONS)
        return self._chain.fit(self._objective, self._rule, layout, start, stopping)

    def _refit(self, kept: Mask) -> None:
        """Fit the edges of `kept`, in the order of all edges."""
        if np.array_equal(kept, self.kept):
            return
        before = self._fit
        layout = before.layout.with_edges(self.edges[kept])
        self.kept = kept
        self._fit = self._next_fit(
            layout, lambda: layout.carry(before.solution.theta, before.layout)
        )

    def _test_each(self, layers: list[Integers]) -> None:
        """Test edges that are added to the fitted graph, each alone; those of a layer are apart."""
        if self._tester.rows.alone:
            self._test(np.concatenate(layers), alone=True)
        else:
            for layer in layers:
                self._test(layer)

    def _test(self, chosen: Integers, *, alone: bool = False) -> None:
        """Test edges by their positions: in the fitted graph, or added to it, if asked each alone.

        Edges that share no variable need not be alone.
        """
        fitted = self._fit.layout
        new = chosen[~self.kept[chosen]]
        layout = fitted.with_edges(np.concatenate((fitted.edges, self.edges[new])))
        place = np.full(len(self.edges), -1)
        place[np.flatnonzero(self.kept)] = np.arange(fitted.n_edges)
        place[new] = fitted.n_edges + np.arange(len(new))

        def test(part: Integers) -> Verdicts:
            theta = layout.carry(self._fit.solution.theta, fitted)
            return self._tester.test(layout, theta, part, place[new] if alone else None)

        self._found.put(chosen, self._in_parts(test, place[chosen]))
        self._tested[chosen] = self._shown[chosen]

    def _in_parts(self, test: Callable[[Integers], Verdicts], chosen: Integers) -> Verdicts:
        """Test edges, a few at each step of a journal that keeps them."""
        if not self._journal.keeps:
            return test(chosen)

        def rows_of(part: Integers) -> Floats:
            return np.array(test(part), float)

        parts = np.split(chosen, range(_TOGETHER, len(chosen), _TOGETHER))
        found = [self._journal.step(partial(rows_of, part)) for part in parts]
        return Verdicts.of(np.concatenate(found, axis=1))

    def _passes(self, chosen: Integers, kept: Mask) -> Mask:
        """Return which of the chosen edges are below the level, beside those that are kept."""
        n_others = int(kept.sum() - kept[chosen].sum())
        return self._cut.passes(self.edges[chosen], self._found.p_value[chosen], n_others)

    @property
    def untestable(self) -> float:
        """Share of edges whose last test had no information."""
        return float((self._tested & (self._found.dof == 0)).mean()) if len(self.edges) else 0.0

    def model(self) -> PairwiseMRF:
        """Return the model of the kept edges, hardly shrunk."""
        tables = self._journal.step(self._tables)
        return PairwiseMRF(self._objective.schema, self._fit.layout.edges, tables)

    def _tables(self) -> Floats:
        return self._objective.expand(self._fit.solution.theta, self._fit.layout)

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
        self._changed[self.edges[~self.kept]] = True  # the others were tested beside what is cut
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

        Those of the largest scores come first. What passes is added, unless it shares a variable
        with one that is added before it in the same round. As fewer pass, more are tested in a
        round. If an order is given, no edge is tested before a stronger one of its variables, and
        none that is not stronger than what all pairs have.
        """
        depth, n_layers = 1, 0
        threshold = self._search.penalty.penalty
        tested_at = np.full(self.edges.shape, -1)  # numbers of kept edges at both ends
        fixed = None if order is None else order.of(self.edges)
        able = self._shown
        if order is not None and fixed is not None:
            able = able & (fixed > order.background)
        max_layers = _MAX_ROUNDS if order is None else len(self.edges)
        while n_layers < max_layers:
            waiting = np.flatnonzero(~self.kept & able)
            if not len(waiting):
                return
            scores = self.scores(self.edges[waiting])
            degree = np.bincount(self.edges[self.kept].ravel(), minlength=self._n)
            now = degree[self.edges]
            due = (scores > threshold) & (now != tested_at)[waiting].any(axis=1)
            if not due.any():
                return
            first = np.argsort(-(scores if fixed is None else fixed[waiting])[due], kind="stable")
            ahead = waiting[due][first]
            layers: list[Integers] = []
            while len(ahead) and len(layers) < min(depth, max_layers - n_layers):
                at = _apart(self.edges[ahead], np.arange(len(ahead)), strict=order is not None)
                layers.append(ahead[at])
                ahead = np.delete(ahead, at)
            n_layers += len(layers)
            chosen = np.concatenate(layers)
            tested_at[chosen] = now[chosen]
            self._test_each(layers)
            passing = chosen[self._passes(chosen, self.kept)]
            kept = self.kept.copy()
            kept[passing[_apart(self.edges[passing], np.arange(len(passing)))]] = True
            if len(passing) < _FEW_PASS * len(chosen):
                depth = min(2 * depth, _MAX_DEPTH)
            self._changed[self.edges[kept & ~self.kept]] = True
            self._refit(kept)

    def scores(self, pairs: Edges) -> Floats:
        """Return the scores of pairs at the fitted parameters."""

        def make() -> Floats:
            solution = self._fit.solution
            tables = self._objective.edge_gradients(solution.theta, solution.state, pairs)
            return self._search.penalty.score(tables)

        return self._journal.step(make)

    def extend(self, pairs: Edges) -> None:
        """Add pairs to the edges, none of them kept."""
        n_new = len(pairs)
        self.edges = np.concatenate((self.edges, pairs))
        self.kept = np.pad(self.kept, (0, n_new))
        self._shown = np.pad(self._shown, (0, n_new), constant_values=True)
        self._tested = np.pad(self._tested, (0, n_new))
        before, self._found = self._found, Verdicts.none(len(self.edges))
        self._found.put(np.arange(len(before.dof)), before)

    def test_changed(self) -> None:
        """Test kept edges whose ends gained or lost others, alone if in doubt; drop failures.

        A p-value beside edges that were cut since is one of many that an edge could have had, and
        it was kept for that one. All kept edges pass together at the end: what is dropped no longer
        raises the level of the others. An edge that has no information left beside its neighbours
        is tested on the model without it, as it was when it entered.
        """
        for _ in range(_MAX_ROUNDS):
            self._test(np.flatnonzero(self.kept & self._changed[self.edges].any(axis=1)))
            self._changed[:] = False
            every = np.flatnonzero(self.kept)
            doubtful = every[~self._passes(every, self.kept)]
            if not len(doubtful):
                return
            while len(doubtful):
                weakest = np.argsort(-self._found.p_value[doubtful], kind="stable")
                batch = _apart(self.edges[doubtful], weakest)
                chosen, doubtful = doubtful[batch], np.delete(doubtful, batch)
                kept = self.kept.copy()
                kept[chosen] = False
                self._refit(kept)
                self._test(chosen)
                sure, kept = kept.copy(), kept.copy()
                sure[doubtful] = False  # what is in doubt does not count as found
                kept[chosen] = self._passes(chosen, sure)
                self._refit(kept)
            self._changed[self.edges[every[~self.kept[every]]]] = True

    def tests(self) -> EdgeTests:
        """Return the last tests of all edges; links of a later copy are not tested."""
        found, copies = self._found, ~self._shown
        found.statistic[copies], found.dof[copies], found.p_value[copies] = 0.0, 0, 1.0
        weighted = self._cut.weighted(self.edges, found.p_value)
        q_value = q_values(weighted, self._cut.rules.n_allowed)
        ordered = self._objective.features is not None
        return EdgeTests.of(self.edges, found, q_value, ordered=ordered)


def _apart(edges: Edges, order: Integers, *, strict: bool = False) -> Integers:
    """Return the first edges in an order that share no variable with a chosen one before them.

    If `strict`, with any before them.
    """
    used: set[int] = set()
    chosen = []
    for k in order.tolist():
        ends = set(edges[k].tolist())
        free = not ends & used
        if free:
            chosen.append(k)
        if free or strict:
            used |= ends
    return np.array(chosen, np.int64)
