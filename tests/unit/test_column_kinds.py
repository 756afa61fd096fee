"""What kind a column is, by its type, by the data, or as asked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from edgegraft import GraftedMRF
from edgegraft.datasets import make_scale_free
from edgegraft.errors import DataError, SettingError
from edgegraft.ingest import pack
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
    ],
)
def test_what_cannot_be(options, error, message):
    with pytest.raises(error, match=message):
        pack({"t": ["x", "y"] * 10, "h": [0.5, 1.0] * 10}, **options)


def test_an_estimator_takes_kinds():
    frame = pd.DataFrame(items(), columns=list("abcd"))
    ordered = GraftedMRF(random_state=0).fit(frame)
    assert ordered.edge_table_["sign"].max() == 1.0
    assert "sign" not in GraftedMRF(kinds="nominal", random_state=0).fit(frame).edge_table_
    assert ordered.sample(5, random_state=0).shape == (5, 4)
    assert ordered.score(frame) == pytest.approx(ordered.score(frame.iloc[::-1]))
