"""A run whose budget was spent, resumed with a larger one, is the run that had the larger one."""

from __future__ import annotations

import itertools

import pytest

from edgegraft import pack
from edgegraft.counts import PairCounts
from edgegraft.datasets import make_scale_free
from edgegraft.inference import BeliefPropagation
from edgegraft.learn import (
    Checkpoints,
    Plan,
    SearchState,
    StopReason,
    discover,
    grow,
    resume,
    resume_discovery,
    stages,
)
from edgegraft.objective.likelihood import Likelihood
from edgegraft.objective.penalties import make_penalty
from tests.learn_cases import Log, make_loss, make_table
from tests.unit.test_learn_checkpoint import CASES, assert_same, small_steps
from tests.unit.test_row_blocks import as_blocks, network_rows


@pytest.fixture(scope="module")
def table():
    return make_table()[0]


@pytest.fixture(scope="module")
def survey():
    return pack(make_scale_free(20, n_states=3, n_rows=1500, random_state=0).X)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("loss", ["pseudolikelihood", "bp"])
def test_a_search_with_more_edges(table, tmp_path, case, loss):
    objective = make_loss(table)
    if loss == "bp":
        objective = Likelihood(PairCounts(table), BeliefPropagation(tol=1e-8))
    penalty, counts, path = make_penalty(0.01, 1e-4), PairCounts(table), tmp_path / "run"

    def run(budget, observers=()):
        settings = small_steps(**CASES[case] | {"max_edges": budget})
        return grow(objective, penalty, settings, counts=counts, observers=observers)

    stopped = run(4, [Checkpoints(path)])
    assert stopped.reason is StopReason.MAX_EDGES
    assert stopped.cut_short
    for budget in (7, 11):
        resumed = resume(path, objective, [Checkpoints(path)], max_edges=budget)
        assert_same(run(budget), resumed)


@pytest.mark.parametrize("calls", [0, 30, 90])
def test_a_search_with_more_time(table, tmp_path, monkeypatch, calls):
    objective, penalty, path = make_loss(table), make_penalty(0.01, 1e-4), tmp_path / "run"
    whole = grow(objective, penalty, small_steps())
    clock = itertools.count()
    with monkeypatch.context() as patch:
        patch.setattr(SearchState, "seconds", property(lambda _: float(next(clock))))
        settings = small_steps(max_time=float(calls))
        stopped = grow(objective, penalty, settings, observers=[Checkpoints(path)])
    assert stopped.reason is StopReason.MAX_TIME
    assert stopped.n_activations < whole.n_activations
    assert_same(whole, resume(path, objective, max_time=1e9))


@pytest.mark.parametrize("options", [{}, {"penalty": 0.02, "relaxed": False}])
def test_a_network_with_more_edges(survey, tmp_path, options):
    path = tmp_path / "run"
    discover(survey, Plan(**options, max_edges=0), checkpoint=path)
    for budget in (5, 12, 999):
        plan = Plan(**options, max_edges=budget)
        resumed = resume_discovery(path, survey, plan, max_edges=budget)
        whole = discover(survey, plan)
        assert resumed.model == whole.model
        assert resumed.tests.p_value.tobytes() == whole.tests.p_value.tobytes()
        again = resume_discovery(path, survey, plan)  # nothing is larger: what is known is kept
        assert again.model == whole.model


def test_rows_that_are_sampled_first(tmp_path, monkeypatch):
    monkeypatch.setattr(stages, "_MIN_ROWS", 200)
    X, path = network_rows(4000), tmp_path / "run"
    stopped = discover(as_blocks(X), Plan(max_edges=2), sample_rows=2000, checkpoint=path)
    assert len(stopped.model.edges) == 2
    plan = Plan(max_edges=99)
    resumed = resume_discovery(path, as_blocks(X), plan, max_edges=99, sample_rows=2000)
    assert resumed.model == discover(as_blocks(X), plan, sample_rows=2000).model


def test_stopped_again_after_its_budget_a_search_still_knows_what_it_was_before(table, tmp_path):
    objective, penalty, path = make_loss(table), make_penalty(0.01, 1e-4), tmp_path / "run"
    settings = small_steps(max_edges=4, checkpoint_every=1)
    grow(objective, penalty, settings, observers=[Checkpoints(path)])
    resume(path, objective, [Checkpoints(path), Log(stop_after=0)])
    whole = grow(objective, penalty, small_steps(checkpoint_every=1, max_edges=99))
    assert_same(whole, resume(path, objective, max_edges=99))
