"""Text files: one type a column, found over the whole file."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.errors import EncodingWarning
from edgegraft.ingest import pack


def pack_text(folder, cells, **options):
    path = folder / "table.csv"
    path.write_text("\n".join(["a,b", *(f"{cell},{i % 2}" for i, cell in enumerate(cells))]))
    return pack(path, columns=["a"], **options)


@pytest.mark.parametrize(
    ("cells", "categories", "dtype"),
    [
        (["2", "10", "-1"], (-1, 2, 10), "int64"),
        (["2", " 10", "+3 "], (2, 3, 10), "int64"),
        (["1", "2.5", "1e1"], (1.0, 2.5, 10.0), "double"),
        (["1", "1.0", ".5"], (0.5, 1.0), "double"),
        (["true", "false"], (False, True), "bool"),
        (["TRUE", "False", "true"], (False, True), "bool"),
        (["007", "010"], ("007", "010"), "string"),
        (["0", "00"], ("0", "00"), "string"),
        (["1", "x"], ("1", "x"), "string"),
        (["true", "1"], ("1", "true"), "string"),
        (["None", "x"], ("None", "x"), "string"),
        (["2020-01-02", "2020-01-01"], ("2020-01-01", "2020-01-02"), "string"),
        (["99999999999999999999", "1"], ("1", "99999999999999999999"), "string"),
        (["1_000", "2_000"], ("1_000", "2_000"), "string"),
        (["\x1f1.5", "1"], ("\x1f1.5", "1"), "string"),
        (["²", "1"], ("1", "²"), "string"),
    ],
)
def test_types(tmp_path, cells, categories, dtype):
    variable = pack_text(tmp_path, cells).schema["a"]
    assert variable.categories == categories
    assert list(map(type, variable.categories)) == list(map(type, categories))
    assert variable.dtype == dtype


@pytest.mark.parametrize(
    "token", ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "<NA>", '"NA"']
)
def test_missing_tokens(tmp_path, token):
    packed = pack_text(tmp_path, ["1", token, "2"])
    assert packed.schema["a"].categories == (1, 2)
    assert packed.codes().ravel().tolist() == [0, -1, 1]


@pytest.mark.parametrize("batch_rows", [1, 65_536])
def test_text_in_the_last_rows_makes_a_text_column(tmp_path, batch_rows):
    cells = [str(i % 5) for i in range(60_000)] + ["x"]
    packed = pack_text(tmp_path, cells, batch_rows=batch_rows)
    assert packed.schema["a"].categories == ("0", "1", "2", "3", "4", "x")


def test_a_few_odd_tokens_are_pointed_out(tmp_path):
    cells = [str(i % 30) for i in range(300)] + ["n.d.", "n.d."]
    with pytest.warns(EncodingWarning, match=r"'a' is numeric but for 'n\.d\.'.*missing_values="):
        packed = pack_text(tmp_path, cells)
    assert packed.schema["a"].n_states == 31
    packed = pack_text(tmp_path, cells, missing_values=["n.d."], bins=3)
    assert packed.schema["a"].binned
    assert packed.n_missing.tolist() == [2]


def test_an_odd_token_is_named_where_the_column_is_refused(tmp_path):
    cells = [str(i / 8) for i in range(100)] + ["n.d."]
    with pytest.raises(ValueError, match=r"numeric but for 'n\.d\.', use missing_values="):
        pack_text(tmp_path, cells)


def test_numbers_are_binned(tmp_path):
    values = np.round(np.random.default_rng(0).normal(size=500), 2)
    packed = pack_text(tmp_path, values)
    assert packed.schema["a"].dtype == "double"
    assert packed.schema["a"].categories == pack({"a": values}, bins=16).schema["a"].categories


def test_a_fixed_schema_reads_text_as_its_own_types(tmp_path):
    schema = pack({"a": [1, 2]}).schema
    assert pack_text(tmp_path, ["2", "1.0", "NA"], schema=schema).codes().ravel().tolist() == [
        1,
        0,
        -1,
    ]
    schema = pack({"a": ["1", "2"]}).schema
    assert pack_text(tmp_path, ["2", "1"], schema=schema).codes().ravel().tolist() == [1, 0]
    schema = pack({"a": np.array([True, False])}).schema
    assert pack_text(tmp_path, ["true", "False"], schema=schema).codes().ravel().tolist() == [1, 0]


class TestRealData:
    def test_house_votes(self, shared_data):
        packed = pack(shared_data / "house_votes_84.csv.gz", missing_values=("?",))
        assert packed.n_rows == 435
        assert packed.n_variables == 17
        assert packed.schema["party"].categories == ("democrat", "republican")
        assert set(packed.schema.n_states.tolist()) == {2}
        assert packed.n_missing.sum() == 392

    def test_bfi(self, shared_data):
        packed = pack(shared_data / "bfi.csv.gz", missing_values=("?",))
        assert packed.n_rows == 2800
        assert packed.schema[0].categories == (1, 2, 3, 4, 5, 6)
