"""Theory of belief propagation: exact on forests, consistent and invariant elsewhere."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegraft.core import Layout
from edgegraft.inference import BeliefPropagation, TreeReweighted
from tests.message_models import FORESTS, LOOPY, disagreement, draw, enumerate_all

ENGINES = {
    "bp": BeliefPropagation(),
    "damped": BeliefPropagation(damping=0.3, tol=1e-12),
    "trw": TreeReweighted(),
}


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("scale", [1.0, 50.0, 500.0])
@pytest.mark.parametrize("name", FORESTS)
def test_exact_on_forests(name, scale, engine):
    layout = FORESTS[name]
    theta = draw(layout, scale)
    truth = enumerate_all(theta, layout)
    marginals, _, info = engine.run(theta, engine.init(layout))
    assert info.converged
    np.testing.assert_allclose(marginals.values, truth.values, atol=1e-9)
    assert marginals.log_partition == pytest.approx(truth.log_partition, rel=1e-12, abs=1e-10)


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("scale", [1.0, 500.0])
@pytest.mark.parametrize("name", FORESTS)
def test_exact_on_forests_with_zero_entries(name, scale, engine):
    layout = FORESTS[name]
    theta = draw(layout, scale)
    kept = np.random.default_rng(1).random(layout.n_parameters) < 0.6
    # The configuration of all first states stays possible.
    kept[layout.node_offset[:-1]] = True
    kept[layout.edge_offset[:-1]] = True
    theta[~kept] = -np.inf
    truth = enumerate_all(theta, layout)
    marginals, state, info = engine.run(theta, engine.init(layout))
    assert info.converged
    np.testing.assert_allclose(marginals.values, truth.values, atol=1e-9)
    assert (marginals.values[~kept] == 0).all()
    assert marginals.log_partition == pytest.approx(truth.log_partition, rel=1e-12, abs=1e-9)
    # A warm state must not retain the zeros of an earlier model.
    moderate = draw(layout, 1.0, seed=2)
    marginals, _, _ = engine.run(moderate, state)
    np.testing.assert_allclose(marginals.values, enumerate_all(moderate, layout).values, atol=1e-9)


def test_opposite_certainties_cancel():
    layout = Layout([2, 2, 2], [(0, 1), (1, 2)])
    theta = np.zeros(layout.n_parameters)
    layout.node(theta, 0)[:] = [0, -900]
    layout.node(theta, 2)[:] = [-900, 0]
    for k in (0, 1):
        layout.edge(theta, k)[:] = [[0, -2000], [-2000, 0]]
    marginals, _, _ = ENGINES["bp"].run(theta, ENGINES["bp"].init(layout))
    np.testing.assert_allclose(layout.node(marginals.values, 1), [0.5, 0.5], atol=1e-12)
    assert marginals.log_partition == pytest.approx(-900 + np.log(2), abs=1e-9)


@pytest.mark.parametrize("name", LOOPY)
def test_weak_loops_are_nearly_exact_and_consistent(name):
    layout = LOOPY[name]
    theta = draw(layout, 0.2)
    truth = enumerate_all(theta, layout)
    engine = BeliefPropagation(tol=1e-10)
    marginals, _, info = engine.run(theta, engine.init(layout))
    assert info.converged
    assert disagreement(marginals.values, layout) < 1e-9
    np.testing.assert_allclose(marginals.values, truth.values, atol=5e-3)
    assert marginals.log_partition == pytest.approx(truth.log_partition, abs=5e-3)


@pytest.mark.parametrize("name", LOOPY)
def test_the_gradient_of_log_z_is_the_belief(name):
    layout = LOOPY[name]
    theta, direction = draw(layout, 0.4), draw(layout, 1.0, seed=7)
    for engine in (BeliefPropagation(tol=1e-12), TreeReweighted(tol=1e-12, max_iter=2000)):
        marginals, state, _ = engine.run(theta, engine.init(layout))
        step = 1e-4
        up, _, _ = engine.run(theta + step * direction, state)
        down, _, _ = engine.run(theta - step * direction, state)
        slope = (up.log_partition - down.log_partition) / (2 * step)
        assert slope == pytest.approx(direction @ marginals.values, abs=1e-6)


@st.composite
def graphs(draw_from):
    """Draw a small random graph with mixed states and parameters of any strength."""
    n = draw_from(st.integers(2, 6))
    states = draw_from(st.lists(st.integers(2, 4), min_size=n, max_size=n))
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    edges = draw_from(st.lists(st.sampled_from(pairs), unique=True))
    layout = Layout(states, edges)
    scale = draw_from(st.sampled_from([0.1, 1.0, 5.0, 500.0]))
    return layout, draw(layout, scale, draw_from(st.integers(0, 1000)))


@given(graphs())
@settings(max_examples=60, deadline=None)
def test_trw_bounds_log_z_from_above_converged_or_not(model):
    layout, theta = model
    exact = enumerate_all(theta, layout).log_partition
    for max_iter in (1, 60):
        engine = TreeReweighted(max_iter=max_iter)
        marginals, _, _ = engine.run(theta, engine.init(layout))
        assert marginals.log_partition >= exact - 1e-12 * (1 + np.abs(theta).sum())
        assert np.isfinite(marginals.values).all()


@given(graphs(), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_names_of_variables_and_states_do_not_matter(model, seed):
    layout, theta = model
    theta = theta / max(1.0, np.abs(theta).max())  # weak enough for a single fixed point
    rng = np.random.default_rng(seed)
    node = rng.permutation(layout.n_variables)  # new name of each variable
    state = [rng.permutation(s) for s in layout.states]  # old state at each new position
    states = np.empty_like(layout.states)
    states[node] = layout.states
    flipped = node[layout.edges[:, 0]] > node[layout.edges[:, 1]]
    other = Layout(states, np.sort(node[layout.edges], axis=1))

    def renamed(values):
        out = np.empty_like(values)
        for i in range(layout.n_variables):
            other.node(out, node[i])[:] = layout.node(values, i)[state[i]]
        for k, (i, j) in enumerate(layout.edges):
            table = layout.edge(values, k)[np.ix_(state[i], state[j])]
            other.edge(out, k)[:] = table.T if flipped[k] else table
        return out

    engine = BeliefPropagation(tol=1e-11, damping=0.2)
    here, _, info = engine.run(theta, engine.init(layout))
    there, _, _ = engine.run(renamed(theta), engine.init(other))
    assert info.converged
    np.testing.assert_allclose(renamed(here.values), there.values, atol=1e-8)
    assert here.log_partition == pytest.approx(there.log_partition, abs=1e-8)
