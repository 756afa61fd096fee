"""Timed searches, their measurements, and the sources of their data."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.core import Layout
from edgegraft.errors import FileFormatError
from edgegraft.inference import BeliefPropagation
from edgegraft.learn import Event, Settings, StopReason, grow
from paper import Context, complexity, public, timed_search
from paper.complexity import Count
from paper.propagation import CountedPropagation
from paper.timed_search import Snapshots, TimedSearch, run_search, synthetic
from paper.versions import METHODS, learner, with_method


@pytest.fixture(scope="module")
def case():
    return synthetic(TimedSearch("ours", 5.0, "alpha=0", 12, 1000), 1)


def test_pairs_at_once_are_those_of_the_librarys_engine():
    rng = np.random.default_rng(0)
    layout = Layout([2, 3, 4, 2, 3], [(0, 1), (1, 2), (2, 3)])
    theta = rng.normal(size=layout.n_parameters)
    plain, counted = BeliefPropagation(), CountedPropagation()
    edges = np.array([(0, 2), (4, 1), (3, 0), (2, 4)])
    for asked in (edges, np.vstack((edges, [(1, 0), (2, 3)]))):
        answers = []
        for engine in (plain, counted):
            _, state, _ = engine.run(theta, engine.init(layout))
            answers.append(engine.pair_marginals(theta, state, asked))
        np.testing.assert_array_equal(answers[0].values, answers[1].values)
        np.testing.assert_array_equal(answers[0].offsets, answers[1].offsets)
    # A state of other parameters is updated first.
    other = theta + 0.1
    found = counted.pair_marginals(other, state, edges)
    _, fresh, _ = counted.run(other, counted.init(layout))
    expected = counted.pair_marginals(other, fresh, edges).values
    np.testing.assert_allclose(found.values, expected, atol=1e-6)
    assert len(counted.updates) == 4
    assert all(n > 0 for n in counted.updates)


@pytest.mark.parametrize("version", ["paper", "ours"])
@pytest.mark.parametrize("method", ["alpha=0.5", "first-hit", "exhaustive"])
def test_trajectory_ends_with_the_learned_model(case, version, method):
    cell = TimedSearch(version, 60.0, method, 12, 1000, max_edges=8, certified=True)
    rows = run_search(cell, case, 1)
    used = learner(version, case.train, 1)
    settings = with_method(used.settings, method)
    settings = Settings(**settings.as_dict() | {"max_edges": 8})
    model = grow(used.loss, used.penalty, settings, counts=used.counts).model()
    held_out = -model.pseudo_log_likelihood(codes=case.test.codes()).mean()
    truth = {tuple(edge) for edge in case.truth.tolist()}
    found = len(truth & {tuple(edge) for edge in model.edges.tolist()})
    assert rows[-1]["held_out"] == pytest.approx(held_out, rel=1e-9)
    assert rows[-1]["recall"] == pytest.approx(found / len(truth))
    assert rows[-1]["n_edges"] == len(model.edges)
    assert not rows[-1]["cut_off"]
    assert rows[0]["n_edges"] == 0
    for name in ("seconds", "cpu_seconds", "n_tests", "n_tables", "n_activations"):
        assert (np.diff([row[name] for row in rows]) >= 0).all()


def test_a_search_without_time_is_reported_as_cut_off(case):
    (row,) = [
        row
        for row in run_search(TimedSearch("ours", 0.001, "exhaustive", 12, 1000), case, 1)
        if "reason" in row
    ]
    assert row["cut_off"]
    assert row["reason"] == StopReason.MAX_TIME


def test_an_interrupted_search_is_not_kept(case, monkeypatch):
    def interrupted(*given, **options):
        growth = grow(*given, **options)
        growth.reason = StopReason.INTERRUPTED
        return growth

    monkeypatch.setattr(timed_search, "grow", interrupted)
    with pytest.raises(KeyboardInterrupt):
        timed_search._search(
            TimedSearch("ours", 5.0, "alpha=0", 12, 1000, max_edges=2), case.train, 1
        )


def test_copying_is_left_out_of_the_clock(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(timed_search, "perf_counter", lambda: clock[0])

    class Slow:
        class graph:
            layout = None

        def theta(self):
            clock[0] += 100.0

    watching = Snapshots()
    for kind, at in (("start", 0.0), ("activation", 1.0), ("activation", 0.001), ("end", 0.5)):
        clock[0] += at
        watching.on_event(Event(kind, clock[0], 0.0, 0, 0, 0, 0), Slow())
    assert [shot.seconds for shot in watching.taken] == pytest.approx([0.0, 1.0, 1.501])


def test_every_method_has_settings_and_no_other():
    assert len({str(with_method(Settings(), method)) for method in METHODS}) == len(METHODS)
    with pytest.raises(ValueError, match="no method 'alpha=2'"):
        with_method(Settings(), "alpha=2")


def test_versions_are_what_they_say(case):
    paper, free, ours = (
        learner(version, case.train, 1) for version in ("paper", "paper, free nodes", "ours")
    )
    assert paper.penalty.penalize_nodes
    assert not free.penalty.penalize_nodes
    assert paper.settings == free.settings
    assert (paper.penalty.penalty, paper.penalty.ridge) == (free.penalty.penalty, 0.5)
    assert paper.penalty.group_weight == "states"
    assert paper.settings.reservoir_size == 12
    assert ours.settings.relaxed
    assert ours.penalty.group_weight == "noise"
    with pytest.raises(ValueError, match="no version 'theirs'"):
        learner("theirs", case.train, 1)


def test_counted_operations_are_those_of_the_table():
    n_pairs = 20 * 19 // 2
    counts = {
        (version, method): complexity.run(Count(version, 30.0, method, 20, 600), Context(n_jobs=1))
        for version in ("paper", "ours")
        for method in ("exhaustive", "alpha=0.5")
    }
    full = counts["paper", "exhaustive"]
    assert [row["tables"] for row in full] == [n_pairs] * 3
    # Tests cover every inactive pair, and the reservoir once more.
    assert all(row["tests"] >= n_pairs - row["n_edges"] for row in full)
    few = counts["paper", "alpha=0.5"]
    assert few[0]["tables"] < n_pairs
    assert [row["activation"] for row in few] == list(range(1, len(few) + 1))
    assert all(row["work"] == 20 + 2 * row["n_edges"] for row in counts["ours", "alpha=0.5"])


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    ratings = rng.integers(0, 5, (60, 8)).astype(np.uint8)
    ratings[20:][rng.random((40, 8)) < 0.5] = 255
    ratings[20:, 0] = 255
    np.savez(tmp_path / "jester5.npz", X=ratings)
    np.savez(tmp_path / "yummly489.npz", X=rng.integers(0, 2, (50, 6)).astype(np.uint8))
    public.read_codes.cache_clear()
    return tmp_path


def test_jester_is_tested_on_the_same_complete_rows(folder):
    whole, complete = (
        public.jester(folder, complete=complete, n_variables=8, n_rows=60)
        for complete in (False, True)
    )
    np.testing.assert_array_equal(whole.test.codes(), complete.test.codes())
    assert (whole.train.n_rows, complete.train.n_rows, whole.test.n_rows) == (58, 18, 2)
    assert whole.train.n_missing.any()
    assert not complete.train.n_missing.any()


def test_recipes_are_sampled_and_split(folder):
    case = public.yummly(folder, n_variables=5, n_rows=30)
    assert (case.train.n_rows, case.test.n_rows, case.n_variables) == (27, 3, 5)


def test_data_of_the_environment_are_found(folder, monkeypatch):
    monkeypatch.setenv("EDGEGRAFT_DATA", str(folder))
    assert public.read_codes("yummly", None).shape == (50, 6)


def test_absent_and_foreign_data_are_refused(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no jester data: put one of jester5\.npz"):
        public.require_data(["jester"], folder.parent)
    with pytest.raises(NotADirectoryError, match="there is no folder"):
        public.require_data([], tmp_path / "nowhere")
    np.savez(tmp_path / "yummly489.npz", X=np.full((3, 2), 7, np.uint8))
    with pytest.raises(FileFormatError, match=r"yummly489\.npz: not the yummly table of 2 states"):
        public.read_codes("yummly", tmp_path)
    (tmp_path / "jester5.npz").write_bytes(b"not an archive")
    with pytest.raises(FileFormatError, match=r"jester5\.npz"):
        public.read_codes("jester", tmp_path)
