"""The ridge or penalty that rows outside the fit choose."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.held_out_penalty import choose_penalty
from edgegraft.datasets import make_scale_free
from edgegraft.errors import DataError
from edgegraft.optimize import fit_parameters


@pytest.fixture(scope="module")
def data():
    return make_scale_free(10, 3, 1300, random_state=3)


@pytest.fixture(scope="module")
def shuffled(data):
    return np.random.default_rng(0).permuted(data.X[:300], axis=0)


def test_what_is_chosen_has_the_best_score_of_those_tried(data):
    chosen = choose_penalty(data.X[:300])
    assert (chosen.penalty, chosen.ridge) == tuple(chosen.tried[chosen.scores.argmin()])
    assert (chosen.tried.min(axis=1) == 0).all()
    ridges = chosen.tried[chosen.tried[:, 0] == 0, 1] * 300
    penalties = chosen.tried[chosen.tried[:, 1] == 0, 0] * 300**0.5
    np.testing.assert_allclose(ridges, [640, 160, 40, 10, 2, 0.5][: len(ridges)])
    np.testing.assert_allclose(penalties, [0.8, 0.4, 0.2, 0.1, 0.05][: len(penalties)])


def test_a_path_ends_where_a_weaker_one_predicts_worse(shuffled):
    scores = choose_penalty(shuffled, penalties=()).scores
    assert 2 <= len(scores) < 6
    assert scores.argmin() == len(scores) - 2


def test_columns_that_are_independent_get_a_strong_one(data, shuffled):
    assert choose_penalty(shuffled, penalties=()).ridge >= 40 / 300
    assert choose_penalty(data.X[:300], penalties=()).ridge < 40 / 300
    apart = choose_penalty(shuffled, ridges=())
    model, _ = fit_parameters(shuffled, penalty=apart.penalty)
    assert model.n_edges < 45 / 2


def test_it_predicts_other_rows_about_as_well_as_the_best_of_those_tried(data):
    rows, others = data.X[:300], data.X[300:]

    def score(penalty, ridge):
        model, _ = fit_parameters(rows, penalty=penalty, ridge=ridge, tol=1e-3)
        return -model.pseudo_log_likelihood(others).mean()

    chosen = choose_penalty(rows)
    scores = [score(*each) for each in chosen.tried]
    assert score(chosen.penalty, chosen.ridge) <= min(scores) + 0.1
    assert score(chosen.penalty, chosen.ridge) < max(scores) - 0.2


def test_the_same_seed_chooses_the_same_whatever_the_threads(data):
    first = choose_penalty(data.X, data.edges, random_state=1)
    again = choose_penalty(data.X, data.edges, random_state=1, n_jobs=2)
    assert first[:2] == again[:2]
    np.testing.assert_array_equal(first.scores, again.scores)


def test_missing_cells_and_rare_states_are_no_obstacle(data):
    rows = data.X[:200].astype(float)
    rows[::7, 2] = np.nan
    rows[0, 3] = 9.0  # in one row alone, which may be the one held out
    for seed in range(5):
        assert np.isfinite(choose_penalty(rows, random_state=seed).scores).all()


def test_what_cannot_be_chosen_from_is_refused(data):
    with pytest.raises(DataError, match=r"4 rows.*fewer than 5"):
        choose_penalty(data.X[[0, 1, 2, 3]][:, :2])
    for wrong in ([-1.0], [np.inf], [np.nan]):
        with pytest.raises(ValueError, match="ridges must be finite"):
            choose_penalty(data.X, ridges=wrong)
        with pytest.raises(ValueError, match="penalties must be finite"):
            choose_penalty(data.X, penalties=wrong)
    with pytest.raises(ValueError, match="nothing to choose from"):
        choose_penalty(data.X, ridges=(), penalties=())
