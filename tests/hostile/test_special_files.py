"""Files are replaced, and nothing else is: devices, pipes, links, modes, full disks."""

from __future__ import annotations

import os
import stat
import threading

import pytest

from edgegraft.core.atomic import replace_file
from edgegraft.errors import DiskFullError
from tests.hostile import writers


def test_what_is_no_file_is_refused(tmp_path):
    outcomes = writers.replace_special_files(tmp_path)
    assert len(outcomes) >= 50
    assert set(outcomes) == {"refused"}


def test_a_link_stays_and_a_private_file_stays_private(tmp_path):
    assert set(writers.replace_linked_files(tmp_path)) == {"survived"}


def test_a_link_to_nothing_is_followed(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "new")
    replace_file(tmp_path / "link", "x")
    assert (tmp_path / "new").read_text() == "x"
    assert (tmp_path / "link").is_symlink()


def test_a_new_file_follows_the_mask_which_no_thread_changes(tmp_path, monkeypatch):
    before = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", None)
        worker = threading.Thread(target=replace_file, args=(tmp_path / "new", "x"))
        worker.start()
        worker.join()
        monkeypatch.undo()
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    finally:
        os.umask(before)


def test_a_full_disk_is_named_with_its_file(tmp_path):
    outcomes = writers.fill_disk(tmp_path, 0)
    assert len(outcomes) >= 22
    assert set(outcomes) == {"refused"}
    with writers.small_files(1), pytest.raises(DiskFullError, match=r"of '.*note' is full") as e:
        replace_file(tmp_path / "note", "text")
    assert e.value.errno


def test_other_errors_name_the_file_and_not_the_one_beside_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent/note'$"):
        replace_file(tmp_path / "absent" / "note", "text")
