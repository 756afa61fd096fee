"""Protocol of readers: one table, every kind of input, the same codes and the same categories."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from edgegraft.ingest import encode, pack
from edgegraft.table import Schema
from tests.table_kinds import TEXT, TYPED

RNG = np.random.default_rng(7)
N_ROWS = 400


def with_holes(values, dtype=None):
    return pa.array(values, dtype, mask=RNG.random(len(values)) < 0.1)


TABLE = pa.table(
    {
        "text": with_holes(RNG.choice(["b", "a", "ü c"], N_ROWS)),
        "whole": with_holes(RNG.integers(-3, 4, N_ROWS).astype(np.int16)),
        "real": with_holes(RNG.choice([0.5, -1.25, 3.75], N_ROWS)),
        "flag": with_holes(RNG.random(N_ROWS) < 0.5),
        "measure": with_holes(np.round(RNG.normal(size=N_ROWS), 3)),
        "tally": with_holes(RNG.poisson(40, N_ROWS)),
    }
)
BINS = {"measure": 4, "tally": 3}


def labels(schema: Schema):
    return [(v.name, v.categories, v.edges) for v in schema]


@pytest.fixture(scope="module")
def reference():
    return pack(TABLE, bins=BINS)


@pytest.mark.parametrize("kind", [*TYPED, *TEXT])
def test_every_kind_gives_the_same(tmp_path, reference, kind):
    data = {**TYPED, **TEXT}[kind](TABLE, tmp_path)
    packed = pack(data, bins=BINS, batch_rows=33)
    assert labels(packed.schema) == labels(reference.schema)
    np.testing.assert_array_equal(packed.codes(), reference.codes())


@pytest.mark.parametrize("kind", [*TYPED, *TEXT])
def test_every_kind_under_a_fixed_schema(tmp_path, reference, kind):
    shuffled = TABLE.select(TABLE.column_names[::-1])
    data = {**TYPED, **TEXT}[kind](shuffled, tmp_path)
    packed = pack(data, schema=reference.schema, batch_rows=50)
    assert packed.schema is reference.schema
    np.testing.assert_array_equal(packed.codes(), reference.codes())


def test_arrays_give_the_same():
    cells = RNG.integers(0, 4, (200, 5))
    reference = pack(pd.DataFrame(cells)).codes()
    for array in (
        cells,
        cells.astype(np.uint8),
        cells.astype(float),
        cells.astype(str),
        cells.astype(object),
        np.asfortranarray(cells),
        cells.astype(np.dtypes.StringDType()),
    ):
        packed = pack(array)
        assert packed.schema.names == ("x0", "x1", "x2", "x3", "x4")
        np.testing.assert_array_equal(packed.codes(), reference)


def test_encode(reference):
    np.testing.assert_array_equal(encode(TABLE, reference.schema), reference.codes())


def test_columns_and_drop():
    assert pack(TABLE, columns=["flag", "text"]).schema.names == ("flag", "text")
    for kind in (TABLE, TABLE.to_pandas(), pl.from_arrow(TABLE)):
        packed = pack(kind, drop=["measure", "tally", "text"])
        assert packed.schema.names == ("whole", "real", "flag")
    array = RNG.integers(0, 2, (9, 4))
    assert pack(array, columns=[3, "x0"]).schema.names == ("x3", "x0")
    assert pack(array, drop=[0]).schema.names == ("x1", "x2", "x3")
    assert pack(array.astype(float), drop=[0, 3]).schema.names == ("x1", "x2")
    np.testing.assert_array_equal(pack(array, columns=[3, 1]).codes(), array[:, [3, 1]])


def test_positions_match_a_schema_without_names(reference, tmp_path):
    schema = pack({"a": [0, 1], "b": [5, 6]}).schema
    np.testing.assert_array_equal(encode(np.array([[1, 5]]), schema), [[1, 0]])
    np.testing.assert_array_equal(encode(np.array([[1.0, np.nan]]), schema), [[1, -1]])
    path = tmp_path / "plain.csv"
    path.write_text("1,6\n0,NA\n")
    assert pack(path, schema=schema, header=False).codes().tolist() == [[1, 1], [0, -1]]


def test_threads_change_nothing(tmp_path, reference):
    for kind in ("csv", "parquet"):
        data = {**TYPED, **TEXT}[kind](TABLE, tmp_path)
        np.testing.assert_array_equal(pack(data, bins=BINS, n_jobs=2).codes(), reference.codes())


def test_frame_libraries_are_not_needed():
    program = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name in ('pandas', 'polars'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import numpy, edgegraft as d\n"
        "print(d.pack({'a': ['x', None, 'y']}).codes().ravel(), d.pack(numpy.eye(3)).n_rows)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[ 0 -1  1] 3"


@pytest.mark.parametrize("dtype", [">i4", ">f8", ">u2"])
def test_arrays_of_another_byte_order_keep_their_numbers(dtype):
    table = pack(np.array([[1, 0], [2, 1], [1, 1]], dtype))
    assert [variable.categories for variable in table.schema] == [(1, 2), (0, 1)]
    assert table.codes().tolist() == [[0, 0], [1, 1], [0, 1]]


def test_packing_an_array_does_not_import_pandas():
    program = (
        "import sys, numpy, edgegraft\n"
        "edgegraft.pack(numpy.eye(3, dtype=int))\n"
        "print('pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
