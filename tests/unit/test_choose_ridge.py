"""The ridge that rows outside the fit choose."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.datasets import make_scale_free
from edgegraft.errors import DataError
from edgegraft.optimize import choose_ridge, fit_parameters


@pytest.fixture(scope="module")
def data():
    return make_scale_free(10, 3, 1300, random_state=3)


def test_the_ridge_is_that_of_the_best_score_over_all_rows(data):
    chosen = choose_ridge(data.X[:300])
    assert chosen.rows.tolist() == [640, 160, 40, 10, 2, 0.5][: len(chosen.scores)]
    assert chosen.ridge == chosen.rows[chosen.scores.argmin()] / 300


def test_it_ends_where_a_weaker_ridge_predicts_worse(data):
    shuffled = np.random.default_rng(0).permuted(data.X[:300], axis=0)
    scores = choose_ridge(shuffled).scores
    assert 2 <= len(scores) < 6
    assert scores.argmin() == len(scores) - 2


def test_columns_that_are_independent_get_a_strong_one(data):
    shuffled = np.random.default_rng(0).permuted(data.X[:300], axis=0)
    assert choose_ridge(shuffled).ridge >= 40 / 300 > choose_ridge(data.X[:300]).ridge


def test_it_predicts_other_rows_about_as_well_as_the_best_of_those_tried(data):
    rows, others = data.X[:300], data.X[300:]

    def score(ridge):
        model, _ = fit_parameters(rows, ridge=ridge, tol=1e-3)
        return -model.pseudo_log_likelihood(others).mean()

    chosen = choose_ridge(rows)
    scores = [score(each / 300) for each in chosen.rows]
    assert score(chosen.ridge) <= min(scores) + 0.1
    assert score(chosen.ridge) < max(scores) - 0.2


def test_the_same_seed_chooses_the_same_whatever_the_threads(data):
    first = choose_ridge(data.X, data.edges, random_state=1)
    again = choose_ridge(data.X, data.edges, random_state=1, n_jobs=2)
    assert first.ridge == again.ridge
    np.testing.assert_array_equal(first.scores, again.scores)


def test_missing_cells_and_rare_states_are_no_obstacle(data):
    rows = data.X[:200].astype(float)
    rows[::7, 2] = np.nan
    rows[0, 3] = 9.0  # in one row alone, which may be the one held out
    for seed in range(5):
        assert np.isfinite(choose_ridge(rows, random_state=seed).scores).all()


def test_what_cannot_be_chosen_from_is_refused(data):
    with pytest.raises(DataError, match=r"4 rows.*fewer than 5"):
        choose_ridge(data.X[[0, 1, 2, 3]][:, :2])
    for wrong in ([], [-1.0], [np.inf]):
        with pytest.raises(ValueError, match="rows must be"):
            choose_ridge(data.X, rows=wrong)
