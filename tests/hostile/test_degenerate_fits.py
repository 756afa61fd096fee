"""Data without a finite best answer, and requests that cannot be met."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from edgegraft.core import Layout
from edgegraft.counts import PairCounts
from edgegraft.errors import ConvergenceWarning, DataError, DataTypeError, EdgeError, ModelError
from edgegraft.inference import BeliefPropagation, ExactEngine
from edgegraft.objective import Likelihood, Penalty
from edgegraft.optimize import Stopping, fit_parameters, minimize
from edgegraft.table import PackedTable, Schema
from tests.conftest import random_codes

OBJECTIVES = ["likelihood", "pseudolikelihood"]


def perfect(n_rows=200):
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, n_rows)
    return np.stack([first, first, rng.integers(0, 3, n_rows)], axis=1)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_perfect_predictor_without_penalty_is_named(objective):
    with pytest.warns(ConvergenceWarning, match=r"edge \('x0', 'x1'\): 2 pairs"):
        model, info = fit_parameters(perfect(), None, objective)
    assert np.isfinite(model.theta).all()
    assert any("('x0', 'x1')" in name for name in info.diverging)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("settings", [{"ridge": 0.01}, {"penalty": 0.01}])
def test_a_perfect_predictor_with_a_penalty_is_no_problem(objective, settings):
    model, info = fit_parameters(perfect(), None, objective, **settings)
    assert info.converged
    assert info.diverging == ()
    assert np.abs(model.theta).max() < 10


def test_perfect_prediction_by_two_together_is_named():
    # Every pair of states occurs, but x2 is 1 exactly where x0 + x1 >= 2 of 0..2.
    a, b = (axis.ravel() for axis in np.meshgrid(np.arange(3), np.arange(3)))
    rows = np.tile(np.stack([a, b, (a + b >= 2).astype(int)], axis=1), (20, 1))
    with pytest.warns(ConvergenceWarning):
        model, info = fit_parameters(rows, [(0, 2), (1, 2)], tol=1e-7)
    assert np.isfinite(model.theta).all()
    assert info.diverging


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("settings", [{}, {"ridge": 0.01}, {"penalty": 0.02}])
def test_states_never_seen_and_constants(objective, settings):
    codes = random_codes([2, 3, 1, 2], 300, seed=1)
    codes[:, 3] = 0
    table = PackedTable.from_codes(codes, Schema.from_states([2, 4, 1, 2]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model, info = fit_parameters(table, None, objective, **settings)
    assert info.converged
    assert np.isfinite(model.theta).all()
    assert any("'x1': category 3 never occurs" in name for name in info.diverging)
    assert bool(caught) == (not settings)
    p = model.marginals(engine="exact")
    assert p["x1"][3] < 1e-4


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("n_rows", [1, 2, 5])
def test_hardly_any_rows(objective, n_rows):
    codes = random_codes([2, 3, 2], 5, seed=2)[:n_rows]
    table = PackedTable.from_codes(codes, Schema.from_states([2, 3, 2]))
    model, info = fit_parameters(table, None, objective, ridge=0.01)
    assert info.converged
    assert np.isfinite(model.theta).all()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_variable_without_a_single_value(objective):
    codes = random_codes([2, 3, 2], 50, seed=2)
    codes[:, 1] = -1
    table = PackedTable.from_codes(codes, Schema.from_states([2, 3, 2]))
    model, info = fit_parameters(table, None, objective, ridge=0.01)
    assert info.converged
    assert np.isfinite(model.theta).all()


def test_no_edges_and_one_variable():
    model, info = fit_parameters(random_codes([3], 50, seed=1), None)
    assert info.converged
    assert model.n_edges == 0
    model, info = fit_parameters(random_codes([3, 2], 50, seed=1), [])
    assert info.converged


def test_edges_in_any_orientation():
    codes = random_codes([2, 3], 100, seed=1)
    one, _ = fit_parameters(codes, [(1, 0)], ridge=0.1)
    two, _ = fit_parameters(codes, [(0, 1)], ridge=0.1)
    assert one == two


def test_an_early_end_is_told():
    codes = random_codes([3, 3, 3], 100, seed=1)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 iterations were not enough"):
        _, info = fit_parameters(codes, None, "likelihood", ridge=0.01, max_iter=1)
    assert not info.converged
    assert "max_iter" in info.message


def test_a_quiet_early_end_is_still_told_in_the_info():
    counts = PairCounts(PackedTable.from_codes(random_codes([3, 3, 3], 100, seed=1)))
    loss = Likelihood(counts, ExactEngine())
    layout = Layout([3, 3, 3], [(0, 1), (1, 2)])
    found = minimize(loss, Penalty(), layout, stopping=Stopping(max_iter=1), quiet=True)
    assert not found.info.converged


def test_where_messages_never_settle_another_engine_takes_over():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (400, 6))
    codes[:, 1:] ^= rng.random((400, 5)) < 0.5
    counts = PairCounts(PackedTable.from_codes(codes))
    layout = Layout([2] * 6, np.stack(np.triu_indices(6, 1), axis=1))
    hopeless = BeliefPropagation(tol=1e-9, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="continuing with the engine 'trw'"):
        found = minimize(Likelihood(counts, hopeless), Penalty(0.001, 0.01), layout)
    assert found.info.converged
    assert found.info.engine == "trw"


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"edges": [(0, 5)]}, EdgeError, "outside"),
        ({"edges": [(0, 1), (1, 0)]}, EdgeError, "more than once"),
        ({"penalty": -1.0}, ValueError, "penalty"),
        ({"tol": 0.0}, ValueError, "tol must be positive"),
        ({"max_iter": 0}, ValueError, "max_iter"),
        ({"objective": "entropy"}, ValueError, "objective must be"),
        ({"objective": "likelihood", "engine": "magic"}, ValueError, "no engine"),
        ({"objective": "likelihood", "engine": "gibbs"}, ModelError, "log-partition"),
        ({"weights": [1.0]}, DataError, "weights have shape"),
        ({"start": np.zeros(3)}, ModelError, "start has shape"),
    ],
)
def test_requests_that_make_no_sense_are_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        fit_parameters(random_codes([2, 2], 20, seed=0), **arguments)


def test_counts_are_no_rows():
    counts = PairCounts(PackedTable.from_codes(random_codes([2, 2], 20, seed=0)))
    with pytest.raises(DataTypeError, match="needs rows"):
        fit_parameters(counts)
    with pytest.raises(DataError, match="weights belong to rows"):
        fit_parameters(counts, None, "likelihood", weights=np.ones(20))
