"""The packed table: storage rules, codes in and out, its file."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegraft.errors import DataError, FileFormatError
from edgegraft.kernels.counting.popcount import LANES
from edgegraft.table import PackedTable, Schema, packfile
from edgegraft.table.builder import CHUNK_ROWS, MISSING, ColumnBuilder
from tests.conftest import random_codes

STATES = [2, 3, 1, 21, 70, 64, 65]


def example(n_rows=300, missing=0.2):
    return PackedTable.from_codes(random_codes(STATES, n_rows, missing), Schema.from_states(STATES))


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("n_rows", [1, 63, 64, 65, 512, 513, CHUNK_ROWS, CHUNK_ROWS + 1])
def test_codes_come_back(n_rows, missing):
    codes = random_codes(STATES, n_rows, missing)
    table = PackedTable.from_codes(codes, Schema.from_states(STATES))
    np.testing.assert_array_equal(table.codes(), codes)
    np.testing.assert_array_equal(table.codes([4, 0]), codes[:, [4, 0]])
    np.testing.assert_array_equal(table.codes(["x3"]), codes[:, [3]])
    np.testing.assert_array_equal(table.n_missing, (codes < 0).sum(axis=0))


def test_planes_and_codes_are_kept_where_they_pay():
    complete = PackedTable.from_codes(random_codes(STATES, 100), Schema.from_states(STATES))
    assert np.diff(complete.planes.start).tolist() == [1, 2, 0, 20, 0, 63, 0]
    assert (complete.code_row >= 0).tolist() == [False, False, False, True, True, True, True]
    assert complete.planes.words.shape[1] % LANES == 0
    holey = example()
    assert np.diff(holey.planes.start).tolist() == [1, 3, 1, 21, 0, 64, 0]


def test_the_arrays_cannot_be_written():
    table = example()
    with pytest.raises(ValueError, match="read-only"):
        table.planes.words[0, 0] = 1


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
    sizes = data.draw(st.lists(st.sampled_from([0, 1, 63, 64, 1000, CHUNK_ROWS]), min_size=1))
    rng = np.random.default_rng(data.draw(st.integers(0, 100)))
    builder = ColumnBuilder()
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
        ([[0.5]], None, "two-dimensional array of integers"),
        ([0, 1], None, "1 dimension"),
        (np.empty((0, 3), int), None, "0 rows and 3 columns"),
        ([[0, 1]], Schema.from_states([2]), "2 columns where the schema has 1"),
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
    builder = ColumnBuilder()
    builder.append(np.zeros(3, np.uint16))
    with pytest.raises(DataError, match="column 'x0' has 3 rows where the table has 4"):
        PackedTable.from_columns(Schema.from_states([2]), [builder.finish(None, 2)], 4)


def test_a_saved_table_opens_equal(tmp_path):
    table = example(1000)
    table.save(tmp_path / "t.pack")
    opened = PackedTable.open(tmp_path / "t.pack")
    assert opened.schema == table.schema
    assert opened.nbytes == table.nbytes
    np.testing.assert_array_equal(opened.codes(), table.codes())


def test_saving_replaces_whole_files_and_leaves_nothing_beside_them(tmp_path, monkeypatch):
    path = tmp_path / "t.pack"
    example(100).save(path)
    before = path.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        example(200).save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["t.pack"]


def test_truncated_files_are_refused(tmp_path):
    path = tmp_path / "t.pack"
    example(1000).save(path)
    whole = path.read_bytes()
    for length in [0, 4, 15, 16, 100, 4096, len(whole) // 2, len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError, match=r"t\.pack"):
            PackedTable.open(path)


def test_foreign_and_newer_files_are_refused(tmp_path):
    path = tmp_path / "t.pack"
    path.write_bytes(b"PAR1" + bytes(1000))
    with pytest.raises(FileFormatError, match="not a packed table"):
        PackedTable.open(path)
    example().save(path)
    whole = bytearray(path.read_bytes())
    whole[8:12] = struct.pack("<I", 99)
    path.write_bytes(whole)
    with pytest.raises(FileFormatError, match="format version 99"):
        PackedTable.open(path)


@pytest.mark.parametrize("key", ["schema", "n_rows", "n_missing", "words", "codes"])
@pytest.mark.parametrize("value", [None, "x", -1, [], [1, 2], [-1, 5], 7])
def test_a_damaged_header_is_refused(tmp_path, key, value):
    path = tmp_path / "t.pack"
    example().save(path)
    whole = path.read_bytes()
    _, _, length = struct.unpack("<8sII", whole[:16])
    header = json.loads(whole[16 : 16 + length])
    header[key] = value
    changed = json.dumps(header).encode()
    assert len(changed) < 4096 - 16
    path.write_bytes(
        struct.pack("<8sII", packfile.MAGIC, 1, len(changed))
        + changed.ljust(4080, b"\0")
        + whole[4096:]
    )
    with pytest.raises(FileFormatError, match=r"t\.pack"):
        PackedTable.open(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.pack"):
        PackedTable.open(tmp_path / "none.pack")
