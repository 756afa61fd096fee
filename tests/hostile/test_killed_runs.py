"""Runs that are killed again and again end as if they had not been, to the last bit."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from edgegraft.datasets import make_chain, make_scale_free
from edgegraft.errors import FileFormatError
from edgegraft.learn import Plan, checkpoint, discover, resume_discovery
from edgegraft.learn.checkpoint import StageFile
from edgegraft.scale import disk
from edgegraft.scale.disk import open_store
from edgegraft.table import PackedTable, Schema, StoredRows


class Killed(BaseException):
    """The end of a process: nothing that it holds is kept but its files."""


class Lives:
    """Ends a life after so many stages, when the next is written or in the middle of one."""

    def __init__(self, monkeypatch, lengths, chance=None):
        self._write, self._stage = checkpoint.write_container, StageFile.stage
        self._lengths, self._chance, self.n = lengths, chance, 0
        self.ended = Counter()  # how often each stage was worked out to its end
        monkeypatch.setattr(checkpoint, "write_container", self.write)
        monkeypatch.setattr(StageFile, "stage", self.stage_of())

    def begin(self):
        self.n += 1
        self._left = next(self._lengths, 1 << 30)

    def write(self, *arguments):
        self._write(*arguments)
        self._left -= 1
        if not self._left:
            raise Killed

    def stage_of(self):
        def stage(file, name, make, **options):
            def made():
                result = make()
                if self._left == 1 and self._chance and self._chance.random() < 0.5:
                    raise Killed  # it was worked out, and is not written
                self.ended[name] += 1
                return result

            return self._stage(file, name, made, **options)

        return stage

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
    "missing": Plan(),
    "propagated": Plan(objective="likelihood", inference="bp", priority="uniform", max_tests=2),
}


@pytest.mark.parametrize("kind", PLANS)
def test_runs_killed_in_every_stage(kind, tmp_path, monkeypatch):
    """The bits are those of a run that was not killed, and no stage that has ended is repeated."""
    plan, chance = PLANS[kind], random.Random(0)
    table = table_of(make=make_chain, n=6) if plan.objective == "likelihood" else table_of()
    if plan.aim != "network":
        table = table_of(2500, n=8)
    if kind == "ordered":
        ordered = [replace(variable, kind="ordinal") for variable in table.schema]
        table = table.with_schema(Schema(ordered))
    if kind == "missing":
        codes = table.codes()
        codes[np.random.default_rng(0).random(codes.shape) < 0.1] = -1
        table = PackedTable.from_codes(codes, table.schema)
    whole = discover(table, plan)
    lives = Lives(monkeypatch, iter([1, 1, 2, *[1] * 30]), chance)
    assert_same(lives.run(tmp_path / "c", table, plan), whole)
    assert lives.n > len(lives.ended) > 2
    assert set(lives.ended.values()) == {1}


def test_runs_out_of_memory_killed_at_random_moments(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "block_rows", lambda n: 512)
    codes = table_of(6000).codes()
    pq.write_table(pa.table({f"c{k}": codes[:, k] for k in range(12)}), tmp_path / "r.parquet")
    plan, moments = Plan(), random.Random(1)
    with open_store(tmp_path / "r.parquet", folder=tmp_path) as store:
        rows = StoredRows(store, n_jobs=1)
        whole = discover(rows, plan, sample_rows=2000)
        lives = Lives(monkeypatch, (moments.randint(1, 2) for _ in range(12)), moments)
        assert_same(lives.run(tmp_path / "c", rows, plan, sample_rows=2000), whole)
    assert lives.n > 4
    assert set(lives.ended.values()) == {1}


def test_the_first_file_comes_with_the_ranking(tmp_path, monkeypatch):
    lives = Lives(monkeypatch, iter([1]))
    lives.begin()
    with pytest.raises(Killed):
        discover(table_of(), checkpoint=tmp_path / "c")
    kept = checkpoint.read_container(tmp_path / "c", checkpoint.FORMAT).content
    assert kept["results"] == {}
    assert kept["identity"]["plan"]["strategy"] == "best-choice"


def test_a_full_disk_ends_no_run_that_has_begun(tmp_path, monkeypatch):
    table, real, n_written = table_of(), checkpoint.write_container, 0

    def write(*arguments):
        nonlocal n_written
        n_written += 1
        if n_written > 1:
            raise OSError(28, "No space left on device")
        real(*arguments)

    monkeypatch.setattr(checkpoint, "write_container", write)
    with pytest.warns(RuntimeWarning, match="could not be written .* the search continues"):
        found = discover(table, checkpoint=tmp_path / "c")
    assert_same(found, discover(table))
    monkeypatch.undo()
    with pytest.raises(OSError, match="No such file"):
        discover(table, checkpoint=tmp_path / "absent" / "c")


@pytest.mark.filterwarnings("ignore")  # fits that begin elsewhere
@pytest.mark.parametrize("stage", ["search 0", "decisions", "last fit", "shares", "effects"])
def test_forged_results_are_refused(stage, tmp_path):
    table, path = table_of(600), tmp_path / "c"
    discover(table, checkpoint=path)
    content, arrays, *_ = checkpoint.read_container(path, checkpoint.FORMAT)
    for key in content["results"][stage]:
        for value in (None, "x", -1, [], {}):
            results = content["results"] | {stage: content["results"][stage] | {key: value}}
            forged = {**content, "results": results}
            checkpoint.write_container(path, checkpoint.FORMAT, forged, arrays)
            with contextlib.suppress(FileFormatError):
                found = resume_discovery(path, table)
                assert np.isfinite(found.model.theta).all()


@pytest.mark.parametrize("key", ["identity", "results"])
def test_forged_files_are_refused(key, tmp_path):
    table, path = table_of(600), tmp_path / "c"
    discover(table, checkpoint=path)
    content, arrays, *_ = checkpoint.read_container(path, checkpoint.FORMAT)
    for value in (None, "x", -1, [1], {"plan": 3, "search 0": 3}):
        checkpoint.write_container(path, checkpoint.FORMAT, {**content, key: value}, arrays)
        with pytest.raises(FileFormatError):
            resume_discovery(path, table)
