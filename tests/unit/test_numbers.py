"""Numbers of levels: draws, means and quantiles within them, and the answers made of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegraft import GraftedMRF
from edgegraft.errors import DataError, ModelError
from edgegraft.ingest import pack
from edgegraft.table import Schema, Variable
from edgegraft.table.numbers import numbers_of


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, 800)
    income = np.exp(0.03 * age + rng.normal(0, 0.5, 800))
    mood = np.clip(np.rint(income / 4 + rng.normal(size=800)), 1, 5).astype(int)
    frame = pd.DataFrame({"age": age, "income": income, "mood": mood, "late": age > 65})
    return GraftedMRF(random_state=0, kinds={"mood": "ordinal"}).fit(frame), frame


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.floats(-1e6, 1e6, width=32, allow_subnormal=False), min_size=2, max_size=9, unique=True
    ),
    st.booleans(),
    st.integers(0, 99),
)
def test_draws_stay_in_their_level_and_have_its_mean(cuts, whole, seed):
    rng = np.random.default_rng(seed)
    edges = tuple(sorted(np.round(cuts) if whole else cuts))
    if len(set(edges)) < len(edges):
        return
    share = rng.uniform(0.05, 0.95, len(edges) - 1)
    means = tuple(
        low + s * (high - low) for low, high, s in zip(edges[:-1], edges[1:], share, strict=True)
    )
    names = tuple(f"level {k}" for k in range(len(means)))
    variable = Variable("x", names, "int64" if whole else "double", True, edges, means=means)
    numbers = numbers_of(variable)
    states = np.repeat(np.arange(len(means)), 400)
    drawn = numbers.draw(states, rng)
    assert [variable.state_of(value) for value in drawn.tolist()] == states.tolist()
    width = np.diff(edges)
    error = drawn.reshape(-1, 400).mean(axis=1) - means
    assert (np.abs(error) < 0.1 * width + 1.0 * whole).all()
    # A quantile of one state is where that share of its draws is below.
    p = np.eye(len(means))
    found = numbers.quantiles(p, [0.3])
    below = (drawn.reshape(-1, 400) < found).mean(axis=1)
    assert whole or (np.abs(below - 0.3) < 0.12).all()


def test_quantiles_and_means_of_several_levels_are_those_of_draws():
    rng = np.random.default_rng(1)
    values = rng.lognormal(size=4000)
    table = pack({"x": values})
    numbers = numbers_of(table.schema["x"])
    p = np.bincount(table.codes()[:, 0], minlength=16) / 4000
    assert numbers.expectation(p) == pytest.approx(values.mean())
    shares = [0.05, 0.5, 0.95, 0.99]
    assert numbers.quantiles(p, shares) == pytest.approx(np.quantile(values, shares), rel=0.1)
    assert numbers.quantiles(np.stack((p, p)), shares).shape == (2, 4)


def test_numbers_of_labels_are_the_labels():
    level = numbers_of(Variable("mood", (1, 2, 5), kind="ordinal"))
    assert level.quantiles(np.array([0.2, 0.5, 0.3]), [0.1, 0.5, 0.9]).tolist() == [1, 2, 5]
    assert level.expectation(np.array([0.2, 0.5, 0.3])) == pytest.approx(2.7)
    for variable in (Variable("region", (1, 2)), Variable("size", ("S", "M"), kind="ordinal")):
        assert numbers_of(variable) is None


def test_means_travel_with_the_schema_and_are_checked():
    schema = pack({"x": np.random.default_rng(0).normal(size=300)}).schema
    assert Schema.from_json(schema.to_json())["x"].means == schema["x"].means
    with pytest.raises(DataError, match="needs a mean inside"):
        Variable("x", ("a", "b"), "double", True, (0.0, 1.0, 2.0), means=(0.5, 2.5))


def test_samples_and_imputations_are_numbers(fitted):
    network, frame = fitted
    drawn = network.sample(2000, random_state=0)
    assert list(drawn.dtypes) == list(frame.dtypes)
    assert drawn["age"].nunique() > 60
    assert drawn["income"].nunique() == 2000
    assert drawn["income"].mean() == pytest.approx(frame["income"].mean(), rel=0.1)
    assert np.corrcoef(drawn["age"], np.log(drawn["income"]))[0, 1] > 0.5
    plain = network.model_.sample(2000, random_state=0).to_pandas()
    np.testing.assert_array_equal(plain["income"], drawn["income"])
    holes = frame.astype({"age": float}).mask(np.random.default_rng(1).random(frame.shape) < 0.2)
    kept = holes.notna()
    for method in ("map", "draw"):
        filled = network.impute(holes, method, random_state=0)
        assert filled.notna().all(axis=None)
        assert (filled.where(kept) == holes)[kept].fillna(True).all(axis=None)
    by_level = network.impute(holes)["income"][~kept["income"]]
    assert by_level.nunique() <= 16
    assert network.impute(holes, "draw")["income"][~kept["income"]].nunique() == len(by_level)


def test_predictions_are_means_quantiles_or_categories(fitted):
    network, frame = fitted
    p = network.predict_proba(frame, "income")
    mean = network.predict(frame, "income")
    np.testing.assert_allclose(mean, p @ network.schema_["income"].means)
    truth = np.exp(0.03 * frame["age"])
    assert np.corrcoef(mean, truth)[0, 1] > 0.8
    low, high = network.predict(frame, "income", quantiles=[0.05, 0.95]).T
    assert ((frame["income"] > low) & (frame["income"] < high)).mean() == pytest.approx(
        0.9, abs=0.05
    )
    assert network.predict(frame, "income", quantiles=0.5).shape == (800,)
    late = network.predict(frame.drop(columns="late"), "late")
    assert late.dtype == bool
    assert network.predict(frame).shape == (800, 4)
    found = network.model_.marginals({"age": 30})
    assert found.mean("income") == pytest.approx(
        found.array("income") @ network.schema_["income"].means
    )
    assert found.mean("income") < network.model_.marginals({"age": 80}).mean("income")
    assert found.quantiles("income").shape == (3,)
    with pytest.raises(ModelError, match="'late' has no numbers: it is nominal"):
        found.mean("late")
    with pytest.raises(ValueError, match="from 0 to 1"):
        found.quantiles("income", [1.5])
