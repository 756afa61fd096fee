"""Container files: what is written comes back, and nothing else does."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors import safe_open

from edgegraft.core.atomic import replacing
from edgegraft.core.container import (
    ContainerFormat,
    ContainerReader,
    ContainerWriter,
    read_container,
    write_container,
)
from edgegraft.errors import FileFormatError

NOTES = ContainerFormat(
    "edgegraft-notes", 2, "file of notes", "write one with notes.save", "write the notes again"
)
CONTENT = {"names": ["a", "日本", "\udcff"], "numbers": [1, 2.5, None], "deep": {"x": [True]}}
ARRAYS = {
    "bits": np.array([True, False, True]),
    "bytes": np.arange(7, dtype=np.uint8),
    "empty": np.zeros((0, 3)),
    "one": np.array(4.5),
    "words": np.arange(12, dtype=np.uint64).reshape(3, 4),
    "columns": np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
    "swapped": np.arange(3, dtype=">i8"),
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "notes"
    write_container(path, NOTES, CONTENT, ARRAYS)
    return path


def assert_same(arrays):
    assert arrays.keys() == ARRAYS.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, ARRAYS[name])
        assert array.shape == ARRAYS[name].shape
        assert array.dtype == ARRAYS[name].dtype.newbyteorder("=")
        assert not array.flags.writeable


def test_content_and_arrays_come_back(path):
    found = read_container(path, NOTES)
    assert found.content == CONTENT
    assert found.version == 2
    assert found.written_by.startswith("edgegraft ")
    assert_same(found.arrays)
    with ContainerReader(path, NOTES) as reader:
        assert_same({name: reader.map(name) for name in reader.names})
        assert reader.nbytes("words") == 96


def test_it_is_a_safetensors_file_and_the_same_bytes_every_time(path, tmp_path):
    with safe_open(path, "numpy") as file:
        np.testing.assert_array_equal(file.get_tensor("words"), ARRAYS["words"])
    write_container(tmp_path / "again", NOTES, CONTENT, dict(reversed(ARRAYS.items())))
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("room", [16, 1 << 12])
@pytest.mark.parametrize("checksum", ["crc32", "sha256"])
def test_a_file_may_be_written_before_its_header_is_known(tmp_path, room, checksum, monkeypatch):
    monkeypatch.setattr("edgegraft.core.container._STEP", 5)
    kind = ContainerFormat(**{**vars(NOTES), "checksum": checksum})
    with replacing(tmp_path / "notes") as file:
        writer = ContainerWriter(file, kind, room)
        for name, array in ARRAYS.items():
            writer.add(name, array)
        writer.finish(CONTENT)
    found = read_container(tmp_path / "notes", kind)
    assert found.content == CONTENT
    assert_same(found.arrays)


@pytest.mark.parametrize("length", [0, 7, 8, 100, -1])
def test_truncated_files_are_refused(path, length):
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(FileFormatError, match="truncated or damaged"):
        read_container(path, NOTES)


def test_a_file_that_shrinks_while_it_is_open_is_refused(path):
    write_container(path, NOTES, {}, {"long": np.zeros(1 << 16)})
    with ContainerReader(path, NOTES) as reader:
        with path.open("r+b") as file:
            file.truncate(1 << 16)
        with pytest.raises(FileFormatError, match=r"become shorter; write the notes again"):
            reader.read("long")


def test_other_formats_and_newer_versions_are_refused(path, tmp_path):
    other = ContainerFormat("edgegraft-other", 1, "table", "pack one", "pack it again")
    with pytest.raises(FileFormatError, match=r"is not a table of edgegraft: .*; pack one"):
        read_container(path, other)
    older = ContainerFormat(**{**vars(NOTES), "version": 1})
    with pytest.raises(FileFormatError, match="format version 2: a newer release"):
        read_container(path, older)
    from safetensors.numpy import save_file

    save_file({"x": np.zeros(3)}, tmp_path / "tensors")
    with pytest.raises(FileFormatError, match="a safetensors file of something else"):
        read_container(tmp_path / "tensors", NOTES)


def test_a_header_without_end_is_refused_at_once(path, monkeypatch):
    monkeypatch.setattr("edgegraft.core.container.MAX_HEADER", 1000)
    with pytest.raises(ValueError, match="room for 1,000"):
        write_container(path, NOTES, {"long": "x" * 1000}, {})
