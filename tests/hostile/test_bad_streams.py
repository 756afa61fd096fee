"""Long passes that fail: the file and row are named, and nothing half-written is left."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from edgegraft import load
from edgegraft.datasets import make_scale_free
from edgegraft.errors import DataError, DataTypeError, FileFormatError, UnseenCategoryError
from edgegraft.ingest import pack
from edgegraft.ingest.options import ReadOptions
from edgegraft.scale.disk import open_store

N_FILES = 400
BAD = 299


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


def write_csv(tmp_path, bad_row, header="a,b"):
    where = tmp_path / "rows"
    where.mkdir()
    for k in range(N_FILES):
        rows = ["0,1", "1,0", "1,1"]
        if k == BAD and bad_row is not None:
            rows[1] = bad_row
        text = "\n".join([header, *rows]) + "\n"
        (where / f"part-{k:03}.csv").write_text(text)
    return where


def assert_nothing_left(folder):
    assert not folder.exists() or list(folder.iterdir()) == []


def test_a_ragged_row_in_the_300th_file(tmp_path, folder):
    where = write_csv(tmp_path, "1,0,1")
    with pytest.raises(FileFormatError, match=r"part-299\.csv': row 3 of the file has 3 cells"):
        open_store(where, folder=folder)
    assert_nothing_left(folder)


def test_a_cell_that_cannot_be_decoded(tmp_path, folder):
    where = write_csv(tmp_path, None)
    (where / "part-299.csv").write_bytes(b"a,b\n0,1\n\xff,0\n")
    with pytest.raises(FileFormatError, match=r"part-299\.csv': .* cannot be decoded as utf8"):
        open_store(where, folder=folder)
    assert_nothing_left(folder)


def test_an_unknown_category_in_the_300th_file(tmp_path, folder):
    where = write_csv(tmp_path, "1,7")
    schema = pack(where / "part-000.csv").schema
    for read in (
        lambda: open_store(where, folder=folder, schema=schema),
        lambda: pack(where, schema=schema),
    ):
        with pytest.raises(
            UnseenCategoryError, match=r"column 'b', row 1 of '.*part-299\.csv' \(counted from 0\)"
        ):
            read()
    assert_nothing_left(folder)


def test_an_infinite_number_in_a_later_file(tmp_path, folder):
    where = tmp_path / "rows"
    where.mkdir()
    for k in range(3):
        values = np.arange(10) / 4
        values[7] = np.inf if k == 2 else 0
        pq.write_table(pa.table({"x": values}), where / f"{k}.parquet")
    with pytest.raises(DataError, match=r"column 'x', row 7 of '.*2\.parquet'"):
        open_store(where, folder=folder)
    assert_nothing_left(folder)


def test_headers_are_compared_before_any_row_is_read(tmp_path, folder):
    where = write_csv(tmp_path, None)
    (where / "part-000.csv").write_text("a,b\n1,2,3,4\n")  # would fail first, were it read
    (where / "part-399.csv").write_text("a,c\n0,1\n")
    with pytest.raises(DataError, match=r"part-399\.csv' lacks 'b': .* columns of '.*part-000"):
        open_store(where, folder=folder)
    (where / "part-399.csv").write_text("a,b,c\n0,1,2\n")
    with pytest.raises(DataError, match=r"part-399\.csv' also has 'c'"):
        open_store(where, folder=folder)
    assert_nothing_left(folder)


def test_files_of_other_types_are_refused(tmp_path, folder):
    for k, values in enumerate(([1, 2], [None, None], ["1", "2"])):
        pq.write_table(pa.table({"a": values}), tmp_path / f"{k}.parquet")
    with pytest.raises(DataTypeError, match=r"'a' is int64 in '.*0\.parquet' and string in '.*2\."):
        open_store(tmp_path, folder=folder)
    (tmp_path / "3.csv").write_text("a\n1\n")
    (tmp_path / "2.parquet").unlink()
    with pytest.raises(DataError, match="different formats"):
        open_store(tmp_path, folder=folder)


def test_files_may_differ_in_order_width_and_empty_columns(tmp_path, folder):
    wide = pa.table({"a": pa.array([1, 2], pa.int64()), "b": ["x", "y"]})
    narrow = pa.table({"b": pa.nulls(2), "a": pa.array([3, 1], pa.int8())})
    for k, part in enumerate((narrow, wide)):
        pq.write_table(part, tmp_path / f"{k}.parquet")
    with open_store(tmp_path, folder=folder) as store:
        assert store.schema.names == ("b", "a")
        assert store.table().codes().tolist() == [[-1, 2], [-1, 0], [0, 0], [1, 1]]


def test_files_without_a_row_do_no_harm_unless_all_are(tmp_path, folder):
    where = write_csv(tmp_path, None)
    (where / "part-299.csv").write_text("a,b\n")
    with open_store(where, folder=folder) as store:
        assert store.n_rows == 3 * (N_FILES - 1)
    for path in where.iterdir():
        path.write_text("a,b\n")
    with pytest.raises(DataError, match="no rows"):
        open_store(where, folder=folder / "other")
    assert_nothing_left(folder / "other")


@pytest.mark.parametrize("how", ["grows", "goes", "is replaced"])
def test_a_file_that_changes_under_way(tmp_path, folder, how, monkeypatch):
    monkeypatch.setattr("edgegraft.ingest.sources._Pace.report", 0.0)
    where = write_csv(tmp_path, None)
    path = where / "part-350.csv"

    def change(report):
        if report.rows > 100 and path.exists():
            if how == "grows":
                with path.open("a") as file:
                    file.write("1,1\n")
            elif how == "goes":
                path.unlink()
            else:
                path.write_text("a,b\n1,1\n1,0\n0,1\n")

    message = "is gone" if how == "goes" else "changed while the table was being read"
    with pytest.raises(DataError, match=rf"part-350\.csv' {message}"):
        open_store(where, folder=folder, options=ReadOptions(on_rows=change))
    assert_nothing_left(folder)


def test_a_folder_or_pattern_of_nothing(tmp_path, folder):
    (tmp_path / "notes.md").write_text("x")
    (tmp_path / "_SUCCESS").write_text("")
    with pytest.raises(DataError, match=r"no file with a known extension .*it holds 'notes\.md'"):
        open_store(tmp_path, folder=folder)
    with pytest.raises(FileNotFoundError, match=r"no file matches the pattern '.*\*\.parquet'"):
        open_store(f"{tmp_path}/*.parquet", folder=folder)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        open_store(tmp_path / "absent.csv", folder=folder)


def test_an_observer_that_raises_ends_the_pass_cleanly(tmp_path, folder):
    def stop(report):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_store(write_csv(tmp_path, None), folder=folder, options=ReadOptions(on_rows=stop))
    assert_nothing_left(folder)


@pytest.mark.parametrize("stream", [False, True])
def test_a_full_disk(tmp_path, folder, stream):
    rng = np.random.default_rng(0)
    data = pa.table({f"x{i}": rng.integers(0, 9, 100_000).astype(str) for i in range(8)})
    pq.write_table(data, tmp_path / "rows.parquet")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    # A limit on the size of files stands for a disk without room.
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
    try:
        with pytest.raises(OSError, match=r"disk of .* is full.*cache_dir=") as caught:
            open_store(data.to_reader() if stream else tmp_path / "rows.parquet", folder=folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.errno == errno.EFBIG
    assert_nothing_left(folder)


def test_a_killed_pass_leaves_no_store(tmp_path, folder):
    """Nothing that a later run would take for a whole store, that is."""
    where = write_csv(tmp_path, None)
    code = (
        "import os, signal, sys\n"
        "from edgegraft.scale.disk import open_store\n"
        "from edgegraft.ingest.options import ReadOptions\n"
        "def die(report):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "open_store(sys.argv[1], folder=sys.argv[2], options=ReadOptions(on_rows=die))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(where), str(folder)], check=False)
    assert done.returncode == -9
    assert list(folder.glob("*.rows")) == []
    (left,) = folder.iterdir()
    os.utime(left, (0, 0))  # as it will be in an hour
    open_store(where, folder=folder).close()
    assert not left.exists()


LEARN = """
import sys
from pathlib import Path

from edgegraft.scale.disk import open_store
from edgegraft.learn import Plan, discover, resume_discovery
from edgegraft.table.blocks import StoredRows

rows, folder, checkpoint, out = sys.argv[1:]
plan = Plan(selectivity=0.95)
with open_store(rows, folder=folder) as store:
    stored = StoredRows(store)
    if Path(checkpoint).exists():
        found = resume_discovery(checkpoint, stored, plan, sample_rows=3000)
    else:
        found = discover(stored, plan, checkpoint=checkpoint, sample_rows=3000)
found.model.save(out)
"""


def test_a_run_killed_again_and_again_ends_like_one_that_was_not(tmp_path):
    data = make_scale_free(12, n_states=3, n_rows=9000, random_state=0).X.astype(int)
    rows = tmp_path / "rows.parquet"
    pq.write_table(pa.table({f"x{i}": column for i, column in enumerate(data.T)}), rows)
    command = [sys.executable, "-c", LEARN, str(rows), str(tmp_path / "cache")]
    checkpoint = tmp_path / "killed.checkpoint"
    lives, last = 0, b""
    while not (tmp_path / "killed.edgegraft").exists() and lives < 50:
        lives += 1
        child = subprocess.Popen([*command, str(checkpoint), str(tmp_path / "killed.edgegraft")])
        # It may go on until it has written a checkpoint or two.
        while child.poll() is None:
            now = checkpoint.read_bytes() if checkpoint.exists() else b""
            if now != last and lives < 4:
                child.kill()
                last = now
            time.sleep(0.005)
        assert child.wait() in (0, -9)
    subprocess.run(
        [*command, str(tmp_path / "whole.checkpoint"), str(tmp_path / "whole.edgegraft")],
        check=True,
    )
    assert lives > 2
    killed, whole = (load(tmp_path / f"{name}.edgegraft") for name in ("killed", "whole"))
    assert killed == whole
    assert len(whole.edges) > 10
