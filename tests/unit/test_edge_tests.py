"""Tests of edges: the numbers, against a plain twin, and what must not change them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from edgegraft.learn import table_conditionals
from edgegraft.learn.edge_tests import EdgeTester, edge_tests, q_values
from edgegraft.model import PairwiseMRF
from edgegraft.table import PackedTable, Schema
from tests.edge_test_twin import fit, statistics_of
from tests.pseudolikelihood_twin import make_case

STATES = [3, 2, 4, 2, 5, 3]


def agree(found, expected, rtol=1e-6):
    statistic, dof, p = expected
    np.testing.assert_array_equal(found.dof, dof)
    np.testing.assert_allclose(found.statistic, statistic, rtol=rtol, atol=1e-6)
    np.testing.assert_allclose(found.p_value, p, rtol=1e-4)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("missing", [0.0, 0.05])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_twin_finds_the_same(seed, missing, weighted, monkeypatch):
    monkeypatch.setattr(
        table_conditionals, "_NEWTON_STEPS", 0
    )  # the twin uses the given parameters
    codes, table, layout, _ = make_case(STATES, 600, missing, density=0.6, seed=seed)
    weights = np.random.default_rng(100 + seed).integers(0, 3, 600) if weighted else None
    model = fit(table, layout.edges, weights=weights)
    found = edge_tests(table, model, weights=weights)
    agree(found, statistics_of(codes, model, weights))
    assert (found.dof > 0).all()


def test_any_parameters_may_be_given():
    codes, table, layout, theta = make_case(STATES, 800, seed=3)
    model = PairwiseMRF(table.schema, layout.edges, 0.3 * theta)
    agree(edge_tests(table, model), statistics_of(codes, model))


def test_large_conditionals_are_inverted_by_a_library(monkeypatch):
    _, table, layout, theta = make_case(STATES, 800, seed=4)
    model = PairwiseMRF(table.schema, layout.edges, 0.3 * theta)
    small = edge_tests(table, model)
    monkeypatch.setattr(table_conditionals, "_SMALL", 0)
    np.testing.assert_allclose(edge_tests(table, model).statistic, small.statistic, rtol=1e-8)


def test_where_cells_are_missing_parameters_are_brought_to_fit_complete_rows(monkeypatch):
    _, table, layout, theta = make_case([3, 2, 3], 4000, missing=0.1, density=1.0, seed=9)
    rows = table_conditionals.TableConditionals(table)
    edges = np.flatnonzero((layout.edges == 0).any(axis=1))

    def largest_score():
        return np.abs(rows.scores(rows.describe(0, layout, 0.1 * theta, edges))).max()

    assert largest_score() < 3  # rows, of about 2,900
    monkeypatch.setattr(table_conditionals, "_NEWTON_STEPS", 0)
    assert largest_score() > 100


def test_threads_and_memory_for_residuals_change_nothing():
    _, table, layout, theta = make_case(STATES, 3000, missing=0.02, density=0.8, seed=5)
    model = PairwiseMRF(table.schema, layout.edges, 0.3 * theta)
    one = edge_tests(table, model)
    for other in (edge_tests(table, model, n_jobs=3), edge_tests(table, model, max_bytes=1 << 16)):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_weight_counts_rows():
    codes, table, layout, _ = make_case(STATES, 500, seed=6)
    weights = np.random.default_rng(0).integers(0, 4, 500)
    model = fit(table, layout.edges, weights=weights)
    repeated = PackedTable.from_codes(np.repeat(codes, weights, axis=0), table.schema)
    one, other = edge_tests(table, model, weights=weights), edge_tests(repeated, model)
    np.testing.assert_allclose(one.statistic, other.statistic, rtol=1e-8)
    np.testing.assert_array_equal(one.dof, other.dof)


def test_names_of_states_and_order_of_variables_do_not_matter():
    codes, table, layout, theta = make_case(STATES, 700, seed=7)
    rng = np.random.default_rng(1)
    order = rng.permutation(len(STATES))
    labels = [rng.permutation(s) for s in STATES]  # new code of each old one
    states = np.array(STATES)[order]
    moved = np.column_stack([labels[v][codes[:, v]] for v in order])
    place = np.argsort(order)
    model = PairwiseMRF(table.schema, layout.edges, 0.3 * theta)
    edges = np.sort(place[layout.edges], axis=1)
    nodes = [layout.node(model.theta, v)[np.argsort(labels[v])] for v in order]
    tables = []
    for k, (i, j) in enumerate(layout.edges):
        named = layout.edge(model.theta, k)[np.ix_(np.argsort(labels[i]), np.argsort(labels[j]))]
        tables.append((named if place[i] < place[j] else named.T).ravel())
    schema = Schema.from_states(states)
    other = PairwiseMRF(schema, edges, np.concatenate((*nodes, *tables)))
    one, two = edge_tests(table, model), edge_tests(PackedTable.from_codes(moved, schema), other)
    np.testing.assert_allclose(one.statistic, two.statistic, rtol=1e-7)
    np.testing.assert_array_equal(one.dof, two.dof)
    np.testing.assert_allclose(one.q_value, two.q_value, rtol=1e-5)


def test_a_strong_edge_has_a_tiny_p_value_that_is_not_zero():
    codes = np.repeat(np.arange(2), 20_000)[:, None].repeat(2, axis=1)
    codes[::7, 1] = 1 - codes[::7, 1]
    table = PackedTable.from_codes(codes)
    found = edge_tests(table, fit(table, [(0, 1)], ridge=1e-6))
    assert found.statistic[0] > 10_000
    assert 0 < found.p_value[0] <= found.q_value[0] < 1e-300


@pytest.mark.parametrize("n_tests", [40, 41, 500])
def test_q_values_are_those_of_a_library_with_ones_added(n_tests):
    p = np.random.default_rng(0).random(40) ** 4
    p[3] = p[7]
    padded = np.concatenate((p, np.ones(n_tests - 40)))
    np.testing.assert_allclose(q_values(p, n_tests), false_discovery_control(padded)[:40])


def test_q_values_refuse_what_is_no_p_value():
    with pytest.raises(ValueError, match="from 0 to 1"):
        q_values([0.1, np.nan], 5)
    with pytest.raises(ValueError, match="more than the 1 tests"):
        q_values([0.1, 0.2], 1)
    assert len(q_values([], 0)) == 0


def test_a_table_too_strong_for_one_step_is_tested_at_zero():
    codes, table, layout, _ = make_case(STATES, 300, density=1.0, seed=8)
    codes[:, 5] = np.where(codes[:, 0] == 2, 1, codes[:, 5])  # two states that never meet
    table = PackedTable.from_codes(codes, table.schema)
    model = fit(table, layout.edges, ridge=1e-4)
    found = edge_tests(table, model)
    agree(found, statistics_of(codes, model))
    assert found.q_value[layout.edges.tolist().index([0, 5])] < 1e-3


def test_an_edge_alone_is_tested_as_if_it_were_the_only_one_added():
    _, table, layout, theta = make_case(STATES, 900, density=1.0, seed=11)
    added = np.array([1, 4, 6])  # they share variables
    theta = 0.2 * theta
    for k in added:
        theta[layout.edge_offset[k] : layout.edge_offset[k + 1]] = 0.0
    tester = EdgeTester(table_conditionals.TableConditionals(table))
    found = tester.test(layout, theta, added, alone=added)
    beside = np.setdiff1d(np.arange(layout.n_edges), added)
    for at, k in enumerate(added):
        only = layout.with_edges(layout.edges[np.append(beside, k)])
        expected = tester.test(only, only.carry(theta, layout), np.array([len(beside)]))
        assert found.dof[at] == expected.dof[0] > 0
        np.testing.assert_allclose(found.statistic[at], expected.statistic[0], rtol=1e-6)


def test_an_edge_alone_to_a_constant_column_adds_no_coefficients(capfd):
    codes = np.random.default_rng(3).integers(0, 2, (400, 3))
    codes[:, 2] = 0
    table = PackedTable.from_codes(codes)
    model = fit(table, np.array([(0, 1), (0, 2)]))
    tester = EdgeTester(table_conditionals.TableConditionals(table))
    found = tester.test(model.layout, model.theta, np.array([1]), alone=np.array([1]))
    assert found.dof[0] == 0
    assert not any(capfd.readouterr())  # LAPACK complains of empty matrices
