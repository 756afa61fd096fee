"""Protocol of engines: every engine on every graph of the zoo, compared with brute force."""

from __future__ import annotations

import itertools
import pickle
from functools import cache

import numpy as np
import pytest

from edgegraft.core import Layout
from edgegraft.errors import EdgeError, ModelError
from edgegraft.inference.affordability import ExactBudget
from edgegraft.inference.auto import AutoEngine, answering
from edgegraft.inference.bp import BeliefPropagation
from edgegraft.inference.exact import ExactEngine
from edgegraft.inference.gibbs import GibbsEngine
from edgegraft.inference.trw import TreeReweighted
from tests.protocol.skeletons import skeleton
from tests.zoo import ZOO, truth

PRECISE = {"tol": 1e-11, "max_iter": 3000}
ENGINES = {
    "exact": ExactEngine(),
    "bp": BeliefPropagation(**PRECISE),
    "trw": TreeReweighted(**PRECISE),
    "gibbs": GibbsEngine(n_chains=48, n_sweeps=1200, burn_in=100, thinning=4, random_state=1),
    "auto": AutoEngine(),
    "auto, no memory": AutoEngine(ExactBudget(seconds=0.0), bp=BeliefPropagation(**PRECISE)),
    "skeleton": skeleton("engine").Enumeration(),
}
#: Tolerance of exact answers: rounding, and messages that stop before full precision.
CLOSE = {"exact": 1e-9, "enumeration": 1e-9, "bp": 1e-7, "trw": 1e-5}

every_engine = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
every_graph = pytest.mark.parametrize("name", ZOO)


@cache
def solve(engine, name):
    animal = ZOO[name]
    return engine.run(animal.theta, engine.init(animal.layout))


def ordered_pairs(layout):
    return np.array(list(itertools.permutations(range(layout.n_variables), 2))).reshape(-1, 2)


def noise(p, size):
    """Return four standard errors of a frequency, plus a margin for rarely visited cells."""
    return 4 * np.sqrt(p * (1 - p) / size) + 4 / size


def assert_answers(engine, state, info, values, expected):
    """Assert equality within Monte Carlo error for samplers, within rounding for other engines."""
    kind = answering(engine, state).name
    if kind == "gibbs" and info.diagnostics:
        assert (abs(values - expected) <= noise(expected, info.diagnostics["ess"])).all()
    else:
        np.testing.assert_allclose(values, expected, rtol=0, atol=CLOSE.get(kind, 0.0))


@every_engine
@every_graph
def test_marginals_are_consistent_distributions(engine, name):
    layout = ZOO[name].layout
    marginals, _, info = solve(engine, name)
    assert (marginals.values >= 0.0).all()
    for i in range(layout.n_variables):
        assert layout.node(marginals.values, i).sum() == pytest.approx(1.0, abs=1e-9)
    close = 1e-6 if info.converged else 1.0
    for k, (i, j) in enumerate(layout.edges):
        table = layout.edge(marginals.values, k)
        assert table.sum() == pytest.approx(1.0, abs=1e-9)
        np.testing.assert_allclose(table.sum(axis=1), layout.node(marginals.values, i), atol=close)
        np.testing.assert_allclose(table.sum(axis=0), layout.node(marginals.values, j), atol=close)


@every_engine
@every_graph
def test_marginals_are_correct_if_they_claim_to_be(engine, name):
    marginals, state, info = solve(engine, name)
    kind = answering(engine, state)
    if kind.name == "trw" or not (kind.exact or ZOO[name].forest or kind.name == "gibbs"):
        # Approximations keep zeros exactly and are never far off.
        expected = truth(name).values
        assert (marginals.values[np.isneginf(ZOO[name].theta)] == 0.0).all()
        if info.converged and ZOO[name].scale < 1.0:
            np.testing.assert_allclose(marginals.values, expected, atol=0.1)
    elif info.converged:
        assert_answers(engine, state, info, marginals.values, truth(name).values)
    else:
        assert kind.name == "gibbs"
        assert name.startswith("huge")


@every_engine
@every_graph
def test_the_log_partition_function_is_of_the_stated_kind(engine, name):
    marginals, state, info = solve(engine, name)
    kind, exact = answering(engine, state), truth(name).log_partition
    close = 1e-9 * max(1.0, abs(exact))
    assert np.isnan(marginals.log_partition) == (kind.log_partition == "none")
    if kind.exact or (kind.name == "bp" and ZOO[name].forest):
        assert marginals.log_partition == pytest.approx(exact, abs=10 * close)
    elif kind.log_partition == "upper bound":
        assert marginals.log_partition >= exact - close
    elif kind.name == "bp" and info.converged and ZOO[name].scale < 1.0:
        assert marginals.log_partition == pytest.approx(exact, abs=0.2)


@every_engine
def test_an_engine_describes_itself(engine):
    name, exact, *words = engine.capabilities
    assert name
    assert isinstance(exact, bool)
    assert all(isinstance(word, str) and word for word in words)


@every_engine
@every_graph
def test_a_failed_run_is_reported(engine, name):
    _, _, info = solve(engine, name)
    assert isinstance(info.converged, bool)
    assert info.converged or info.message
    if ZOO[name].scale < 1.0:
        assert info.converged


@every_engine
@every_graph
def test_a_run_does_not_change_its_arguments(engine, name):
    animal = ZOO[name]
    _, state, _ = solve(engine, name)
    before = pickle.dumps(state)
    theta = animal.theta + 0.125  # another parametrisation of the same model
    engine.run(theta, state)
    engine.pair_marginals(theta, state, ordered_pairs(animal.layout))
    engine.grow(state, Layout(animal.states))
    assert pickle.dumps(state) == before
    np.testing.assert_array_equal(theta, animal.theta + 0.125)


@every_engine
@every_graph
@pytest.mark.parametrize("more", [True, False], ids=["more edges", "fewer edges"])
def test_growing_gives_the_answers_of_a_cold_start(engine, name, more):
    animal = ZOO[name]
    if animal.scale > 1.0:
        pytest.skip("strong loops have several fixed points, and chains get trapped")
    full, part = animal.layout, Layout(animal.states, animal.edges[1::2])
    old, new = (part, full) if more else (full, part)
    _, state, _ = engine.run(old.carry(animal.theta, full), engine.init(old))
    theta = new.carry(animal.theta, full)
    warm, after, info = engine.run(theta, engine.grow(state, new))
    cold, fresh, _ = engine.run(theta, engine.init(new))
    assert answering(engine, after) == answering(engine, fresh)
    assert info.converged
    if answering(engine, after).name == "gibbs":
        size = info.diagnostics["ess"] / 2 if new.n_variables else 1.0
        assert (abs(warm.values - cold.values) <= noise(cold.values, size)).all()
    else:
        assert_answers(engine, after, info, warm.values, cold.values)
        assert warm.log_partition == pytest.approx(cold.log_partition, abs=1e-5)


@every_engine
@every_graph
def test_any_pair_has_a_joint_marginal(engine, name):
    layout, theta = ZOO[name].layout, ZOO[name].theta
    _, state, info = solve(engine, name)
    pairs = ordered_pairs(layout)
    tables = engine.pair_marginals(theta, state, pairs)
    np.testing.assert_array_equal(tables.edges, pairs)
    found = {(int(i), int(j)): table for (i, j), table in zip(pairs, tables, strict=True)}
    for (i, j), table in found.items():
        assert table.shape == (layout.states[i], layout.states[j])
        assert (table >= 0.0).all()
        assert table.sum() == pytest.approx(1.0, abs=1e-9)
        np.testing.assert_allclose(table, found[j, i].T, atol=1e-12)
        kind = answering(engine, state)
        if kind.exact or (kind.name == "gibbs" and info.converged):
            assert_answers(engine, state, info, table, truth(name).pair(i, j))


@every_engine
def test_bad_requests_are_refused(engine):
    animal = ZOO["chain"]
    state, theta = engine.init(animal.layout), np.array(animal.theta)
    with pytest.raises(ModelError):
        engine.run(theta[:-1], state)
    for bad in (np.nan, np.inf):
        theta[3] = bad
        with pytest.raises(ModelError):
            engine.run(theta, state)
    for pair in ((0, 0), (0, 9), (-1, 2)):
        with pytest.raises(EdgeError):
            engine.pair_marginals(animal.theta, state, np.array([pair]))


@every_engine
def test_a_model_without_a_possible_state_is_refused(engine):
    layout = Layout([2, 2], [(0, 1)])
    theta = np.array([0.0, -np.inf, 0.0, -np.inf, -np.inf, 0.0, 0.0, 0.0])
    with pytest.raises(ModelError):
        engine.run(theta, engine.init(layout))
