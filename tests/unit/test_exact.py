"""The exact engine against enumeration of all joint states in plain NumPy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from scipy.stats import chi2

from edgegraft.core import Layout
from edgegraft.errors import EdgeError, ModelError, TreewidthError
from edgegraft.inference import ExactEngine


def grid(rows, columns):
    at = np.arange(rows * columns).reshape(rows, columns)
    across = np.stack((at[:, :-1].ravel(), at[:, 1:].ravel()), axis=1)
    down = np.stack((at[:-1].ravel(), at[1:].ravel()), axis=1)
    return np.concatenate((across, down))


GRAPHS = {
    "no variables": ([], []),
    "no edges": ([2, 3, 2], []),
    "singleton": ([4], []),
    "one state": ([1, 3, 1], [(0, 1), (1, 2)]),
    "one edge": ([2, 3], [(0, 1)]),
    "chain": ([2, 3, 4, 2, 3], [(0, 1), (1, 2), (2, 3), (3, 4)]),
    "star": ([3, 2, 2, 4, 2], [(0, 1), (0, 2), (0, 3), (0, 4)]),
    "cycle": ([2, 3, 2, 4, 3], [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]),
    "grid": ([2] * 12, grid(3, 4)),
    "complete": ([2, 3, 2, 3, 2, 2], list(itertools.combinations(range(6), 2))),
    "disconnected": ([2, 3, 2, 2, 3, 2, 2], [(0, 3), (3, 5), (1, 4), (2, 6)]),
    "mixed cardinalities": ([21, 2, 13, 5, 2], [(0, 1), (0, 2), (1, 3), (2, 4), (3, 4), (1, 4)]),
}


def scores(theta, layout):
    """Return the log score of every joint state, one axis a variable."""
    n = layout.n_variables
    total = np.zeros(tuple(layout.states))
    for i in range(n):
        total += layout.node(theta, i).reshape([-1 if v == i else 1 for v in range(n)])
    for k, (i, j) in enumerate(layout.edges):
        shape = [int(layout.states[v]) if v in (i, j) else 1 for v in range(n)]
        total += layout.edge(theta, k).reshape(shape)
    return total


def brute_force(theta, layout):
    total = scores(theta, layout)
    peak = total.max()
    log_partition = peak + math.log(np.exp(total - peak).sum())
    return np.exp(total - log_partition), log_partition


def margin(joint, *keep):
    table = joint.sum(axis=tuple(v for v in range(joint.ndim) if v not in keep))
    return table if sorted(keep) == list(keep) else table.T


def model(name, scale=1.0, zeros=0.0, seed=0):
    states, edges = GRAPHS[name]
    layout = Layout(np.array(states, np.int64), np.array(edges, np.int64).reshape(-1, 2))
    rng = np.random.default_rng(seed)
    theta = rng.normal(scale=scale, size=layout.n_parameters)
    theta[rng.random(len(theta)) < zeros] = -np.inf
    if zeros:  # one joint state stays possible
        for i in range(layout.n_variables):
            layout.node(theta, i)[0] = 0.5
        for k in range(layout.n_edges):
            layout.edge(theta, k)[0, 0] = 0.5
    return layout, theta


@pytest.fixture
def engine():
    return ExactEngine()


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(
    ("scale", "zeros"), [(1.0, 0.0), (1.0, 0.4), (500.0, 0.0), (500.0, 0.4), (0.0, 0.0)]
)
def test_marginals_log_partition_and_map(engine, name, scale, zeros):
    layout, theta = model(name, scale, zeros)
    joint, log_partition = brute_force(theta, layout)
    marginals, state, info = engine.run(theta, engine.init(layout))
    assert info.converged
    assert marginals.log_partition == pytest.approx(log_partition, rel=1e-12, abs=1e-12)
    for i in range(layout.n_variables):
        np.testing.assert_allclose(layout.node(marginals.values, i), margin(joint, i), atol=1e-11)
    for k, (i, j) in enumerate(layout.edges):
        np.testing.assert_allclose(
            layout.edge(marginals.values, k), margin(joint, i, j), atol=1e-11
        )
    assignment, value, _ = engine.map(theta, state)
    assert value == pytest.approx(scores(theta, layout).max(), rel=1e-12)
    assert scores(theta, layout)[tuple(assignment)] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("name", [name for name in GRAPHS if name != "no variables"])
@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_pair_marginals_of_all_pairs(engine, name, zeros):
    layout, theta = model(name, zeros=zeros)
    joint, _ = brute_force(theta, layout)
    n = layout.n_variables
    pairs = np.array(list(itertools.permutations(range(n), 2)), np.int64).reshape(-1, 2)
    tables = engine.pair_marginals(theta, engine.init(layout), pairs)
    assert len(tables) == n * (n - 1)
    for (i, j), table in zip(pairs, tables, strict=True):
        np.testing.assert_allclose(table, margin(joint, i, j), atol=1e-11)


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


@pytest.mark.parametrize("name", ["chain", "cycle", "complete", "disconnected"])
@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_samples_follow_the_model(engine, name, zeros):
    layout, theta = model(name, zeros=zeros)
    joint, _ = brute_force(theta, layout)
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
    assert engine.sample(theta, state, 0, np.random.default_rng(1)).shape == (0, 12)


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


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_parameters_are_refused(engine, bad):
    layout, theta = model("chain")
    theta[3] = bad
    with pytest.raises(ModelError, match=r"variable \d is (nan|inf)"):
        engine.run(theta, engine.init(layout))
    with pytest.raises(ModelError, match=r"theta has shape \(2,\): the layout has \d+ parameters"):
        engine.run(theta[:2], engine.init(layout))


@pytest.mark.parametrize(("pair", "words"), [((1, 1), "to itself"), ((0, 9), "outside 0..4")])
def test_bad_pairs_are_refused(engine, pair, words):
    layout, theta = model("chain")
    with pytest.raises(EdgeError, match=words):
        engine.pair_marginals(theta, engine.init(layout), np.array([pair]))


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
        ("star", 1, 4, 12),
        ("cycle", 2, 3, 24),
        ("complete", 5, 1, 144),
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
    larger = layout.grow([(0, 11)])
    assert engine.grow(state, larger).layout is larger
