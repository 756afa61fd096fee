"""Tails of the number of rows in which two rare states meet."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import hypergeom

from edgegraft.conditional.features import Features
from edgegraft.ingest import pack
from edgegraft.learn.edge_tests import EdgeTester, edge_tests
from edgegraft.learn.feature_conditionals import FeatureConditionals, state_weights
from edgegraft.learn.replicate_tests import replicate_p_values
from edgegraft.learn.sparse_tails import tail_at_zero
from edgegraft.learn.table_conditionals import TableConditionals
from edgegraft.table import PackedTable
from tests.edge_test_twin import blocks, fit

N_ROWS = 5000


def met(one: int, other: int, both: int, n_rows: int = N_ROWS) -> np.ndarray:
    """Return two columns with given numbers of rows in state 1, and in both."""
    codes = np.zeros((n_rows, 2), np.int64)
    codes[:one, 0] = 1
    codes[one - both : one - both + other, 1] = 1
    return codes


def tail_of(codes, weights=None, *, sampling=False):
    """Return the tail of the first two columns in the model of that edge alone."""
    table = PackedTable.from_codes(codes)
    model = fit(table, np.array([[0, 1]]), 1e-6, weights=weights)
    rows = TableConditionals(table, weights, sampling=sampling)
    nodes = rows.describe_all(model.layout, model.theta, 1)
    return tail_at_zero([(nodes[0], 1), (nodes[1], 0)], rows)


@pytest.mark.parametrize(("one", "other"), [(6, 20), (50, 80), (150, 200), (400, 300)])
def test_two_columns_have_the_tail_of_the_exact_test(one, other):
    expected = one * other / N_ROWS
    for both in (int(expected + k * np.sqrt(expected + 0.5)) + 1 for k in (1, 2, 4)):
        exact = 2 * hypergeom.sf(both - 1, N_ROWS, one, other)
        tail = tail_of(met(one, other, both))
        assert 0.8 * exact < tail.p_value(tail.score) < 2.5 * exact


def test_a_cell_that_should_have_rows_and_has_none_is_told_by_the_other_tail():
    tail = tail_of(met(400, 200, 1))
    assert tail.score < 0
    exact = 2 * hypergeom.cdf(1, N_ROWS, 400, 200)
    assert 0.8 * exact < tail.p_value(tail.score) < 4 * exact


def test_the_edge_test_uses_it():
    codes = met(25, 40, 3)
    found = edge_tests(PackedTable.from_codes(codes), fit(PackedTable.from_codes(codes), [[0, 1]]))
    exact = hypergeom.sf(2, N_ROWS, 25, 40)
    assert found.dof[0] == 1
    assert exact < found.p_value[0] < 3 * exact


def test_states_that_always_meet_are_never_by_chance():
    tail = tail_of(met(30, 30, 30))
    assert tail.p_value(tail.score) < 1e-40
    assert tail.p_value(0.0) == 1.0


def test_rare_columns_that_share_a_neighbour_are_not_joined_by_it():
    rng = np.random.default_rng(0)

    def draw():
        hub = rng.random(N_ROWS) < 0.02
        leaves = rng.random((N_ROWS, 2)) < np.where(hub, 0.4, 0.01)[:, None]
        return np.column_stack([leaves[:, 0], hub, leaves[:, 1]]).astype(int)

    table, model = blocks(draw, 150, 3, [(0, 1), (1, 2), (0, 2)], ridge=1e-5)
    found = edge_tests(table, model)
    outer = found.edges[:, 1] - found.edges[:, 0] == 2
    assert (found.p_value[outer] < 0.05).mean() < 0.07
    assert np.median(found.p_value[~outer]) < 1e-6


def test_of_larger_tables_the_strangest_of_all_cells_is_tested():
    rng = np.random.default_rng(1)
    codes = rng.choice(12, (300, 2), p=[0.45, *[0.05] * 11])
    codes[:9] = 3
    tail, table = tail_of(codes), np.zeros((12, 12))
    np.add.at(table, tuple(codes.T), 1)
    exact = hypergeom.sf(table[3, 3] - 1, 300, table[3].sum(), table[:, 3].sum())
    assert 0.5 < tail.p_value(tail.score) / (2 * 11 * 11 * exact) < 5.0


def test_weights_that_count_rows_repeat_them():
    codes = met(30, 60, 4)
    weights = np.random.default_rng(2).integers(1, 4, N_ROWS).astype(float)
    one, other = tail_of(codes, weights), tail_of(np.repeat(codes, weights.astype(int), axis=0))
    assert one.p_value(one.score) == pytest.approx(other.p_value(other.score), rel=1e-3)


def test_sampling_weights_widen_the_tail():
    codes = met(60, 90, 9)
    weights = np.where(np.arange(N_ROWS) % 2 == 0, 1.9, 0.1)
    drawn, counted = tail_of(codes, weights, sampling=True), tail_of(codes, weights)
    assert drawn.p_value(8.0) > 3 * counted.p_value(8.0)


def test_replicates_vary_about_the_score_that_chance_has_not_raised():
    codes = met(40, 60, 12)
    table = PackedTable.from_codes(codes)
    model = fit(table, [[0, 1]], 1e-6)
    rows = TableConditionals(table)
    weights = np.random.default_rng(3).multinomial(N_ROWS, np.full(N_ROWS, 1 / N_ROWS), 200)
    found = replicate_p_values(rows, model.layout, model.theta, model.edges, weights.astype(float))
    p = EdgeTester(rows, 1).test(model.layout, model.theta).p_value[0]
    assert (found <= 1).all()
    assert p < 1e-9 < np.median(found[:, 0]) ** 0.5
    assert (found[:, 0] < 1e-4).mean() > 0.9


@pytest.mark.parametrize("n_states", [2, 4])
def test_beside_ordered_columns_unordered_pairs_have_the_tests_of_tables(n_states):
    rng = np.random.default_rng(n_states)
    p = [1 - 0.02 * (n_states - 1), *[0.02] * (n_states - 1)]
    codes = rng.choice(n_states, (2000, 3), p=p)
    codes[:5, :2] = 1
    codes[:, 2] = np.where(rng.random(2000) < 0.5, codes[:, 1], codes[:, 2])
    table = PackedTable.from_codes(codes)
    model = fit(table, [[0, 1], [1, 2]], 1e-5)
    margins = np.concatenate(state_weights(table, np.ones(2000)))
    whole = Features.plain(table.schema)
    # Columns of two states have one score, if any column is ordered.
    features = Features.of(table.schema, margins, np.ones(3, int)) if n_states == 2 else whole
    plain, scored = TableConditionals(table), FeatureConditionals(table, features)
    layout = features.layout(model.edges)
    theta = features.weights_of(model.theta, model.edges) if n_states == 2 else model.theta
    assert scored.rarity.are_sparse(0, 1)
    found, again = (
        EdgeTester(rows, 1).test(on, at)
        for rows, on, at in ((plain, model.layout, model.theta), (scored, layout, theta))
    )
    np.testing.assert_allclose(again.p_value, found.p_value, rtol=1e-3)
    tails = []
    for rows, on, at in ((plain, model.layout, model.theta), (scored, layout, theta)):
        nodes = rows.describe_all(on, at, 1)
        tails.append(tail_at_zero([(nodes[0], 1), (nodes[1], 0)], rows))
    one, other = (tail.p_value(tail.score) for tail in tails)
    assert other == pytest.approx(one, rel=1e-3)


def test_ordered_columns_are_never_sparse():
    rng = np.random.default_rng(4)
    codes = np.column_stack((rng.random((500, 2)) < 0.02, rng.integers(0, 5, (500, 2)))).astype(int)
    table = pack(codes, kinds={"x2": "ordinal", "x3": "ordinal"})
    margins = np.concatenate(state_weights(table, np.ones(500)))
    rows = FeatureConditionals(table, Features.of(table.schema, margins))
    i, j = np.array([(0, 1), (0, 2), (2, 3)]).T
    assert rows.rarity.are_sparse(i, j).tolist() == [True, False, False]
    assert rows.rarity.are_few(i, j).tolist() == [True, False, False]
