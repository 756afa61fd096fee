"""Growing where there is nothing to learn, or too much."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from edgegraft.counts import PairCounts
from edgegraft.errors import ConvergenceWarning
from edgegraft.learn import certify, grow
from edgegraft.objective import Penalty, Pseudolikelihood
from edgegraft.table import PackedTable
from tests.learn_cases import make_loss, make_table, penalised

STRATEGIES = ("best-choice", "first-hit", "exhaustive")


def learn(codes, penalty, *, noise=False, **settings):
    table = PackedTable.from_codes(np.asarray(codes))
    loss = Pseudolikelihood(table)
    rule = Penalty(penalty.penalty, penalty.ridge, group_weight="noise") if noise else penalty
    return grow(loss, rule, penalised(**settings), counts=PairCounts(table))


def found(growth):
    return sorted(map(tuple, growth.model().edges.tolist()))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_variable_has_no_edges(strategy):
    growth = learn([[0], [1], [1]], Penalty(0.1), strategy=strategy)
    assert len(growth.graph) == 0
    assert growth.reason == "no pair violates optimality"
    assert certify(growth).n_pairs == 0
    np.testing.assert_allclose(np.diff(growth.theta()), np.log(2), atol=1e-3)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_two_variables(strategy):
    dependent = [[0, 0], [1, 1]] * 40 + [[0, 1], [1, 0]] * 10
    assert found(learn(dependent, Penalty(0.05), strategy=strategy)) == [(0, 1)]
    independent = [[0, 0], [1, 1], [0, 1], [1, 0]] * 10
    assert found(learn(independent, Penalty(0.05), strategy=strategy)) == []


def test_the_least_penalty_without_edges_is_where_the_first_one_comes():
    loss = make_loss(make_table()[0])
    empty = grow(loss, Penalty(10.0), penalised(tol=1e-7))
    pairs = np.stack(np.triu_indices(12, 1), axis=1)
    largest = empty.judge(pairs).scores.max()
    assert len(grow(loss, Penalty(1.001 * largest), penalised(tol=1e-7)).graph) == 0
    assert len(grow(loss, Penalty(0.999 * largest), penalised(tol=1e-7)).graph) == 1


def test_without_a_penalty_every_pair_enters():
    growth = grow(make_loss(make_table(6, 500)[0]), Penalty(0.0, 0.01), penalised(tol=1e-6))
    assert len(growth.graph) == 15
    assert growth.reason == "no pair violates optimality"
    assert certify(growth).n_checked == 0


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("strategy", ["best-choice", "first-hit", "exhaustive"])
def test_identical_columns(strategy, noise):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (500, 5))
    codes[:, 3] = codes[:, 1]
    codes[:, 4] = codes[:, 1]
    growth = learn(codes, Penalty(0.08, 1e-3), strategy=strategy, noise=noise)
    assert set(found(growth)) <= {(1, 3), (1, 4), (3, 4)}
    assert len(found(growth)) >= 2
    assert growth.solution.info.converged


def hub_and_leaves(flips):
    rng = np.random.default_rng(0)
    hub = rng.integers(0, 2, 4000)
    leaves = np.where(rng.random((40, 4000)) < flips, 1 - hub, hub).T
    return np.column_stack((hub, leaves))


@pytest.mark.parametrize("max_touching", [1, 4])
def test_one_variable_that_drives_all_others(max_touching):
    growth = learn(hub_and_leaves(0.3), Penalty(0.04), max_touching=max_touching)
    model = growth.model()
    strongest = model.edges[np.argsort(-model.edge_strengths())[:40]]
    assert sorted(map(tuple, strongest.tolist())) == [(0, j) for j in range(1, 41)]


def test_leaves_that_tell_as_much_as_their_hub_end_at_a_certified_optimum():
    # No group penalty tells them apart: what is asked is an end, and the optimum.
    growth = learn(hub_and_leaves(0.1), Penalty(0.05))
    assert growth.reason == "no pair violates optimality"
    assert certify(growth).n_violating == 0


@pytest.mark.parametrize("noise", [False, True])
def test_constant_columns_and_states_that_never_occur(noise):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (400, 4))
    codes[:, 2] = codes[:, 0]
    codes[:, 3] = 0
    codes[:2, 3] = 2
    growth = learn(codes, Penalty(0.1, 1e-3), noise=noise)
    assert found(growth) == [(0, 2)]


def test_perfect_dependence_without_any_shrinkage_ends():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        growth = learn([[0, 0], [1, 1]] * 20, Penalty(0.0))
    assert found(growth) == [(0, 1)]
    assert np.isfinite(growth.theta()).all()
