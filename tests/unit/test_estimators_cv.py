"""`GraftedMRFCV`: a grid scored on held-out rows, its best point fitted to all of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import edgegraft
from edgegraft.datasets import make_chain
from edgegraft.errors import DataError
from edgegraft.estimators import GraftedMRF, GraftedMRFCV
from edgegraft.ingest import pack
from edgegraft.learn import Plan, penalty_grid, penalty_path
from edgegraft.table import PackedTable
from tests.estimator_cases import survey


def chain(n_rows=600):
    return make_chain(5, n_states=3, n_rows=n_rows, random_state=0).X.astype(np.int64)


# Weights and repeated rows must agree to 1e-7, which takes fits that are this exact, and an
# objective with one optimum: a relaxed search of these columns, all equal but for their names,
# takes the edges that rounding happens to put first.
@parametrize_with_checks([GraftedMRFCV(penalties=[0.6, 0.3], cv=2, tol=1e-6, relaxed=False)])
@pytest.mark.filterwarnings("ignore::edgegraft.errors.EncodingWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_best_point_of_the_grid_is_fitted_to_all_rows():
    rows = chain()
    estimator = GraftedMRFCV(penalties=[0.4, 0.1, 0.02], cv=3, random_state=0).fit(rows)
    results = estimator.cv_results_
    np.testing.assert_array_equal(results["penalty"], [0.4, 0.1, 0.02])
    best = int(results["mean_test_score"].argmax())
    assert results["rank_test_score"][best] == 1
    assert sorted(results["rank_test_score"]) == [1, 2, 3]
    assert estimator.penalty_ == results["penalty"][best]
    expected = GraftedMRF(penalty=estimator.penalty_, fdr=None, random_state=0).fit(rows)
    assert estimator.model_ == expected.model_
    assert (np.diff(results["mean_edges"]) > 0).all()


def test_a_fold_is_scored_as_by_hand():
    rows, weights = chain(300), np.arange(300) % 3
    splits = list(KFold(3).split(rows))
    estimator = GraftedMRFCV(penalties=[0.3, 0.05], cv=splits, random_state=0)
    estimator.fit(rows, sample_weight=weights)
    schema = pack(rows).schema
    for k, (train, test) in enumerate(splits):
        part = PackedTable.from_codes(pack(rows).codes()[train], schema)
        path = penalty_path(part, Plan(), [0.3, 0.05], weights=weights[train])
        for p, point in enumerate(path):
            by_row = point.model.pseudo_log_likelihood(rows[test])
            expected = (by_row * weights[test]).sum() / weights[test].sum()
            found = estimator.cv_results_[f"split{k}_test_score"][p]
            assert found == pytest.approx(expected, abs=1e-9)
    columns = [estimator.cv_results_[f"split{k}_test_score"] for k in range(3)]
    np.testing.assert_allclose(estimator.cv_results_["mean_test_score"], np.mean(columns, axis=0))
    np.testing.assert_allclose(estimator.cv_results_["std_test_score"], np.std(columns, axis=0))


def test_ridges_are_part_of_the_grid():
    estimator = GraftedMRFCV(
        penalties=[0.3, 0.05], ridges=[10.0, 0.001, "auto"], cv=2, random_state=0
    ).fit(chain())
    table = pd.DataFrame(estimator.cv_results_)
    assert table["ridge"].tolist() == [0.001, 0.001, 10.0, 10.0, "auto", "auto"]
    assert table["penalty"].tolist() == [0.3, 0.05] * 3
    assert estimator.ridge_ in (0.001, 2 / 600)


def test_one_ridge_may_be_a_number():
    estimator = GraftedMRFCV(penalties=[0.1], ridges=0.02, cv=2, random_state=0).fit(chain())
    assert estimator.ridge_ == 0.02


@pytest.mark.parametrize("group_weight", ["noise", "sqrt"])
def test_the_grid_begins_where_there_is_no_edge(group_weight):
    table = pack(chain())
    plan = Plan(penalty=0.0, group_weight=group_weight)
    grid = penalty_grid(table, plan, 6)
    assert len(grid) == 6
    assert (np.diff(grid) < 0).all()
    first, *_, last = penalty_path(table, plan, grid)
    assert first.n_edges == 0
    assert last.n_edges >= 4


def test_where_nothing_can_be_an_edge_the_grid_is_one_point():
    estimator = GraftedMRFCV(cv=2, random_state=0).fit(np.arange(20).reshape(-1, 1) % 2)
    assert len(estimator.cv_results_["penalty"]) == 1
    assert len(estimator.edges_) == 0


def test_folds_share_the_categories_of_all_rows():
    frame = survey(60)[["smoker", "visits"]]
    frame.loc[0, "smoker"] = "once"  # in one fold's held-out rows, and in no other fold's
    estimator = GraftedMRFCV(penalties=2, cv=3, random_state=0).fit(frame)
    assert estimator.schema_["smoker"].categories == ("no", "once", "yes")
    assert np.isfinite(estimator.cv_results_["mean_test_score"]).all()


def test_folds_are_shuffled_by_the_seed_alone():
    rows = chain()[np.lexsort(chain().T)]  # sorted rows would make folds that have little in common
    make = GraftedMRFCV(penalties=[0.1], cv=3, random_state=0)
    one, two = make.fit(rows).cv_results_, clone(make).fit(rows).cv_results_
    assert one["mean_test_score"] == two["mean_test_score"]
    assert one["std_test_score"] < 0.2
    masks = [(rows[:, 0] > 0, rows[:, 0] == 0)]
    assert np.isfinite(clone(make).set_params(cv=masks).fit(rows).cv_results_["split0_test_score"])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalties": 0}, r"'penalties' parameter of GraftedMRFCV must be"),
        ({"penalties": [0.1, -1]}, r"penalties must be finite .*found \[0.1, -1\]"),
        ({"penalties": []}, r"penalties must hold .*found \[\]"),
        ({"penalties": [[0.1]]}, r"penalties must hold .*one dimension"),
        ({"ridges": "none"}, r"'ridges' parameter .*Got 'none'"),
        ({"ridges": [np.nan]}, r"ridges must be finite .*found \[nan\]"),
        ({"cv": "five"}, r"'cv' parameter"),
        ({"cv": 1}, r"'cv' parameter .*Got 1"),
        ({"cv": 700}, r"n_splits=700 greater than the number of samples"),
        ({"strategy": "feature"}, r"'strategy' parameter"),
        ({"fdr": 2}, r"'fdr' parameter"),
    ],
)
def test_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        GraftedMRFCV(**parameters).fit(chain())


def test_folds_in_which_nothing_counts_are_refused():
    rows, folds = chain(60), [(np.arange(30), np.arange(30, 60))]
    weights = (np.arange(60) < 30).astype(float)
    with pytest.raises(DataError, match="all weights of the held-out rows of fold 0 are zero"):
        GraftedMRFCV(cv=folds).fit(rows, sample_weight=weights)
    with pytest.raises(DataError, match="all weights of the training rows of fold 0 are zero"):
        GraftedMRFCV(cv=folds).fit(rows, sample_weight=1 - weights)
    with pytest.raises(DataError, match="fold 0 has no held-out rows"):
        GraftedMRFCV(cv=[(np.arange(60), np.arange(0))]).fit(rows)


def test_every_parameter_has_a_constraint_and_no_other():
    assert set(GraftedMRFCV._parameter_constraints) == set(GraftedMRFCV().get_params())


def test_it_answers_like_the_plain_estimator():
    frame = survey(300, missing=0.1)[["smoker", "cough", "visits"]]
    estimator = edgegraft.GraftedMRFCV(penalties=2, cv=2, random_state=0).fit(frame)
    assert not estimator.impute(frame).isna().any().any()
    assert list(estimator.sample(2, random_state=0).dtypes) == list(frame.dtypes)
    assert estimator.predict_proba(frame, "cough").shape == (300, 4)


def test_groups_reach_the_splitter():
    rows = make_chain(3, n_states=2, n_rows=120, random_state=0).X
    groups = np.arange(120) // 40
    options = {"penalties": [0.3], "cv": GroupKFold(3), "random_state": 0}
    plain = GraftedMRFCV(**options).fit(rows, groups=groups)
    parts = [(np.flatnonzero(groups != k), np.flatnonzero(groups == k)) for k in range(3)]
    expected = GraftedMRFCV(**options | {"cv": parts}).fit(rows)
    score = "mean_test_score"
    assert plain.cv_results_[score] == pytest.approx(expected.cv_results_[score])
    with config_context(enable_metadata_routing=True):
        weighted = GraftedMRFCV(**options).set_fit_request(sample_weight=True)
        routed = make_pipeline(weighted).fit(rows, groups=groups, sample_weight=np.ones(120))
    assert routed[-1].cv_results_[score] == pytest.approx(plain.cv_results_[score])
