"""A search ends although pairs violate from outside what their edges do not from inside."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from edgegraft.core.pairs import pairs_of_ids
from edgegraft.counts import PairCounts
from edgegraft.datasets import make_chain
from edgegraft.errors import ConvergenceWarning
from edgegraft.grafting.state import MAX_RETURNS
from edgegraft.inference import BeliefPropagation
from edgegraft.learn import Problem, SearchState, certify, grow
from edgegraft.objective import Likelihood, Penalty
from edgegraft.table import PackedTable
from tests.learn_cases import Log, make_loss, make_table, penalised

PENALTY = Penalty(0.005)
FEW = penalised(max_tests=4, reservoir_size=4)


@pytest.fixture(scope="module")
def counts():
    data = make_chain(8, n_states=3, n_rows=4000, random_state=0)
    return PairCounts(PackedTable.from_codes(data.X.astype(int)))


class Misleading(BeliefPropagation):
    """An engine that answers pairs without an edge otherwise than as edges."""

    def pair_marginals(self, theta, state, edges):
        tables = super().pair_marginals(theta, state, edges)
        for table in tables:
            table[0, 0] += 0.02
            table[1, 1] -= 0.02
        return tables


class Limit(Log):
    """An observer that fails where the search does not end."""

    def on_event(self, event, growth):
        assert event.n_activations < 500, "the search does not end"
        return super().on_event(event, growth)


@pytest.mark.parametrize("settings", [penalised(), FEW, penalised(strategy="exhaustive")])
def test_pairs_that_return_for_ever_are_given_up_with_a_warning(counts, settings):
    with pytest.warns(ConvergenceWarning, match=r"are left out: \('x\d', 'x\d'\)"):
        growth = grow(Likelihood(counts, Misleading()), PENALTY, settings, observers=[Limit()])
    assert growth.reason == "no pair violates optimality but those that the fit sets back to zero"
    edges = {tuple(edge) for edge in growth.graph.layout.edges.tolist()}
    assert edges >= {(k, k + 1) for k in range(7)}
    pairs = pairs_of_ids(np.array(list(growth.returned)), 8)
    given_up = pairs[growth.gave_up(pairs)]
    assert not growth.graph.contains(given_up).any()
    certificate = certify(growth)  # which knows nothing of what was given up
    assert 0 < certificate.n_violating <= len(given_up)


def test_without_such_pairs_nothing_is_counted(counts):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        growth = grow(Likelihood(counts, BeliefPropagation()), PENALTY, FEW, observers=[Limit()])
    assert growth.reason == "no pair violates optimality"
    assert not growth.returned
    growth = grow(make_loss(make_table()[0]), Penalty(0.01, 1e-4), FEW)
    assert not growth.returned


def test_returns_are_counted_by_pair():
    state = SearchState.begin(Problem(make_loss(make_table()[0]), PENALTY, FEW))
    pairs = np.array([(0, 1), (2, 3), (0, 2)])
    state.returned.update({1: MAX_RETURNS - 1, 2 * 12 + 3: MAX_RETURNS})
    assert state.gave_up(pairs).tolist() == [False, True, False]
    assert state.gave_up(pairs[:0]).shape == (0,)
