"""What the loop relies on, of every policy: how it fits, what it tests and what it activates."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from edgegraft.counts import PairCounts
from edgegraft.grafting import candidates, loop
from edgegraft.grafting.policies import choose_policy
from edgegraft.learn import Problem, SearchState, Settings, certify, grow
from edgegraft.objective import Penalty
from edgegraft.rank import rank_pairs
from tests.learn_cases import make_loss, make_table

POLICIES = {
    "relaxed": {},
    "relaxed exhaustive": {"strategy": "exhaustive", "max_edges": 6},
    "relaxed first hit": {"strategy": "first-hit", "max_edges": 6},
    "penalised": {"relaxed": False},
    "penalised exhaustive": {"relaxed": False, "strategy": "exhaustive"},
    "penalised first hit": {"relaxed": False, "strategy": "first-hit"},
    "keeping zeros": {"relaxed": False, "keep_zeros": True},
}
LEVEL, RIDGE = 0.02, 1e-3


@pytest.fixture(scope="module")
def table():
    return make_table(8, 800)[0]


@pytest.fixture(params=POLICIES)
def settings(request):
    return Settings(**POLICIES[request.param])


@pytest.fixture
def policy(settings):
    return choose_policy(settings, 8)


@pytest.fixture
def state(table, settings):
    return SearchState.begin(Problem(make_loss(table), Penalty(LEVEL, RIDGE), settings))


@pytest.mark.parametrize("name", POLICIES)
def test_settings_choose_the_policy(name):
    settings = Settings(**POLICIES[name])
    chosen = choose_policy(settings, 8)
    assert chosen.shrinks == (not settings.relaxed)
    assert chosen == choose_policy(settings, 8)


def test_policies_do_not_change(policy):
    with pytest.raises(FrozenInstanceError):
        policy.slack = 1.0
    assert replace(policy, slack=1.0) != policy


def test_fits_have_the_penalty_if_the_policy_shrinks(state, policy):
    used = policy.fit_penalty(state.penalty)
    assert used.penalty == (LEVEL if policy.shrinks else 0.0)
    assert used.ridge == RIDGE


def test_a_pair_within_the_slack_is_not_activated(state, policy, settings):
    """Only a fit with the penalty leaves a group alone that violates by no more."""
    assert policy.slack == pytest.approx(1.1 * settings.tol if policy.shrinks else 0.0)
    scores = np.array([LEVEL, LEVEL + 2 * policy.slack + 1e-6])
    assert state.exceeds(scores, np.array([(0, 1), (0, 2)])).tolist() == [False, True]


def test_ranked_pairs_are_queued_once_each(table, state, policy):
    ranking = rank_pairs(PairCounts(table), np.random.default_rng(0))
    candidates.queue(state, ranking)
    significant = {tuple(edge) for edge in ranking.edges[ranking.significant].tolist()}
    assert state.n_significant == (len(significant) if policy.bulk else 0)
    first = state.stream.draw(state.n_significant)
    assert {tuple(edge) for edge in first.tolist()} <= significant
    edges = np.concatenate((first, state.stream.draw(len(ranking.edges) - len(first))))
    assert sorted(map(tuple, edges.tolist())) == sorted(map(tuple, ranking.edges.tolist()))


def test_tests_come_to_an_end(policy):
    """However many edges there are, some number of tests is enough."""
    for n_edges in (0, 10, 10_000):
        assert policy.enough(1 << 40, 1, n_edges, all_scored=False)


def test_a_fit_waits_for_all_pairs_that_are_scored_together(policy):
    """One candidate is not worth a fit while the scores of all others are there for nothing."""
    if policy.patience:
        assert not policy.enough(1 << 40, 1, 100, all_scored=True)
        assert policy.enough(1 << 40, 5, 100, all_scored=True)


def test_an_activation_counts_and_stays_within_the_budget(state, policy):
    candidates.fill(state)
    assert len(state.reservoir)
    assert loop._activate(state)
    assert state.n_activations == 1
    assert 1 <= len(state.graph) <= (state.settings.max_edges or 28)
    loop._fit(state)
    assert state.solution.layout is state.graph.layout


def test_nothing_is_activated_from_an_empty_reservoir(state):
    assert not loop._activate(state)
    assert (state.n_activations, len(state.graph)) == (0, 0)


def test_edges_at_zero_leave_if_the_policy_drops_them(state, policy):
    loop.adopt(state, np.array([(0, 1)]))  # at zero, and evaluated there
    loop._drop_zeros(state)
    assert len(state.graph) == (0 if policy.drops_zeros else 1)


def test_a_search_ends_with_the_conditions_of_its_policy(table, settings):
    found = grow(make_loss(table), Penalty(LEVEL, RIDGE), settings, counts=PairCounts(table))
    assert found.reason is not None
    assert len(found.graph)
    if settings.max_edges is None:
        assert certify(found).n_violating == 0
    assert found.theta()[found.graph.layout.edge_offset[0] :].any()
