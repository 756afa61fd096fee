"""The model for prediction: how it is chosen, what it is made of, and where it is used."""

import numpy as np
import pytest

import edgegraft
from edgegraft.config import Plan
from edgegraft.core import all_pairs
from edgegraft.datasets import make_scale_free
from edgegraft.errors import DataError
from edgegraft.estimators import GraftedMRF
from edgegraft.learn import fit_for_prediction
from edgegraft.learn.prediction import hold_out, merge_copies
from edgegraft.objective import Penalty, Pseudolikelihood
from edgegraft.table import PackedTable, TableRows


@pytest.fixture(scope="module")
def data():
    return make_scale_free(10, 3, 900, random_state=0)


@pytest.fixture(scope="module")
def fitted(data):
    return GraftedMRF(aim="prediction", random_state=0).fit(data.X[:600])


def rows_of(data, n=600, **options):
    return TableRows(PackedTable.from_codes(data.X[:n].astype(int)), **options)


def test_the_network_stays_and_the_model_predicts_better(data, fitted):
    network = GraftedMRF(random_state=0).fit(data.X[:600])
    assert np.array_equal(fitted.edges_, network.edges_)
    assert np.array_equal(fitted.edge_strengths_, network.edge_strengths_)
    assert fitted.model_.n_edges > len(fitted.edges_)
    assert fitted.score(data.X[600:]) > network.score(data.X[600:])
    assert network.model_ is network.network_model_
    assert network.prediction_ is None


def test_a_model_of_rows_is_fitted_by_likelihood():
    rng = np.random.default_rng(2)  # noisy copies of a column that nobody sees
    X = rng.integers(0, 2, (4000, 1)) ^ (rng.random((4000, 9)) < 0.15)
    fitted, rows = (
        GraftedMRF(aim=aim, random_state=0).fit(X[:2000]) for aim in ("prediction", "rows")
    )
    assert np.array_equal(rows.edges_, fitted.edges_)
    assert np.array_equal(rows.model_.edges, fitted.model_.edges)
    refit = rows.prediction_.refit
    assert refit.gain.value > refit.gain.error > 0
    assert [p for p, _ in refit.tried] == sorted((p for p, _ in refit.tried), reverse=True)
    assert fitted.prediction_.refit is None
    one, other = (each.model_.log_likelihood(X[2000:]).rows.mean() for each in (rows, fitted))
    assert one > other


def test_a_model_of_rows_needs_complete_rows(data):
    with pytest.warns(UserWarning, match="model for prediction is kept: only 12"):
        few = GraftedMRF(aim="rows", random_state=0).fit(data.X[:60])
    assert few.prediction_.refit is None


def test_the_last_fit_is_optimal_over_all_pairs(data, fitted):
    loss = Pseudolikelihood(rows_of(data))
    made, model = fitted.prediction_, fitted.model_
    state = loss.evaluate(model.theta, loss.init(model.layout)).state
    scores = Penalty().score(loss.edge_gradients(model.theta, state, all_pairs(10)))
    inside = (all_pairs(10)[:, None] == model.edges).all(axis=2).any(axis=1)
    assert scores[~inside].max(initial=0.0) <= made.penalty + 1e-3
    gradient = loss.evaluate(model.theta, loss.init(model.layout)).gradient
    rule = Penalty(made.penalty, made.ridge)
    assert rule.violation(model.theta, gradient, model.layout).max() <= 2e-3


def test_the_best_is_not_at_an_edge(fitted):
    trials = fitted.prediction_.trials
    best = max(trials, key=lambda trial: trial.score)
    alike = [trial for trial in trials if trial.ridge == best.ridge]
    assert min(trial.penalty for trial in alike) < best.penalty
    assert max(trial.penalty for trial in trials) > best.penalty
    assert any(trial.ridge > best.ridge for trial in trials)


def test_threads_do_not_matter_and_the_seed_does(data):
    first, again = (fit_for_prediction(rows_of(data, n_jobs=n)) for n in (1, 2))
    assert np.array_equal(first.model.theta, again.model.theta)
    other = fit_for_prediction(rows_of(data), Plan(random_state=1))
    assert first.trials != other.trials


def test_independent_columns_have_no_edges():
    rows = np.random.default_rng(1).integers(0, 2, (400, 6))
    made = fit_for_prediction(TableRows(PackedTable.from_codes(rows)))
    assert made.model.n_edges == 0
    assert len(made.trials) == 1


def test_columns_that_determine_each_other_end_early():
    """Their optimum is at infinity: the last fit is as short as those that were compared."""
    rows = np.repeat(np.random.default_rng(0).integers(0, 2, (500, 2)), 3, axis=1)
    made = fit_for_prediction(TableRows(PackedTable.from_codes(rows)))
    held_out = max(trial.score for trial in made.trials)
    assert -held_out < 1e-3
    assert -made.model.pseudo_log_likelihood(codes=rows).mean() < 1e-3
    assert np.abs(made.model.theta).max() < 50


def test_stopping_takes_the_best_so_far(data):
    asked = iter(range(100))
    made = fit_for_prediction(rows_of(data), stop=lambda: next(asked) >= 2)
    assert len(made.trials) == 2
    assert made.model.n_edges > 0


def test_a_row_of_frequency_two_is_two_rows(data):
    weights = np.full(600, 3.0)
    folds = hold_out(rows_of(data, weights=weights), np.random.default_rng(0))
    assert [(fitted.weight, held.weight) for fitted, held in folds] == [(1440, 360)] * 5
    (fitted, held), *_ = hold_out(rows_of(data, weights=weights / 7), np.random.default_rng(0))
    assert fitted.weight + held.weight == pytest.approx(1800 / 7)
    many = rows_of(data, weights=4 * weights)
    assert len(hold_out(many, np.random.default_rng(0))) == 1
    with pytest.raises(DataError, match="fewer than 10: use aim='network'"):
        hold_out(rows_of(data, 9), np.random.default_rng(0))


def test_copies_of_rows_are_merged_without_a_change_of_the_loss(data):
    rows = rows_of(data, 300)
    twice = TableRows(rows.table.take(np.tile(np.arange(300), 2)))
    merged = merge_copies(twice)
    assert merged.table.n_rows <= 300
    assert merged.weight == 600
    values = [Pseudolikelihood(each) for each in (rows, merged)]
    layout = values[0].layout([(0, 1), (2, 3)])
    theta = np.random.default_rng(0).normal(size=layout.n_parameters)
    losses = [each.evaluate(theta, each.init(layout)).value for each in values]
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)
    alone = merged.table.take(np.arange(merged.table.n_rows))
    assert merge_copies(TableRows(alone)).table is alone


def test_ordered_columns_and_missing_cells(data):
    rows = data.X[:300].astype(float)
    rows[np.random.default_rng(0).random(rows.shape) < 0.1] = np.nan
    fitted = GraftedMRF(aim="prediction", kinds="ordinal", random_state=0).fit(rows)
    assert fitted.model_.n_edges >= len(fitted.edges_)
    assert np.isfinite(fitted.score(rows))
    assert not np.isnan(fitted.impute(rows)).any()


def test_the_file_knows_which_edges_are_the_network(fitted, tmp_path):
    fitted.save(tmp_path / "model.edgegraft")
    stored = edgegraft.read_details(tmp_path / "model.edgegraft")
    inside = stored.edge_columns["in_network"]
    assert set(map(tuple, stored.edges[inside])) <= set(map(tuple, fitted.edges_))
    assert np.isfinite(stored.edge_columns["q_value"][inside]).all()
    assert np.isnan(stored.edge_columns["q_value"][~inside]).all()
    assert stored.details["prediction"]["edges"] == fitted.model_.n_edges
