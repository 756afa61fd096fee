"""Theory of grafting: one optimum, independent of the order of edges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from edgegraft.grafting import CandidateStream
from edgegraft.learn import certify
from edgegraft.objective import Penalty
from edgegraft.table import PackedTable
from tests import pseudolikelihood_twin as twin
from tests.learn_cases import PENALTY, grow_logged, make_loss, make_table

TOL = 1e-6
LOSSES = ("pseudolikelihood", "likelihood")


@pytest.fixture(scope="module")
def table():
    return make_table()[0]


def independent_check(table, growth):
    """Return the largest violations of inactive pairs and of active groups, in plain NumPy."""
    n = len(table.schema)
    layout = growth.graph.layout
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    absent = pairs[~growth.graph.contains(pairs)]
    whole = layout.grow(absent)
    codes = table.codes().astype(np.int64)
    theta = whole.carry(growth.theta(), layout)
    _, gradient = twin.evaluate(codes, whole, theta)
    weights = growth.penalty.edge_weights(absent, whole.states[absent].prod(axis=1))
    first = layout.n_edges
    norms = [np.linalg.norm(whole.edge(gradient, first + k)) for k in range(len(absent))]
    excess = (np.array(norms) / weights - growth.penalty.penalty) * weights
    active = gradient[: layout.n_parameters]
    groups = growth.penalty.groups(layout)
    worst = 0.0
    for k, strength in enumerate(groups.strength):
        part = slice(groups.offsets[k], groups.offsets[k + 1])
        w = growth.theta()[part]
        g = active[part] + 2 * groups.ridge[k] * w
        worst = max(
            worst, np.linalg.norm(g + (strength * w / np.linalg.norm(w) if strength else 0))
        )
    return excess.max(initial=-1.0), worst


@pytest.mark.parametrize("loss", LOSSES)
def test_unlimited_reservoir_and_full_selectivity_is_exhaustive_grafting(table, loss):
    objective = make_loss(table, loss)
    options = {"tol": 1e-5, "growth_iterations": 50, "max_edges": 14}
    _, best = grow_logged(
        objective, selectivity=1.0, reservoir_size="unlimited", max_tests=10**6, **options
    )
    _, exhaustive = grow_logged(objective, strategy="exhaustive", **options)
    assert best.order() == exhaustive.order()
    assert len(best.order()) == 14


@pytest.mark.parametrize("loss", LOSSES)
def test_all_strategies_over_edges_end_at_one_optimum(table, loss):
    objective = make_loss(table, loss)
    runs = [
        grow_logged(objective, tol=TOL, **settings)[0]
        for settings in (
            {},
            {"selectivity": 0.5, "max_touching": 1, "reservoir_size": 4, "max_tests": 3},
            {"requeue": False, "reservoir_size": 3},
            {"strategy": "first-hit"},
            {"strategy": "exhaustive"},
        )
    ]
    values = np.array([run.solution.info.objective for run in runs])
    np.testing.assert_allclose(values, values[0], rtol=1e-5)
    edges = [{tuple(e) for e in run.graph.layout.edges.tolist()} for run in runs]
    assert all(each == edges[0] for each in edges)
    for run in runs:
        found = certify(run)
        assert run.reason == "no pair violates optimality"
        assert found.exhaustive
        assert found.n_violating == 0
        assert found.n_checked == 66 - len(run.graph)
        assert found.residual <= TOL


@pytest.mark.parametrize("noise", [False, True])
def test_conditions_hold_when_derived_from_the_rows(table, noise):
    objective = make_loss(table)
    penalty = Penalty(PENALTY.penalty, PENALTY.ridge, group_weight="noise") if noise else PENALTY
    growth, _ = grow_logged(objective, penalty, tol=TOL)
    outside, inside = independent_check(table, growth)
    assert outside <= growth.policy.slack + 1e-9
    assert inside <= TOL + 1e-9


def test_first_hit_activates_the_first_hit_of_a_plain_loop(table):
    objective = make_loss(table)
    options = {"priority": "uniform", "hub_threshold": None}
    _, log = grow_logged(objective, strategy="first-hit", max_edges=1, **options)
    nothing, _ = grow_logged(objective, max_edges=0)
    drawn = CandidateStream(len(table.schema)).draw(16)
    hits = [tuple(edge) for edge in drawn if nothing.judge(edge[None]).violates[0]]
    assert log.order() == hits[:1]


def test_first_hit_is_a_reservoir_of_one_with_one_test(table):
    objective = make_loss(table)
    hit, first = grow_logged(objective, strategy="first-hit")
    one, second = grow_logged(objective, selectivity=1.0, reservoir_size=1, max_tests=1)
    assert first.edges == second.edges
    assert hit.theta().tobytes() == one.theta().tobytes()


@pytest.mark.parametrize("n_states", [2, 5, 20])
def test_noise_weights_follow_the_chi_squared_quantile(n_states):
    codes = np.tile(np.arange(n_states), 60)[:, None].repeat(30, axis=1)
    loss = make_loss(PackedTable.from_codes(codes))
    noise = Penalty(1.0, group_weight="noise").bound(loss).noise
    dof = (n_states - 1) ** 2
    exact = (1 - 1 / n_states) ** 2 * chi2.isf(1 / 29, dof) / dof
    np.testing.assert_allclose(noise.of(np.array([(0, 1)])) ** 2, exact, rtol=0.03)


def test_chance_passes_the_test_equally_often_for_all_numbers_of_states():
    rng = np.random.default_rng(0)
    n = 60
    shares = {2: [0.5, 0.5], 3: [0.96, 0.03, 0.01], 8: np.full(8, 1 / 8)}
    kinds = [(2, 3, 8)[i % 3] for i in range(n)]
    codes = np.stack([rng.choice(s, 5000, p=shares[s]) for s in kinds], axis=1)
    loss = make_loss(PackedTable.from_codes(codes))
    growth, _ = grow_logged(loss, Penalty(2 / np.sqrt(5000), group_weight="noise"), max_edges=0)
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    scores = growth.judge(pairs).scores
    kind = np.sort(np.array(kinds)[pairs], axis=1) @ [10, 1]
    for each in np.unique(kind):
        rms = np.sqrt((scores[kind == each] ** 2).mean()) * np.sqrt(5000) / 2
        assert 0.3 < rms < 1.0
    share = (scores > growth.penalty.penalty).mean()
    assert 0.25 / (n - 1) < share < 4 / (n - 1)
