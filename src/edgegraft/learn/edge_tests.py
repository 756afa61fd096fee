"""Significance of edges: a test of ``w_ij = 0`` for every edge of a fitted model.

In the conditional of ``i`` given its neighbours, the part that the other parameters could explain
is removed from the score of the table ``w_ij`` (Neyman's effective score), by the information of
that conditional; likewise in the conditional of ``j``. Both are moved to ``w_ij = 0`` by one Newton
step from the fit, for which all edges of a variable share ``H``, and added:

    U = sum over sides of sum_r u_r + J w,      u_r = J [H^-1 psi_r]_w,     J = ([H^-1]_ww)^-1

``psi_r`` is the score of row ``r`` for all parameters of the conditional and ``H`` their
information. To first order ``U`` does not depend on errors in the other parameters, so a ridge
refit is sufficient. A table that is too strong for one step (if states rarely occur together,
conditionals at the fit are nearly certain and have no information) is tested at ``w_ij = 0``
itself, with a separate ``H``, unless the step is already clearly significant; so is a pair whose
rare states should meet in few rows, where the step can make p-values a thousand times too small.
If such a pair has two-state columns, or so few rows that no direction of its table has enough, its
p-value is a tail probability of the number of meetings (:mod:`~edgegraft.learn.sparse_tails`).
The variance is estimated twice (of rows that were drawn in clusters, see
:mod:`~edgegraft.conditional.survey_design`):

- from the model, ``J_i + J_j`` plus the covariance of the two sides over the rows;
- from the rows, the covariance of ``u_r`` (the sandwich), which also holds if the conditionals are
  wrong.

Both are raised by ``N / (N - columns)`` for the parameters that the conditionals fit. The p-value
is the larger of the two. The second alone would be far too small if states are rare: a cell that
happens to be empty has no variance. Directions of the table for which the data have little
information (`MIN_DIRECTION_ROWS`) are omitted: those of rare states, of states that never occur
together, and of redundant columns. The degrees of freedom decrease accordingly; if none remain, the
p-value is 1.

The states of columns of more than ten are put together in groups for their tests, which are made at
zero and in one conditional (:mod:`~edgegraft.learn.pooled_conditionals`).

A side whose conditional has too many parameters for its rows is not used. An edge without a usable
side cannot be tested: its p-value is 1, with no degrees of freedom.

If any column is ordered, conditionals have weights of features
(:mod:`~edgegraft.learn.feature_conditionals`). The weights of a pair with an ordered end fall into
two groups, each with its own test:

- *linear*: the linear scores; one weight if both ends are ordered or have two states;
- *rest*: the further scores, beside the linear weights. It answers "is linear enough?".

The p-value of the edge is ``min(p_linear / 0.9, p_rest / 0.1)``, a Bonferroni correction that
leaves the linear test nearly all of the level: it costs a linear edge a tenth of its p-value. Of
columns of few levels a third group, the rest of the table, is tested once edges are known
(:func:`judge_tables`). It says whether the scores are enough, and takes no share of the level.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.conditional.features import Features
from edgegraft.conditional.survey_design import SurveyDesign
from edgegraft.core import Layout
from edgegraft.core.threads import resolve_jobs, run
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.errors import ModelError
from edgegraft.learn.conditional import MAX_BYTES, Conditional, Conditionals
from edgegraft.learn.counted_tests import MIN_EDGES, many_tests
from edgegraft.learn.effective_score import (
    MAX_DOUBTED,
    MIN_DIRECTION_ROWS,
    Ends,
    GroupTests,
    Verdict,
    Verdicts,
    all_moments,
    judge_score,
    needs_test_at_zero,
    simpler,
    sum_rows,
)
from edgegraft.learn.feature_conditionals import FeatureConditionals, contrasts_of, state_weights
from edgegraft.learn.graded import whole_widths
from edgegraft.learn.pooled_conditionals import conditionals_of
from edgegraft.learn.sparse_tails import tail_at_zero
from edgegraft.learn.table_conditionals import TableConditionals
from edgegraft.model import PairwiseMRF
from edgegraft.table import PackedTable
from edgegraft.table.blocks import TableRows

_MANY_STATES = 32  # of a column
_MAX_STEP = 2.0  # of a parameter
_SCORES = 2  # of an ordered column in the search and its tests

__all__ = ["MIN_DIRECTION_ROWS", "EdgeTester", "EdgeTests", "edge_tests", "q_values"]


class EdgeTests(NamedTuple):
    """One test per edge.

    Attributes
    ----------
    edges : array of int, shape (m, 2)
        In the order of the model.
    statistic : array of float, shape (m,)
        Chi-squared with `dof` degrees of freedom if ``w_ij = 0``.
    dof : array of int, shape (m,)
        At most ``(s_i - 1) (s_j - 1)``.
    p_value : array of float, shape (m,)
        Never zero: at least the smallest normal number.
    q_value : array of float, shape (m,)
        Smallest false discovery rate at which the edge is kept.
    groups : GroupTests, optional
        Tests of linear and further scores, if any column is ordered.
    """

    edges: Edges
    statistic: Floats
    dof: Integers
    p_value: Floats
    q_value: Floats
    groups: GroupTests | None = None

    @classmethod
    def of(cls, edges: Edges, tested: Verdicts, q_value: Floats, *, ordered: bool) -> EdgeTests:
        """Return verdicts on edges with their q-values; of groups if any column is ordered."""
        groups = GroupTests(tested.p_linear, tested.p_rest) if ordered else None
        return cls(edges, *tested[:3], q_value, groups)


def edge_tests(
    table: PackedTable,
    model: PairwiseMRF,
    *,
    weights: ArrayLike | None = None,
    n_jobs: int | None = None,
    max_bytes: int = MAX_BYTES,
    sampling: bool = False,
) -> EdgeTests:
    """Test every edge of a model that was fitted to `table`.

    The q-values are those of Benjamini and Hochberg over all ``n (n - 1) / 2`` pairs. A pair that
    is not an edge counts as tested with a p-value of 1. This keeps the rate valid although the same
    rows chose the edges: compared with testing every pair, the choice can only have raised p-values
    to 1. The p-values of the edges alone, or q-values over the edges only, would ignore that they
    are the best of many. One case is not covered: other edges may replace a true edge that the
    model lacks, so the model should rather have too many edges.

    Parameters
    ----------
    table : PackedTable
        A conditional uses the rows in which its variable and all of its neighbours are known.
    model : PairwiseMRF
        Model fitted by pseudolikelihood and a small ridge, as by `refit`.
    weights : array of float, shape (table.n_rows,), optional
        Row weights; a row of weight 2 is two rows.
    n_jobs : int, optional
        Threads; -1 for all cores. The results do not depend on it.
    max_bytes : int, default 256 MiB
        Memory for the information of one conditional, and for residuals. A conditional that
        needs more is not used.
    sampling : bool, default False
        Whether the weights are those of a sample, scaled to the effective number of rows (see
        :mod:`~edgegraft.conditional.survey_design`).

    Examples
    --------
    >>> from edgegraft.datasets import make_chain
    >>> from edgegraft.learn import grow, refit
    >>> from edgegraft.objective.penalty import Penalty
    >>> from edgegraft.objective.pseudolikelihood import Pseudolikelihood
    >>> data = make_chain(5, n_rows=2000, couplings="ising", random_state=0)
    >>> table = PackedTable.from_codes(data.X.astype(int))
    >>> found = edge_tests(table, refit(grow(Pseudolikelihood(table), Penalty(0.001))))
    >>> sorted(found.edges[found.q_value <= 0.05].tolist())
    [[0, 1], [1, 2], [2, 3], [3, 4]]
    """
    _check_fit(table, model)
    rows = conditionals_of(table, weights, sampling=sampling, max_bytes=max_bytes)
    tester = EdgeTester(rows, n_jobs)
    n = model.layout.n_variables
    found = tester.test(model.layout, model.theta)
    q_value = q_values(found.p_value, n * (n - 1) // 2)
    return EdgeTests.of(model.edges, found, q_value, ordered=False)


def make_tester(
    features: Features | None,
    rows: TableRows,
    n_jobs: int | None,
    *,
    sampling: bool = False,
    survey: SurveyDesign | None = None,
    drawn: Mask | None = None,
) -> EdgeTester:
    """Return what tests the edges of a model of some rows, of which some cells may be drawn."""
    table, weights = rows.table, rows.weights
    if features is None and not _is_too_large(table):
        tables = conditionals_of(
            table, weights, sampling=sampling, survey=survey, device=rows.device, drawn=drawn
        )
        return EdgeTester(tables, n_jobs)
    known = features or Features.plain(table.schema)
    scored = FeatureConditionals(table, known, weights, sampling=sampling, survey=survey)
    return EdgeTester(scored, n_jobs)


def _is_too_large(table: PackedTable) -> bool:
    """Return whether the expected states of a column of very many would fill the memory."""
    widest = int(table.schema.n_states.max(initial=0))
    return widest > _MANY_STATES and 8 * widest * table.n_rows > MAX_BYTES


def judge_tables(
    model: PairwiseMRF,
    rows: TableRows,
    n_jobs: int | None,
    *,
    sampling: bool = False,
    survey: SurveyDesign | None = None,
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
    whole = FeatureConditionals(
        table, features, rows.weights, sampling=sampling, survey=survey, contrasts=first
    )
    layout, theta = features.layout(model.edges), features.weights_of(model.theta, model.edges)
    found[chosen] = EdgeTester(whole, n_jobs).test(layout, theta, chosen).p_rest
    return found


class EdgeTester:
    """Tests of the edges of any model of some rows."""

    def __init__(self, rows: Conditionals, n_jobs: int | None = None) -> None:
        self.rows, self._n_jobs = rows, resolve_jobs(n_jobs)
        self._nodes: dict[int, Conditional] = {}  # last conditionals: most serve the next tests

    def test(
        self,
        layout: Layout,
        theta: Floats,
        only: Integers | None = None,
        alone: Integers | None = None,
    ) -> Verdicts:
        """Test edges of a model.

        Parameters
        ----------
        layout : Layout
        theta : array of float
            Fitted; edges at zero are tested as additions to the others.
        only : array of int, optional
            Positions of the edges to test, in the order of the results; all by default.
        alone : array of int, optional
            Positions of edges that are left out of each other's tests; those to test are among
            them.
        """
        chosen = np.arange(layout.n_edges) if only is None else np.asarray(only)
        counts = isinstance(self.rows, TableConditionals) and len(chosen) >= MIN_EDGES
        if alone is not None or not counts:
            return self._test(layout, theta, chosen, alone)
        assert isinstance(self.rows, TableConditionals)
        found, settled = many_tests(self.rows, layout, theta, chosen, self._n_jobs)
        rest = np.flatnonzero(~settled)
        found.put(rest, self._test(layout, theta, chosen[rest], None))
        return found

    def _test(
        self, layout: Layout, theta: Floats, chosen: Integers, alone: Integers | None
    ) -> Verdicts:
        """Test edges one by one."""
        rows, n_jobs, pairs = self.rows, self._n_jobs, layout.edges[chosen]
        if alone is None:
            only, known = np.unique(pairs), self._nodes
            nodes = rows.describe_all(layout, theta, n_jobs, only, known, inverse=rows.at_fit)
            both = [(nodes[i], nodes[j]) for i, j in pairs.tolist()]
        else:
            both = rows.describe_alone(layout, theta, n_jobs, chosen, alone, self._nodes)
        ends = [
            [(node, b) for node, b in ((first, j), (second, i)) if node.usable]
            for (first, second), (i, j) in zip(both, pairs.tolist(), strict=True)
        ]
        shown = np.all(rows.sizes[pairs] > 0, axis=1).tolist()
        able = [k for k, each in enumerate(ends) if each and shown[k]]
        verdicts: dict[int, Verdict] = {}
        if rows.at_fit:
            found = self._judge([ends[k] for k in able], np.zeros(len(able), bool))
            verdicts = dict(zip(able, found, strict=True))
            p_value = np.array([verdicts[k].p_value for k in able])
            strength = np.array([rows.strength(*ends[k][0]) for k in able])
            due = needs_test_at_zero(p_value, strength, pairs[able], rows)
            able = [k for k, again in zip(able, due, strict=True) if again]
        verdicts |= self._test_at_zero({k: ends[k] for k in able}, verdicts)
        out = np.tile([0.0, 0.0, 1.0, np.nan, np.nan], (len(chosen), 1))
        for k, verdict in verdicts.items():
            out[k] = verdict
        return Verdicts.of(out.T[: 5 if rows.grouped else 3])

    def _test_at_zero(
        self, edges: dict[int, Ends], verdicts: dict[int, Verdict]
    ) -> dict[int, Verdict]:
        """Return those verdicts on edges that tests at zero replace; all if there are none yet."""
        rows = self.rows
        pairs = np.array([(ends[0][0].target, ends[0][1]) for ends in edges.values()], np.int64)
        i, j = pairs.reshape(-1, 2).T
        few = rows.rarity.are_sparse(i, j)
        by_tail = few & rows.rarity.are_single(i, j) & (rows.at_fit or rows.survey is None)
        sparse = dict(zip(edges, few.tolist(), strict=True))
        tails = [k for k, alone in zip(edges, by_tail, strict=True) if alone]
        sides = {  # of a sparse edge one stands for both
            k: simpler(ends) if sparse[k] or not rows.at_fit else ends
            for (k, ends), alone in zip(edges.items(), by_tail, strict=True)
            if not alone
        }
        doubled = np.array([len(used) < len(edges[k]) for k, used in sides.items()], bool)
        judged = self._judge(list(sides.values()), doubled, zero=True)
        found: dict[int, Verdict] = {}
        for k, verdict in zip(sides, judged, strict=True):
            before = verdicts.get(k, verdict).p_value
            if not verdict.dof:
                tails += [k] * sparse[k]
            elif not (sparse[k] and verdict.p_value < before < MAX_DOUBTED):
                found[k] = verdict
                tails += [k] * (sparse[k] and k not in verdicts and before < MAX_DOUBTED)

        def work(k: int) -> None:
            tail = tail_at_zero(edges[k], rows).judge()
            # Tails are those of rows that were drawn one by one.
            other = verdicts.get(k) if rows.survey is not None else None
            other = found.get(k, other)
            found[k] = max(tail, other or tail, key=lambda each: each.p_value)

        run(work, tails, self._n_jobs)
        return found

    def steps(self, layout: Layout, theta: Floats) -> Floats:
        """Return how the tables of a model move towards what the rows that know both ends show.

        Node vectors move so that the margins stay, to first order.
        """
        rows, out = self.rows, np.zeros(layout.n_parameters)
        assert isinstance(rows, TableConditionals)
        nodes = rows.describe_all(layout, theta, self._n_jobs, nodes=self._nodes)
        found: dict[int, Floats] = {}

        def work(k: int) -> None:
            i, j = layout.edges[k].tolist()
            found[k] = _step_of(nodes[i], nodes[j], rows)

        run(work, range(layout.n_edges), self._n_jobs)
        shares = [
            np.bincount(rows.codes[v], rows.weights, s)[:s] / rows.weights.sum()
            for v, s in enumerate(layout.states.tolist())
        ]
        for k, (i, j) in enumerate(layout.edges.tolist()):  # sums in one order
            table = np.zeros((layout.states[i], layout.states[j]))
            if found[k].size:
                table = rows.whole_table(i, j, np.clip(found[k], -_MAX_STEP, _MAX_STEP))
            layout.edge(out, k)[:] = table
            layout.node(out, i)[:] -= table @ shares[j]
            layout.node(out, j)[:] -= shares[i] @ table
        return out

    def _judge(self, edges: list[Ends], doubled: Mask, *, zero: bool = False) -> list[Verdict]:
        """Return the verdicts of edges, by the larger of the two variances."""
        rows = self.rows
        found = all_moments(edges, rows, self._n_jobs, doubled=doubled, zero=zero)
        pairs = [sorted((ends[0][0].target, ends[0][1])) for ends in edges]
        return [
            judge_score(*each[:3], rows.linear(*pair), rows.freedom, each.information)
            for each, pair in zip(found, pairs, strict=True)
        ]


def _step_of(one: Conditional, other: Conditional, rows: TableConditionals) -> Floats:
    """Return the step of an edge's table that its score asks for, in the rows that know both ends.

    A ridge of one row keeps it finite. Rows are observed states of the end of the smaller index,
    without its reference.
    """
    i, j = one.target, other.target
    ends = [(node, b) for node, b in ((one, j), (other, i)) if node.inverse is not None]
    if not ends:
        return np.zeros((0, 0))
    found, _ = sum_rows([rows.side(node, b) for node, b in ends], rows)
    step = np.linalg.solve(found.information + np.eye(len(found.shift)), found.sums.sum(axis=0))
    return np.asarray((rows.basis(i, j).T @ step).reshape(rows.sizes[i], rows.sizes[j]))


def q_values(p_values: ArrayLike, n_tests: int) -> Floats:
    """Return the q-values of Benjamini and Hochberg among `n_tests`; further tests have p = 1.

    Examples
    --------
    >>> q_values([0.001, 0.5, 0.02], 10)
    array([0.01, 1.  , 0.1 ])
    """
    p = np.asarray(p_values, np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise ValueError("p-values must be a vector of numbers from 0 to 1")
    if n_tests < len(p):
        raise ValueError(f"there are {len(p)} p-values, more than the {n_tests} tests stated")
    order = np.argsort(p, kind="stable")
    raised = p[order] * n_tests / np.arange(1, len(p) + 1)
    out = np.empty(len(p))
    out[order] = np.minimum.accumulate(np.minimum(raised, 1.0)[::-1])[::-1]
    return out


def _check_fit(table: PackedTable, model: PairwiseMRF) -> None:
    if table.schema.names != model.names:
        raise ModelError("the table's columns are not those of the model, in the same order")
    differ = np.flatnonzero(table.schema.n_states != model.layout.states)
    if differ.size:
        i = int(differ[0])
        raise ModelError(
            f"column '{model.names[i]}' has {table.schema.n_states[i]} states in the table and "
            f"{model.layout.states[i]} in the model"
        )
