"""Numeric columns: kept, binned, read twice."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from edgegraft.errors import EncodingWarning
from edgegraft.ingest import binning, pack
from edgegraft.table import Schema
from tests.table_kinds import TEXT, TYPED

RNG = np.random.default_rng(3)
REAL = RNG.normal(size=3000)


def test_few_values_are_categories():
    assert pack({"a": np.arange(96) % 32}).schema["a"].categories == tuple(range(32))
    assert pack({"a": np.arange(80) % 40}, max_numeric_states=40).schema["a"].n_states == 40


@pytest.mark.parametrize("table", [np.arange(120).reshape(-1, 1) % 40, {"x0": np.arange(120) % 40}])
def test_many_values_are_binned_with_one_warning(table):
    with pytest.warns(EncodingWarning, match=r"'x0' \(5 bins\); choose with bins=5") as caught:
        packed = pack(table, kinds="nominal")
    assert len(caught) == 1
    variable = packed.schema["x0"]
    assert variable.categories == ("[0, 8)", "[8, 16)", "[16, 24)", "[24, 32)", "[32, 39]")
    assert variable.ordered
    assert variable.edges == (0.0, 8.0, 16.0, 24.0, 32.0, 39.0)
    assert np.bincount(packed.codes().ravel()).tolist() == [24] * 5


def test_one_warning_names_all_columns():
    table = {f"c{i}": REAL for i in range(8)}
    with pytest.warns(EncodingWarning, match=r"'c0' \(5 bins\), .* and 2 more;") as caught:
        pack(table, kinds="nominal")
    assert len(caught) == 1


def test_bins_for_all_or_by_name():
    table = {"a": REAL, "b": np.arange(3000) % 7, "s": ["x", "y"] * 1500}
    assert pack(table, bins=3).schema.n_states.tolist() == [3, 3, 2]
    assert pack(table, bins=7).schema["b"].edges is None
    packed = pack(table, bins={"a": 6})
    assert packed.schema.n_states.tolist() == [6, 7, 2]
    assert np.bincount(packed.codes(["a"]).ravel()).tolist() == [500] * 6


def test_uniform_bins():
    packed = pack({"a": np.r_[np.zeros(50), np.linspace(0, 1, 51)]}, bins=4, bin_rule="uniform")
    assert packed.schema["a"].edges == (0.0, 0.25, 0.5, 0.75, 1.0)


@pytest.mark.parametrize("kind", ["table", "stream", "csv"])
def test_more_numbers_than_codes(tmp_path, kind):
    cells = np.round(np.random.default_rng(0).normal(size=80_000) * 1000, 4)
    cells[5] = np.nan
    table = pa.table({"a": pa.array(cells, from_pandas=True), "b": np.arange(80_000) % 3})
    packed = pack({**TYPED, **TEXT}[kind](table, tmp_path), bins=5, batch_rows=10_000)
    codes = packed.codes()
    assert codes[5, 0] == -1
    assert np.ptp(np.bincount(codes[codes[:, 0] >= 0, 0])) <= 1
    variable = packed.schema["a"]
    assert variable.dtype == "double"
    inside = (cells >= variable.edges[1]) & (cells < variable.edges[2])
    np.testing.assert_array_equal(codes[:, 0] == 1, inside)


def test_wide_integers_in_arrays():
    array = np.random.default_rng(0).integers(-(2**62), 2**62, (70_000, 2))
    array[:, 1] = np.arange(70_000) % 3 * 10**9
    packed = pack(array, bins=4)
    assert packed.schema["x1"].categories == (0, 10**9, 2 * 10**9)
    assert np.ptp(np.bincount(packed.codes(["x0"]).ravel())) <= 1
    huge = np.array([[2**64 - 1], [0], [2**64 - 1]], np.uint64)
    assert pack(huge).schema["x0"].categories == (0, 2**64 - 1)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint64])
def test_every_integer_type(dtype):
    info = np.iinfo(dtype)
    array = np.array([[info.min, 3], [info.min + 5, 4], [info.min, 3]], dtype)
    packed = pack(array)
    assert packed.schema["x0"].categories == (info.min, info.min + 5)
    assert packed.codes().tolist() == [[0, 0], [1, 1], [0, 0]]
    top = np.array([[info.max], [info.max - 1]], dtype)
    assert pack(top).schema["x0"].categories == (info.max - 1, info.max)
    if info.bits == 8:
        whole = pack(np.array([[info.min], [info.max]], dtype))
        assert whole.schema["x0"].categories == (info.min, info.max)


def test_a_sample_stands_in_for_very_long_columns(monkeypatch):
    monkeypatch.setattr(binning, "SAMPLE_ROWS", 20_000)
    cells = np.random.default_rng(0).normal(size=150_000)
    results = [pack({"a": cells}, bins=4, batch_rows=rows) for rows in (7_000, 65_536)]
    assert results[0].schema == results[1].schema
    np.testing.assert_array_equal(results[0].codes(), results[1].codes())
    shares = np.bincount(results[0].codes().ravel()) / 150_000
    assert abs(shares - 0.25).max() < 0.01
    edges = results[0].schema["a"].edges
    assert (edges[0], edges[-1]) == (cells.min(), cells.max())


def test_bins_of_a_schema_are_open_ended():
    schema = pack({"a": REAL}, bins=3).schema
    new = {"a": [-100.0, 100.0, None]}
    assert pack(new, schema=schema).codes().ravel().tolist() == [0, 2, -1]
    array = np.array([[-100], [100]])
    assert pack(array, schema=schema).codes().ravel().tolist() == [0, 2]
    assert pack({"a": [None, None]}, schema=schema).codes().ravel().tolist() == [-1, -1]
    assert Schema.from_json(schema.to_json()) == schema


def test_half_precision():
    table = pa.table({"a": np.array([0.5, 0.25, 0.5], np.float16)})
    packed = pack(table)
    assert packed.schema["a"].categories == (0.25, 0.5)
    assert packed.schema.decode(packed.codes()).equals(table)


def test_zero_has_no_sign():
    assert pack({"a": [0.0, -0.0, 1.0]}).codes().ravel().tolist() == [0, 0, 1]
