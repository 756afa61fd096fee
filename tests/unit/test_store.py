"""Stores of codes: the same table as `pack` makes, found again as long as it is the same."""

from __future__ import annotations

import os
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from edgegraft.config import ReadingOptions
from edgegraft.datasets import make_chain
from edgegraft.errors import EncodingWarning, FileFormatError, MemoryBudgetError
from edgegraft.estimators import GraftedMRF
from edgegraft.ingest import pack
from edgegraft.ingest.options import ReadOptions
from edgegraft.scale import disk
from edgegraft.scale.disk import cache_folder, open_store, share_out
from edgegraft.scale.store import DiskStore

N_ROWS = 3000


def table(n_rows=N_ROWS, seed=0):
    rng = np.random.default_rng(seed)
    late = np.where(np.arange(n_rows) < 2 * n_rows // 3, "m", "a")  # a category that comes late
    holes = np.where(rng.random(n_rows) < 0.2, None, rng.integers(0, 3, n_rows).astype(str))
    holes[: n_rows // 2] = "1"  # none missing in the first half
    return pa.table(
        {
            "late": late,
            "holes": pa.array(holes, pa.string()),
            "many": [f"c{k:02}" for k in rng.integers(0, 70, n_rows)],
            "coded": rng.integers(0, 20, n_rows),
            "bool": rng.random(n_rows) < 0.3,
        }
    )


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(disk, "block_rows", lambda n: 512)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


def write(tmp_path, kind="parquet", parts=1, data=None):
    """Write a table as files, and return the folder that holds them."""
    data = table() if data is None else data
    where = tmp_path / "rows"
    where.mkdir(exist_ok=True)
    for k in range(parts):
        first, stop = (data.num_rows * j // parts for j in (k, k + 1))
        part = data.slice(first, stop - first)
        if kind == "parquet":
            pq.write_table(part, where / f"part-{k:02}.parquet")
        else:
            pa_csv.write_csv(part, where / f"part-{k:02}.csv")
    return where


def assert_same(store, expected):
    assert store.schema == expected.schema
    assert store.n_rows == expected.n_rows
    whole = store.table()
    np.testing.assert_array_equal(whole.codes(), expected.codes())
    np.testing.assert_array_equal(whole.planes.words, expected.planes.words)
    np.testing.assert_array_equal(whole.n_missing, expected.n_missing)
    blocks = [store.block(k).codes() for k in range(len(store.starts) - 1)]
    np.testing.assert_array_equal(np.concatenate(blocks), expected.codes())


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_store_is_the_table_that_pack_makes(tmp_path, folder, kind, parts):
    where = write(tmp_path, kind, parts)
    expected = pack(where)  # a folder is a table, too
    assert expected.n_rows == N_ROWS
    for given in (where, str(where), f"{where}/*.{kind}"):
        with open_store(given, folder=folder) as store:
            assert_same(store, expected)
            assert len(store.starts) == 7


def test_a_stream_is_stored_until_it_is_closed(folder):
    store = open_store(table().to_reader(max_chunksize=700), folder=folder)
    assert list(folder.glob("*.rows")) == []  # it has no name already
    assert_same(store, pack(table()))
    store.close()
    assert list(folder.iterdir()) == []


def test_numbers_of_too_many_values_are_binned_alike(tmp_path, folder, monkeypatch):
    for module in ("ingest.columns", "table.schema"):
        monkeypatch.setattr(f"edgegraft.{module}.MAX_STATES", 100, raising=False)
    rng = np.random.default_rng(0)
    data = pa.table({"x": rng.normal(size=N_ROWS), "y": rng.integers(0, 3, N_ROWS)})
    where = write(tmp_path, data=data)
    options = ReadOptions(max_states=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EncodingWarning)
        with open_store(where, folder=folder, options=options) as store:
            assert_same(store, pack(where, max_states=100))


def test_a_schema_is_kept_to(tmp_path, folder):
    where = write(tmp_path)
    schema = pack(where).schema
    part = write(tmp_path / "rows", data=table(700))
    with open_store(part, folder=folder, schema=schema) as store:
        assert_same(store, pack(part, schema=schema))


@pytest.fixture
def passes(monkeypatch):
    """How often a source was read."""
    seen = []
    true = disk.write_store
    monkeypatch.setattr(disk, "write_store", lambda *a: seen.append(1) or true(*a))
    return seen


def test_an_unchanged_source_is_read_once(tmp_path, folder, passes):
    where = write(tmp_path, parts=2)
    for _ in range(3):
        open_store(where, folder=folder).close()
    assert len(passes) == 1
    open_store(where, folder=folder, options=ReadOptions(batch_rows=100, n_jobs=2)).close()
    assert len(passes) == 1  # options that change no cell
    open_store(where, folder=folder, options=ReadOptions(drop=["late"])).close()
    assert len(passes) == 2


@pytest.mark.parametrize("change", ["content", "time", "size", "another"])
def test_a_changed_source_is_read_again(tmp_path, folder, passes, change):
    where = write(tmp_path, "csv", parts=2)
    open_store(where, folder=folder).close()
    path = where / "part-01.csv"
    stat = path.stat()
    if change == "content":  # same size, same time
        content = path.read_bytes()
        path.write_bytes(content.replace(b'"m"', b'"q"', 1))
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    elif change == "time":
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 10**9))
    elif change == "size":
        with path.open("ab") as file:
            file.write(b'"m","1","c01",3,true\n')
    else:
        (where / "part-02.csv").write_bytes(path.read_bytes())
    open_store(where, folder=folder).close()
    assert len(passes) == 2


def test_warnings_come_again_with_the_store(tmp_path, folder):
    where = write(tmp_path, data=table().append_column("same", [["x"] * N_ROWS]))
    for _ in range(2):
        with pytest.warns(EncodingWarning, match="same"):
            open_store(where, folder=folder).close()


def test_a_damaged_store_is_made_again(tmp_path, folder, passes):
    where = write(tmp_path)
    open_store(where, folder=folder).close()
    (path,) = folder.glob("*.rows")
    content = path.read_bytes()
    for damaged in (content[:-1], content[:100], b"", content[:-40] + b"x" * 10 + content[-30:]):
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError, match="delete it, and it is made again"):
            DiskStore(path)
        with open_store(where, folder=folder) as store:
            assert store.n_rows == N_ROWS
    assert len(passes) == 5


def test_the_oldest_stores_make_room(tmp_path, folder):
    sizes = []
    for k in range(3):
        (tmp_path / str(k)).mkdir()
        store = open_store(write(tmp_path / str(k)), folder=folder)
        sizes.append(store.path.stat().st_size)
        os.utime(store.path, ns=(k, k))
        store.close()
    paths = sorted(folder.glob("*.rows"), key=lambda p: p.stat().st_mtime_ns)
    (tmp_path / "new").mkdir()
    open_store(write(tmp_path / "new"), folder=folder, max_bytes=sum(sizes[1:]) + 100).close()
    assert [p.exists() for p in paths] == [False, False, True]


def test_a_new_store_pushes_an_old_one_out(tmp_path, folder):
    (tmp_path / "b").mkdir()
    first = open_store(write(tmp_path), folder=folder)
    size = first.path.stat().st_size
    open_store(write(tmp_path / "b"), folder=folder, max_bytes=size + 100).close()
    assert not first.path.exists()
    assert first.block(0).n_rows == 512  # who has it open goes on reading
    first.close()


def test_stores_beyond_the_limit_are_refused(tmp_path, folder):
    with pytest.raises(MemoryBudgetError, match=r"more than the 1,000 bytes .*cache_size="):
        open_store(write(tmp_path), folder=folder, max_bytes=1000)
    assert list(folder.iterdir()) == []


def test_what_a_killed_process_left_is_removed(tmp_path, folder):
    folder.mkdir()
    old, young = folder / ".x.rows.abc", folder / ".y.rows.def"
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    open_store(write(tmp_path), folder=folder).close()
    assert (old.exists(), young.exists()) == (False, True)


def test_the_folder_is_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("EDGEGRAFT_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("EDGEGRAFT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    assert cache_folder() == tmp_path / "edgegraft" / "rows"


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_pass_reports_rows_and_time(tmp_path, folder, kind, monkeypatch):
    monkeypatch.setattr("edgegraft.ingest.sources._Pace.report", 0.0)
    told = []
    open_store(
        write(tmp_path, kind, parts=3),
        folder=folder,
        options=ReadOptions(batch_rows=500, on_rows=told.append),
    ).close()
    assert told[-1].rows == N_ROWS
    shares = [report.share for report in told]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    assert all(report.rate > 0 and report.seconds_left >= 0 for report in told)
    assert told[-1].seconds_left == pytest.approx(0.0, abs=1e-6)


def test_a_stream_has_no_time_left(folder, monkeypatch):
    monkeypatch.setattr("edgegraft.ingest.sources._Pace.report", 0.0)
    told = []
    open_store(table().to_reader(), folder=folder, options=ReadOptions(on_rows=told.append)).close()
    assert told[-1].rows == N_ROWS
    assert told[-1].seconds_left is None


# Fitting what is on disk


def chain_table(n_rows=4000):
    X = make_chain(6, n_states=3, n_rows=n_rows, random_state=0).X.astype(int)
    return pa.table({f"x{i}": X[:, i] for i in range(6)})


@pytest.fixture
def tight(monkeypatch):
    """Memory so short that only some of the rows fit."""
    monkeypatch.setattr("edgegraft.scale.disk.Share.least_rows", 100)
    monkeypatch.setattr("edgegraft.scale.disk.Share.reserved", 0)
    return 24 * 6 * 3000


@pytest.mark.parametrize("kind", ["pattern", "reader"])
def test_a_fit_within_a_limit_of_memory(tmp_path, folder, kind, tight):
    data = chain_table()
    where = write(tmp_path, parts=3, data=data)
    given = f"{where}/*.parquet" if kind == "pattern" else data.to_reader()
    network = GraftedMRF(
        max_memory=tight, reading=ReadingOptions(cache_dir=folder), random_state=0
    ).fit(given)
    assert sorted(map(tuple, network.edges_.tolist())) == [(k, k + 1) for k in range(5)]
    assert list(network.feature_names_in_) == data.column_names
    assert network.n_features_in_ == 6
    assert len(list(folder.glob("*.rows"))) == (kind != "reader")


def test_the_sample_does_not_depend_on_threads():
    budgets = [share_out(4 << 30, 50_000_000, 100, n_jobs) for n_jobs in (1, 2, 4, 64)]
    assert len({budget.sample_rows for budget in budgets}) == 1
    assert [budget.n_jobs for budget in budgets] == [1, 2, 4, 5]
    assert all(budget.kept_bytes >= 0 for budget in budgets)


def test_large_files_are_limited_unasked(tmp_path, folder, monkeypatch, passes):
    where = write(tmp_path, data=chain_table())
    monkeypatch.setenv("EDGEGRAFT_CACHE", str(folder))
    GraftedMRF(random_state=0).fit(where)
    assert passes == []
    monkeypatch.setattr("edgegraft.ingest.rows.MemoryRule.large", 0.0)
    GraftedMRF(random_state=0).fit(where)
    assert passes == [1]
