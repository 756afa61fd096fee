"""`GraftedMRF` as users of scikit-learn know estimators."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

import edgegraft
from edgegraft.config import GraftingSettings, ReadingOptions
from edgegraft.datasets import make_chain
from edgegraft.errors import DataError, DataTypeError
from edgegraft.estimators import GraftedMRF
from edgegraft.ingest import pack
from edgegraft.learn import Plan, discover
from edgegraft.table import PackedTable
from tests.estimator_cases import survey

CHAIN = [(0, 1), (1, 2), (2, 3), (3, 4)]


def chain(n_rows=2000, seed=0):
    return make_chain(5, n_states=3, n_rows=n_rows, random_state=seed).X.astype(np.int64)


def pairs(edges):
    return sorted(map(tuple, np.asarray(edges).tolist()))


@parametrize_with_checks(
    [GraftedMRF()],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": (
            "it predicts rows of weight zero whose values, each its own category, were left out "
            "of the other fit: categories that a fit has not seen are an error here, by design"
        ),
    },
)
@pytest.mark.filterwarnings("ignore::edgegraft.errors.EncodingWarning")
@pytest.mark.filterwarnings("ignore:SCIPY_ARRAY_API is not set")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_network_of_a_chain_is_found():
    estimator = GraftedMRF(random_state=0).fit(chain())
    assert pairs(estimator.edges_) == CHAIN
    assert (np.diff(estimator.edge_strengths_) <= 0).all()
    best = int(estimator.model_.edge_strengths().argmax())
    np.testing.assert_array_equal(estimator.edges_[0], estimator.model_.edges[best])
    assert estimator.edge_strengths_[0] == estimator.model_.edge_strengths()[best]
    assert estimator.converged_
    assert estimator.reason_ == "no pair violates optimality"
    assert estimator.certificate_.n_violating == 0
    assert estimator.n_tables_ == 10
    assert estimator.n_iter_ >= 1
    assert estimator.trace_["kind"][-1] == "end"
    assert estimator.penalty_ > 0
    assert estimator.ridge_ == 2 / 2000
    assert estimator.n_features_in_ == 5
    assert not hasattr(estimator, "feature_names_in_")


def test_it_is_thin_over_discover():
    rows = chain()
    estimator = GraftedMRF(
        fdr=0.2, search=GraftingSettings(penalty=0.05, max_edges=6), random_state=3
    ).fit(rows)
    plan = Plan(fdr=0.2, penalty=0.05, max_edges=6, random_state=3)
    found = discover(pack(rows), plan)
    assert estimator.model_ == found.model
    assert estimator.penalty_ == 0.05


def test_the_edge_table_has_all_candidates():
    estimator = GraftedMRF(search=GraftingSettings(penalty=0.001), random_state=0)
    estimator.fit(survey().drop(columns="score"))
    table = pd.DataFrame(estimator.edge_table_)
    assert list(table.columns) == [
        "first", "second", "strength", "weight", "sign", "effect", "effect_low", "effect_high",
        "search_norm", "statistic", "dof", "p_value", "q_value", "p_table", "p_linear", "p_rest",
        "linear_is_enough", "kept",
    ]  # fmt: skip
    assert len(table) > len(estimator.edges_)
    np.testing.assert_array_equal(
        table["strength"][: len(estimator.edges_)], estimator.edge_strengths_
    )
    assert table["strength"][len(estimator.edges_) :].isna().all()
    assert table["search_norm"][len(estimator.edges_) :].is_monotonic_decreasing
    np.testing.assert_array_equal(table["kept"], table["q_value"] <= estimator.fdr)
    kept = table[table["kept"]]
    names = estimator.feature_names_in_
    assert {tuple(sorted(names[list(edge)])) for edge in estimator.edges_} == {
        tuple(sorted(pair)) for pair in zip(kept["first"], kept["second"], strict=True)
    }


def test_the_score_is_the_mean_log_pseudolikelihood():
    rows, other = np.split(chain(2500), [2000])
    estimator = GraftedMRF(random_state=0).fit(rows)
    by_row = estimator.score_samples(other)
    np.testing.assert_allclose(by_row, estimator.model_.pseudo_log_likelihood(other))
    assert estimator.score(other) == pytest.approx(by_row.mean())
    weights = np.arange(500.0)
    assert estimator.score(other, sample_weight=weights) == pytest.approx(
        (by_row * weights).sum() / weights.sum()
    )
    alone = GraftedMRF(search=GraftingSettings(max_edges=0), random_state=0).fit(rows)
    assert estimator.score(other) > alone.score(other)


def test_integers_are_labels_and_not_codes():
    rows = chain()
    shifted = GraftedMRF(random_state=0).fit(10 * rows + 7)
    plain = GraftedMRF(random_state=0).fit(rows)
    assert shifted.score(10 * rows + 7) == plain.score(rows)
    assert set(np.unique(shifted.sample(50, random_state=0))) <= {7, 17, 27}


def test_predict_proba_of_a_column():
    frame = survey()
    estimator = GraftedMRF(random_state=0).fit(frame)
    chance = estimator.predict_proba(frame, "cough")
    assert chance.shape == (600, 4)
    np.testing.assert_allclose(chance.sum(axis=1), 1)
    labels = estimator.schema_["cough"].categories
    agree = np.array(labels)[chance.argmax(axis=1)] == frame["cough"].astype(str)
    assert agree.mean() > 0.6
    np.testing.assert_array_equal(chance, estimator.predict_proba(frame, 1))
    np.testing.assert_array_equal(
        chance, estimator.predict_proba(frame.drop(columns="cough"), "cough")
    )
    every = estimator.predict_proba(frame)
    assert every.shape == (600, 2 + 4 + 3 + 2 + 16)
    np.testing.assert_array_equal(every[:, 2:6], chance)


def test_columns_that_a_table_lacks_are_missing_for_predictions():
    frame = survey()
    estimator = GraftedMRF(random_state=0).fit(frame)
    known = frame[["smoker"]].reindex(columns=frame.columns)
    np.testing.assert_allclose(
        estimator.predict_proba(frame[["smoker"]], "cough"),
        estimator.predict_proba(known, "cough"),
    )
    with pytest.raises(DataError, match="does not know"):
        estimator.predict(frame[["smoker"]].assign(coughs=1), "cough")
    with pytest.raises(DataError, match="none of the fitted columns"):
        estimator.predict(frame[["smoker"]].rename(columns={"smoker": "x"}), "cough")


def test_predict_proba_of_an_array_without_the_target():
    rows = chain()
    estimator = GraftedMRF(random_state=0).fit(rows)
    np.testing.assert_array_equal(
        estimator.predict_proba(rows, 2), estimator.predict_proba(np.delete(rows, 2, axis=1), 2)
    )
    by_name = estimator.predict_proba(rows, "x2")
    np.testing.assert_array_equal(by_name, estimator.predict_proba(rows, 2))


def test_columns_are_matched_by_name_in_any_order():
    frame = survey().drop(columns="score")
    estimator = GraftedMRF(random_state=0).fit(frame)
    np.testing.assert_array_equal(
        estimator.score_samples(frame), estimator.score_samples(frame[frame.columns[::-1]])
    )


def test_an_array_after_a_frame_is_matched_by_position_with_a_warning():
    frame = pd.DataFrame(chain(), columns=list("abcde"))
    estimator = GraftedMRF(random_state=0).fit(frame)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        by_position = estimator.score_samples(frame.to_numpy())
    np.testing.assert_array_equal(by_position, estimator.score_samples(frame))


def test_the_result_does_not_depend_on_threads_and_only_on_the_seed():
    rows = chain()
    one = GraftedMRF(random_state=0).fit(rows)
    assert GraftedMRF(random_state=0, n_jobs=2).fit(rows).model_ == one.model_
    for state in (np.random.RandomState(0), np.random.default_rng(0), None):
        assert pairs(GraftedMRF(random_state=state).fit(rows).edges_) == CHAIN


def test_a_fit_survives_pickling_and_cloning_forgets_it():
    frame = survey(missing=0.1).drop(columns="score")
    estimator = GraftedMRF(random_state=0, fdr=0.1).fit(frame)
    again = pickle.loads(pickle.dumps(estimator))
    assert again.score(frame) == estimator.score(frame)
    pd.testing.assert_frame_equal(again.impute(frame), estimator.impute(frame))
    fresh = clone(estimator)
    assert fresh.get_params() == estimator.get_params()
    with pytest.raises(NotFittedError):
        fresh.score(frame)


def test_pipelines():
    frame = survey().drop(columns="score")
    nominal = GraftedMRF(random_state=0, kinds="nominal")
    pipeline = make_pipeline(OrdinalEncoder(dtype=np.int64), nominal)
    pipeline.fit(frame)
    direct = clone(nominal).fit(frame)
    assert pairs(pipeline[-1].edges_) == pairs(direct.edges_)
    # The frame has one more category, which never occurs; tables with it are shrunk differently.
    assert pipeline.score(frame) == pytest.approx(direct.score(frame), abs=1e-2)


def test_grid_search_over_the_penalty():
    frame = survey(300)[["smoker", "cough", "visits", "insured"]]
    search = GridSearchCV(GraftedMRF(random_state=0), {"search__penalty": [0.05, 5.0]}, cv=3).fit(
        frame
    )
    assert search.best_params_ == {"search__penalty": 0.05}
    assert search.best_estimator_.search == GraftingSettings(penalty=0.05)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_score_ > search.cv_results_["mean_test_score"][1]


def test_weights_are_routed():
    rows, weights = chain(400), np.linspace(0, 2, 400)
    with config_context(enable_metadata_routing=True):
        estimator = (
            GraftedMRF(random_state=0)
            .set_fit_request(sample_weight=True)
            .set_score_request(sample_weight=True)
        )
        found = cross_validate(
            estimator,
            rows,
            params={"sample_weight": weights},
            cv=2,
            return_estimator=True,
            error_score="raise",
        )
    expected = GraftedMRF(random_state=0).fit(rows[200:], sample_weight=weights[200:])
    assert found["estimator"][0].model_ == expected.model_
    assert found["test_score"][0] == expected.score(rows[:200], sample_weight=weights[:200])


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("fdr", 0.0, "fdr must be a number above 0 and at most 1 or None, found 0.0"),
        ("search", 3, "search must be GraftingSettings or None, found 3"),
        ("random_state", "x", "random_state must be an integer.*, found 'x'"),
        ("n_jobs", "x", "n_jobs must be .*, found 'x'"),
        ("n_jobs", 0, "n_jobs must be .*, found 0"),
        ("max_memory", "much", "max_memory is an invalid size 'much'"),
        ("max_memory", [2], "max_memory is an int"),
        ("reading__cache_dir", 3, "cache_dir must be a path or None, found 3"),
        ("drop", 3, r"drop= takes a list of names: write drop=\[3\]"),
        ("drop", "id", r"drop= takes a list of names: write drop=\['id'\]"),
        ("missing_values", "?", r"takes a list of tokens: write missing_values=\['\?'\]"),
        ("reading__bins", 1, "bins must be an integer of at least 2, found 1"),
        ("kinds", "text", "kinds must be one of 'auto'.*, found 'text'"),
        ("reading__max_categories", 1, "max_categories must be an integer of at least 2, found 1"),
        ("unseen", "new", "unseen must be one of error, missing, found 'new'"),
        ("rules", "forbid a -- b", "rules must be a list of texts or None"),
    ],
)
def test_parameters_are_refused_at_fit_with_what_is_allowed(parameter, value, message):
    estimator = GraftedMRF().set_params(**{parameter: value})  # nothing is checked here
    with pytest.raises(ValueError, match=message):
        estimator.fit(chain(50))
    with pytest.raises(NotFittedError):
        estimator.score(chain(50))


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("penalty", -1.0, "penalty must be a number of at least 0 or 'auto', found -1.0"),
        ("penalty", "large", "penalty must be .*, found 'large'"),
        ("ridge", np.nan, "ridge must be .*, found nan"),
        ("strategy", "greedy", "strategy must be one of best-choice.*, found 'greedy'"),
        ("objective", "mse", "objective must be one of .*likelihood, found 'mse'"),
        ("inference", "magic", "inference must be one of .*trw, found 'magic'"),
        ("reservoir_size", 0, "reservoir_size must be an integer of at least 1.*, found 0"),
        ("hub_threshold", 2.0, "hub_threshold must be a number from 0 to 1.*, found 2.0"),
        ("max_edges", 1.5, "max_edges must be an integer.*, found 1.5"),
        ("tol", 0.0, "tol must be a number above 0, found 0.0"),
        ("strategy", "feature", "strategy must be one of best-choice, first-hit, exhaustive"),
        ("group_weight", "sqrt", "penalty='auto' needs group_weight='noise'"),
    ],
)
def test_settings_of_the_method_are_refused_when_they_are_made(setting, value, message):
    with pytest.raises(ValueError, match=message):
        GraftingSettings(**{setting: value})
    estimator = GraftedMRF()
    with pytest.raises(ValueError, match=message):
        estimator.set_params(**{f"search__{setting}": value})
    assert estimator.search is None


def test_settings_of_records_are_parameters():
    search, reading = GraftingSettings(max_edges=3), ReadingOptions(bins=4)
    estimator = GraftedMRF(search=search, reading=reading, fdr=0.1)
    assert len(estimator.get_params(deep=False)) == 18
    assert estimator.get_params()["search__max_edges"] == 3
    assert estimator.get_params()["reading__bins"] == 4
    again = clone(estimator).set_params(search__penalty=0.1, reading__bins=None, fdr=0.2)
    assert again.search == replace(search, penalty=0.1)
    assert (again.reading, again.fdr) == (ReadingOptions(), 0.2)
    assert repr(again.search) == "GraftingSettings(max_edges=3, penalty=0.1)"
    assert estimator.search is search  # records are shared and never changed
    for name in ("penalty", "other__penalty"):
        with pytest.raises(ValueError, match="Invalid parameter"):
            estimator.set_params(**{name: 1})
    with pytest.raises(TypeError, match="penalties"):
        estimator.set_params(search__penalties=1)
    with pytest.raises(TypeError, match="penalty"):
        GraftedMRF(penalty=0.1)


def test_a_schema_is_refused_by_its_type():
    with pytest.raises(DataTypeError, match="schema must be a Schema, found str"):
        GraftedMRF(schema="a").fit(chain(50))


def test_a_packed_table_may_be_fitted_and_scored():
    rows = chain()
    estimator = GraftedMRF(random_state=0).fit(pack(rows))
    assert pairs(estimator.edges_) == CHAIN
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the packed table has names
        assert estimator.score(pack(rows)) == estimator.score(rows)
    assert isinstance(estimator.sample(3, random_state=0), PackedTable)


def test_bootstrap_says_how_sure_the_edges_are():
    frame = survey(missing=0.05).drop(columns="score")
    weights = np.linspace(0.5, 1.5, len(frame))
    estimator = GraftedMRF(random_state=0).fit(frame, sample_weight=weights)
    table = pd.DataFrame(estimator.bootstrap(frame, 30, sample_weight=weights))
    chain = table[table["frequency"] > 0.9]
    assert {frozenset(pair) for pair in zip(chain["first"], chain["second"], strict=True)} == {
        frozenset(("smoker", "cough")),
        frozenset(("cough", "visits")),
    }
    assert (chain["lower"] < chain["upper"]).all()
    again = pickle.loads(pickle.dumps(estimator))
    pd.testing.assert_frame_equal(
        table, pd.DataFrame(again.bootstrap(frame, 30, sample_weight=weights))
    )


def test_bootstrap_refuses_other_rows_than_those_of_the_fit():
    frame = survey().drop(columns="score")
    estimator = GraftedMRF(random_state=0).fit(frame)
    with pytest.raises(DataError, match="do not give the model of the fit"):
        estimator.bootstrap(frame.iloc[:300], 5)
    with pytest.raises(DataError, match="do not give the model of the fit"):
        estimator.bootstrap(frame, 5, sample_weight=np.arange(600))


def test_bootstrap_does_not_search_again(monkeypatch):
    frame = survey().drop(columns="score")
    estimator = GraftedMRF(random_state=0).fit(frame)
    expected = estimator.bootstrap(frame, 5)
    monkeypatch.setattr("edgegraft.grafting.loop.run_search", None)
    monkeypatch.setattr("edgegraft.learn.stages.run_search", None)
    again = pickle.loads(pickle.dumps(estimator))
    pd.testing.assert_frame_equal(pd.DataFrame(again.bootstrap(frame, 5)), pd.DataFrame(expected))


def test_the_file_is_that_of_the_command(tmp_path):
    """Same rows, same settings: tests, certificate and provenance are in both files."""
    survey().drop(columns="score").to_csv(tmp_path / "survey.csv", index=False)
    command = [sys.executable, "-m", "edgegraft", "learn", "survey.csv", "-o", "one", "--quiet"]
    subprocess.run(command, cwd=tmp_path, check=True)
    estimator = GraftedMRF(random_state=0).fit(tmp_path / "survey.csv")
    estimator.save(tmp_path / "other")
    one, other = (edgegraft.read_details(tmp_path / name) for name in ("one", "other"))
    assert edgegraft.load(tmp_path / "one") == edgegraft.load(tmp_path / "other")
    assert list(one.edge_columns) == list(other.edge_columns)
    for name, values in one.edge_columns.items():
        np.testing.assert_array_equal(values, other.edge_columns[name])
    settings = one.details.pop("settings")
    assert other.details.pop("settings").items() <= settings.items()
    assert one.details == other.details
    frequency = estimator.bootstrap(tmp_path / "survey.csv", 3)
    estimator.save(tmp_path / "other", bootstrap=frequency)
    assert "frequency" in edgegraft.read_details(tmp_path / "other").edge_columns


def test_frames_have_names_in_the_library_of_the_fit():
    frame = survey().drop(columns="score")
    estimator = GraftedMRF(random_state=0).fit(frame)
    edges = estimator.edges_frame()
    assert isinstance(edges, pd.DataFrame)
    assert list(zip(edges["first"], edges["second"], strict=True)) == [
        tuple(frame.columns[[i, j]]) for i, j in estimator.edges_
    ]
    np.testing.assert_array_equal(edges["strength"], estimator.edge_strengths_)
    assert len(estimator.edges_frame(kept=False)) == len(estimator.edge_table_["kept"])
    polars = pytest.importorskip("polars")
    other = GraftedMRF(random_state=0).fit(polars.from_pandas(frame)).edges_frame()
    assert isinstance(other, polars.DataFrame)
    assert sorted(other["second"].to_list()) == sorted(edges["second"])  # Categorical has no order
    answer = estimator.model_.marginals({frame.columns[0]: frame.iloc[0, 0]})
    shown = answer.to_frame().query(f"variable == '{frame.columns[1]}'")
    np.testing.assert_array_equal(shown["probability"], answer.array(frame.columns[1]))
    matrix = estimator.model_.adjacency()
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(matrix[tuple(estimator.edges_.T)], estimator.edge_strengths_)
    assert np.count_nonzero(matrix) == 2 * len(estimator.edges_)


def test_it_fills_missing_cells_in_a_pipeline():
    frame = survey().drop(columns="score")
    holes = survey(missing=0.1).drop(columns="score")
    estimator = GraftedMRF(random_state=0)
    filled = make_pipeline(estimator, "passthrough").fit_transform(holes)
    pd.testing.assert_frame_equal(filled, estimator.impute(holes))
    assert not filled.isna().any(axis=None)
    assert estimator.get_feature_names_out().tolist() == list(frame.columns)
    rows = chain(200).astype(float)
    rows[0, 0] = np.nan
    out = GraftedMRF(random_state=0).set_output(transform="pandas").fit_transform(rows)
    assert list(out.columns) == [f"x{i}" for i in range(5)]
    assert not out.isna().any(axis=None)


def test_cross_validation_scores_folds_with_categories_that_a_fit_did_not_see():
    rows = chain(300).astype(object)
    rows[0, 0] = 7  # once: one fold cannot know it
    with pytest.warns(UserWarning, match="UnseenCategoryError"):
        strict = cross_validate(GraftedMRF(random_state=0), rows, cv=2)
    assert np.isnan(strict["test_score"]).any()
    found = cross_validate(
        GraftedMRF(random_state=0, unseen="missing"), rows, cv=2, error_score="raise"
    )
    assert np.isfinite(found["test_score"]).all()


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.7"),
    reason="scikit-learn before 1.7 loads pandas in other ways, too",
)
def test_importing_an_estimator_loads_what_it_needs():
    code = (
        "import sys\n"
        "from edgegraft import GraftedMRF\n"
        "heavy = 'numba', 'pyarrow', 'pandas', 'scipy.stats', 'edgegraft.learn'\n"
        "assert not [name for name in heavy if name in sys.modules]\n"
        "import numpy as np, pandas, scipy.stats, sklearn.utils.fixes as fixes\n"
        "assert fixes.pd.DataFrame is pandas.DataFrame\n"
        "assert fixes._mode(np.array([[1], [1], [2]]))[0] == 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
