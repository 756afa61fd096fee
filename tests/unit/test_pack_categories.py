"""Categories: their order, declared and undeclared, observed and not; what is missing."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from edgegraft.errors import EncodingWarning
from edgegraft.ingest import pack
from tests.table_kinds import to_feather, to_ipc_stream, to_parquet

SIZES = ["small", "medium", "large", "huge"]


def declared_inputs(tmp_path):
    cells = ["large", None, "small", "large"]
    frame = pd.DataFrame({"size": pd.Categorical(cells, categories=SIZES, ordered=True)})
    table = pa.Table.from_pandas(frame)
    return {
        "pandas": frame,
        "arrow": table,
        "enum": pl.DataFrame({"size": pl.Series(cells, dtype=pl.Enum(SIZES))}),
        "parquet": to_parquet(table, tmp_path / "t.parquet"),
        "feather": to_feather(table, tmp_path / "t.feather"),
        "ipc": to_ipc_stream(table, tmp_path / "t.arrow"),
        "reader": table.to_reader(max_chunksize=1),
    }


@pytest.mark.parametrize("kind", ["pandas", "arrow", "enum", "parquet", "feather", "ipc", "reader"])
def test_declared_categories_survive(tmp_path, kind):
    packed = pack(declared_inputs(tmp_path)[kind], batch_rows=2)
    variable = packed.schema["size"]
    assert variable.categories == tuple(SIZES)
    assert variable.ordered
    assert variable.declared
    assert packed.codes().ravel().tolist() == [2, -1, 0, 2]
    back = packed.schema.decode(packed.codes()).to_pandas()["size"]
    assert list(back.cat.categories) == SIZES
    assert back.cat.ordered


@pytest.mark.parametrize(
    ("values", "categories"),
    [
        ([3, 1, 2], (3, 1, 2)),
        ([0.5, -1.0], (0.5, -1.0)),
        ([True, False], (True, False)),
        (["z", "a"], ("z", "a")),
    ],
)
def test_declared_order_of_any_type(values, categories):
    packed = pack(pd.DataFrame({"a": pd.Categorical(values, categories=values)}))
    assert packed.schema["a"].categories == categories
    assert packed.codes().ravel().tolist() == list(range(len(values)))


def test_declared_numbers_are_never_binned():
    column = pd.Categorical(np.arange(100) % 50, categories=range(60))
    assert pack({"a": column}).schema["a"].n_states == 60


def test_dictionaries_with_nulls_and_repeated_values():
    array = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, 3, None], pa.int8()), pa.array(["b", None, "b", "a"])
    )
    packed = pack(pa.table({"a": array}))
    assert packed.schema["a"].categories == ("b", "a")
    assert packed.codes().ravel().tolist() == [0, -1, 0, 1, -1]


def test_dictionaries_that_differ_between_chunks():
    chunks = pa.chunked_array(
        [pa.array(["b", "c"]).dictionary_encode(), pa.array(["a", "b"]).dictionary_encode()]
    )
    packed = pack(pa.table({"a": chunks}))
    assert packed.schema["a"].categories == ("b", "c", "a")
    assert packed.codes().ravel().tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize(
    ("column", "categories"),
    [
        (pl.Series(["b", "a", "b"], dtype=pl.Categorical), ("a", "b")),
        (["b", "a", "B"], ("B", "a", "b")),
        ([10, 9, -1], (-1, 9, 10)),
        ([0.5, 1e-3, -2.0], (-2.0, 1e-3, 0.5)),
    ],
)
def test_undeclared_order(column, categories):
    frame = pl.DataFrame({"a": column})
    assert pack(frame).schema["a"].categories == categories


@pytest.mark.parametrize(
    "column", [np.array([True, True]), pd.array([True, None], dtype="boolean")]
)
def test_both_states_of_a_boolean_are_kept(column):
    with pytest.warns(EncodingWarning, match="constant columns: 'a'"):
        packed = pack({"a": column})
    assert packed.schema["a"].categories == (False, True)
    with pytest.warns(EncodingWarning, match="constant columns: 'x0'"):
        assert pack(np.ones((3, 1), bool)).schema["x0"].n_states == 2


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, None, 2], dtype="Int64"),
        pd.Series([1.0, np.nan, 2.0]),
        pd.Series(["x", pd.NA, "y"], dtype="string"),
        pd.Series(["x", None, "y"], dtype=object),
        pd.Series([True, None, False], dtype="boolean"),
        pd.to_datetime(pd.Series(["2020-01-01", None, "2021-01-01"])),
        np.array(["x", np.nan, "y"], object),
        [1, None, 2],
        pa.array([1.5, float("nan"), 2.5]),
    ],
)
def test_missing_cells(column):
    codes = pack({"a": column}).codes().ravel().tolist()
    assert codes[1] == -1
    assert sorted(codes) == [-1, 0, 1]


def test_missing_values_of_the_caller(tmp_path):
    cells = ["y", "?", "n", ""]
    assert pack({"a": cells}).schema["a"].categories == ("", "?", "n", "y")
    packed = pack({"a": cells}, missing_values=("?", ""))
    assert packed.codes().ravel().tolist() == [1, -1, 0, -1]
    numbers = np.array([[1], [-9], [2]])
    for table in (numbers, numbers.astype(float), {"a": [1, -9, 2]}):
        assert pack(table, missing_values=(-9,)).codes().ravel().tolist() == [0, -1, 1]
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n-9\n2\n")
    assert pack(path, missing_values=(-9,)).codes().ravel().tolist() == [0, -1, 1]
    many = np.arange(100_000.0)
    many[3] = -9
    packed = pack({"a": many}, missing_values=(-9,), bins=2)
    assert packed.n_missing.tolist() == [1]


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([dt.date(2020, 2, 29), dt.date(1999, 1, 1)], ("1999-01-01", "2020-02-29")),
        (
            [dt.datetime(2020, 1, 1, 12), dt.datetime(2020, 1, 1, 3)],
            ("2020-01-01 03:00:00", "2020-01-01 12:00:00"),
        ),
        ([dt.timedelta(days=1), dt.timedelta(seconds=1)], (1_000_000, 86_400_000_000)),
        ([dt.time(12), dt.time(1)], (3_600_000_000, 43_200_000_000)),
    ],
)
def test_dates_and_times(values, labels):
    table = pa.table({"a": [*values, None]})
    packed = pack(table)
    assert packed.schema["a"].categories == labels
    assert packed.schema.decode(packed.codes()).equals(table)


def test_time_zones():
    zone = dt.timezone(dt.timedelta(hours=2))
    cells = [dt.datetime(2020, 10, 25, hour, tzinfo=zone) for hour in (5, 1)]
    table = pa.table({"a": pa.array(cells, pa.timestamp("us", "Europe/Paris"))})
    packed = pack(table)
    assert packed.codes().ravel().tolist() == [1, 0]
    assert packed.schema.decode(packed.codes()).equals(table)


def test_timestamps_of_other_units_match(tmp_path):
    cells = [dt.datetime(2020, 1, 1, 3), dt.datetime(2020, 1, 1, 3, 0, 0, 500_000)]
    schema = pack(pa.table({"a": pa.array(cells, pa.timestamp("ms"))})).schema
    again = pa.table({"a": pa.array(cells[::-1], pa.timestamp("ns"))})
    assert pack(again, schema=schema).codes().ravel().tolist() == [1, 0]
    path = tmp_path / "t.csv"
    path.write_text("a\n2020-01-01 03:00:00\n")
    assert pack(path, schema=schema).codes().ravel().tolist() == [0]


def test_pandas_intervals_and_periods_become_text():
    frame = pd.DataFrame(
        {
            "cut": pd.cut([1.0, 5.0, 9.0], 3),
            "period": pd.period_range("2020-01", periods=3, freq="M"),
            "sparse": pd.arrays.SparseArray([0, 0, 1]),
        }
    )
    packed = pack(frame)
    assert packed.schema["cut"].categories[0] == "(0.992, 3.667]"
    assert packed.schema["cut"].ordered
    assert packed.schema["period"].categories == ("2020-01", "2020-02", "2020-03")
    assert packed.codes().tolist() == [[0, 0, 0], [1, 1, 0], [2, 2, 1]]


def test_decimals_are_numbers():
    table = pa.table({"a": pa.array([1.5, 0.5, None]).cast(pa.decimal128(5, 2))})
    packed = pack(table)
    assert packed.schema["a"].categories == (0.5, 1.5)
    assert packed.schema["a"].dtype == "double"


def test_run_end_encoded_columns():
    table = pa.table({"a": pa.RunEndEncodedArray.from_arrays([2, 3], ["y", "x"])})
    packed = pack(table)
    assert packed.codes().ravel().tolist() == [1, 1, 0]
    assert packed.schema["a"].dtype == "string"


def test_extension_types():
    array = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None], pa.int8()))
    packed = pack(pa.table({"a": array}))
    assert packed.codes().ravel().tolist() == [1, 0, -1]
