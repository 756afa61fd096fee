"""The packed table: storage rules, codes in and out, its file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegraft.core.container import write_container
from edgegraft.errors import DataError, FileFormatError
from edgegraft.ingest.columns import CodeBuffer
from edgegraft.kernels.counting import LANES
from edgegraft.table import PackedTable, Schema
from edgegraft.table.packed import FORMAT
from edgegraft.table.schema import MISSING
from tests.conftest import random_codes

STATES = [2, 3, 1, 21, 70, 64, 65]


def example(n_rows=300, missing=0.2):
    return PackedTable.from_codes(random_codes(STATES, n_rows, missing), Schema.from_states(STATES))


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("n_rows", [1, 63, 64, 65, 512, 513, 65536, 65536 + 1])
def test_codes_come_back(n_rows, missing):
    codes = random_codes(STATES, n_rows, missing)
    table = PackedTable.from_codes(codes, Schema.from_states(STATES))
    np.testing.assert_array_equal(table.codes(), codes)
    np.testing.assert_array_equal(table.codes([4, 0]), codes[:, [4, 0]])
    np.testing.assert_array_equal(table.codes(["x3"]), codes[:, [3]])
    np.testing.assert_array_equal(table.n_missing, (codes < 0).sum(axis=0))


def test_planes_are_built_when_they_are_asked_for():
    complete = PackedTable.from_codes(random_codes(STATES, 100), Schema.from_states(STATES))
    before = complete.nbytes
    assert before == complete.cells.nbytes
    assert np.diff(complete.planes.start).tolist() == [1, 2, 0, 20, 0, 63, 0]
    assert complete.nbytes == before + complete.planes.words.nbytes
    assert complete.planes is complete.planes
    assert complete.planes.words.shape[1] % LANES == 0
    holey = example()
    assert np.diff(holey.planes.start).tolist() == [1, 3, 1, 21, 0, 64, 0]


def test_the_arrays_cannot_be_written():
    table = example()
    with pytest.raises(ValueError, match="read-only"):
        table.planes.words[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        table.cells[0, 0] = 1


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_a_builder_gives_back_what_it_got_under_any_recoding_and_batching(data):
    n_states = data.draw(st.sampled_from([1, 2, 5, 63, 64, 65, 90]))
    n_final = data.draw(st.integers(1, n_states))
    recode = np.array(
        data.draw(
            st.lists(
                st.sampled_from([*range(n_final), MISSING]), min_size=n_states, max_size=n_states
            )
        ),
        np.uint16,
    )
    sizes = data.draw(st.lists(st.sampled_from([0, 1, 63, 64, 1000, 65536]), min_size=1))
    rng = np.random.default_rng(data.draw(st.integers(0, 100)))
    builder = CodeBuffer()
    batches = []
    for size in [*sizes, 1]:
        batch = rng.integers(0, n_states, size).astype(np.uint16)
        batch[rng.random(size) < 0.1] = MISSING
        builder.append(batch)
        batches.append(batch)
    cells = np.concatenate(batches)
    lookup = np.full(MISSING + 1, -1, np.int32)
    lookup[:n_states] = np.where(recode == MISSING, -1, recode.astype(np.int32))
    column = builder.finish(recode, n_final)
    table = PackedTable.from_columns(Schema.from_states([n_final]), [column], len(cells))
    np.testing.assert_array_equal(table.codes()[:, 0], lookup[cells])
    assert table.n_missing[0] == (lookup[cells] < 0).sum()


@pytest.mark.parametrize(
    ("codes", "schema", "message"),
    [
        ([[0.5]], None, "codes have the type float64: expected integers"),
        ([[np.nan]], None, "codes have the type float64: expected integers"),
        ([["a"]], None, "codes have the type <U1: expected integers"),
        ([0, 1], None, r"codes have shape \(2,\)"),
        (np.empty((0, 3), int), None, r"codes have shape \(0, 3\)"),
        ([[0, 1]], Schema.from_states([2]), r"codes have shape \(1, 2\): expected \(rows, 1\)"),
        (
            [[0, 3]],
            Schema.from_states([2, 3]),
            "column 'x1' holds the code 3: its codes are 0 to 2",
        ),
        ([[-2, 0]], None, "column 'x0' holds the code -2"),
    ],
)
def test_bad_codes_are_refused(codes, schema, message):
    with pytest.raises(DataError, match=message):
        PackedTable.from_codes(codes, schema)


def test_columns_of_different_length_are_refused():
    with pytest.raises(DataError, match="column 'x0' has 3 rows where the table has 4"):
        PackedTable.from_columns(Schema.from_states([2]), [np.zeros(3, np.uint8)], 4)


def test_a_saved_table_opens_equal(tmp_path):
    table = example(1000)
    table.save(tmp_path / "t.pack")
    opened = PackedTable.open(tmp_path / "t.pack")
    assert opened.schema == table.schema
    assert opened.nbytes == table.nbytes
    np.testing.assert_array_equal(opened.codes(), table.codes())


@pytest.mark.parametrize("change", ["schema", "n_rows", "states", "cells", "dtype"])
def test_a_file_that_contradicts_itself_is_refused(tmp_path, change):
    table = example()
    content = {"schema": table.schema.to_json(), "n_rows": table.n_rows}
    cells = table.cells
    if change == "states":
        content["schema"] = Schema.from_states([1] * len(STATES)).to_json()
    elif change == "cells":
        cells = cells[:, :64]
    elif change == "dtype":
        cells = cells.astype(np.uint16)
    else:
        content[change] = None
    write_container(tmp_path / "t.pack", FORMAT, content, {"cells": cells})
    with pytest.raises(FileFormatError, match=r"t\.pack"):
        PackedTable.open(tmp_path / "t.pack")


def test_a_file_that_users_hold_opens():
    """The file is of today's format and is never written again."""
    opened = PackedTable.open(Path(__file__).parent / "files" / "table.packed")
    assert opened.schema.n_states.tolist() == [2, 3, 5, 20, 100]
    codes = np.arange(60)[:, None] * 37 % opened.schema.n_states
    codes[::7, 1:] = -1
    np.testing.assert_array_equal(opened.codes(), codes)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.pack"):
        PackedTable.open(tmp_path / "none.pack")
