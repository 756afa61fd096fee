"""Damaged stores: no changed byte is read as another cell, and the message says what to do."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from edgegraft.core.container import read_container, write_container
from edgegraft.errors import FileFormatError
from edgegraft.scale import disk
from edgegraft.scale.disk import open_store
from edgegraft.scale.store import FORMAT, DiskStore

REMEDY = "delete it, and it is made again"


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A store of several blocks, and its codes."""
    monkeypatch.setattr(disk, "block_rows", lambda n: 512)
    rng = np.random.default_rng(0)
    columns = {f"c{k}": rng.integers(0, k + 2, 1800) for k in range(4)}
    columns["many"] = rng.integers(0, 120, 1800).astype(str)
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    with open_store(tmp_path / "rows.parquet", folder=tmp_path / "cache") as store:
        return store.path, store.table().codes()


def read_blocks(path):
    with DiskStore(path) as store:
        parts = [store.block(k).codes() for k in range(len(store.starts) - 1)]
    return np.concatenate(parts)


@pytest.mark.parametrize("key", ["schema", "n_rows", "rows", "parts", "recode", "notes", "source"])
def test_forged_headers_are_refused(stored, tmp_path, key):
    path, expected = stored
    found = read_container(path, FORMAT)
    for value in (None, "x", -1, 0, [], [1, 2], [[9]], {}, 1 << 62):
        write_container(tmp_path / "forged", FORMAT, {**found.content, key: value}, found.arrays)
        try:
            np.testing.assert_array_equal(read_blocks(tmp_path / "forged"), expected)
        except FileFormatError as error:
            assert REMEDY in str(error)  # noqa: PT017 - a source may be any text


@pytest.mark.parametrize("name", ["widths.0", "n_missing", "recode", "0.0"])
def test_forged_arrays_are_refused(stored, tmp_path, name):
    path, _ = stored
    found = read_container(path, FORMAT)
    for array in (found.arrays[name][:-1], np.zeros(0, found.arrays[name].dtype), None):
        arrays = {**found.arrays, name: array}
        if array is None:
            del arrays[name]
        write_container(tmp_path / "forged", FORMAT, found.content, arrays)
        with pytest.raises(FileFormatError, match=REMEDY):
            read_blocks(tmp_path / "forged")


def test_a_damaged_block_of_a_known_store_says_to_delete_it(stored, tmp_path):
    path, _ = stored
    whole = bytearray(path.read_bytes())
    whole[1 << 17 if len(whole) > 1 << 17 else (1 << 16) + 64] ^= 1
    path.write_bytes(whole)
    with (
        pytest.raises(FileFormatError, match=f"damaged store of rows: .*{REMEDY}"),
        open_store(tmp_path / "rows.parquet", folder=tmp_path / "cache") as store,
    ):
        store.table()
