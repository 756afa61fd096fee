"""A network and its p-values do not depend on the order of columns, rows and states."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegraft.datasets import make_scale_free
from edgegraft.learn import discover
from edgegraft.table import PackedTable, Schema
from tests.judge_cases import rows_of, verdicts_of


@st.composite
def problems(draw):
    """Return codes, edges, and an order of columns, of rows, and of the states of each column."""
    states = draw(st.lists(st.integers(2, 4), min_size=3, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    codes, n = rng.integers(0, 4, (400, len(states))) % states, len(states)
    for j in range(1, n):
        codes[:, j] = np.where(rng.random(400) < 0.3, codes[:, j - 1] % states[j], codes[:, j])
    codes[rng.random(codes.shape) < draw(st.sampled_from([0.0, 0.05]))] = -1
    every = [(i, j) for i in range(n) for j in range(i + 1, n)]
    edges = draw(st.sets(st.sampled_from(every), min_size=1).map(sorted))
    order = draw(st.permutations(range(n)))
    return codes, states, edges, np.array(order), [rng.permutation(s) for s in states]


def relabel(codes, labels):
    """Return codes with the states of each column renamed."""
    columns = [
        np.where(column < 0, -1, own[column]) for column, own in zip(codes.T, labels, strict=True)
    ]
    return np.stack(columns, axis=1)


def moved_verdicts(codes, states, edges, order):
    """Return verdicts on edges of columns in another order."""
    place = np.argsort(order)
    moved = [tuple(sorted((int(place[i]), int(place[j])))) for i, j in edges]
    return verdicts_of(rows_of(codes[:, order], np.array(states)[order]), moved)


@settings(max_examples=40, deadline=None)
@given(problems())
def test_verdicts_do_not_depend_on_names_and_orders(problem):
    codes, states, edges, order, labels = problem
    found = verdicts_of(rows_of(codes, states), edges)
    rows = np.random.default_rng(0).permutation(len(codes))
    same = verdicts_of(rows_of(codes[rows], states), edges)
    np.testing.assert_allclose(same.statistic, found.statistic, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(same.p_value, found.p_value, rtol=1e-6)
    # Other states are the common ones of ties; fits end a few hundredths of a nat from there.
    named = verdicts_of(rows_of(relabel(codes, labels), states), edges)
    np.testing.assert_array_equal(named.dof, found.dof)
    np.testing.assert_allclose(named.statistic, found.statistic, rtol=0.05, atol=0.1)
    # Of two ends of equal cost the first is asked: the last, if columns are turned round.
    turned, other = (
        moved_verdicts(codes, states, edges, columns)
        for columns in (np.arange(len(states))[::-1], order)
    )
    np.testing.assert_array_equal(other.dof, found.dof)
    apart = np.abs(other.statistic - np.stack((found.statistic, turned.statistic))).min(axis=0)
    assert (apart <= 0.1 + 0.05 * other.statistic).all()


@pytest.mark.parametrize("n_states", [2, 3])
def test_a_network_does_not_depend_on_names_and_orders(n_states):
    codes = make_scale_free(15, n_states, 3000, random_state=3).X.astype(int)
    rng = np.random.default_rng(1)
    order, labels = rng.permutation(15), [rng.permutation(n_states) for _ in range(15)]
    schema = Schema.from_states([n_states] * 15)
    found = discover(PackedTable.from_codes(codes, schema))
    edges = set(map(tuple, found.model.edges.tolist()))
    at = dict(zip(map(tuple, found.tests.edges.tolist()), found.tests.p_value, strict=True))
    assert len(edges) > 8
    for moved, columns, rtol in (
        (codes[rng.permutation(len(codes))], np.arange(15), 1e-3),
        (relabel(codes, labels), np.arange(15), 0.02),
        (codes[:, order], order, 0.3),  # of two ends of equal cost the first is asked
    ):
        other = discover(PackedTable.from_codes(moved, schema))
        back = np.sort(columns[other.tests.edges], axis=1)
        p = dict(zip(map(tuple, back.tolist()), other.tests.p_value, strict=True))
        assert {tuple(edge) for edge in back[other.kept].tolist()} == edges
        shown = np.array([(np.log(at[edge]), np.log(p[edge])) for edge in sorted(edges)])
        np.testing.assert_allclose(shown[:, 0], shown[:, 1], rtol=rtol, atol=0.1)
