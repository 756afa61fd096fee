"""Paths of penalties, and how stable their edges are."""

from __future__ import annotations

import numpy as np
import pytest
from tests.learn_cases import Log, make_loss, make_table, penalised

from benchmarks.penalty_path import (
    ebic,
    instability,
    largest_penalty,
    most_stable,
    penalty_path,
)
from edgegraft.core import Layout
from edgegraft.counts import PairCounts
from edgegraft.errors import DataError
from edgegraft.grafting.problem import penalty_of
from edgegraft.learn import Plan, grow
from edgegraft.objective import Penalty
from edgegraft.table import PackedTable


@pytest.fixture(scope="module")
def table():
    return make_table(n=8, n_rows=1500)[0]


def plan(**changes):
    return Plan(**{"relaxed": False, "tol": 1e-5, "ridge": 1e-3} | changes)


def test_each_point_is_what_a_run_from_nothing_finds(table):
    path = penalty_path(table, plan(group_weight="sqrt", penalty=1.0, refit=False), [0.03, 0.01])
    for point in path:
        cold = grow(make_loss(table), Penalty(point.penalty, 1e-3), penalised(tol=1e-5))
        assert point.objective == pytest.approx(cold.solution.info.objective, rel=1e-7)
        assert set(map(tuple, point.model.edges.tolist())) == set(
            map(tuple, cold.model().edges.tolist())
        )


def test_penalties_begin_where_there_is_no_edge(table):
    path = penalty_path(table, plan(), 4)
    assert path[0].n_edges == 0
    assert path[-1].n_edges > path[1].n_edges >= 0
    assert (np.diff([point.penalty for point in path]) < 0).all()
    loss = make_loss(table)
    rule = penalty_of(plan(), loss).bound(loss)
    top = largest_penalty(loss, rule, PairCounts(table), np.random.default_rng(0))
    assert path[0].penalty == pytest.approx(top)


def test_held_out_rows_score_each_model(table):
    codes = table.codes()
    half, rest = (PackedTable.from_codes(part, table.schema) for part in np.split(codes, 2))
    path = penalty_path(half, plan(), 3, held_out=rest)
    for point in path:
        expected = point.model.pseudo_log_likelihood(codes=rest.codes()).mean()
        assert point.held_out == pytest.approx(expected)
    assert np.isnan(penalty_path(half, plan(), [0.1])[0].held_out)


def test_ebic_is_its_formula():
    layout = Layout([2, 3, 4], [(0, 1), (1, 2)])
    size = 1 * 2 + 2 * 3
    expected = 2 * 100 * 1.5 / 2 + size * np.log(100) + 4 * 0.25 * size * np.log(3)
    assert ebic(1.5, layout, 100, 2, 0.25) == pytest.approx(expected)


def test_an_observer_ends_a_path(table):
    path = penalty_path(table, plan(), 6, observers=[Log(stop_after=1)])
    assert len(path) < 6


@pytest.mark.parametrize("wrong", [0, [], [-1.0], [np.nan]])
def test_senseless_penalties_are_refused(table, wrong):
    with pytest.raises(ValueError, match="penalt"):
        penalty_path(table, plan(), wrong)


def test_instability_is_counted_over_pairs(table):
    quick = plan(tol=1e-3)
    levels = [1.0, 0.05, 0.0]
    values = instability(table, quick, levels, n_subsamples=3)
    assert values[0] == 0.0
    assert values[1] > 0.0
    again = instability(table, quick, levels, n_subsamples=3)
    np.testing.assert_array_equal(values, again)


def test_the_most_stable_penalty_is_the_last_within_the_limit():
    assert most_stable([1, 2, 4], [0.3, 0.02, 0.01]) == 2
    assert most_stable([1, 2, 4], [0.3, 0.2, 0.1]) == 4


def test_two_rows_have_no_subsamples():
    with pytest.raises(DataError, match="cannot be compared"):
        instability(PackedTable.from_codes([[0, 0], [1, 1]]), None, [0.1])
