"""The estimators where data, weights, questions and users misbehave."""

from __future__ import annotations

import signal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from edgegraft.config import GraftingSettings
from edgegraft.errors import (
    ConvergenceWarning,
    DataError,
    DataTypeError,
    EncodingWarning,
    MemoryBudgetError,
    ModelError,
    TooFewRowsWarning,
    UnseenCategoryError,
)
from edgegraft.estimators import GraftedMRF
from edgegraft.grafting import loop
from edgegraft.ingest import pack
from edgegraft.table import Schema, Variable
from tests.estimator_cases import survey

BOTH = [GraftedMRF(random_state=0), GraftedMRF(aim="prediction", random_state=0)]
both = pytest.mark.parametrize("estimator", BOTH, ids=["network", "prediction"])


def rows_of(n_rows=200, n=4, n_states=3, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, n_states, (n_rows, n))
    if n > 1:
        rows[:, 1] = np.where(rng.random(n_rows) < 0.7, rows[:, 0], rows[:, 1])
    return rows


# Data


@pytest.mark.filterwarnings("ignore::edgegraft.errors.TooFewRowsWarning")
def test_one_row():
    constant = pytest.warns(EncodingWarning, match="constant columns: 'x0', 'x1', 'x2'")
    with constant, pytest.warns(TooFewRowsWarning, match="1 rows are too few"):
        estimator = GraftedMRF(random_state=0).fit([[0, 1, 2]])
    assert estimator.edges_.shape == (0, 2)
    assert estimator.score([[0, 1, 2]]) == pytest.approx(0)
    np.testing.assert_array_equal(estimator.sample(2), [[0, 1, 2]] * 2)


@both
def test_one_column(estimator):
    rows = rows_of(n=1)
    estimator.fit(rows)
    assert estimator.edges_.shape == (0, 2)
    shares = np.bincount(rows[:, 0]) / len(rows)
    np.testing.assert_allclose(estimator.predict_proba(rows[:1]), shares[None], atol=2e-3)


@pytest.mark.filterwarnings("ignore::edgegraft.errors.IdentificationWarning")
@pytest.mark.parametrize("seed", range(6))
def test_two_identical_columns_have_an_edge(seed):
    rows = rows_of(500, 3, seed=seed)
    rows[:, 2] = rows[:, 0]
    rows[:, 1] = np.random.default_rng(seed).permutation(rows[:, 1])
    estimator = GraftedMRF(random_state=0).fit(rows)
    assert estimator.edges_.tolist() == [[0, 2]]
    assert np.isfinite(estimator.edge_strengths_).all()
    agree = estimator.predict_proba(rows, 0).argmax(axis=1) == rows[:, 0]
    assert agree.all()


@pytest.mark.filterwarnings("ignore::edgegraft.errors.IdentificationWarning")
def test_three_identical_columns_are_joined():
    rows = rows_of(500, 3)
    rows[:, 1:] = rows[:, :1]
    assert len(GraftedMRF(random_state=0).fit(rows).edges_) >= 2


def test_all_missing_rows_say_nothing_and_can_be_imputed():
    rows = rows_of().astype(float)
    empty = np.full((20, 4), np.nan)
    alone = GraftedMRF(random_state=0).fit(rows)
    both = GraftedMRF(random_state=0).fit(np.vstack([rows, empty]))
    np.testing.assert_array_equal(alone.edges_, both.edges_)
    np.testing.assert_array_equal(both.score_samples(empty), 0)
    filled = both.impute(empty)
    assert (filled == filled[0]).all()
    assert np.isin(both.impute(empty, method="draw"), [0, 1, 2]).all()


@both
@pytest.mark.filterwarnings("ignore:columns with many categories:edgegraft.errors.EncodingWarning")
def test_60000_categories_are_refused_before_any_work(estimator):
    postcode = np.arange(120_000) % 60_000
    frame = pd.DataFrame({"postcode": postcode.astype(str), "b": postcode % 2})
    with pytest.raises(
        MemoryBudgetError, match=r"'postcode' has 60,000 categories.*merge rare.*drop="
    ):
        estimator.set_params(reading__max_categories=60_000).fit(frame)


def test_fewer_rows_than_columns():
    rows = np.random.default_rng(0).integers(0, 3, (25, 60))
    estimator = GraftedMRF(random_state=0).fit(rows)
    assert len(estimator.edges_) <= 1
    assert np.isfinite(estimator.score(rows))
    rows[:, 7] = rows[:, 3]
    assert [3, 7] in GraftedMRF(random_state=0, fdr=None).fit(rows).edges_.tolist()


def test_rare_and_unobserved_states():
    frame = survey(400)[["smoker", "cough", "visits"]]
    frame.loc[0, "smoker"] = "rarely"
    estimator = GraftedMRF(random_state=0).fit(frame)
    chance = estimator.predict_proba(frame, "cough")
    unheard = estimator.schema_["cough"].categories.index("unheard of")
    assert (chance[:, unheard] < 0.02).all()
    assert (estimator.predict_proba(frame, "smoker")[:, 1] < 0.1).all()
    assert len(estimator.edges_) == 2
    drawn = estimator.sample(50, random_state=0)
    assert drawn["cough"].dtype == frame["cough"].dtype


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (None, ValueError, "Expected 2D array"),
        (pd.Series([1, 2]), DataTypeError, "pass a DataFrame"),
        (pl.LazyFrame({"a": [1]}), DataTypeError, "frame.collect()"),
        (sparse.csr_array(np.eye(3)), TypeError, "Sparse data was passed"),
        (np.zeros((2, 2, 2)), ValueError, "dim 3"),
        (np.zeros((3, 0)), ValueError, "0 feature"),
        (pd.DataFrame({"a": []}), DataError, "no rows"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), DataError, "more than one column named 'a'"),
        (pd.DataFrame([[1, 2]], columns=["a", 2.5]), DataTypeError, "column name 2.5"),
        (np.array([[1.0, np.inf]]), DataError, "'x1', row 0.*inf"),
        ("no such file.csv", FileNotFoundError, "no such file.csv"),
        ([["a", 1], ["b"]], DataError, "row 1 has 1 cells where row 0 has 2"),
        ([1, 2], ValueError, "Expected 2D array"),
        ([], ValueError, "Expected 2D array"),
    ],
)
def test_tables_that_are_none_are_refused(table, error, message):
    estimator = GraftedMRF()
    with pytest.raises(error, match=message):
        estimator.fit(table)
    with pytest.raises(NotFittedError):
        estimator.sample()


# Weights


@both
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.r_[1.0, np.nan, np.ones(198)], "weight of row 1 is nan"),
        (np.r_[1.0, 1.0, -2.0, np.ones(197)], "weight of row 2 is -2.0"),
        (np.r_[np.inf, np.ones(199)], "weight of row 0 is inf"),
        (np.ones(10), r"weights have shape \(10,\), but the table has 200 rows"),
        (np.ones((200, 2)), r"weights have shape \(200, 2\)"),
        (
            "weight",
            r"one number per row, found 'weight': for a column of the table, give its cells",
        ),
        (np.zeros(200), "all weights are zero"),
    ],
)
def test_weights_that_are_none_are_refused(estimator, weights, message):
    with pytest.raises(DataError, match=message):
        estimator.fit(rows_of(), sample_weight=weights)
    fitted = GraftedMRF(random_state=0).fit(rows_of())
    with pytest.raises(DataError, match=message):
        fitted.score(rows_of(), sample_weight=weights)


def test_one_column_with_missing_cells_has_a_model():
    column = np.array([["a"], ["b"], [None], ["a"]] * 20, object)
    model = GraftedMRF(random_state=0).fit(column).model_
    assert model.marginals()["x0"] == pytest.approx({"a": 2 / 3, "b": 1 / 3}, abs=1e-2)


# Questions


@both
def test_nothing_is_answered_before_the_fit(estimator):
    rows = rows_of()
    fresh = type(estimator)()
    for ask in (
        lambda: fresh.score(rows),
        lambda: fresh.score_samples(rows),
        lambda: fresh.predict_proba(rows, 0),
        lambda: fresh.predict_proba(rows),
        lambda: fresh.impute(rows),
        lambda: fresh.sample(),
        lambda: fresh.bootstrap(rows),
    ):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            ask()


@pytest.fixture(scope="module")
def fitted():
    frame = pd.DataFrame(rows_of(), columns=list("abcd"))
    return frame, GraftedMRF(random_state=0).fit(frame)


def test_other_columns_are_named(fitted):
    frame, estimator = fitted
    for ask in (estimator.score, estimator.impute, estimator.predict_proba):
        with pytest.raises(DataError, match="lacks columns of the schema: 'd'"):
            ask(frame.rename(columns={"d": "e"}))
        with pytest.raises(DataError, match="columns that the schema does not know: 'e'"):
            ask(frame.assign(e=0))
        with (
            pytest.warns(UserWarning, match="does not have valid feature names"),
            pytest.raises(ValueError, match="X has 3 features, but GraftedMRF is expecting 4"),
        ):
            ask(frame.to_numpy()[:, :3])


def test_names_after_a_fit_without_are_refused(fitted):
    frame, _ = fitted
    estimator = GraftedMRF(random_state=0).fit(frame.to_numpy())
    with pytest.raises(DataError, match="was fitted without: pass the columns as an array"):
        estimator.score(frame)
    renamed = frame.set_axis(["x0", "x1", "x2", "x3"], axis=1)
    assert estimator.score(renamed) == estimator.score(frame.to_numpy())
    numbered = GraftedMRF(random_state=0).fit(frame.set_axis(range(4), axis=1))
    assert numbered.score(frame.set_axis(range(4), axis=1)) == estimator.score(frame.to_numpy())


def test_other_categories_are_named_with_column_and_row(fitted):
    frame, estimator = fitted
    strange = frame.copy()
    strange.loc[7, "c"] = 9
    for ask in (estimator.score, estimator.impute, estimator.predict_proba):
        with pytest.raises(UnseenCategoryError, match=r"column 'c', row 7 .*: 9 is not") as caught:
            ask(strange)
        assert any("unseen='missing'" in note for note in caught.value.__notes__)
    # What the note says to do works.
    packed = pack(strange, schema=estimator.schema_, unseen="missing")
    assert np.isfinite(estimator.score(packed))
    assert packed.n_missing.sum() == 1


def test_a_schema_makes_a_rare_category_known():
    frame = survey(300)[["smoker", "visits"]]
    schema = Schema(
        [Variable("smoker", ("no", "rarely", "yes"), "string"), pack(frame).schema["visits"]]
    )
    estimator = GraftedMRF(schema=schema, random_state=0).fit(frame)
    assert np.isfinite(estimator.score(frame.assign(smoker="rarely")))


def test_questions_that_make_no_sense(fitted):
    frame, estimator = fitted
    for target in ("zz", 17, -1, 1.5):
        with pytest.raises(ModelError, match=r"is not a column of the fitted table.*'a', 'b'"):
            estimator.predict_proba(frame, target)
    with pytest.raises(ValueError, match="'map' or 'draw', found 'mean'"):
        estimator.impute(frame, method="mean")
    with pytest.raises(ValueError, match="n_samples == 0, must be >= 1"):
        estimator.sample(0)
    with pytest.raises(ModelError, match="variable 'a' has no category 77"):
        estimator.sample(2, given={"a": 77})


# Ctrl-C


def interrupt(monkeypatch, times):
    """Press Ctrl-C in the first step of the next search."""
    fit, left = loop._fit, [times]

    def press(*arguments, **options):
        while left[0]:
            left[0] -= 1
            signal.raise_signal(signal.SIGINT)
        return fit(*arguments, **options)

    monkeypatch.setattr(loop, "_fit", press)


def test_an_interrupted_fit_is_a_fit_with_a_warning(monkeypatch):
    interrupt(monkeypatch, 1)
    estimator = GraftedMRF(random_state=0, search=GraftingSettings(max_tests=1, reservoir_size=1))
    with pytest.warns(ConvergenceWarning, match=r"the fit was interrupted after 1 steps"):
        estimator.fit(rows_of())
    assert estimator.reason_ == "interrupted"
    assert estimator.n_iter_ == 1
    assert np.isfinite(estimator.score(rows_of()))


def test_a_second_interruption_leaves_the_estimator_as_it_was(monkeypatch):
    fresh = GraftedMRF(random_state=0)
    before = GraftedMRF(random_state=0).fit(rows_of())
    model = before.model_
    for estimator in (fresh, before):
        interrupt(monkeypatch, 2)
        with pytest.raises(KeyboardInterrupt):
            estimator.fit(rows_of(seed=1))
        monkeypatch.undo()
    with pytest.raises(NotFittedError):
        fresh.score(rows_of())
    assert before.model_ is model
