"""What kind a column is, by its type, by the data, or as asked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from edgegraft import GraftedMRF
from edgegraft.config import ReadingOptions
from edgegraft.datasets import make_scale_free
from edgegraft.errors import DataError, EncodingWarning, SettingError
from edgegraft.ingest import pack
from edgegraft.ingest.options import ReadOptions
from edgegraft.scale.disk import open_store
from edgegraft.table import Schema


def items(n_rows=300, n_levels=5, seed=0):
    rng = np.random.default_rng(seed)
    trait = rng.normal(size=(n_rows, 1))
    answers = trait + rng.normal(size=(n_rows, 4))
    return 1 + np.searchsorted(np.linspace(-1.5, 1.5, n_levels - 1), answers)


def test_kinds_from_types_and_data():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(items(), columns=list("abcd"))
    frame["income"] = rng.lognormal(size=300)
    frame["visits"] = rng.poisson(2.0, 300)
    frame["region"] = np.where(frame["a"] > 3, rng.choice([2, 5], 300), rng.choice([1, 3, 4], 300))
    frame["town"] = rng.choice(["x", "y", "z"], 300)
    frame["grade"] = pd.Categorical(rng.choice(["lo", "hi"], 300), ["lo", "hi"], ordered=True)
    schema = pack(frame).schema
    kinds = [variable.kind for variable in schema]
    assert kinds[:4] == ["ordinal"] * 4
    assert kinds[4:] == ["numeric", "count", "nominal", "nominal", "ordinal"]
    assert "trend" in schema["a"].reason
    assert schema["visits"].categories[-1].endswith("or more")
    assert Schema.from_json(schema.to_json()) == schema
    assert Schema.from_json(schema.to_json())["a"].reason == schema["a"].reason


@pytest.mark.parametrize("n_states", [3, 5])
def test_codes_without_an_order_stay_nominal(n_states):
    rows = make_scale_free(25, n_states, 2000, random_state=3).X
    assert {variable.kind for variable in pack(rows).schema} == {"nominal"}


def test_kinds_as_asked():
    frame = pd.DataFrame(items(), columns=list("abcd"))
    schema = pack(frame, kinds={"a": "nominal", "b": "numeric", "c": "count"}).schema
    assert [variable.kind for variable in schema] == ["nominal", "numeric", "count", "ordinal"]
    assert {variable.kind for variable in pack(frame, kinds="nominal").schema} == {"nominal"}
    text = pd.DataFrame({"size": ["M", "S", None, "L"] * 5, "other": ["S", "M"] * 10})
    schema = pack(text, order=["size=S<M<L<XL"]).schema
    assert schema["size"].categories == ("S", "M", "L", "XL")
    assert (schema["size"].kind, schema["other"].kind) == ("ordinal", "nominal")
    codes = pack(text, order=["S<M<L"]).codes()
    assert codes[:4].tolist() == [[1, 0], [0, 1], [-1, 0], [2, 1]]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kinds": "odd"}, SettingError, "kinds must be one of 'auto', 'nominal'"),
        ({"kinds": {"zz": "nominal"}}, DataError, "names column 'zz'"),
        ({"kinds": {"t": "ordinal"}}, DataError, r"'t' is text, whose order is not known.*order="),
        ({"kinds": {"t": "numeric"}}, DataError, "'t' cannot be numeric: it is not numeric"),
        ({"kinds": {"h": "count"}}, DataError, "'h' cannot be count: it has 0.5"),
        ({"order": ["t=x"]}, DataError, "has no order"),
        ({"order": ["t=x<q"]}, DataError, "column 't' has 'y', which its order= lacks"),
        ({"order": ["t=x<y<x"]}, DataError, "order= of column 't' names 'x' twice"),
        (
            {"order": ["x<z"]},
            DataError,
            r"is the order of no .*; column 't' has 'y' besides",
        ),
        ({"order": ["low<high"]}, DataError, "is the order of no column's categories$"),
    ],
)
def test_what_cannot_be(options, error, message):
    with pytest.raises(error, match=message):
        pack({"t": ["x", "y"] * 10, "h": [0.5, 1.0] * 10}, **options)


def test_every_column_has_a_reason():
    columns = {
        "text": ["x", "y", "z"] * 20,
        "flag": [True, False, False] * 20,
        "loose": pd.Categorical(["x", "y", "z"] * 20),
        "levels": pd.Categorical(["x", "y", "z"] * 20, ordered=True),
        "two": [0, 1, 1] * 20,
        "one": [4.0] * 60,
        "grade": [1.0, 1.3, 1.7] * 20,
        "whole": [1, 2, 3] * 20,
        "visits": [0] * 40 + list(range(20)),
        "income": np.linspace(0.5, 9.0, 60),
    }
    with pytest.warns(UserWarning, match="constant"):
        found = {v.name: (v.kind, v.reason) for v in pack(pd.DataFrame(columns)).schema}
    assert found.pop("whole")[1].startswith("whole numbers")
    assert found == {
        "text": ("nominal", "text"),
        "flag": ("nominal", "booleans"),
        "loose": ("nominal", "its categories are declared, without an order"),
        "levels": ("ordinal", "its categories are declared as ordered"),
        "two": ("nominal", "two states"),
        "one": ("nominal", "one value"),
        "grade": ("ordinal", "numbers with decimals"),
        "visits": ("count", "whole numbers from 0 with a tail to 19"),
        "income": ("numeric", "60 different numbers"),
    }


def test_other_labels_in_the_same_order_change_nothing():
    rng = np.random.default_rng(0)
    answers = items(400)
    frame = pd.DataFrame(answers, columns=list("abcd"))
    frame["income"] = answers.sum(axis=1) + rng.normal(size=400)
    other = frame.assign(
        a=frame["a"] * 10, b=[1, 3, 4, 70, 71] @ (frame["b"].to_numpy() == np.c_[1:6]),
        income=np.exp(frame["income"] / 9),
    )  # fmt: skip
    kinds = dict.fromkeys("abcd", "ordinal")
    one, two = (GraftedMRF(random_state=0, kinds=kinds).fit(table) for table in (frame, other))
    np.testing.assert_array_equal(one.edges_, two.edges_)
    np.testing.assert_array_equal(one.model_.theta, two.model_.theta)
    np.testing.assert_array_equal(one.edge_strengths_, two.edge_strengths_)


def test_the_order_of_a_polars_enum_counts():
    polars = pytest.importorskip("polars")
    size = polars.Series(["M", "S", None, "L"] * 5, dtype=polars.Enum(["S", "M", "L", "XL"]))
    frame = polars.DataFrame({"size": size, "town": polars.Series(["x", "y"] * 10)})
    schema = pack(frame).schema
    assert schema["size"].categories == ("S", "M", "L", "XL")
    assert [variable.kind for variable in schema] == ["ordinal", "nominal"]
    assert pack(frame.head(0).vstack(frame), kinds={"size": "nominal"}).schema["size"].ordered
    drawn = GraftedMRF(random_state=0, fdr=None).fit(frame).sample(3, random_state=0)
    assert drawn.dtypes == frame.dtypes


def test_an_estimator_takes_kinds():
    frame = pd.DataFrame(items(), columns=list("abcd"))
    ordered = GraftedMRF(random_state=0).fit(frame)
    assert ordered.edge_table_["sign"].max() == 1.0
    nominal = GraftedMRF(kinds="nominal", random_state=0).fit(frame).edges_frame()
    assert (nominal["sign"] == 0).all()
    assert (nominal["strength"] > 0).all()
    assert ordered.sample(5, random_state=0).shape == (5, 4)
    assert ordered.score(frame) == pytest.approx(ordered.score(frame.iloc[::-1]))


def test_rare_categories_are_pooled_and_understood():
    rng = np.random.default_rng(0)
    town = np.minimum(rng.zipf(1.5, 2000), 400)
    side = np.where((town % 2 == 0) ^ (rng.random(2000) < 0.1), "even", "odd")
    frame = pd.DataFrame({"town": np.char.add("t", town.astype(str)), "side": side})
    with pytest.warns(EncodingWarning, match=r"rarest were pooled as '\(other\)': 'town'"):
        fitted = GraftedMRF(random_state=0, reading=ReadingOptions(max_categories=20)).fit(frame)
    variable = fitted.schema_["town"]
    assert (variable.n_states, variable.categories[-1]) == (20, "(other)")
    assert Schema.from_json(fitted.schema_.to_json()) == fitted.schema_
    assert fitted.edges_.tolist() == [[0, 1]]
    assert np.isfinite(fitted.score(frame))
    rare = fitted.model_.marginals(given={"town": variable.pooled[0]})["side"]
    assert rare == fitted.model_.marginals(given={"town": "(other)"})["side"]


def test_evidence_about_a_count_is_a_count():
    counts = np.random.default_rng(0).poisson(2.0, 300)
    visits = pack({"visits": counts, "other": counts % 2}, kinds={"visits": "count"}).schema[0]
    assert visits.state_of(1000) == visits.n_states - 1
    assert [visits.state_of(odd) for odd in (-1, 1.5, True, float("nan"))] == [None] * 4
    assert visits.expected().startswith("it takes a whole number from 0 on, or one of '0', '1'")


def test_numbers_of_very_many_values_are_cut_into_levels_however_they_are_called():
    rng = np.random.default_rng(0)
    columns = {"few": rng.integers(0, 90, 2000), "many": rng.normal(size=2000)}
    schema = pack(columns, kinds="ordinal").schema
    assert [(v.kind, v.n_states) for v in schema] == [("ordinal", 90), ("ordinal", 16)]
    assert schema["many"].reason == "as asked; 2,000 different numbers are too many levels"


def test_a_share_of_trends_is_not_negative():
    first = np.random.default_rng(0).integers(0, 5, 2000)
    folded = np.abs(first - 2)
    schema = pack({"first": first, "folded": 2 * folded - (folded > 1)}).schema
    assert "-" not in schema["first"].reason


def test_ordered_categories_without_end_are_refused():
    labels = [f"v{k:03d}" for k in range(200)]
    column = pd.Categorical(labels * 4, labels, ordered=True)
    frame = pd.DataFrame({"day": column, "other": [0, 1] * 400})
    with pytest.raises(DataError, match=r"'day' has 200 ordered .* max_categories=128.*drop="):
        pack(frame)
    assert pack(frame, max_categories=200).schema["day"].n_states == 200
    with pytest.warns(EncodingWarning, match="73 categories pooled"):
        assert pack(frame, kinds={"day": "nominal"}).schema["day"].n_states == 128


def test_levels_are_found_in_tables_on_disk_too(tmp_path):
    rng = np.random.default_rng(0)
    trend = rng.normal(size=(3000, 1)) + rng.normal(size=(3000, 3))
    frame = pd.DataFrame(np.clip(np.round(trend + 3), 1, 5).astype(int), columns=list("abc"))
    frame.to_csv(tmp_path / "rows.csv", index=False)
    expected = pack(frame).schema
    for _ in range(2):  # written, then found again
        with open_store(tmp_path / "rows.csv", folder=tmp_path / "planes") as store:
            assert [v.kind for v in store.schema] == [v.kind for v in expected] == ["ordinal"] * 3
            assert store.block(0).schema == store.schema
    options = ReadOptions(kinds="nominal")
    with open_store(tmp_path / "rows.csv", folder=tmp_path / "planes", options=options) as store:
        assert {v.kind for v in store.schema} == {"nominal"}
