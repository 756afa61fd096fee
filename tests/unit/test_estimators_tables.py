"""Tables of every kind in, and the same kind out: names, categories, order and types survive."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from edgegraft.config import ReadingOptions
from edgegraft.datasets import make_chain
from edgegraft.errors import DataError
from edgegraft.estimators import GraftedMRF
from edgegraft.ingest import pack
from edgegraft.ingest.output import OutputForm, fill
from edgegraft.ingest.rows import read_codes
from edgegraft.table import PackedTable, Schema, Variable
from edgegraft.table.arrow import labels
from edgegraft.table.numbers import numbers_of
from tests.estimator_cases import survey
from tests.table_kinds import TEXT, TYPED

pytestmark = pytest.mark.filterwarnings("ignore::edgegraft.errors.EncodingWarning")


def rich(n_rows=120, missing=0.1):
    """A pandas frame of every type of column, some of them with missing cells."""
    frame = survey(n_rows, missing)
    rng = np.random.default_rng(1)
    frame["nullable"] = pd.array(rng.integers(0, 3, n_rows), dtype="Int64")
    frame.loc[:4, "nullable"] = None
    frame["day"] = pd.to_datetime(rng.choice(["2020-01-01", "2021-02-03"], n_rows))
    frame.loc[2:3, "day"] = None
    frame["object"] = pd.Series(rng.choice(["p", "q"], n_rows), dtype=object)
    frame.loc[1, "object"] = None
    frame["many"] = rng.integers(0, 1000, n_rows)
    return frame


def as_polars(frame):
    out = pl.from_pandas(frame)
    return out.with_columns(
        out["cough"].cast(pl.String).cast(pl.Enum(["none", "some", "unheard of", "much"]))
    )


FRAMES = {
    "pandas": rich,
    "pandas of another index": lambda: rich().set_axis(range(500, 620)),
    "pandas of Arrow": lambda: rich().convert_dtypes(dtype_backend="pyarrow"),
    "intervals": lambda: rich().assign(cut=lambda frame: pd.cut(frame["many"], 3)),
    "whole labels": lambda: rich().set_axis(range(9), axis=1),
    "polars": lambda: as_polars(rich()),
    "arrow": lambda: pa.Table.from_pandas(rich(), preserve_index=False),
    "batch": lambda: pa.RecordBatch.from_pandas(rich(), preserve_index=False),
    "floats": lambda: rich()[["visits", "score"]].to_numpy(),
    "single floats": lambda: rich()[["visits", "score"]].to_numpy(np.float32),
    "objects": lambda: rich()[["smoker", "cough", "score"]].to_numpy(object),
    "text": lambda: np.array([["a", "b"], ["ab", "b"], ["a", "c"]]),
    "dict": lambda: rich()[["smoker", "score"]].to_dict("list"),
}


def completed(table):
    """Codes of a table with holes, and the same with state 0 in them."""
    packed = pack(table)
    before = packed.codes().astype(np.int64)
    return packed.schema, before, np.where(before < 0, 0, before)


def types_of(table):
    if isinstance(table, np.ndarray):
        return table.dtype
    if isinstance(table, dict):
        return list(table)
    if isinstance(table, pa.Table | pa.RecordBatch):
        return [str(t).split("<")[0] for t in table.schema.types]
    return list(table.dtypes)


@pytest.mark.parametrize("kind", FRAMES)
def test_codes_come_back_as_the_same_kind_of_table(kind):
    table = FRAMES[kind]()
    schema, _, after = completed(table)
    out = OutputForm.of(table).build(schema, after)
    assert isinstance(out, pa.Table if kind == "batch" else type(table))
    assert types_of(out) == types_of(table)
    if isinstance(table, pd.DataFrame):
        assert list(out.columns) == list(table.columns)
    np.testing.assert_array_equal(read_codes(out, schema), after)


@pytest.mark.parametrize("kind", FRAMES)
def test_only_missing_cells_are_filled(kind):
    table = FRAMES[kind]()
    schema, before, after = completed(table)
    out = fill(table, schema, before, after)
    assert type(out) is type(table)
    assert types_of(out) == types_of(table)
    np.testing.assert_array_equal(read_codes(out, schema), after)
    known = before >= 0
    np.testing.assert_array_equal(_cells(out)[known], _cells(table)[known])
    if isinstance(table, pd.DataFrame):
        assert out.index.equals(table.index)


def _cells(table):
    """The cells of any table as an array of objects."""
    if isinstance(table, np.ndarray):
        return table.astype(object)
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    columns = table
    if isinstance(table, pa.Table):
        columns = table.to_pydict()
    elif not isinstance(table, dict):
        columns = {name: list(table[name]) for name in table.columns}
    out = np.empty((len(next(iter(columns.values()))), len(columns)), object)
    for k, cells in enumerate(columns.values()):
        out[:, k] = list(cells)
    return out


def test_the_table_given_is_not_changed():
    frame = rich()
    copy = frame.copy()
    schema, before, after = completed(frame)
    out = fill(frame, schema, before, after)
    out.iloc[0, 0] = "yes"
    pd.testing.assert_frame_equal(frame, copy)
    complete = frame[["visits", "insured"]]
    out = fill(complete, *completed(complete))
    out.iloc[0, 0] = 2
    pd.testing.assert_frame_equal(frame, copy)


def test_columns_in_another_order_keep_it():
    frame = rich()
    schema, before, after = completed(frame)
    turned = frame[frame.columns[::-1]]
    out = fill(turned, schema, before, after)
    assert list(out.columns) == list(turned.columns)
    pd.testing.assert_frame_equal(out, fill(frame, schema, before, after)[turned.columns])


def test_other_categories_than_were_fitted_are_filled_by_label():
    fitted = pd.DataFrame({"a": pd.Categorical(["x", "y", "z", "x"], ["x", "y", "z"])})
    schema = pack(fitted).schema
    turned = pd.DataFrame({"a": pd.Categorical(["z", None], ["z", "x"])})
    before = read_codes(turned, schema)
    out = fill(turned, schema, before, np.array([[2], [0]]))
    assert out["a"].tolist() == ["z", "x"]
    assert out["a"].dtype == turned["a"].dtype
    wider = fill(turned, schema, before, np.array([[2], [1]]))  # its type has no "y"
    assert wider["a"].tolist() == ["z", "y"]
    assert wider["a"].dtype == fitted["a"].dtype


def test_an_enum_without_the_category_becomes_the_fitted_one():
    schema = Schema([Variable("a", ("x", "y"), "category[string]")])
    table = pl.DataFrame({"a": pl.Series(["x", None], dtype=pl.Enum(["x"]))})
    out = fill(table, schema, np.array([[0], [-1]]), np.array([[0], [1]]))
    assert out["a"].to_list() == ["x", "y"]
    assert out["a"].dtype == pl.Enum(["x", "y"])


def test_masked_and_structured_arrays():
    masked = np.ma.masked_array([[1, 2], [3, 2], [1, 4]], mask=[[0, 1], [0, 0], [0, 0]])
    schema, before, after = completed(masked)
    np.testing.assert_array_equal(fill(masked, schema, before, after), [[1, 2], [3, 2], [1, 4]])
    short = np.ma.masked_array([["a"], ["a"]], mask=[[0], [1]])
    long = Schema([Variable("x0", ("a", "much longer"), "string")])
    out = fill(short, long, np.array([[0], [-1]]), np.array([[0], [1]]))
    assert out.tolist() == [["a"], ["much longer"]]
    rows = np.array([(1, "a"), (2, "b")], dtype=[("n", "i8"), ("t", "U3")])
    schema, before, after = completed(rows)
    np.testing.assert_array_equal(OutputForm.of(rows).build(schema, after), rows)
    before[0, 1] = -1
    np.testing.assert_array_equal(fill(rows, schema, before, after), rows)


@pytest.mark.parametrize("dtype", ["double", "int64"])
def test_the_mean_of_a_bin_lies_in_it(dtype):
    rng = np.random.default_rng(0)
    column = rng.normal(0, 20, 400)
    table = {"x": column if dtype == "double" else column.astype(np.int64)}
    for bins in (2, 5, 17):
        packed = pack(table, bins=bins)
        variable = packed.schema["x"]
        assert variable.dtype == dtype
        middle = numbers_of(variable).middle
        codes = np.arange(variable.n_states).reshape(-1, 1)
        np.testing.assert_array_equal(read_codes({"x": middle}, packed.schema), codes)
        assert labels(packed.schema, codes).column("x").type == str(dtype)


@pytest.mark.parametrize("kind", ["pandas", "polars", "table", "csv"])
def test_every_kind_of_input_gives_the_same_network(kind, tmp_path):
    frame = survey(missing=0.05)[["smoker", "visits", "insured"]]
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    make = {**TYPED, **TEXT}[kind]
    estimator = GraftedMRF(random_state=0).fit(make(arrow, tmp_path))
    expected = GraftedMRF(random_state=0).fit(frame)
    np.testing.assert_array_equal(estimator.edges_, expected.edges_)
    assert list(estimator.feature_names_in_) == list(frame.columns)
    assert estimator.score(make(arrow, tmp_path)) == expected.score(frame)
    out = estimator.impute(make(arrow, tmp_path))
    np.testing.assert_array_equal(
        read_codes(out, expected.schema_), read_codes(expected.impute(frame), expected.schema_)
    )
    assert read_codes(estimator.sample(4, random_state=0), expected.schema_).shape == (4, 3)


@pytest.mark.filterwarnings("ignore::edgegraft.errors.IdentificationWarning")
def test_lists_are_arrays_whose_columns_have_their_own_types():
    rows = [["a", 1], ["b", 2], ["a", 1], ["b", 2]] * 20
    estimator = GraftedMRF(random_state=0).fit(rows)
    assert estimator.schema_["x0"].categories == ("a", "b")
    assert estimator.schema_["x1"].categories == (1, 2)
    assert estimator.sample(2, random_state=0).dtype == object


def test_sample_and_impute_of_a_survey():
    frame = survey(missing=0.1)
    estimator = GraftedMRF(random_state=0).fit(frame)
    drawn = estimator.sample(3000, random_state=0)
    assert list(drawn.dtypes) == list(frame.dtypes)
    assert (drawn["smoker"] == "yes").mean() == pytest.approx(
        (frame["smoker"] == "yes").sum() / frame["smoker"].notna().sum(), abs=0.05
    )
    pd.testing.assert_frame_equal(drawn, estimator.sample(3000, random_state=0))
    assert np.isfinite(estimator.score(drawn))
    given = estimator.sample(20, given={"smoker": "yes"}, random_state=0)
    assert (given["smoker"] == "yes").all()
    likeliest = estimator.impute(frame)
    assert not likeliest.isna().any().any()
    pd.testing.assert_frame_equal(likeliest, estimator.impute(frame))
    draws = [estimator.impute(frame, method="draw", random_state=seed) for seed in (0, 1)]
    assert not draws[0].equals(draws[1])
    for out in (likeliest, *draws):
        pd.testing.assert_frame_equal(out.where(frame.notna()), frame)


def test_packed_tables_of_another_schema():
    frame = survey()[["smoker", "visits"]]
    estimator = GraftedMRF(random_state=0).fit(frame)
    part = frame[frame["visits"] < 2]
    assert pack(part).schema != estimator.schema_
    assert estimator.score(pack(part)) == estimator.score(part)
    holes = estimator.impute(PackedTable.from_codes([[-1, 0]], estimator.schema_))
    assert isinstance(holes, PackedTable)
    assert holes.n_missing.sum() == 0


def test_a_packed_table_with_other_bins_is_refused():
    frame = survey()
    estimator = GraftedMRF(random_state=0).fit(frame)
    other = pack(frame, bins={"score": 3})
    with pytest.raises(DataError, match=r"'score' was binned differently.*schema_"):
        estimator.score(other)
    assert estimator.score(pack(frame, schema=estimator.schema_)) == estimator.score(frame)


def _with_odd_columns():
    codes = make_chain(4, n_states=3, n_rows=600, random_state=0).X.astype(int)
    frame = pd.DataFrame(codes, columns=list("abcd"))
    frame.insert(0, "id", np.arange(600))
    frame["dose"] = np.random.default_rng(0).normal(size=600)
    frame.loc[3, "a"] = -9
    return frame


OPTIONS = {"bins": 3, "max_numeric_states": 4}
READING = {"drop": ["id"], "missing_values": [-9], "reading": ReadingOptions(**OPTIONS)}


@pytest.mark.parametrize(
    "turn",
    [lambda f: f, pl.from_pandas, pa.Table.from_pandas, lambda f: f.to_dict("list")],
    ids=["pandas", "polars", "arrow", "dict"],
)
def test_tables_are_read_as_the_parameters_say(turn):
    frame = _with_odd_columns()
    network = GraftedMRF(**READING, random_state=0).fit(turn(frame))
    assert network.schema_.names == ("a", "b", "c", "d", "dose")
    assert network.schema_["a"].categories == (0, 1, 2)
    assert network.schema_["dose"].n_states == 3
    packed = pack(frame, drop=["id"], missing_values=[-9], **OPTIONS)
    assert network.score(turn(frame)) == pytest.approx(
        GraftedMRF(random_state=0).fit(packed).score(packed)
    )
    filled = pd.DataFrame(network.impute(frame))
    assert list(filled) == ["a", "b", "c", "d", "dose"]
    assert filled["a"][3] in (0, 1, 2)


def test_columns_of_arrays_are_dropped_by_position():
    frame = _with_odd_columns()
    array = frame.to_numpy()
    network = GraftedMRF(**{**READING, "drop": [0]}, random_state=0).fit(array)
    assert len(network.schema_) == 5
    assert network.impute(array[:2]).shape == (2, 5)
    assert network.predict_proba(array[:2], target=1).shape == (2, 3)


@pytest.mark.parametrize("drop", [["idd"], [9]])
def test_a_column_to_drop_that_is_not_there_is_refused(drop):
    with pytest.raises(DataError, match="which the table does not have"):
        GraftedMRF(drop=drop).fit(_with_odd_columns())
