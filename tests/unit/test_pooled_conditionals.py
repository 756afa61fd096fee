"""Tests of edges between columns of many states, by groups of states."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from edgegraft.learn import table_conditionals
from edgegraft.learn.edge_tests import EdgeTester, edge_tests
from edgegraft.learn.pooled_conditionals import (
    MAX_ALONE,
    PooledConditionals,
    conditionals_of,
    group_states,
)
from edgegraft.learn.replicate_tests import replicate_p_values
from edgegraft.learn.table_conditionals import TableConditionals
from edgegraft.table import PackedTable
from tests.edge_test_twin import blocks, fit

N_ROWS, STATES = 3000, 21


def drawn(n: int, seed: int, alpha: float = 0.5) -> np.ndarray:
    """Return independent columns of many uneven states."""
    rng = np.random.default_rng(seed)
    margins = rng.dirichlet(np.full(STATES, alpha), n)
    codes = np.stack([rng.choice(STATES, N_ROWS, p=p) for p in margins], axis=1)
    codes[0] = STATES - 1  # the number of states is known
    return codes


@given(st.lists(st.integers(0, 40), min_size=1, max_size=30), st.integers(1, 60))
def test_groups_have_enough_rows_unless_all_rare_states_together_have_not(counts, least):
    shown = np.array(counts, float)
    group = group_states(shown, least)
    np.testing.assert_array_equal(group < 0, shown == 0)
    if (group >= 0).any():
        rows = np.bincount(group[group >= 0], shown[group >= 0])
        assert (rows > 0).all()
        too_few = rows < least
        assert too_few.sum() <= 1
        assert not too_few.any() or rows[too_few][0] == shown[shown < least].sum()
        assert all(group[a] != group[b] for a in np.flatnonzero(shown >= least)
                   for b in np.flatnonzero(group >= 0) if a != b)  # fmt: skip


def test_few_states_are_tested_one_by_one():
    codes = np.random.default_rng(0).integers(0, MAX_ALONE, (500, 3))
    assert type(conditionals_of(PackedTable.from_codes(codes))) is TableConditionals
    pooled = PooledConditionals(PackedTable.from_codes(codes))
    np.testing.assert_array_equal(pooled.sizes, MAX_ALONE - 1)


@pytest.mark.parametrize("seed", range(4))
def test_two_columns_have_the_statistic_of_their_table_of_groups(seed):
    codes = drawn(2, seed)
    table = PackedTable.from_codes(codes)
    rows = PooledConditionals(table)
    groups = np.zeros(rows.sizes + 1)
    np.add.at(groups, tuple(rows.place_of(v) for v in (0, 1)), 1)
    pearson = chi2_contingency(groups, correction=False)
    found = edge_tests(table, fit(table, [[0, 1]], 1e-4))
    assert found.dof[0] == pearson.dof
    # It is the smaller of this one and that by the rows, both less what intercepts take.
    assert 0.85 * pearson.statistic < found.statistic[0] < 1.001 * pearson.statistic


def test_a_neighbour_of_many_states_joins_its_neighbours_at_their_level():
    rng = np.random.default_rng(5)
    margin = rng.dirichlet(np.full(STATES, 0.7))

    def draw():
        hub = rng.choice(STATES, N_ROWS, p=margin)
        other = rng.choice(STATES, (N_ROWS, 2), p=margin)
        shown = np.where(rng.random((N_ROWS, 2)) < 0.5, hub[:, None], other)
        return np.column_stack([shown[:, 0], hub, shown[:, 1]])

    table, model = blocks(draw, 40, 3, [(0, 1), (1, 2), (0, 2)], ridge=0.1 / N_ROWS)
    found = edge_tests(table, model)
    outer = found.edges[:, 1] - found.edges[:, 0] == 2
    assert found.p_value[~outer].max() < 1e-20
    assert (found.p_value[outer] < 0.05).mean() < 0.2
    assert found.p_value[outer].min() > 1e-4


def test_an_edge_that_is_added_is_tested_as_one_at_zero(monkeypatch):
    table = PackedTable.from_codes(drawn(4, 7))
    model = fit(table, [[0, 1], [1, 2]], 1e-4)
    grown = model.layout.grow(np.array([[2, 3]]))
    theta = grown.carry(model.theta, model.layout)
    rows = PooledConditionals(table)
    last = np.array([2])
    known = EdgeTester(rows).test(grown, theta, last, last)
    for small in (0, 10_000):  # columns of the inverse, or all of it
        monkeypatch.setattr(table_conditionals, "_SMALL", small)
        found = EdgeTester(rows).test(grown, theta, last)
        np.testing.assert_allclose(found.statistic, known.statistic, rtol=1e-2)


def test_missing_cells_and_replicates_follow_the_groups():
    codes = drawn(3, 8)
    codes[:, 1] = np.where(np.random.default_rng(0).random(N_ROWS) < 0.4, codes[:, 0], codes[:, 1])
    codes[np.random.default_rng(1).random(codes.shape) < 0.05] = -1
    table = PackedTable.from_codes(codes, PackedTable.from_codes(drawn(3, 8)).schema)
    model = fit(table, [[0, 1], [1, 2]], 1e-4)
    rows = PooledConditionals(table)
    tester = EdgeTester(rows)
    found = tester.test(model.layout, model.theta)
    assert found.p_value[0] < 1e-50
    assert found.p_value[1] > 1e-3
    weights = np.random.default_rng(2).multinomial(N_ROWS, np.full(N_ROWS, 1 / N_ROWS), 20)
    again = replicate_p_values(rows, model.layout, model.theta, model.edges, weights.astype(float))
    assert (again[:, 0] < 1e-20).all()
    assert np.median(again[:, 1]) > 1e-4
    moved = tester.steps(model.layout, model.theta)
    assert np.isfinite(moved).all()
    assert np.abs(moved).max() < 5
