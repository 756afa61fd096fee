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
The variance is estimated twice (of rows that were drawn in clusters, see
:mod:`~edgegraft.learn.survey_design`):

- from the model, ``J_i + J_j`` plus the covariance of the two sides over the rows;
- from the rows, the covariance of ``u_r`` (the sandwich), which also holds if the conditionals are
  wrong.

Both are raised by ``N / (N - columns)`` for the parameters that the conditionals fit. The p-value
is the larger of the two. The second alone would be far too small if states are rare: a cell that
happens to be empty has no variance. Directions of the table for which the data have little
information (`MIN_DIRECTION_ROWS`) are omitted: those of rare states, of states that never occur
together, and of redundant columns. The degrees of freedom decrease accordingly; if none remain, the
p-value is 1.

A side whose conditional has too many parameters for its rows is not used. An edge without a usable
side cannot be tested: its p-value is 1, with no degrees of freedom.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core import Layout
from edgegraft.core.checks import check_weights
from edgegraft.core.threads import resolve_jobs, run
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.device import Device
from edgegraft.errors import ModelError
from edgegraft.learn.conditional import Conditional, read_rows
from edgegraft.learn.counted_tests import MIN_EDGES, many_tests
from edgegraft.learn.effective_score import (
    MAX_DOUBTED,
    MIN_DIRECTION_ROWS,
    all_moments,
    describe_all,
    describe_alone,
    directions,
    needs_test_at_zero,
    simpler,
    step_of,
)
from edgegraft.learn.effects import GroupTests
from edgegraft.learn.survey_design import SurveyDesign
from edgegraft.model import PairwiseMRF
from edgegraft.table import PackedTable

MAX_STEP = 2.0  # of a parameter
MAX_BYTES = 1 << 28  # for the information of one conditional, and for residuals

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
        :mod:`~edgegraft.learn.weighting`).

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
    tester = EdgeTester(table, weights, n_jobs=n_jobs, max_bytes=max_bytes, sampling=sampling)
    n = model.layout.n_variables
    found = tester.test(model.layout, model.theta)
    q_value = q_values(found.p_value, n * (n - 1) // 2)
    return EdgeTests(model.edges, found.statistic, found.dof, found.p_value, q_value)


class Tested(NamedTuple):
    """Tests of some edges, in the order of asking; `groups` only of ordered columns."""

    statistic: Floats
    dof: Integers
    p_value: Floats
    groups: GroupTests | None = None

    def as_rows(self) -> Floats:
        """Return all of it as rows of one array, for :meth:`from_rows`."""
        return np.array([self.statistic, self.dof, self.p_value, *(self.groups or ())], float)

    @classmethod
    def from_rows(cls, rows: Floats) -> Self:
        """Return the tests that :meth:`as_rows` described."""
        statistic, dof, p_value, *rest = rows
        groups = GroupTests(*rest) if rest else None
        return cls(statistic, dof.astype(np.int64), p_value, groups)


class EdgeTester:
    """The rows of a table, ready for tests of the edges of any model of them.

    Parameters
    ----------
    table, weights, n_jobs, max_bytes, sampling
        As in :func:`edge_tests`.
    device : Device, optional
        Where sums over the rows are computed; on the processor by default.
    design : SurveyDesign, optional
        Strata and clusters of the rows.
    drawn : array of bool, shape (n_rows, n), optional
        Cells that were missing and have been drawn from a model.
    """

    def __init__(
        self,
        table: PackedTable,
        weights: ArrayLike | None = None,
        *,
        n_jobs: int | None = None,
        max_bytes: int = MAX_BYTES,
        sampling: bool = False,
        device: Device | None = None,
        design: SurveyDesign | None = None,
        drawn: Mask | None = None,
    ) -> None:
        whole = np.ones(table.n_rows) if weights is None else check_weights(weights, table.n_rows)
        self._n_jobs, self._max_bytes = resolve_jobs(n_jobs), max_bytes
        self._rows = read_rows(table, whole, sampling, device, design, drawn, self._n_jobs)
        self._nodes: dict[int, Conditional] = {}  # last conditionals: most serve the next tests

    def test(
        self,
        layout: Layout,
        theta: Floats,
        only: Integers | None = None,
        alone: Integers | None = None,
    ) -> Tested:
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
        chosen = np.arange(layout.n_edges) if only is None else only
        if alone is not None or len(chosen) < MIN_EDGES:
            return self._test(layout, theta, chosen, alone)
        many = many_tests(self._rows, layout, theta, chosen, self._n_jobs)
        rest = np.flatnonzero(~many.settled)
        found = Tested(many.statistic, many.dof, many.p_value)
        each = self._test(layout, theta, chosen[rest], None)
        found.statistic[rest], found.dof[rest] = each.statistic, each.dof
        found.p_value[rest] = each.p_value
        return found

    def _test(
        self, layout: Layout, theta: Floats, chosen: Integers, alone: Integers | None
    ) -> Tested:
        """Test edges one by one."""
        rows, n_jobs = self._rows, self._n_jobs
        ends_of = layout.edges[chosen]
        if alone is None:
            own = np.unique(ends_of)
            nodes = describe_all(rows, layout, theta, n_jobs, self._max_bytes, own, self._nodes)
            ends = [(nodes[i], nodes[j]) for i, j in ends_of.tolist()]
        else:
            ends = describe_alone(
                rows, layout, theta, n_jobs, self._max_bytes, chosen, alone, self._nodes
            )
        statistic, p_value = np.zeros(len(chosen)), np.ones(len(chosen))
        dof = np.zeros(len(chosen), np.int64)
        sides = [
            [(node, b) for node, b in ((first, j), (second, i)) if node.usable]
            for (first, second), (i, j) in zip(ends, ends_of.tolist(), strict=True)
        ]
        states = np.array([len(kept) for kept in rows.kept])
        shown = np.all(states[ends_of] > 0, axis=1).tolist()
        able = [k for k, each in enumerate(sides) if each and shown[k]]
        found = self._judge([sides[k] for k in able], np.zeros(len(able), bool))
        for k, each in zip(able, found, strict=True):
            statistic[k], dof[k], p_value[k] = each
        again = [k for k in able if needs_test_at_zero(float(p_value[k]), *sides[k][0], rows)]
        sparse = np.array([rows.is_sparse(*ends_of[k].tolist()) for k in again], bool)
        ends_at_zero = [
            simpler(sides[k]) if few else sides[k] for k, few in zip(again, sparse, strict=True)
        ]
        both = np.array([len(sides[k]) == 2 for k in again], bool)
        found = self._judge(ends_at_zero, sparse & both, zero=True)
        for k, each, few in zip(again, found, sparse, strict=True):
            if each[1] and not (few and each[2] < p_value[k] < MAX_DOUBTED):
                statistic[k], dof[k], p_value[k] = each
        return Tested(statistic, dof, p_value)

    def steps(self, layout: Layout, theta: Floats) -> Floats:
        """Return how the tables of a model move towards what the rows that know both ends show.

        Node vectors move so that the margins stay, to first order.
        """
        rows, out = self._rows, np.zeros(layout.n_parameters)
        nodes = describe_all(rows, layout, theta, self._n_jobs, self._max_bytes, nodes=self._nodes)
        found: dict[int, Floats] = {}

        def work(k: int) -> None:
            i, j = layout.edges[k].tolist()
            found[k] = step_of(nodes[i], j, nodes[j], rows)

        run(work, range(layout.n_edges), self._n_jobs)
        shares = [
            np.bincount(rows.codes[v], rows.weights, s)[:s] / rows.weights.sum()
            for v, s in enumerate(layout.states.tolist())
        ]
        for k, (i, j) in enumerate(layout.edges.tolist()):  # sums in one order
            step = found[k]
            table = np.zeros((layout.states[i], layout.states[j]))
            if step.size:
                table[np.ix_(rows.kept[i], rows.kept[j])] = np.clip(step, -MAX_STEP, MAX_STEP)
            layout.edge(out, k)[:] = table
            layout.node(out, i)[:] -= table @ shares[j]
            layout.node(out, j)[:] -= shares[i] @ table
        return out

    def _judge(
        self, edges: list[list[tuple[Conditional, int]]], doubled: Mask, *, zero: bool = False
    ) -> list[tuple[float, int, float]]:
        """Return statistics, degrees of freedom and p-values of edges."""
        found = all_moments(
            edges,
            self._rows,
            self._n_jobs,
            doubled=doubled,
            zero=zero,
            max_bytes=0 if zero else self._max_bytes,
        )
        return [_judge(*each, self._rows.freedom) for each in found]


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


def _judge(
    score: Floats, by_model: Floats, by_rows: Floats, freedom: float
) -> tuple[float, int, float]:
    """Return statistic, degrees of freedom and p-value, by the larger of the two variances."""
    usable = directions(by_model, by_rows, freedom)
    if usable.dof == 0:
        return 0.0, 0, 1.0
    statistic = usable.statistics(score)
    return float(statistic), usable.dof, float(usable.p_values(statistic))
