"""Every table that cannot be used is refused with a message that names what is wrong."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from edgegraft.errors import DataError, DataTypeError, EncodingWarning
from edgegraft.ingest import pack


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


def test_numbers_beyond_all_types_name_their_column(tmp_path):
    path = tmp_path / "table.csv"
    cells = ["9" * 5000 if k == 3 else str(k % 3) for k in range(60)]
    path.write_text("a,b\n" + "".join(f"{cell},{k % 2}\n" for k, cell in enumerate(cells)))
    assert pack(path).schema["a"].n_states == 4
    with pytest.raises(DataTypeError, match="column 'a' holds numbers"):
        pack({"a": [10**30, 1, 2, 1], "b": [0, 1, 0, 1]})
