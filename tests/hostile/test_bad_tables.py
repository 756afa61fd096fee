"""Every table that cannot be used is refused with a message that names what is wrong."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from edgegraft.data import Schema, Variable, pack
from edgegraft.errors import (
    DataError,
    DataTypeError,
    EncodingWarning,
    FileFormatError,
    UnseenCategoryError,
)
from tests.table_kinds import TEXT, TYPED

YES_NO = Schema([Variable("a", ("no", "yes"), "string")])
BINNED = Schema([Variable("a", ("[0, 1)", "[1, 2]"), "double", True, (0.0, 1.0, 2.0))])


def write(folder: Path, text: str | bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


class TestContent:
    @pytest.mark.parametrize(
        "table", [pd.DataFrame(), pl.DataFrame(), pa.table({}), {}, np.empty((3, 0), int)]
    )
    def test_no_columns(self, table):
        with pytest.raises(DataError, match="no columns"):
            pack(table)

    @pytest.mark.parametrize(
        "table",
        [
            pd.DataFrame({"a": pd.Series([], dtype="str")}),
            pl.DataFrame({"a": []}),
            pa.table({"a": pa.array([], pa.int8())}),
            {"a": []},
            np.empty((0, 2), int),
            np.empty((0, 2)),
        ],
    )
    def test_no_rows(self, table):
        with pytest.raises(DataError, match="no rows"):
            pack(table)

    def test_duplicate_names(self):
        frame = pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"])
        with pytest.raises(DataError, match="more than one column named 'a'"):
            pack(frame)
        with pytest.raises(DataError, match="more than one column named 'a'"):
            pack(pa.table([[1], [2]], names=["a", "a"]))

    def test_names_that_become_equal(self):
        with pytest.raises(DataError, match="more than one column named '1'"):
            pack(pd.DataFrame([[1, 2]], columns=[1, "1"]))

    @pytest.mark.parametrize("table", [{"a": ["x", "x"]}, np.array([[3], [3]])])
    def test_constant_columns_are_kept_with_one_warning(self, table):
        with pytest.warns(EncodingWarning, match="constant columns: '.*drop=") as caught:
            packed = pack(table)
        assert len(caught) == 1
        assert packed.codes().tolist() == [[0], [0]]

    @pytest.mark.parametrize(
        "column",
        [
            [None, None],
            np.array([np.nan, np.nan]),
            pd.Categorical([None, None], categories=["x"]),
            pd.Series([pd.NA, pd.NA], dtype="Int64"),
            pd.Series([pd.NaT, pd.NaT]),
            pa.nulls(2),
        ],
    )
    def test_all_missing(self, column):
        with pytest.raises(DataError, match=r"'empty' has no observed value.*drop=\['empty'\]"):
            pack({"empty": column, "b": [0, 1]})

    @pytest.mark.parametrize(
        "column", [[f"id-{i}" for i in range(30)], list(range(1000, 1030)), np.arange(30) * 10**6]
    )
    def test_identifiers(self, column):
        with pytest.raises(DataError, match=r"'id'.* 30 rows.*identif.*drop=\['id'\]"):
            pack({"id": column})

    def test_identifier_of_many_rows(self):
        with pytest.raises(DataError, match=r"'id'.*identif"):
            pack({"id": np.arange(70_000)})

    def test_identifier_may_be_binned_or_short_or_declared(self):
        assert pack({"id": np.arange(30)}, bins={"id": 3}).schema["id"].n_states == 3
        assert pack({"id": [str(i) for i in range(20)]}).schema["id"].n_states == 20
        declared = pd.Categorical([str(i) for i in range(30)])
        assert pack({"id": declared}).schema["id"].n_states == 30

    @pytest.mark.parametrize("many", [False, True])
    @pytest.mark.parametrize("value", [np.inf, -np.inf])
    def test_infinity(self, value, many):
        column = np.arange(100_000.0) if many else np.zeros(10)
        column[7] = value
        with pytest.raises(DataError, match=r"column 'a', row 7 .*inf is not a finite"):
            pack({"a": column})

    def test_infinity_beyond_the_first_reading(self, tmp_path):
        column = np.arange(100_000.0)
        column[99_000] = np.inf
        with pytest.raises(DataError, match=r"column 'a', row 99000 "):
            pack({"a": column})
        path = write(tmp_path, "a\n" + "\n".join(map(str, column)))
        with pytest.raises(DataError, match=r"column 'a', row 99000 "):
            pack(path)

    def test_infinity_in_text(self, tmp_path):
        with pytest.raises(DataError, match=r"column 'a', row 1 .*-inf is not a finite"):
            pack(write(tmp_path, "a\n1\n-inf\n"))

    def test_too_many_states_fail_early(self):
        def batches():
            for k in range(1000):
                assert k < 20, "the limit was passed long ago"
                yield pa.record_batch({"a": [f"{k}-{i % 50}" for i in range(100)]})

        reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.string()}), batches())
        with pytest.raises(DataError, match=r"'a' has more than 100 categories.*row 200,.*drop="):
            pack(reader, max_states=100)

    def test_more_states_than_codes(self):
        labels = [str(i // 2) for i in range(140_000)]
        with pytest.raises(DataError, match=r"more than 65535 categories.*row 131070,"):
            pack({"a": labels})

    def test_text_in_a_column_of_very_many_numbers(self, tmp_path):
        rows = [str(i / 7) for i in range(70_000)]
        path = write(tmp_path, "\n".join(["a", *rows, "n.d."]))
        with pytest.raises(DataError, match=r"row 70000 .*'n\.d\.'.*missing_values=\('n\.d\.',\)"):
            pack(path)


class TestTypes:
    @pytest.mark.parametrize(
        "column",
        [pa.array([[1], [2]]), pa.array([{"x": 1}, {"x": 2}]), pa.array([b"x", b"y"])],
    )
    def test_nested_and_binary(self, column):
        with pytest.raises(DataTypeError, match=r"column 'bad' has the type .*drop="):
            pack(pa.table({"a": [0, 1], "bad": column}))
        assert len(pack(pa.table({"a": [0, 1], "bad": column}), drop=["bad"]).schema) == 1

    def test_lists_in_frames(self):
        with pytest.raises(DataTypeError, match="'bad'"):
            pack(pd.DataFrame({"bad": [[1], [2]]}))
        with pytest.raises(DataTypeError, match="'bad'"):
            pack(pl.DataFrame({"bad": [[1], [2]]}))

    def test_polars_objects(self):
        frame = pl.DataFrame({"a": [0, 1], "bad": pl.Series([object(), object()])})
        with pytest.raises(DataTypeError, match="'bad' has the polars type Object"):
            pack(frame)
        assert pack(frame, drop=["bad"]).schema.names == ("a",)

    @pytest.mark.parametrize(
        ("cells", "first", "second"),
        [
            (["x", None, 3], "row 0 holds 'x'", "row 2 holds 3"),
            ([None, True, 2], "row 1 holds True", "row 2 holds 2"),
            ([1.5, float("nan"), "x"], "row 0 holds 1.5", "row 2 holds 'x'"),
            ([pd.NA, 1, "x"], "row 1 holds 1", "row 2 holds 'x'"),
        ],
    )
    def test_mixed_types(self, cells, first, second):
        for table in (
            pd.DataFrame({"bad": pd.Series(cells, dtype=object)}),
            {"bad": np.array(cells, object)},
            np.array(cells, object).reshape(-1, 1),
        ):
            with pytest.raises(DataTypeError, match=rf"mixes .*{first}, {second}"):
                pack(table)

    @pytest.mark.parametrize("shape", [(4,), (2, 2, 2)])
    def test_dimensions_of_arrays(self, shape):
        with pytest.raises(DataError, match=f"this array has {len(shape)}"):
            pack(np.zeros(shape, int))

    def test_complex(self):
        with pytest.raises(DataTypeError, match="complex"):
            pack(np.zeros((2, 2), complex))
        with pytest.raises(DataTypeError, match="'a' holds complex"):
            pack({"a": np.zeros(2, complex)})
        with pytest.raises(DataTypeError, match="'a'"):
            pack(pd.DataFrame({"a": [1j, 2j]}))

    @pytest.mark.parametrize("table", [[[1, 2]], 3, None, object()])
    def test_not_a_table(self, table):
        with pytest.raises(DataTypeError, match=r"cannot read a table from .*NumPy array"):
            pack(table)

    def test_lazy_frames_and_series(self):
        with pytest.raises(DataTypeError, match=r"frame\.collect"):
            pack(pl.DataFrame({"a": [1]}).lazy())
        with pytest.raises(DataTypeError, match="pandas Series is one column"):
            pack(pd.Series([1, 2]))
        with pytest.raises(DataTypeError, match="polars Series is one column"):
            pack(pl.Series([1, 2]))

    def test_column_names(self):
        assert pack(pd.DataFrame([[0, 1], [1, 0]])).schema.names == ("0", "1")
        with pytest.raises(DataTypeError, match=r"column name \('a', 'b'\) is a tuple"):
            pack(pd.DataFrame({("a", "b"): [1, 2]}))

    def test_columns_of_a_dict(self):
        with pytest.raises(DataError, match="'a' has 1 rows and 'b' has 2"):
            pack({"a": [1], "b": [1, 2]})
        with pytest.raises(DataTypeError, match="'a' is a str"):
            pack({"a": "xyz"})
        with pytest.raises(DataTypeError, match="'a' has 2 dimensions"):
            pack({"a": np.zeros((2, 2))})


class TestFiles:
    def test_paths(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"no file '.*absent\.csv'"):
            pack(tmp_path / "absent.csv")
        with pytest.raises(DataError, match="is a directory"):
            pack(str(tmp_path))
        with pytest.raises(DataError, match=r"'\.xlsx': known are \.csv"):
            pack(write(tmp_path, "", "table.xlsx"))
        with pytest.raises(DataError, match="delimiter="):
            pack(write(tmp_path, "a b\n1 2", "table.txt"))

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_ragged(self, tmp_path, n_jobs):
        path = write(tmp_path, "a,b\n1,2\n3,4\n5,6,7\n")
        with pytest.raises(FileFormatError, match=r"row 4 of the file.* has 3 cells .* has 2"):
            pack(path, n_jobs=n_jobs)
        rows = ["1,2"] * 60_000
        rows[50_000] = "1"
        path = write(tmp_path, "\n".join(["a,b", *rows]))
        with pytest.raises(FileFormatError, match=r"row 50002 of the file.* has 1 cells"):
            pack(path, n_jobs=n_jobs)

    def test_empty_files(self, tmp_path):
        with pytest.raises(DataError, match="is empty"):
            pack(write(tmp_path, ""))
        with pytest.raises(DataError, match=r"table\.csv' has no rows"):
            pack(write(tmp_path, "a,b\n"))
        with pytest.raises(DataError, match="cannot be read as Parquet"):
            pack(write(tmp_path, "", "table.parquet"))
        with pytest.raises(DataError, match="cannot be read as Arrow IPC"):
            pack(write(tmp_path, "", "table.feather"))

    def test_duplicate_header(self, tmp_path):
        with pytest.raises(DataError, match=r"header of '.*table.csv' .* named 'a'"):
            pack(write(tmp_path, "a,b,a\n1,2,3\n"))

    def test_truncated_gzip(self, tmp_path):
        rng = np.random.default_rng(0)
        text = "a,b\n" + "\n".join(f"{i},{j}" for i, j in rng.integers(0, 5, (50_000, 2)))
        whole = gzip.compress(text.encode())
        for size in (8, 15, len(whole) // 2, len(whole) - 4):
            with pytest.raises(FileFormatError, match=r"'.*table\.csv\.gz'"):
                pack(write(tmp_path, whole[:size], "table.csv.gz"))
        with pytest.raises(FileFormatError, match=r"'.*table\.csv\.gz'"):
            pack(write(tmp_path, text, "table.csv.gz"))

    @pytest.mark.parametrize("kind", ["parquet", "feather"])
    def test_truncated_binary_files(self, tmp_path, kind):
        table = pa.table({"a": np.arange(10_000) % 7})
        path = tmp_path / f"table.{kind}"
        (pq.write_table if kind == "parquet" else feather.write_feather)(table, path)
        whole = path.read_bytes()
        for size in (0, 3, 20, len(whole) // 2, len(whole) - 5):
            with pytest.raises(FileFormatError, match="truncated, damaged or of another format"):
                pack(write(tmp_path, whole[:size], path.name))

    def test_damaged_parquet_pages(self, tmp_path):
        path = tmp_path / "table.parquet"
        pq.write_table(pa.table({"a": np.arange(10_000) % 7}), path)
        content = bytearray(path.read_bytes())
        content[4:200] = bytes(196)
        with pytest.raises(FileFormatError, match="cannot be read as Parquet"):
            pack(write(tmp_path, bytes(content), path.name))

    @pytest.mark.parametrize("kind", ["parquet", "feather", "csv", "csv.gz"])
    @pytest.mark.filterwarnings("ignore::edgegraft.errors.EncodingWarning")
    def test_flipped_bytes_never_do_worse_than_a_data_error(self, tmp_path, kind):
        rng = np.random.default_rng(5)
        table = pa.table(
            {
                "a": np.array(["x", "y", "zz"])[rng.integers(0, 3, 300)],
                "b": rng.integers(0, 9, 300),
                "c": rng.normal(size=300),
                "d": pa.array(["u", "v"] * 150).dictionary_encode(),
            }
        )
        whole = {**TYPED, **TEXT}[kind](table, tmp_path).read_bytes()
        refused = 0
        for _ in range(80):
            content = bytearray(whole)
            for place in rng.integers(0, len(whole), 4):
                content[place] = rng.integers(256)
            try:
                pack(write(tmp_path, bytes(content), f"damaged.{kind}"))
            except (DataError, DataTypeError):
                refused += 1
        assert refused

    def test_other_encodings(self, tmp_path):
        path = write(tmp_path, "name,b\nx,1\ny,2\nMünchen,1\n".encode("latin-1"))
        with pytest.raises(FileFormatError, match=r"encoding='latin-1'"):
            pack(path)
        packed = pack(path, encoding="latin-1")
        assert packed.schema["name"].categories == ("München", "x", "y")

    def test_other_encodings_far_down(self, tmp_path):
        rows = "\n".join(["x,1", "y,2"] * 50_000)
        path = write(tmp_path, f"a,name\n{rows}\nz,".encode() + b"\xfc\n")
        with pytest.raises(FileFormatError, match=r"column 'name' cannot be decoded as utf8"):
            pack(path)


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"bins": 1}, "bins must be a whole number of at least 2, found 1"),
            ({"bins": 2.5}, "bins must be a whole number"),
            ({"bins": {"a": 0}}, "bins for column 'a' must be"),
            ({"bins": {"zz": 2}}, "bins= names column 'zz'"),
            ({"bins": {"s": 2}}, "bins= was given for column 's', which is not numeric"),
            ({"bin_rule": "kmeans"}, "bin_rule='kmeans' is not one of 'quantile', 'uniform'"),
            ({"unseen": "ignore"}, "unseen='ignore' is not one of"),
            ({"columns": ["a", "bb"]}, "columns= names column 'bb', which the table lacks"),
            ({"columns": ["a", "a"]}, "same column twice"),
            ({"columns": "a"}, "columns= takes a list"),
            ({"drop": ["zz"]}, "drop= names column 'zz'"),
            ({"drop": ["a", "s"]}, "no column is left"),
            ({"columns": []}, "no column is left"),
            ({"max_states": 1}, "max_states must be"),
            ({"max_states": 70_000}, "max_states can be at most 65535"),
            ({"max_numeric_states": 0}, "max_numeric_states must be"),
            ({"missing_values": "?"}, r"missing_values takes a collection.*\('\?',\)"),
            ({"missing_values": [None]}, "neither text nor a number"),
            ({"delimiter": "::"}, "one character"),
            ({"encoding": "klingon"}, "encoding='klingon'"),
            ({"batch_rows": 0}, "batch_rows must be"),
            ({"n_jobs": 0}, "n_jobs must be"),
        ],
    )
    def test_wrong_values(self, options, message):
        with pytest.raises(DataError, match=message):
            pack({"a": [0, 1], "s": ["x", "y"]}, **options)

    def test_a_schema_of_another_kind(self):
        with pytest.raises(DataTypeError, match="schema must be a Schema, found dict"):
            pack({"a": [1]}, schema={"a": [1]})


class TestFixedSchema:
    def test_unseen_category(self, tmp_path):
        message = r"column 'a', row 2 \(counted from 0\): 'maybe' .* 'no', 'yes'; use unseen="
        cells = ["no", None, "maybe", "perhaps"]
        path = write(tmp_path, "a\nno\nNA\nmaybe\n")
        for table in ({"a": cells}, pd.DataFrame({"a": cells}), path):
            with pytest.raises(UnseenCategoryError, match=message):
                pack(table, schema=YES_NO, batch_rows=2)
        packed = pack({"a": cells}, schema=YES_NO, unseen="missing")
        assert packed.codes().ravel().tolist() == [0, -1, -1, -1]

    def test_unseen_integers_in_arrays(self):
        schema = Schema.from_states([2, 2])
        with pytest.raises(UnseenCategoryError, match=r"column 'x1', row 1 .*: 7 is not one of"):
            pack(np.array([[0, 1], [1, 7]]), schema=schema)
        packed = pack(np.array([[0, 1], [1, 7]]), schema=schema, unseen="missing")
        assert packed.codes().tolist() == [[0, 1], [1, -1]]

    def test_declared_categories_that_do_not_occur_do_no_harm(self):
        column = pd.Categorical(["no", "yes"], categories=["perhaps", "yes", "no"])
        assert pack({"a": column}, schema=YES_NO).codes().ravel().tolist() == [0, 1]

    def test_text_in_a_binned_column(self, tmp_path):
        path = write(tmp_path, "a\n0.5\nlow\n")
        for table in (path, {"a": ["low", "high"]}):
            with pytest.raises(UnseenCategoryError, match="'low' is not a number"):
                pack(table, schema=BINNED)
        assert pack(path, schema=BINNED, unseen="missing").codes().ravel().tolist() == [0, -1]

    def test_columns_that_do_not_match(self):
        with pytest.raises(DataError, match="lacks columns of the schema: 'a'"):
            pack({"b": [1, 2]}, schema=YES_NO)
        table = {"b": [1, 2], "a": ["no", "yes"]}
        with pytest.raises(DataError, match=r"does not know: 'b'; .*columns=schema\.names"):
            pack(table, schema=YES_NO)
        assert pack(table, schema=YES_NO, columns=YES_NO.names).n_rows == 2
        with pytest.raises(DataError, match="has 3 columns without names where the schema has 1"):
            pack(np.zeros((2, 3), int), schema=YES_NO)


def test_warnings_point_to_the_caller():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pack({"a": ["x", "x"]})
    assert Path(caught[0].filename).name == Path(__file__).name


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    cells = np.arange(10.0)
    cells[9] = np.inf
    reader = pa.table({"a": cells}).to_reader(max_chunksize=2)
    with pytest.raises(DataError, match="row 9"):
        pack(reader)
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_another_delimiter_is_not_taken_for_one_column(tmp_path):
    path = tmp_path / "spreadsheet.csv"
    path.write_text("name;b\nx;1\ny;2\nx;1\n", encoding="utf-8-sig")
    with pytest.raises(FileFormatError, match=r"one column, called 'name;b'.*delimiter=';'"):
        pack(path)
    assert pack(path, delimiter=";").schema.names == ("name", "b")
    assert pack(path, delimiter=",").schema.names == ("name;b",)
