"""Tables of many files, and tables that do not fit in the memory allowed."""

from __future__ import annotations

import json
import signal
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

import edgegraft as eg
from edgegraft.cli.progress import Progress
from edgegraft.datasets import make_chain
from edgegraft.ingest.options import read_size
from edgegraft.ingest.sources import RowsRead
from edgegraft.scale.disk import needed_for_all
from tests.cli.running import refused

N_ROWS = 30_000
TIGHT = ("--max-memory", "1003 MiB", "--jobs", 1)  # some 10,000 rows fit
CHAIN = {(k, k + 1) for k in range(5)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three files of one table, the last column of which is a weight."""
    path = tmp_path_factory.mktemp("many") / "rows"
    path.mkdir()
    X = make_chain(6, n_states=3, n_rows=N_ROWS, random_state=0).X.astype(int)
    cells = np.column_stack((X, 1 + np.arange(N_ROWS) % 2))
    for k, part in enumerate(np.split(cells, 3)):
        np.savetxt(path / f"part-{k}.csv", part, "%d", ",", header="a,b,c,d,e,f,w", comments="")
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    path = tmp_path_factory.mktemp("cache") / "planes"
    monkeypatch.setenv("EDGEGRAFT_CACHE", str(path))
    return path


def copied(folder, tmp_path):
    """Return a copy of the files whose cells may be spoiled."""
    other = tmp_path / "rows"
    other.mkdir()
    for path in folder.iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    return other


def edges(path):
    return set(map(tuple, np.sort(eg.read_details(path).edges).tolist()))


def test_the_limit_of_these_tests_is_tight():
    assert needed_for_all(N_ROWS // 2, 6) < read_size(TIGHT[1]) < needed_for_all(N_ROWS, 6)


def test_a_folder_and_a_pattern_are_one_table(inside, folder, cache, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    assert inside("learn", folder, "-o", one, "--drop", "w", "--quiet").returncode == 0
    pattern = folder / "part-*.csv"
    assert inside("learn", pattern, "-o", other, "--drop", "w", "--quiet").returncode == 0
    assert eg.load(one) == eg.load(other)
    assert edges(one) == CHAIN
    source = eg.read_details(one).details["source"]
    assert (source["file"], source["rows"]) == ("rows", N_ROWS)
    assert not cache.exists()  # small files are read as they are


def test_rows_that_do_not_fit_are_learned_from_on_disk(inside, folder, cache, tmp_path):
    pytest.importorskip("jinja2")
    path, page, here = tmp_path / "m", tmp_path / "m.html", tmp_path / "here"
    learn = ("learn", folder, "-o", path, *TIGHT, "--cache-dir", here, "--weights", "w")
    done = inside(*learn, "--report", page)
    assert done.returncode == 0, done.stderr
    (store,) = here.iterdir()
    assert not cache.exists()
    assert "do not fit in the 1,003 MiB of memory allowed" in done.stderr
    assert str(store) in done.stderr
    assert "edges were tested on a sample of about 10,922 rows" in done.stdout
    assert edges(path) >= CHAIN  # rows that weigh 2 make chance look twice as sure
    source = eg.read_details(path).details["source"]
    assert (source["rows"], source["sample"], source["weight"]) == (N_ROWS, 10922, 1.5 * N_ROWS)
    assert "fitted" not in source
    assert "30,000" in page.read_text(encoding="utf-8")


def test_planes_are_found_again(inside, folder, cache, tmp_path, monkeypatch):
    monkeypatch.setattr("edgegraft.ingest.sources._Pace.report", 0.0)
    passes = []

    def told(self, read):
        passes.append(read.rows)

    monkeypatch.setattr("edgegraft.cli.progress.Progress.on_rows", told)
    learn = ("learn", folder, "--drop", "w", *TIGHT, "--quiet", "-o")
    assert inside(*learn, tmp_path / "one").returncode == 0
    assert passes[-1] == N_ROWS
    passes.clear()
    assert inside(*learn, tmp_path / "other").returncode == 0
    assert passes == []
    assert len(list(cache.iterdir())) == 1
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_resume_goes_on_with_the_same_sample(inside, folder, cache, tmp_path):
    path, checkpoint = tmp_path / "m", tmp_path / "c"
    learn = ("learn", folder, "--drop", "w", "-o", path, "--max-edges", 2, "--quiet")
    options = ("--checkpoint", checkpoint, "--cache-dir", tmp_path / "here", "--cache-size", "1 GB")
    assert inside(*learn, *TIGHT, *options).returncode == 0
    kept = json.loads((tmp_path / "c.json").read_text())
    settings = [kept["settings"][name] for name in ("max_memory", "cache_size", "n_jobs")]
    assert settings == ["1003 MiB", "1 GB", 1]
    assert kept["sample_rows"] == 10922
    # More room, or fewer threads, would make for another sample, of which the checkpoint is not.
    done = inside("resume", checkpoint, "--force", "--max-edges", 9, "--max-memory", "1004 MiB")
    assert done.returncode == 0, done.stderr
    assert "about 10,922 rows" in done.stderr
    assert edges(path) == CHAIN
    assert not cache.exists()


def test_a_dry_run_says_where_the_rows_would_lie(inside, folder, cache, tmp_path):
    learn = ("learn", folder, "--drop", "w", "-o", tmp_path / "m", "--dry-run")
    done = inside(*learn, *TIGHT)
    assert done.returncode == 0, done.stderr
    assert "The rows do not fit in the 1,003 MiB" in done.stdout
    assert "Memory: about 1,003 MiB" in done.stdout
    assert "passes over all rows come on top" in done.stdout
    told = json.loads(inside(*learn, *TIGHT, "--json").stdout)["memory"]
    (store,) = cache.iterdir()
    expected = {"limit": 1003 << 20, "all_rows_fit": False, "sample_rows": 10922}
    assert told == expected | {"store": str(store)}
    assert "All rows fit in the 2.00 GiB" in inside(*learn, "--max-memory", "2 GiB").stdout
    told = json.loads(inside(*learn, "--json").stdout)["memory"]
    assert told == {"limit": None, "all_rows_fit": True, "sample_rows": None, "store": None}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ("--max-memory", "2 potatoes"),
            ("--max-memory is an invalid size", "'2 GiB'"),
        ),
        (("--cache-size", "."), ("--cache-size is an invalid size '.'",)),
        (("--max-memory", "100 MB"), ("at least 0.98 GiB (--max-memory)",)),
        (
            ("--max-memory", "1001MiB", "--jobs", 1),
            ("6 columns", "at least 0.98 GiB"),
        ),
        (("--max-memory", "2 GiB", "--cache-size", 1000), ("1,000 bytes", "(--cache-size)")),
        ((*TIGHT, "--bootstrap", 5), ("--bootstrap needs all rows in memory", "0.99 GiB")),
        (("--max-memory", "2 GiB", "--cache-dir", __file__), ("test_large_tables.py' is a file",)),
        (("part-7.csv",), ("2 names were given", "in quotes")),
    ],
)
def test_limits_that_cannot_be_kept_are_refused(inside, folder, tmp_path, options, words):
    done = inside("learn", folder, "--drop", "w", "-o", tmp_path / "m", *options)
    refused(done, *words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("limit", [(), ("--max-memory", "2 GiB")])
def test_bad_files_are_named(inside, folder, cache, tmp_path, limit):
    learn = ("-o", tmp_path / "m", *limit)
    empty = tmp_path / "empty"
    empty.mkdir()
    refused(inside("learn", empty, *learn), "'" + str(empty), "no file with a known extension")
    refused(inside("learn", empty / "*.csv", *learn), "no file matches the pattern", "*.csv")
    refused(inside("learn", tmp_path / "no", *learn), "there is no file or folder")
    other = copied(folder, tmp_path)
    spoiled = other / "part-1.csv"
    lines = spoiled.read_text().split("\n")
    spoiled.write_text("\n".join([*lines[:4999], "1,2", *lines[5000:]]))
    refused(inside("learn", other, *learn), "part-1.csv': row 5000", "2 cells")
    spoiled.write_text("\n".join(["a,b,c,d,e,g,w", *lines[1:]]))
    refused(inside("learn", other, *learn), "part-1.csv' lacks 'f'", "part-0.csv")
    spoiled.write_text("\n".join([*lines[:4999], "0,0,0,0,0,0,-1", *lines[5000:]]))
    done = inside("learn", other, *learn, "--weights", "w")
    refused(done, "column 'w', row 4998 of", "part-1.csv' (counted from 0)", "'-1'")
    assert not cache.exists() or not list(cache.iterdir())
    assert not (tmp_path / "m").exists()


def test_files_of_the_table_are_not_written_over(inside, folder, tmp_path):
    other = copied(folder, tmp_path)
    done = inside("learn", other / "*.csv", "-o", other / "part-2.csv", "--force")
    refused(done, "part-2.csv", "named for something else")


def test_ctrl_c_while_files_are_read_leaves_nothing(inside, folder, cache, tmp_path, monkeypatch):
    monkeypatch.setattr("edgegraft.ingest.sources._Pace.report", 0.0)

    def pressed(self, read):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("edgegraft.cli.progress.Progress.on_rows", pressed)
    done = inside("learn", folder, "-o", tmp_path / "m", "--drop", "w", *TIGHT)
    refused(done, "interrupted: nothing was written", code=1)
    assert list(cache.iterdir()) == []
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_over_the_sample_keeps_its_model(inside, folder, tmp_path, monkeypatch):
    real = Progress.on_event

    def pressed(self, event, growth):
        if event.kind == "activation" and not self.interruption.asked:
            signal.raise_signal(signal.SIGINT)
        real(self, event, growth)

    monkeypatch.setattr(Progress, "on_event", pressed)
    path, checkpoint = tmp_path / "m", tmp_path / "c"
    learn = ("learn", folder, "-o", path, "--drop", "w", "--checkpoint", checkpoint)
    done = inside(*learn, *TIGHT)
    assert done.returncode == 1, done.stderr
    assert "all was done on a sample of about 10,922 rows" in done.stdout
    assert eg.read_details(path).details["reason"] == "interrupted"
    monkeypatch.undo()
    monkeypatch.setenv("EDGEGRAFT_CACHE", str(tmp_path / "another"))
    done = inside("resume", checkpoint, "--force")
    assert done.returncode == 0, done.stderr
    assert "edges were tested on a sample" in done.stdout
    assert edges(path) == CHAIN


def test_progress_tells_rows_speed_and_time_left():
    progress = Progress(Console(quiet=True))
    progress.stage("reading", "rows")
    progress.on_rows(RowsRead(1_500_000, 30.0, 0.25))
    expected = "reading  1,500,000 rows, 50,000 rows per second, 1:30 left"
    assert progress.__rich__().plain.endswith(expected)
    progress.on_rows(RowsRead(1_500_000, 30.0, None))
    assert progress.__rich__().plain.endswith("50,000 rows per second")


def test_progress_tells_over_which_rows_the_search_is():
    progress = Progress(Console(quiet=True))
    progress.stage("ranking pairs")
    progress.over(30_000.0)
    event = SimpleNamespace(kind="activation", n_edges=3, objective=1.5, n_tables=7, seconds=1.0)
    objective = SimpleNamespace(schema=range(6), n_rows=10_900.0)
    growth = SimpleNamespace(objective=objective, sharpened=False, reason="")
    progress.on_event(event, growth)
    facts = "growing  3 edges, objective 1.5000, 7 of 15 pairs tested, over "
    assert progress.__rich__().plain.endswith(facts + "a sample of 10,900 rows")
    event.kind = "end"
    progress.on_event(event, growth)
    assert "continuing with more rows" in progress.__rich__().plain
    objective.n_rows = 30_000.0
    progress.on_event(event, growth)
    assert "testing edges" in progress.__rich__().plain
    assert progress.__rich__().plain.endswith("over all rows")
