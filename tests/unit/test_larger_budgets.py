"""A run whose budget was spent goes on from its graph with a larger one."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from edgegraft import pack
from edgegraft.datasets import make_scale_free
from edgegraft.learn import Plan, SearchState, StopReason, discover, resume_discovery, stages
from tests.unit.test_row_blocks import as_blocks, network_rows


@pytest.fixture(scope="module")
def survey():
    return pack(make_scale_free(20, n_states=3, n_rows=1500, random_state=0).X)


def edges(found):
    return set(map(tuple, found.model.edges.tolist()))


@pytest.mark.parametrize(
    "options",
    [{"penalty": 0.02, "relaxed": False}, {"strategy": "first-hit"}],
)
def test_a_network_with_more_edges(survey, tmp_path, options):
    path, n_tests = tmp_path / "run", 0
    whole = discover(survey, Plan(**options))
    discover(survey, Plan(**options, max_edges=0), checkpoint=path)
    for budget in (5, 12, 999):
        plan = Plan(**options, max_edges=budget)
        resumed = resume_discovery(path, survey, plan)
        assert resumed.search.events[-1].n_edges <= budget
        assert resumed.search.n_tests > n_tests
        n_tests = resumed.search.n_tests
        again = resume_discovery(path, survey, plan)  # nothing is larger: what is known is kept
        assert again.model == resumed.model
        assert again.search.n_tests == n_tests
    assert resumed.search.reason == whole.search.reason
    assert len(edges(resumed) ^ edges(whole)) <= 2


@pytest.mark.parametrize("calls", [0, 30])
def test_a_network_with_more_time(survey, tmp_path, monkeypatch, calls):
    path, whole = tmp_path / "run", discover(survey, Plan(strategy="first-hit"))
    clock = itertools.count()
    with monkeypatch.context() as patch:
        patch.setattr(SearchState, "seconds", property(lambda _: float(next(clock))))
        plan = Plan(strategy="first-hit", max_time=float(calls))
        stopped = discover(survey, plan, checkpoint=path)
    assert stopped.search.reason is StopReason.MAX_TIME
    resumed = resume_discovery(path, survey, max_time=1e9)
    assert resumed.search.reason is StopReason.OPTIMAL
    assert len(edges(resumed) ^ edges(whole)) <= 1
    assert resumed.search.seconds >= stopped.search.events[-1].seconds


def test_rows_that_are_sampled_first(tmp_path, monkeypatch):
    monkeypatch.setattr(stages, "_GROWING", replace(stages._GROWING, min_rows=200))
    X, path = network_rows(4000), tmp_path / "run"
    stopped = discover(as_blocks(X), Plan(max_edges=2), sample_rows=2000, checkpoint=path)
    assert len(stopped.model.edges) == 2
    plan = Plan(max_edges=99)
    resumed = resume_discovery(path, as_blocks(X), plan, sample_rows=2000)
    whole = discover(as_blocks(X), plan, sample_rows=2000)
    assert len(edges(resumed) ^ edges(whole)) <= 1
    assert resumed.search.objective.n_rows == 4000
