"""Tests of a model's edges, and q-values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from edgegraft.learn import edge_tests
from edgegraft.learn.edge_tests import q_values
from edgegraft.model import PairwiseMRF
from edgegraft.table import PackedTable
from tests.judge_cases import fit_edges, rows_of, verdicts_of
from tests.pseudolikelihood_twin import make_case

STATES = [3, 2, 4, 2, 5, 3]


def case(n_rows=500, seed=0, **options):
    codes, table, layout, theta = make_case(STATES, n_rows, seed=seed, **options)
    return codes, table, PairwiseMRF(table.schema, layout.edges, theta)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.05])
def test_an_edge_is_judged_beside_the_others_whatever_the_parameters(missing, weighted):
    codes, table, model = case(700, missing=missing, density=0.6)
    weights = np.random.default_rng(1).uniform(0, 2, 700) if weighted else None
    found = edge_tests(table, model, weights=weights, sampling=weighted)
    edges = [(i, j) for i, j in model.edges.tolist()]
    rows = rows_of(codes, STATES, weights=weights, sampling=weighted)
    expected = verdicts_of(rows, edges)
    for column, same in zip(found[1:4], expected, strict=False):
        np.testing.assert_array_equal(column, same)
    np.testing.assert_array_equal(found.q_value, q_values(found.p_value, 15))
    assert (found.dof > 0).all()
    assert found.groups is None


def test_sampling_weights_without_spread_change_nothing():
    _, table, model = case(seed=7)
    one, other = (edge_tests(table, model, weights=np.ones(500), sampling=s) for s in (False, True))
    found = other.statistic / one.statistic
    assert ((found > 0.8) & (found < 1.01)).all()  # a design effect is at least 1


def test_a_strong_edge_has_a_tiny_p_value_that_is_not_zero():
    codes = np.repeat(np.arange(2), 20_000)[:, None].repeat(2, axis=1)
    codes[::7, 1] = 1 - codes[::7, 1]
    table = PackedTable.from_codes(codes)
    found = edge_tests(table, fit_edges(table, [(0, 1)], ridge=1e-6))
    assert found.statistic[0] > 10_000
    assert 0 < found.p_value[0] <= found.q_value[0] < 1e-300


def test_states_that_never_meet_beside_other_edges_show_an_edge():
    codes, table, model = case(300, seed=8, density=1.0)
    codes[:, 5] = np.where(codes[:, 0] == 2, 1, codes[:, 5])
    found = edge_tests(PackedTable.from_codes(codes, table.schema), model)
    assert found.q_value[model.edges.tolist().index([0, 5])] < 1e-3


def test_edges_to_a_constant_column_are_untestable(capfd):
    codes = np.random.default_rng(3).integers(0, 2, (400, 3))
    codes[:, 2] = 0
    table = PackedTable.from_codes(codes)
    found = edge_tests(table, fit_edges(table, [(0, 1), (0, 2)]))
    assert found.dof.tolist() == [1, 0]
    assert found.p_value[1] == 1.0
    assert not any(capfd.readouterr())  # LAPACK complains of empty matrices


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
