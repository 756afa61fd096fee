"""Runs that are killed again and again end as if they had not been, to the last bit."""

from __future__ import annotations

import contextlib
import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from edgegraft.datasets import make_chain, make_scale_free
from edgegraft.errors import FileFormatError
from edgegraft.ingest import cache as cache_module
from edgegraft.ingest.cache import open_store
from edgegraft.learn import Plan, checkpoint, discover
from edgegraft.learn.discovery import resume_discovery
from edgegraft.table import PackedTable, Schema
from edgegraft.table.blocks import StoredRows


class Killed(BaseException):
    """The end of a process: nothing that it holds is kept but its files."""


class Lives:
    """Writes checkpoints until the life at hand is over."""

    def __init__(self, monkeypatch, lengths):
        self._write, self._lengths, self.n = checkpoint.write_container, lengths, 0
        monkeypatch.setattr(checkpoint, "write_container", self.write)
        monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
        monkeypatch.setattr(checkpoint, "_SHARE", 0.0)

    def begin(self):
        self.n += 1
        self._left = next(self._lengths, 1 << 30)

    def write(self, *arguments):
        self._write(*arguments)
        self._left -= 1
        if not self._left:
            raise Killed

    def run(self, path, rows, plan, then=lambda found: found, **options):
        while True:
            self.begin()
            with contextlib.suppress(Killed):
                if path.exists():
                    return then(resume_discovery(path, rows, plan, **options))
                return then(discover(rows, plan, checkpoint=path, **options))


def table_of(n_rows=1500, make=make_scale_free, n=12):
    data = make(n, n_states=3, n_rows=n_rows, random_state=1)
    return PackedTable.from_codes(data.X.astype(int))


def assert_same(one, other):
    assert one.model.edges.tolist() == other.model.edges.tolist()
    assert one.model.theta.tobytes() == other.model.theta.tobytes()
    assert one.tests.p_value.tobytes() == other.tests.p_value.tobytes()
    assert one.search.theta().tobytes() == other.search.theta().tobytes()
    assert one.search.reason == other.search.reason
    assert one.search.n_tests == other.search.n_tests
    assert one.search.n_activations == other.search.n_activations
    assert one.agreement == other.agreement
    if one.prediction is not None:
        assert one.prediction._replace(model=None) == other.prediction._replace(model=None)
        assert one.final_model.theta.tobytes() == other.final_model.theta.tobytes()


PLANS = {
    "relaxed": Plan(),
    "penalised": Plan(relaxed=False, penalty=0.02, refit=False),
    "first hit": Plan(strategy="first-hit", max_edges=8),
    "uniform": Plan(priority="uniform", max_tests=8),
    "exact": Plan(objective="likelihood", inference="exact"),
    "ordered": Plan(),
    "prediction": Plan(aim="prediction"),
    "rows": Plan(aim="rows"),
    "propagated": Plan(objective="likelihood", inference="bp", priority="uniform", max_tests=2),
}


@pytest.mark.parametrize("kind", PLANS)
def test_runs_killed_at_random_moments(kind, tmp_path, monkeypatch):
    plan, moments = PLANS[kind], random.Random(0)
    table = table_of(make=make_chain, n=6) if plan.objective == "likelihood" else table_of()
    if plan.aim != "network":
        table = table_of(2500, n=8)
    if kind == "ordered":
        ordered = [replace(variable, kind="ordinal") for variable in table.schema]
        table = table.with_schema(Schema(ordered))
    whole = discover(table, plan)
    longest = {"propagated": 2, "prediction": 60, "rows": 80}.get(kind, 12)
    lives = Lives(monkeypatch, (moments.randint(1, longest) for _ in range(25)))
    assert_same(lives.run(tmp_path / "c", table, plan), whole)
    assert lives.n > 2


def test_results_of_another_plan_are_not_taken_over(tmp_path, monkeypatch):
    table, strict = table_of(600), Plan(fwer=1e-9)
    lives = Lives(monkeypatch, iter([40, 1]))
    lives.run(tmp_path / "c", table, Plan())
    assert_same(resume_discovery(tmp_path / "c", table, strict), discover(table, strict))


def test_runs_out_of_memory_killed_at_random_moments(tmp_path, monkeypatch):
    monkeypatch.setattr(cache_module, "block_rows", lambda n: 512)
    codes = table_of(6000).codes()
    pq.write_table(pa.table({f"c{k}": codes[:, k] for k in range(12)}), tmp_path / "r.parquet")
    plan, moments = Plan(), random.Random(1)
    with open_store(tmp_path / "r.parquet", folder=tmp_path) as store:
        rows = StoredRows(store, n_jobs=1)
        whole = discover(rows, plan, sample_rows=2000)
        lives = Lives(monkeypatch, (moments.randint(1, 6) for _ in range(12)))
        assert_same(lives.run(tmp_path / "c", rows, plan, sample_rows=2000), whole)
    assert lives.n > 4


def test_the_first_file_comes_with_the_ranking(tmp_path, monkeypatch):
    lives = Lives(monkeypatch, iter([1]))
    lives.begin()
    with pytest.raises(Killed):
        discover(table_of(), checkpoint=tmp_path / "c")
    kept = checkpoint.read_container(tmp_path / "c", checkpoint.FORMAT).content
    assert kept["ranked"]
    assert kept["n_activations"] == 0


def test_a_full_disk_ends_no_run_that_has_begun(tmp_path, monkeypatch):
    table, real, n_written = table_of(), checkpoint.write_container, 0

    def write(*arguments):
        nonlocal n_written
        n_written += 1
        if n_written > 1:
            raise OSError(28, "No space left on device")
        real(*arguments)

    monkeypatch.setattr(checkpoint, "write_container", write)
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    with pytest.warns(RuntimeWarning, match="could not be written .* the search continues"):
        found = discover(table, checkpoint=tmp_path / "c")
    assert_same(found, discover(table))
    monkeypatch.undo()
    with pytest.raises(OSError, match="No such file"):
        discover(table, checkpoint=tmp_path / "absent" / "c")


@pytest.mark.parametrize("key", ["fits", "reason", "fitted", "n_fresh", "rng", "events"])
def test_forged_checkpoints_are_refused_or_ignored(key, tmp_path, monkeypatch):
    table, path = table_of(600), tmp_path / "c"
    lives = Lives(monkeypatch, iter([4]))
    lives.begin()
    with pytest.raises(Killed):
        discover(table, checkpoint=path)
    monkeypatch.undo()
    content, arrays, *_ = checkpoint.read_container(path, checkpoint.FORMAT)
    for value in (None, "x", -1, [], {}):
        checkpoint.write_container(path, checkpoint.FORMAT, {**content, key: value}, arrays)
        with contextlib.suppress(FileFormatError):
            assert np.isfinite(resume_discovery(path, table).model.theta).all()
