"""Belief propagation: state, schedules, warm starts, refusals, decoding."""

import numpy as np
import pytest
from scipy.special import logsumexp

from edgegraft.core import Layout, find_pairs
from edgegraft.errors import EdgeError, ModelError
from edgegraft.inference import BeliefPropagation
from edgegraft.inference.messages import wire
from edgegraft.kernels.messages.updates import WIDEST
from tests.message_models import FORESTS, LOOPY, disagreement, draw, enumerate_all

GRID = Layout(
    [2] * 100,
    [(10 * r + c, 10 * r + c + 1) for r in range(10) for c in range(9)]
    + [(10 * r + c, 10 * r + c + 10) for r in range(9) for c in range(10)],
)


def plain_sweep(theta, layout, messages):
    """One synchronous sweep by the definition; ``messages[i, j]`` are logs over ``x_j``."""
    new = {}
    for k, (first, second) in enumerate(layout.edges):
        for i, j in ((first, second), (second, first)):
            table = layout.edge(theta, k)
            log = (table if i < j else table.T) + layout.node(theta, i)[:, None]
            for source, target in messages:
                if target == i and source != j:
                    log = log + messages[source, target][:, None]
            new[i, j] = logsumexp(log, axis=0)
    return new


def as_dict(state):
    """The log messages of a state by sender and receiver."""
    found = {}
    wiring = state.wiring
    for i in range(state.layout.n_variables):
        for k in range(wiring.start[i], wiring.start[i + 1]):
            at, j = wiring.links[k, 0], wiring.links[k, 4]
            message = state.value[at : at + wiring.states[i]]
            found[int(j), i] = normal(np.log(message) if state.plain else message)
    return found


def normal(logs):
    return logs - logs.max()


@pytest.mark.parametrize("scale", [0.7, 300.0], ids=["plain", "logarithms"])
@pytest.mark.parametrize("name", ["cycle", "complete", "two parts"])
def test_a_fixed_point_is_one_by_the_definition(name, scale):
    layout = LOOPY[name]
    theta = draw(layout, scale)
    engine = BeliefPropagation(damping=0.5, tol=1e-12, max_iter=5000)
    _, state, info = engine.run(theta, engine.init(layout))
    assert info.converged
    assert state.plain == (scale < 1)
    found = as_dict(state)
    expected = plain_sweep(theta, layout, found)
    assert found.keys() == {(int(i), int(j)) for i, j in expected}
    for pair, message in expected.items():
        np.testing.assert_allclose(found[pair], normal(message), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("damping", [0.4])
@pytest.mark.parametrize("name", LOOPY)
def test_the_fixed_point_does_not_depend_on_damping(name, damping):
    layout = LOOPY[name]
    theta = draw(layout, 0.5)
    results = []
    for amount in (0.0, damping):
        engine = BeliefPropagation(amount, tol=1e-11)
        marginals, _, info = engine.run(theta, engine.init(layout))
        assert info.converged
        assert info.residual <= 1e-11
        assert info.message == ""
        assert disagreement(marginals.values, layout) < 1e-10
        results.append(marginals)
    np.testing.assert_allclose(results[0].values, results[1].values, atol=1e-9)
    assert results[0].log_partition == pytest.approx(results[1].log_partition, abs=1e-9)


def test_logarithms_and_plain_messages_agree(monkeypatch):
    layout, theta = LOOPY["complete"], draw(LOOPY["complete"], 0.5)
    engine = BeliefPropagation(tol=1e-11)
    plain, state, _ = engine.run(theta, engine.init(layout))
    assert state.plain
    monkeypatch.setattr("edgegraft.inference.messages.WIDEST", -1.0)
    logs, state, _ = engine.run(theta, engine.init(layout))
    assert not state.plain
    np.testing.assert_allclose(plain.values, logs.values, atol=1e-10)
    assert plain.log_partition == pytest.approx(logs.log_partition, abs=1e-10)


def test_strong_frustration_is_reported_and_damping_helps():
    layout, theta = LOOPY["complete"], draw(LOOPY["complete"], 4.0, seed=3)
    plain = BeliefPropagation(max_iter=300)
    marginals, state, info = plain.run(theta, plain.init(layout))
    assert not info.converged
    assert info.n_iter == 300
    assert info.residual > 0.1
    assert "did not converge in 300 sweeps" in info.message
    assert np.isfinite(marginals.values).all()
    damped = BeliefPropagation(damping=0.5, max_iter=300)
    _, _, info = damped.run(theta, state)
    assert info.converged


def test_a_state_is_not_changed_by_a_run():
    layout, theta = LOOPY["grid"], draw(LOOPY["grid"], 0.3)
    engine = BeliefPropagation()
    _, state, _ = engine.run(theta, engine.init(layout))
    before = [np.copy(a) for a in (state.value, state.pending, state.theta, state.beliefs)]
    tables = state.potentials.tables.copy()
    engine.run(theta + draw(layout, 0.3, seed=1), state)
    after = (state.value, state.pending, state.theta, state.beliefs)
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)
    np.testing.assert_array_equal(tables, state.potentials.tables)


def test_nothing_to_do_costs_nothing_and_a_local_change_costs_little():
    theta = draw(GRID, 0.2)
    engine = BeliefPropagation()
    cold, state, info = engine.run(theta, engine.init(GRID))
    again, state, idle = engine.run(theta, state)
    assert idle.diagnostics["message_updates"] == 0
    np.testing.assert_array_equal(cold.values, again.values)
    theta[GRID.edge_offset[0]] += 0.1
    warm, _, local = engine.run(theta, state)
    assert local.converged
    assert local.diagnostics["message_updates"] < info.diagnostics["message_updates"] / 4
    fresh, _, _ = engine.run(theta, engine.init(GRID))
    np.testing.assert_allclose(warm.values, fresh.values, atol=1e-5)


def test_growing_keeps_messages_and_saves_work():
    layout = Layout(GRID.states, GRID.edges[:-1])
    theta = draw(GRID, 0.2)
    engine = BeliefPropagation()
    _, state, _ = engine.run(theta[: layout.n_parameters], engine.init(layout))
    kept = as_dict(state)
    grown = engine.grow(state, GRID)
    messages = as_dict(grown)
    i, j = (int(end) for end in GRID.edges[-1])
    np.testing.assert_array_equal(messages[i, j], [0, 0])
    for pair, message in kept.items():
        np.testing.assert_allclose(messages[pair], message, atol=1e-15)
    warm, _, info = engine.run(theta, grown)
    cold, _, whole = engine.run(theta, engine.init(GRID))
    assert info.converged
    assert info.diagnostics["message_updates"] < whole.diagnostics["message_updates"] / 3
    np.testing.assert_allclose(warm.values, cold.values, atol=1e-5)


def test_removing_and_reordering_edges_matches_by_pair():
    layout = LOOPY["cycle"]
    other = Layout(layout.states, [(2, 3), (0, 1), (0, 3), (3, 4)])
    theta = draw(other, 0.5)
    engine = BeliefPropagation(tol=1e-10)
    _, state, _ = engine.run(draw(layout, 0.5, seed=3), engine.init(layout))
    grown = engine.grow(state, other)
    before, after = as_dict(state), as_dict(grown)
    for pair in [(2, 3), (3, 2), (0, 1), (4, 3)]:
        np.testing.assert_allclose(after[pair], before[pair])
    warm, _, _ = engine.run(theta, grown)
    cold, _, _ = engine.run(theta, engine.init(other))
    np.testing.assert_allclose(warm.values, cold.values, atol=1e-9)
    with pytest.raises(ModelError, match="same variables"):
        engine.grow(state, Layout([2, 2]))


def test_messages_survive_a_change_between_strong_and_moderate_potentials():
    layout = FORESTS["chain"]
    engine = BeliefPropagation()
    state = engine.init(layout)
    for scale in (1.0, 3 * WIDEST, 0.1):
        theta = draw(layout, scale)
        marginals, state, info = engine.run(theta, state)
        truth = enumerate_all(theta, layout)
        assert info.converged
        np.testing.assert_allclose(marginals.values, truth.values, atol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 0.01], ids=["strong", "weak"])
def test_a_hub_with_very_many_neighbours_does_not_underflow(scale):
    """Messages of little contrast do not span much, but their product is small all the same."""
    n = 2001
    layout = Layout([3] * n, [(0, i) for i in range(1, n)])
    theta = draw(layout, scale)
    engine = BeliefPropagation()
    marginals, state, info = engine.run(theta, engine.init(layout))
    assert state.plain
    assert info.converged
    log = layout.node(theta, 0).copy()
    for k in range(n - 1):
        inside = layout.edge(theta, k) + layout.node(theta, k + 1)
        log += np.log(np.exp(inside).sum(axis=1))
    exact = np.exp(log - log.max())
    np.testing.assert_allclose(layout.node(marginals.values, 0), exact / exact.sum(), rtol=1e-8)
    assert marginals.log_partition == pytest.approx(log.max() + np.log(exact.sum()), rel=1e-12)


def test_potentials_that_make_no_sense_are_refused():
    layout = Layout([2, 2, 2], [(0, 1), (1, 2)])
    engine = BeliefPropagation()
    state = engine.init(layout)
    with pytest.raises(ModelError, match=r"theta has shape \(3,\): the layout has 14 parameters"):
        engine.run(np.zeros(3), state)
    for bad in (np.nan, np.inf):
        theta = np.zeros(14)
        theta[11] = bad
        with pytest.raises(ModelError, match=r"edge \(1, 2\) is (nan|inf)"):
            engine.run(theta, state)
    theta = np.zeros(14)
    theta[2:4] = -np.inf
    with pytest.raises(ModelError, match="every entry of variable 1 is -inf"):
        engine.run(theta, state)
    theta = np.zeros(14)
    theta[6:14] = [0, -np.inf, -np.inf, -np.inf, -np.inf, -np.inf, -np.inf, 0]
    with pytest.raises(ModelError, match="no configuration"):
        engine.run(theta, state)


@pytest.mark.parametrize(
    "settings",
    [{"damping": 1.0}, {"damping": -0.1}, {"tol": 0.0}, {"max_iter": 0}],
)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        BeliefPropagation(**settings)


def test_pairs_are_answered_in_the_order_asked_and_as_named():
    layout, theta = LOOPY["cycle"], draw(LOOPY["cycle"], 0.5)
    engine = BeliefPropagation()
    assert engine.capabilities.pair_marginals == "product of beliefs"
    marginals, state, _ = engine.run(theta, engine.init(layout))
    tables = engine.pair_marginals(theta, state, np.array([(1, 0), (0, 2), (0, 1), (3, 1)]))
    edge = layout.edge(marginals.values, 0)
    np.testing.assert_array_equal(tables[0], edge.T)
    np.testing.assert_array_equal(tables[2], edge)
    product = np.outer(layout.node(marginals.values, 3), layout.node(marginals.values, 1))
    np.testing.assert_array_equal(tables[3], product)
    assert len(engine.pair_marginals(theta, state, np.empty((0, 2), np.int64))) == 0
    with pytest.raises(EdgeError, match=r"\(2, 2\)"):
        engine.pair_marginals(theta, state, np.array([(2, 2)]))


def test_pairs_of_a_state_that_never_ran_are_worked_out_first():
    layout, theta = FORESTS["chain"], draw(FORESTS["chain"])
    engine = BeliefPropagation()
    tables = engine.pair_marginals(theta, engine.init(layout), layout.edges)
    truth = enumerate_all(theta, layout)
    for k in range(layout.n_edges):
        np.testing.assert_allclose(tables[k], layout.edge(truth.values, k), atol=1e-12)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("name", FORESTS)
def test_max_product_is_exact_on_forests(name, ties):
    layout = FORESTS[name]
    theta = draw(layout, 2.0)
    if ties:
        theta = np.round(theta / 4)
    found = BeliefPropagation().map(theta, layout)
    assert found.info.converged
    assert found.value == pytest.approx(enumerate_all(theta, layout).best, abs=1e-9)


@pytest.mark.parametrize("name", LOOPY)
def test_a_polished_assignment_cannot_be_improved_by_one_variable(name):
    layout, theta = LOOPY[name], draw(LOOPY[name], 2.0, seed=5)
    found = BeliefPropagation(max_iter=50).map(theta, layout)
    truth = enumerate_all(theta, layout)
    assert found.value <= truth.best + 1e-9
    weight = truth.probabilities[(truth.rows == found.assignment).all(axis=1)]
    near = (truth.rows != found.assignment).sum(axis=1) == 1
    assert weight[0] >= truth.probabilities[near].max() * (1 - 1e-6)


def test_wiring_of_a_graph():
    layout = Layout([2, 3, 4], [(0, 2), (0, 1)])
    wiring = wire(layout)
    np.testing.assert_array_equal(wiring.reverse[wiring.reverse], np.arange(4))
    np.testing.assert_array_equal(wiring.links[:, 4], [1, 2, 0, 0])
    np.testing.assert_array_equal(wiring.links[:, 3], [3, 4, 2, 2])
    assert sorted(wiring.order) == [0, 1, 2]
    assert find_pairs(np.array([(1, 2), (2, 0)]), layout.edges, layout.n_variables).tolist() == [
        -1,
        0,
    ]
    assert find_pairs(np.array([(0, 1)]), Layout([2, 2]).edges, 2).tolist() == [-1]


def test_a_graph_of_no_variables():
    marginals, _, info = BeliefPropagation().run(
        np.empty(0), BeliefPropagation().init(Layout(np.empty(0, np.int64)))
    )
    assert info.converged
    assert marginals.log_partition == 0.0
