"""Tests of edges between columns of every kind.

As in :mod:`~edgegraft.learn.edge_tests`, the score of an edge's weights is cleaned of what the
other parameters of the two conditionals could explain, moved to zero by one Newton step, and
judged by the larger of two variances. A conditional has a free intercept and weights of features
(:mod:`edgegraft.objective.features`), so its size follows the features, not the states.

The weights of a pair with an ordered end fall into two groups, each with its own test:

- *linear*: the linear scores; one weight if both ends are ordered or have two states;
- *rest*: the further scores, beside the linear weights. It answers "is linear enough?".

The p-value of the edge is ``min(p_linear / 0.9, p_rest / 0.1)``, a Bonferroni correction that
leaves the linear test nearly all of the level: it costs a linear edge a tenth of its p-value.

Of columns of few levels a third group, the rest of the table, is tested once edges are known
(:func:`judge_tables`). It says whether the scores are enough, and takes no share of the level.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core import Layout
from edgegraft.core.threads import resolve_jobs, run
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.learn.edge_tests import EdgeTester, Tested
from edgegraft.learn.effective_score import LINEAR, Directions, directions
from edgegraft.learn.effects import GroupTests
from edgegraft.learn.feature_conditionals import (
    TINY,
    Conditional,
    Conditionals,
    Contrasts,
    contrasts_of,
    state_weights,
)
from edgegraft.learn.graded import whole_widths
from edgegraft.learn.survey_design import SurveyDesign
from edgegraft.model import PairwiseMRF
from edgegraft.objective.features import Features
from edgegraft.table import PackedTable
from edgegraft.table.blocks import TableRows

MANY_STATES = 32  # of a column beyond which whole tables have too many cells to test
LINEAR_SHARE = 0.9  # of the level of an edge
_SCORES = 2  # of an ordered column in the search and its tests
_CLEAR = 1e-6  # p-value below which a test of a steep table is not repeated at zero
_FEW = 10.0  # expected rows in which the rarer states of two binary columns meet


def make_tester(
    features: Features | None,
    rows: TableRows,
    n_jobs: int | None,
    *,
    sampling: bool = False,
    design: SurveyDesign | None = None,
    drawn: Mask | None = None,
) -> EdgeTester | FeatureTester:
    """Return what tests the edges of a model of some rows, of which some cells may be drawn.

    Whole tables of columns with many states have too many cells: rare states are put together.
    """
    table, weights = rows.table, rows.weights
    if features is None and table.schema.n_states.max(initial=0) <= MANY_STATES:
        return EdgeTester(
            table,
            weights,
            n_jobs=n_jobs,
            sampling=sampling,
            device=rows.device,
            design=design,
            drawn=drawn,
        )
    known = features or Features.plain(table.schema)
    return FeatureTester(table, known, weights, n_jobs=n_jobs, sampling=sampling, design=design)


def judge_tables(
    model: PairwiseMRF,
    rows: TableRows,
    n_jobs: int | None,
    *,
    sampling: bool = False,
    design: SurveyDesign | None = None,
) -> Floats:
    """Return the p-value of the rest of each edge's table beside the scores; NaN without one.

    All edges have their whole tables in the tests, so that what one lacks does not show in another.
    """
    schema, table = model.schema, rows.table
    widths, found = whole_widths(schema), np.full(model.n_edges, np.nan)
    chosen = np.flatnonzero((widths > schema.widths)[model.edges].any(axis=1))
    if not len(chosen):
        return found
    margins = state_weights(table, np.ones(table.n_rows) if rows.weights is None else rows.weights)
    features = Features.of(schema, np.concatenate(margins), widths)
    first = [contrasts_of(features, i, own, _SCORES) for i, own in enumerate(margins)]
    tester = FeatureTester(
        table,
        features,
        rows.weights,
        n_jobs=n_jobs,
        sampling=sampling,
        design=design,
        contrasts=first,
    )
    layout, theta = features.layout(model.edges), features.weights_of(model.theta, model.edges)
    groups = tester.test(layout, theta, chosen).groups
    assert groups is not None
    found[chosen] = groups.p_rest
    return found


class FeatureTester:
    """The rows of a table, ready for tests of the edges of any model of them.

    `features` are those that the model was fitted with. A conditional whose information needs more
    than `max_bytes` is not used. `sampling`: whether the weights are those of a sample.
    """

    def __init__(
        self,
        table: PackedTable,
        features: Features,
        weights: ArrayLike | None = None,
        *,
        n_jobs: int | None = None,
        max_bytes: int = 1 << 28,
        sampling: bool = False,
        design: SurveyDesign | None = None,
        contrasts: list[Contrasts] | None = None,
    ) -> None:
        self._design = design
        self._freedom = np.inf if design is None else design.freedom
        self._power = 2 if sampling else 1  # of weights in variances
        self._rows = Conditionals(table, features, weights, max_bytes, contrasts)
        self._n_jobs = resolve_jobs(n_jobs)

    def test(self, layout: Layout, theta: Floats, only: Integers | None = None) -> Tested:
        """Test edges of a fitted model of weights; edges at zero as additions to the others.

        `only` are the positions of the edges to test, in the order of the results; all by default.
        """
        chosen = np.arange(layout.n_edges) if only is None else np.asarray(only)
        edges = layout.edges[chosen]
        nodes: dict[int, Conditional] = {}

        def describe(i: int) -> None:
            nodes[i] = self._rows.describe(i, layout, theta)

        run(describe, np.unique(edges).tolist(), self._n_jobs)
        tables = [layout.edge(theta, int(k)) for k in chosen]
        moments = self._moments(edges, nodes)
        out, groups = _empty(len(chosen)), GroupTests.unknown(len(chosen))

        def judge(k: int) -> None:
            i, j = edges[k].tolist()
            found = moments[k]
            split = self._linear(i, j)
            verdict = (
                None if found is None else judge_score(*found[:3], split, self._freedom, found[3])
            )
            if found is not None and self._doubtful(i, j, tables[k], verdict):
                apart = {a: self._rows.without(nodes[a], b) for a, b in ((i, j), (j, i))}
                at_zero = self._moments(edges[k : k + 1], apart)[0]
                again = (
                    None
                    if at_zero is None
                    else judge_score(*at_zero[:3], split, self._freedom, at_zero[3])
                )
                verdict = verdict if again is None else again
            _write(out, groups, k, verdict)

        run(judge, range(len(chosen)), self._n_jobs)
        return out._replace(groups=groups)

    def replicates(self, layout: Layout, theta: Floats, pairs: Edges, weights: Floats) -> Floats:
        """Return the p-values of pairs on bootstrap replicates, to first order from the fit.

        As :func:`~edgegraft.learn.replicate_tests.replicate_p_values`: one row per row of
        `weights`, NaN for a pair without a test.
        """
        out = np.full((len(weights), len(pairs)), np.nan)
        place = {tuple(edge): k for k, edge in enumerate(layout.edges.tolist())}
        nodes = {i: self._rows.describe(i, layout, theta) for i in np.unique(layout.edges).tolist()}

        def test(k: int) -> None:
            i, j = pairs[k].tolist()
            own = nodes
            if (i, j) not in place:
                grown = layout.grow(pairs[k : k + 1])
                carried = grown.carry(theta, layout)
                own = {end: self._rows.describe(end, grown, carried) for end in (i, j)}
            found = self._moments(pairs[k : k + 1], own)[0]
            if found is not None:
                scores = self._replicate_scores(own, (i, j), weights)
                groups = weight_groups(*found[1:3], self._linear(i, j), information=found[3])
                if any(group.directions.dof for group in groups):
                    p = [group.replicated(found[0], scores) / group.share for group in groups]
                    out[:, k] = np.minimum(1.0, np.min(p, axis=0))

        run(test, range(len(pairs)), self._n_jobs)
        return out

    def _replicate_scores(
        self, nodes: dict[int, Conditional], pair: tuple[int, int], weights: Floats
    ) -> Floats:
        i, j = pair
        sides = [self._rows.side(nodes, a, b) for a, b in ((i, j), (j, i))]
        used = [side for side in sides if side is not None]
        total = np.zeros((len(weights), len(used[0].step)))
        for rows in self._rows.chunks():
            for side in used:
                u = self._rows.scores(nodes[side.node], rows)[0] @ side.projection
                total += (weights[:, rows] * (nodes[side.node].weights[rows] > 0)) @ u
        return np.asarray(total + np.sum([side.step for side in used], axis=0))

    def _linear(self, i: int, j: int) -> Mask:
        """Return which weights of a pair are linear, flat."""
        return np.outer(self._rows.contrasts[i].linear, self._rows.contrasts[j].linear).ravel()

    def _moments(
        self, edges: Edges, nodes: dict[int, Conditional]
    ) -> list[tuple[Floats, Floats, Floats, Floats] | None]:
        """Return score, both variances and information of every edge; None if it has no test."""
        sides = [
            [self._rows.side(nodes, a, b) for a, b in ((i, j), (j, i))] for i, j in edges.tolist()
        ]
        used = [[side for side in both if side is not None] for both in sides]
        sums = [[np.zeros(len(side.step)) for side in both] for both in used]
        size = [len(both[0].step) if both else 0 for both in used]
        whole, across = ([np.zeros((s, s)) for s in size] for _ in range(2))
        n_clusters = 0 if self._design is None else len(self._design.stratum)
        by_cluster = [np.zeros((n_clusters, s)) for s in size]
        needed = sorted({side.node for both in used for side in both})
        for rows in self._rows.chunks():
            scores: dict[int, Floats] = {}

            def project(i: int, rows: slice = rows, scores: dict[int, Floats] = scores) -> None:
                scores[i] = self._rows.scores(nodes[i], rows)[0]

            def add(k: int, rows: slice = rows, scores: dict[int, Floats] = scores) -> None:
                parts = []
                for side, total in zip(used[k], sums[k], strict=True):
                    w = nodes[side.node].weights[rows]
                    u = scores[side.node] @ side.projection
                    total += w @ u
                    parts.append((u, w))
                if len(parts) == 2:
                    (u, w), (v, other) = parts
                    across[k] += u.T @ (np.minimum(w, other)[:, None] ** self._power * v)
                    # Rows that one of the two conditionals does not use count for the other.
                    both = [u * (w > 0)[:, None] + v * (other > 0)[:, None]]
                    weight = np.maximum(w, other)
                else:
                    both, weight = [part[0] for part in parts], parts[0][1]
                whole[k] += both[0].T @ (weight[:, None] ** self._power * both[0])
                if self._design is not None:
                    by_cluster[k] += self._design.sums(weight[:, None] * both[0], rows.start)

            run(project, needed, self._n_jobs)
            run(add, [k for k in range(len(edges)) if used[k]], self._n_jobs)
        found: list[tuple[Floats, Floats, Floats, Floats] | None] = []
        for k, both in enumerate(used):
            if not both:
                found.append(None)
                continue
            total = max(float(nodes[side.node].weights.sum()) for side in both)
            score = np.sum(sums[k], axis=0)
            by_rows = whole[k] - np.outer(score, score) / total
            if self._design is not None:
                by_rows = self._design.variance(by_cluster[k])
            information = np.sum([side.information for side in both], axis=0)
            by_model = information.copy()
            if len(both) == 2:
                shared = across[k] - np.outer(*sums[k]) / total
                by_model += shared + shared.T
            score = score + np.sum([side.step for side in both], axis=0)
            raised = float(np.mean([nodes[side.node].raised for side in both]))
            found.append((score, by_model * raised, by_rows * raised, information))
        return found

    def _doubtful(self, i: int, j: int, table: Floats, verdict: Verdict | None) -> bool:
        """Return whether a test must be made at zero itself."""
        if verdict is None:
            return False
        few = False
        if self._rows.states[i] == 2 and self._rows.states[j] == 2:
            total = max(self._rows.weights.sum(), TINY)
            few = float(self._rows.margins[i].min() * self._rows.margins[j].min() / total) < _FEW
        if verdict.p_value <= _CLEAR:
            return few
        shown = self._rows.features.matrix(i) @ table @ self._rows.features.matrix(j).T
        shown = shown[self._rows.margins[i] > 0][:, self._rows.margins[j] > 0]
        shown = shown - shown.mean(axis=0)
        shown = shown - shown.mean(axis=1, keepdims=True)
        return bool(few or np.abs(shown).max() > LINEAR)


class Verdict(NamedTuple):
    """A test of some weights; p-values of linear ones and of the others are NaN without such."""

    statistic: float
    dof: int
    p_value: float
    p_linear: float
    p_rest: float


def _empty(m: int) -> Tested:
    return Tested(np.zeros(m), np.zeros(m, np.int64), np.ones(m))


def _write(out: Tested, groups: GroupTests, k: int, verdict: Verdict | None) -> None:
    if verdict is not None:
        out.statistic[k], out.dof[k], out.p_value[k] = verdict[:3]
        groups.p_linear[k], groups.p_rest[k] = verdict[3:]


class WeightGroup(NamedTuple):
    """Some weights of a pair, beside those of the groups before."""

    turn: Floats  # (size, weights) from the score of the pair to that of the group
    directions: Directions
    share: float  # of the level

    def p_values(self, scores: Floats) -> Floats:
        """Return the p-value of one score, or of each row of several."""
        if not self.directions.dof:
            return np.ones(scores.shape[:-1])
        statistics = self.directions.statistics(scores @ self.turn.T)
        return self.directions.p_values(statistics)

    def replicated(self, score: Floats, scores: Floats) -> Floats:
        """Return the p-values that other samples would have, from scores of replicates."""
        if not self.directions.dof:
            return np.ones(len(scores))
        statistics = self.directions.again(self.turn @ score, scores @ self.turn.T)
        return self.directions.p_values(statistics)


def weight_groups(
    by_model: Floats,
    by_rows: Floats,
    linear: Mask,
    freedom: float = np.inf,
    information: Floats | None = None,
) -> list[WeightGroup]:
    """Return the linear weights and the rest, or all in one group.

    The score at zero is information times weights: what linear weights add to the rest is removed
    by the information, which is that of both conditionals and not the variance of the score.
    """
    every = np.eye(len(linear))
    if not linear.any() or linear.all():
        return [WeightGroup(every, directions(by_model, by_rows, freedom), 1.0)]
    rest = every[~linear]
    slopes = by_model if information is None else information
    lead = slopes[np.ix_(linear, linear)]
    rest[:, linear] = -slopes[np.ix_(~linear, linear)] @ np.linalg.pinv(lead)
    return [
        WeightGroup(
            turn, directions(turn @ by_model @ turn.T, turn @ by_rows @ turn.T, freedom), share
        )
        for turn, share in ((every[linear], LINEAR_SHARE), (rest, 1.0 - LINEAR_SHARE))
    ]


def judge_score(
    score: Floats,
    by_model: Floats,
    by_rows: Floats,
    linear: Mask,
    freedom: float = np.inf,
    information: Floats | None = None,
) -> Verdict:
    """Return the verdict of the groups together."""
    groups = weight_groups(by_model, by_rows, linear, freedom, information)
    p = [float(group.p_values(score)) for group in groups]
    raised = [value / group.share for value, group in zip(p, groups, strict=True)]
    best = groups[int(np.argmin(raised))]
    statistic = float(best.directions.statistics(best.turn @ score)) if best.directions.dof else 0.0
    return Verdict(
        statistic,
        best.directions.dof,
        min(1.0, *raised),
        p[0] if linear.any() else np.nan,
        p[1] if len(p) > 1 else np.nan,
    )
