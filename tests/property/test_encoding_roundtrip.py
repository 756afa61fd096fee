"""Any frame can be restored from its codes, whatever its input type."""

from __future__ import annotations

import datetime as dt
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from edgegraft.errors import EncodingWarning
from edgegraft.ingest import pack
from edgegraft.ingest.binning import assign_bins, bin_edges, bin_labels
from edgegraft.ingest.cells import MISSING_TOKENS
from edgegraft.table import Schema, Variable
from tests.table_kinds import TYPED

# Text without lone surrogates, which Arrow strings cannot contain.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
FINITE = st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0)
VALUES = {
    pa.string(): TEXTS,
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint8(): st.integers(0, 255),
    pa.float64(): FINITE,
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(dt.date(1700, 1, 1), dt.date(2200, 1, 1)),
    pa.timestamp("us"): st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)),
}


@st.composite
def columns(draw, n_rows: int) -> pa.Array:
    """Draw a column of at most 8 categories with some, but not only, missing cells."""
    dtype = draw(st.sampled_from(list(VALUES)))
    pool = draw(st.lists(VALUES[dtype], min_size=1, max_size=8, unique=True))
    cells = draw(st.lists(st.sampled_from([None, *pool]), min_size=n_rows, max_size=n_rows))
    cells[draw(st.integers(0, n_rows - 1))] = pool[0]
    if dtype in (pa.string(), pa.int64()) and draw(st.booleans()):
        places = {value: k for k, value in enumerate(pool)}
        indices = pa.array([None if c is None else places[c] for c in cells], pa.int8())
        return pa.DictionaryArray.from_arrays(
            indices, pa.array(pool, dtype), ordered=draw(st.booleans())
        )
    return pa.array(cells, dtype)


@st.composite
def tables(draw) -> pa.Table:
    n_rows = draw(st.integers(1, 12))
    arrays = draw(st.lists(columns(n_rows), min_size=1, max_size=4))
    return pa.table(arrays, names=[f"c{i}" for i in range(len(arrays))])


def pack_quietly(data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EncodingWarning)  # constant columns are allowed here
        return pack(data, **options)


def keeps_categories(kind: str, dtype: pa.DataType) -> bool:
    """polars reads a dictionary as a Categorical; Parquet readers restore only those of text."""
    return kind != "polars" and not (kind == "parquet" and dtype.value_type != pa.string())


@pytest.mark.parametrize("kind", list(TYPED))
@settings(max_examples=15, deadline=None, derandomize=True)
@given(table=tables(), batch_rows=st.integers(1, 12))
def test_frames_are_restored(kind, table, batch_rows):
    with tempfile.TemporaryDirectory() as folder:
        data = TYPED[kind](table, Path(folder))
        packed = pack_quietly(data, batch_rows=batch_rows)
    decoded = packed.schema.decode(packed.codes())
    assert decoded.column_names == table.column_names
    for name in table.column_names:
        before, after = table.column(name), decoded.column(name)
        # pandas has no missing integers or booleans: they are restored in the type that pandas
        # used.
        lossy = kind == "pandas" and before.null_count and before.type in (pa.int64(), pa.uint8())
        if not lossy:
            assert after.to_pylist() == before.to_pylist()
        if pa.types.is_dictionary(before.type) and keeps_categories(kind, before.type):
            want = tuple(before.chunk(0).dictionary.to_pylist())
            assert packed.schema[name].categories == want
    assert Schema.from_json(packed.schema.to_json()) == packed.schema


@settings(max_examples=50, deadline=None, derandomize=True)
@given(table=tables(), batch_rows=st.integers(1, 12), threads=st.sampled_from([1, 2]))
def test_batches_do_not_matter(table, batch_rows, threads):
    whole = pack_quietly(table)
    parts = pack_quietly(table, batch_rows=batch_rows, n_jobs=threads)
    assert parts.schema == whole.schema
    np.testing.assert_array_equal(parts.codes(), whole.codes())


@settings(max_examples=50, deadline=None, derandomize=True)
@given(table=tables())
def test_a_learned_schema_gives_the_same_codes(table):
    learned = pack_quietly(table)
    again = pack(table, schema=learned.schema)
    np.testing.assert_array_equal(again.codes(), learned.codes())


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    cells=st.lists(
        st.one_of(
            st.integers(-(10**6), 10**6).map(str),
            FINITE.map(repr),
            st.sampled_from(["true", "False", "NA", "", "x", "007", "1e3", "?"]),
            TEXTS.filter(lambda text: not set(text) & set('\r\n"')),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_text_files_keep_every_cell(cells):
    """Return the label of a cell: its text, or its number."""
    assume(not MISSING_TOKENS.union(["?"]).issuperset(cells))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        rows = [f'"{cell}",z{i % 2}' for i, cell in enumerate(cells)]
        path.write_text("\n".join(["a,b", *rows]) + "\n", encoding="utf8", newline="")
        packed = pack_quietly(path, columns=["a"], missing_values=("?",))
    variable = packed.schema["a"]
    for cell, code in zip(cells, packed.codes().ravel().tolist(), strict=True):
        if code < 0:
            assert cell in MISSING_TOKENS.union(["?"])
        elif variable.dtype == "string":
            assert variable.categories[code] == cell
        elif variable.dtype == "bool":
            assert str(variable.categories[code]).lower() == cell.lower()
        else:
            assert variable.categories[code] == float(cell)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    values=st.lists(FINITE, min_size=2, max_size=40),
    n_bins=st.integers(2, 8),
    rule=st.sampled_from(["quantile", "uniform"]),
)
def test_bins_keep_order_and_have_distinct_labels(values, n_bins, rule):
    distinct, counts = np.unique(np.array(values), return_counts=True)
    assume(len(distinct) > 1)
    edges = bin_edges(distinct, counts, n_bins, rule)
    labels = bin_labels(edges)
    variable = Variable("v", labels, "double", True, edges)
    assert variable.n_states <= n_bins
    codes = assign_bins(distinct, edges).astype(int)
    assert (np.diff(codes) >= 0).all()
    assert codes[0] == 0
    assert codes[-1] == variable.n_states - 1
    if rule == "quantile":
        assert len(set(codes.tolist())) == variable.n_states
