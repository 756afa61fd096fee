"""Options that make no sense, and tables that do not fit a schema, are refused by name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from edgegraft.errors import DataError, DataTypeError, SettingError, UnseenCategoryError
from edgegraft.ingest import pack
from edgegraft.table import Schema, Variable

YES_NO = Schema([Variable("a", ("no", "yes"), "string")])
BINNED = Schema([Variable("a", ("[0, 1)", "[1, 2]"), "double", True, (0.0, 1.0, 2.0))])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bins": 1}, "bins must be an integer of at least 2, found 1"),
        ({"bins": 2.5}, "bins must be an integer"),
        ({"bins": {"a": 0}}, "bins for column 'a' must be"),
        ({"bins": {"zz": 2}}, "bins= names column 'zz'"),
        ({"bins": {"s": 2}}, "bins= was given for column 's', which is not numeric"),
        ({"bin_rule": "kmeans"}, "bin_rule must be one of quantile, uniform, found 'kmeans'"),
        ({"unseen": "ignore"}, "unseen must be one of error, missing, found 'ignore'"),
        ({"columns": ["a", "bb"]}, "columns= names column 'bb', which the table lacks"),
        ({"columns": ["a", "a"]}, "same column twice"),
        ({"columns": "a"}, "columns= takes a list"),
        ({"drop": ["zz"]}, "drop= names column 'zz'"),
        ({"drop": ["a", "s"]}, "no column is left"),
        ({"columns": []}, "no column is left"),
        ({"max_states": 1}, "max_states must be"),
        ({"max_states": 70_000}, "max_states must be an integer from 2 to 65535, found 70000"),
        ({"max_numeric_states": 0}, "max_numeric_states must be"),
        (
            {"missing_values": "?"},
            r"missing_values= takes a list of tokens: write missing_values=\['\?'\]",
        ),
        ({"missing_values": [None]}, "neither text nor a number"),
        ({"delimiter": "::"}, "one character"),
        ({"encoding": "klingon"}, "encoding='klingon'"),
        ({"batch_rows": 0}, "batch_rows must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_wrong_values(options, message):
    with pytest.raises((DataError, SettingError), match=message):
        pack({"a": [0, 1], "s": ["x", "y"]}, **options)


def test_a_schema_of_another_kind():
    with pytest.raises(DataTypeError, match="schema must be a Schema, found dict"):
        pack({"a": [1]}, schema={"a": [1]})


def test_unseen_category(tmp_path):
    message = r"column 'a', row 2 \(counted from 0\): 'maybe' .* 'no', 'yes'; use unseen="
    cells = ["no", None, "maybe", "perhaps"]
    path = tmp_path / "table.csv"
    path.write_text("a\nno\nNA\nmaybe\n")
    for table in ({"a": cells}, pd.DataFrame({"a": cells}), path):
        with pytest.raises(UnseenCategoryError, match=message):
            pack(table, schema=YES_NO, batch_rows=2)
    packed = pack({"a": cells}, schema=YES_NO, unseen="missing")
    assert packed.codes().ravel().tolist() == [0, -1, -1, -1]


def test_unseen_integers_in_arrays():
    schema = Schema.from_states([2, 2])
    with pytest.raises(UnseenCategoryError, match=r"column 'x1', row 1 .*: 7 is not one of"):
        pack(np.array([[0, 1], [1, 7]]), schema=schema)
    packed = pack(np.array([[0, 1], [1, 7]]), schema=schema, unseen="missing")
    assert packed.codes().tolist() == [[0, 1], [1, -1]]


def test_declared_categories_that_do_not_occur_do_no_harm():
    column = pd.Categorical(["no", "yes"], categories=["perhaps", "yes", "no"])
    assert pack({"a": column}, schema=YES_NO).codes().ravel().tolist() == [0, 1]


def test_text_in_a_binned_column(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a\n0.5\nlow\n")
    for table in (path, {"a": ["low", "high"]}):
        with pytest.raises(UnseenCategoryError, match="'low' is not a number"):
            pack(table, schema=BINNED)
    assert pack(path, schema=BINNED, unseen="missing").codes().ravel().tolist() == [0, -1]


def test_columns_that_do_not_match():
    with pytest.raises(DataError, match="lacks columns of the schema: 'a'"):
        pack({"b": [1, 2]}, schema=YES_NO)
    table = {"b": [1, 2], "a": ["no", "yes"]}
    with pytest.raises(DataError, match=r"does not know: 'b'; .*columns=schema\.names"):
        pack(table, schema=YES_NO)
    assert pack(table, schema=YES_NO, columns=YES_NO.names).n_rows == 2
    with pytest.raises(DataError, match="has 3 columns without names where the schema has 1"):
        pack(np.zeros((2, 3), int), schema=YES_NO)
