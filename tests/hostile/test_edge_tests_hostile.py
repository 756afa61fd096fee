"""Tests of edges where the data say little, or nothing."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.errors import DataError, ModelError
from edgegraft.learn import edge_tests
from edgegraft.table import PackedTable, Schema
from tests.judge_cases import fit_edges


def make_codes(n_rows=400, n=4, states=3, seed=0):
    """Return a chain in which each column mostly repeats the one before."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, states, (n_rows, n))
    for j in range(1, n):
        codes[:, j] = np.where(rng.random(n_rows) < 0.5, codes[:, j - 1], codes[:, j])
    return codes


def outcome(codes, edges, states=None, **options):
    schema = None if states is None else Schema.from_states(states)
    table = PackedTable.from_codes(codes, schema)
    found = edge_tests(table, fit_edges(table, edges, **options), **options)
    for values in found[:5]:
        assert np.isfinite(values).all()
    assert ((found.p_value > 0) & (found.p_value <= found.q_value) & (found.q_value <= 1)).all()
    return found


def test_of_two_equal_neighbours_neither_can_be_told():
    codes = make_codes()
    codes[:, 2] = codes[:, 1]
    both = outcome(codes, [(0, 1), (0, 2)])
    # The other side of each edge does not see the twin, so something is left; it is no less
    # sure of one than of the other.
    np.testing.assert_allclose(both.statistic[0], both.statistic[1], rtol=1e-3)
    all_three = outcome(codes, [(0, 1), (0, 2), (1, 2)])
    assert all_three.q_value[2] < 1e-10
    assert (all_three.q_value[:2] > 0.05).all()


def test_fewer_rows_than_variables():
    codes = np.random.default_rng(0).integers(0, 3, (12, 30))
    edges = np.column_stack((np.arange(29), np.arange(1, 30)))
    found = outcome(codes, edges)
    assert (found.q_value > 0.05).all()


def test_one_row_tells_nothing():
    found = outcome(np.array([[0, 1, 1]]), [(0, 1), (1, 2)])
    assert found.dof.tolist() == [0, 0]


def test_states_that_never_meet_show_an_edge():
    codes = np.random.default_rng(2).integers(0, 3, (600, 2))
    codes = codes[~((codes[:, 0] == 1) & (codes[:, 1] == 2))]
    found = outcome(codes, [(0, 1)])
    assert found.p_value[0] < 1e-8


def test_states_too_rare_to_meet_by_chance_show_none():
    codes = np.zeros((2000, 2), int)
    codes[:20, 0], codes[20:40, 1] = 1, 1
    assert outcome(codes, [(0, 1)]).p_value[0] > 0.05


def test_columns_that_are_wholly_missing():
    codes = make_codes()
    codes[:, 2] = -1
    found = outcome(codes, [(0, 1), (1, 2)], states=[3] * 4)
    assert found.dof[1] == 0


def test_a_model_without_edges():
    table = PackedTable.from_codes(make_codes())
    found = edge_tests(table, fit_edges(table, np.empty((0, 2), int)))
    assert [len(values) for values in found[:5]] == [0] * 5


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.full(400, np.nan), "the weight of row 0 is nan"),
        (-np.ones(400), "not negative"),
        (np.zeros(400), "all weights are zero"),
        (np.ones(3), "but the table has 400 rows"),
    ],
)
def test_bad_weights_are_refused(weights, message):
    table = PackedTable.from_codes(make_codes())
    with pytest.raises(DataError, match=message):
        edge_tests(table, fit_edges(table, [(0, 1)]), weights=weights)


def test_another_table_is_refused():
    table = PackedTable.from_codes(make_codes())
    model = fit_edges(table, [(0, 1)])
    with pytest.raises(ModelError, match="differ from the model's"):
        edge_tests(PackedTable.from_codes(make_codes(n=3)), model)
    with pytest.raises(ModelError, match="'x0' has 4 states in the table and 3"):
        edge_tests(PackedTable.from_codes(make_codes(states=4)), model)
