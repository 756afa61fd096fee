"""The exact engine against enumeration of all joint states in plain NumPy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from scipy.stats import chi2

from edgegraft.core import Layout
from edgegraft.datasets.graphs import grid
from edgegraft.errors import ModelError, TreewidthError
from edgegraft.inference import ExactEngine
from tests.zoo import ZOO, truth


def model(name):
    return ZOO[name].layout, np.array(ZOO[name].theta)


@pytest.fixture
def engine():
    return ExactEngine()


@pytest.mark.parametrize("name", ZOO)
def test_the_map_is_the_best_of_all_states(engine, name):
    layout, theta = model(name)
    assignment, value, _ = engine.map(theta, engine.init(layout))
    best = truth(name).joint.max()
    assert truth(name).joint[tuple(assignment)] == pytest.approx(best, rel=1e-9)
    assert value == pytest.approx(np.log(best) + truth(name).log_partition, rel=1e-12, abs=1e-12)


def test_messages_that_disagree_beyond_double_precision(engine):
    # The left end favours state 0 by 900 nats, the right end state 1 by 901: plain scaled numbers
    # would hold one zero from either side.
    layout = Layout([2, 2, 2], [(0, 1), (1, 2)])
    theta = np.zeros(layout.n_parameters)
    layout.edge(theta, 0)[:] = [[900.0, 0.0], [900.0, 0.0]]
    layout.edge(theta, 1)[:] = [[0.0, 0.0], [901.0, 901.0]]
    marginals, *_ = engine.run(theta, engine.init(layout))
    odds = math.exp(1.0)
    np.testing.assert_allclose(
        layout.node(marginals.values, 1), [1 / (1 + odds), odds / (1 + odds)], rtol=1e-12
    )


def test_a_grid_against_transfer_matrices(engine):
    k = 8
    layout = Layout(np.full(k * k, 2), grid(k, k))
    theta = np.random.default_rng(0).normal(size=layout.n_parameters)
    table = {(i, j): layout.edge(theta, e) for e, (i, j) in enumerate(layout.edges.tolist())}
    rows = np.array(list(itertools.product((0, 1), repeat=k)))  # all states of a row

    def within(r):
        at = range(r * k, r * k + k)
        nodes = sum(layout.node(theta, v)[rows[:, c]] for c, v in enumerate(at))
        return nodes + sum(table[v, v + 1][rows[:, v % k], rows[:, v % k + 1]] for v in at[:-1])

    def between(r):
        at = range(r * k, r * k + k)
        return sum(table[v, v + k][rows[:, c][:, None], rows[:, c]] for c, v in enumerate(at))

    below = [np.zeros(len(rows))]
    for r in range(k - 2, -1, -1):
        below.insert(0, logsumexp(between(r) + within(r + 1) + below[0], axis=1))
    above = within(0)
    marginals, *_ = engine.run(theta, engine.init(layout))
    for r in range(k):
        joint = softmax(above + below[r])
        for c in range(k):
            expected = joint @ rows[:, c]
            assert layout.node(marginals.values, r * k + c)[1] == pytest.approx(expected, abs=1e-13)
        if r + 1 < k:
            above = logsumexp(above[:, None] + between(r), axis=0) + within(r + 1)
    assert marginals.log_partition == pytest.approx(logsumexp(above), rel=1e-13)


def test_a_star_with_very_many_leaves(engine):
    n = 2_001  # the product of 2,000 messages of ratio e**2 is far outside of the doubles
    layout = Layout(np.full(n, 2), np.stack((np.zeros(n - 1), np.arange(1, n)), axis=1))
    theta = np.zeros(layout.n_parameters)
    theta[layout.node_offset[-1] :] = np.tile([0.0, 2.0, 0.0, 0.0], n - 1)
    expected = np.logaddexp((n - 1) * np.log(1 + np.exp(2.0)), (n - 1) * np.log(2.0))
    marginals, *_ = engine.run(theta, engine.init(layout))
    assert marginals.log_partition == pytest.approx(expected, rel=1e-13)
    assert layout.node(marginals.values, 0)[0] == pytest.approx(1.0, abs=1e-14)


def test_variables_of_one_state_cost_no_memory(engine):
    n = 200
    edges = np.stack(np.triu_indices(n, 1), axis=1)
    states = np.ones(n, np.int64)
    states[::50] = 2
    layout = Layout(states, edges)
    theta = np.random.default_rng(0).normal(size=layout.n_parameters)
    varying = np.arange(0, n, 50)
    joint = np.zeros((2,) * len(varying))
    for x in np.ndindex(joint.shape):
        full = np.zeros(n, np.int64)
        full[varying] = x
        cells = (
            layout.edge_offset[:-1] + full[edges[:, 0]] * states[edges[:, 1]] + full[edges[:, 1]]
        )
        joint[x] = theta[layout.node_offset[:-1] + full].sum() + theta[cells].sum()
    marginals, *_ = engine.run(theta, engine.init(layout))
    assert marginals.log_partition == pytest.approx(np.logaddexp.reduce(joint.ravel()), rel=1e-12)


def test_a_deep_chain_is_no_recursion(engine):
    n = 50_000
    layout = Layout(np.full(n, 2), np.stack((np.arange(n - 1), np.arange(1, n)), axis=1))
    theta = np.zeros(layout.n_parameters)
    theta[layout.node_offset[-1] :] = np.tile([0.3, 0.0, 0.0, 0.3], n - 1)
    marginals, *_ = engine.run(theta, engine.init(layout))
    expected = math.log(2) + (n - 1) * math.log(1 + math.exp(0.3))
    assert marginals.log_partition == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(marginals.values[: 2 * n], 0.5, atol=1e-12)


@pytest.mark.parametrize("name", ["cycle", "complete", "disconnected", "zero entries, loop"])
def test_samples_follow_the_model(engine, name):
    layout, theta = model(name)
    joint = truth(name).joint
    n_samples = 40_000
    samples = engine.sample(theta, engine.init(layout), n_samples, np.random.default_rng(7))
    assert samples.shape == (n_samples, layout.n_variables)
    cells = np.ravel_multi_index(tuple(samples.T), joint.shape)
    seen = np.bincount(cells, minlength=joint.size)
    expected = n_samples * joint.ravel()
    assert not seen[expected == 0].any()
    common = expected >= 5
    rest = n_samples - expected[common].sum()
    statistic = ((seen - expected)[common] ** 2 / expected[common]).sum()
    if rest > 5:
        statistic += (seen[~common].sum() - rest) ** 2 / rest
    assert statistic < chi2.isf(1e-4, max(int(common.sum()), 1))


def test_sampling_depends_on_the_generator_alone(engine):
    layout, theta = model("grid")
    state = engine.init(layout)
    first = engine.sample(theta, state, 50, np.random.default_rng(1))
    np.testing.assert_array_equal(first, engine.sample(theta, state, 50, np.random.default_rng(1)))
    assert engine.sample(theta, state, 0, np.random.default_rng(1)).shape == (0, 9)


def test_impossible_models_are_named(engine):
    layout, theta = model("cycle")
    layout.edge(theta, 2)[:] = -np.inf
    state = engine.init(layout)
    rng = np.random.default_rng(0)
    for ask in (
        lambda: engine.run(theta, state),
        lambda: engine.map(theta, state),
        lambda: engine.sample(theta, state, 1, rng),
        lambda: engine.pair_marginals(theta, state, np.array([(0, 2)])),
    ):
        with pytest.raises(ModelError, match="no state has positive probability"):
            ask()


def test_refusal_says_what_is_needed_and_what_to_do():
    layout = Layout(np.full(40, 2), grid(5, 8))
    cost = ExactEngine().estimate(layout)
    assert cost.complete
    assert cost.treewidth == 5
    with pytest.raises(TreewidthError, match=r"treewidth .*max_bytes allows 1 KiB.*'bp', 'trw' or"):
        ExactEngine(max_bytes=1024).init(layout)
    state = ExactEngine(max_bytes=cost.nbytes).init(layout)
    assert state.cost == cost
    with pytest.raises(TreewidthError):
        ExactEngine(max_bytes=cost.nbytes - 1).init(layout)


def test_hopeless_graphs_are_refused_at_once():
    n = 300
    layout = Layout(np.full(n, 65_535), np.stack(np.triu_indices(n, 1), axis=1))
    cost = ExactEngine().estimate(layout)
    assert not cost.complete
    assert cost.treewidth == n - 1
    assert cost.largest_table == 65_535**n
    with pytest.raises(TreewidthError, match=r"at least 10\^1446 bytes .*allows 1\.0 GiB"):
        ExactEngine(1 << 30).init(layout)


@pytest.mark.parametrize(
    ("name", "treewidth", "n_cliques", "largest"),
    [
        ("no variables", 0, 0, 0),
        ("no edges", 0, 3, 3),
        ("star", 1, 4, 9),
        ("cycle", 2, 3, 12),
        ("complete", 3, 1, 81),
    ],
)
def test_estimates(engine, name, treewidth, n_cliques, largest):
    layout, _ = model(name)
    cost = engine.estimate(layout)
    assert cost[:3] == (treewidth, n_cliques, largest)
    assert cost.complete


def test_read_only_parameters_and_states_stay_as_they_are(engine):
    layout, theta = model("grid")
    theta.flags.writeable = False
    state = engine.init(layout)
    before = [part.copy() for part in state.tree]
    first, again, _ = engine.run(theta, state)
    second, *_ = engine.run(theta, again)
    np.testing.assert_array_equal(first.values, second.values)
    for part, kept in zip(state.tree, before, strict=True):
        np.testing.assert_array_equal(part, kept)
    larger = layout.grow([(0, 8)])
    assert engine.grow(state, larger).layout is larger
