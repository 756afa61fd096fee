"""What is special about the sampling engine; the rest is in the protocol's battery."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.core import Layout
from edgegraft.core.edge_tables import fit_margins
from edgegraft.errors import MemoryBudgetError, ModelError
from edgegraft.inference import GibbsEngine
from edgegraft.inference.chains import make_streams, scattered, tables_of
from edgegraft.kernels.gibbs.sweeps import add_moments
from tests.zoo import ZOO, truth

SHORT = {"n_chains": 40, "n_sweeps": 200, "burn_in": 50, "thinning": 2}


def solve(engine, name, **changes):
    animal = ZOO[name]
    return engine.run(animal.theta, engine.init(animal.layout), **changes)


@pytest.mark.parametrize("name", ["grid", "mixed cardinalities"])
def test_results_do_not_depend_on_threads(name):
    one, state, info = solve(GibbsEngine(**SHORT), name)
    many, same, _ = solve(GibbsEngine(**SHORT, n_jobs=3), name)
    np.testing.assert_array_equal(one.values, many.values)
    np.testing.assert_array_equal(state.draws, same.draws)
    np.testing.assert_array_equal(state.chains.streams, same.chains.streams)
    assert info.diagnostics["n_draws"] == 40 * 100


def test_a_run_depends_on_its_state_alone():
    engine, animal = GibbsEngine(**SHORT), ZOO["grid"]
    state = engine.init(animal.layout)
    first, after, _ = engine.run(animal.theta, state)
    again, _, _ = engine.run(animal.theta, state)
    np.testing.assert_array_equal(first.values, again.values)
    onward, _, _ = engine.run(animal.theta, after)
    assert (onward.values != first.values).any()
    other, _, _ = solve(GibbsEngine(**SHORT, random_state=5), "grid")
    assert (other.values != first.values).any()


def test_a_generator_seeds_the_streams_anew():
    engine = GibbsEngine(**SHORT)
    one, _, _ = solve(engine, "grid", rng=np.random.default_rng(1))
    same, _, _ = solve(engine, "grid", rng=np.random.default_rng(1))
    other, _, _ = solve(engine, "grid", rng=np.random.default_rng(2))
    np.testing.assert_array_equal(one.values, same.values)
    assert (one.values != other.values).any()


def test_chains_are_continued():
    engine, animal = GibbsEngine(**SHORT), ZOO["cycle"]
    _, state, cold = engine.run(animal.theta, engine.init(animal.layout))
    grown = engine.grow(state, Layout(animal.states, animal.edges[:3]))
    np.testing.assert_array_equal(grown.chains.state, state.chains.state)
    _, _, warm = engine.run(animal.theta, state)
    assert (cold.n_iter, warm.n_iter) == (250, 205)


def test_warm_chains_that_became_impossible_burn_in_for_longer():
    layout = Layout([2] * 12, [(i, i + 1) for i in range(11)])
    engine = GibbsEngine(n_chains=40, n_sweeps=200, burn_in=400, thinning=2)
    _, state, _ = engine.run(np.zeros(layout.n_parameters), engine.init(layout))
    theta = np.zeros(layout.n_parameters)
    for k in range(11):  # all alike
        layout.edge(theta, k)[:] = [[0.0, -np.inf], [-np.inf, 0.0]]
    _, _, info = engine.run(theta, state)
    assert info.n_iter > 240


def test_chains_in_different_prisons_are_reported():
    layout = Layout([2, 2], [(0, 1)])
    theta = np.array([0.0] * 4 + [0.0, -np.inf, -np.inf, 0.0])  # no single change is possible
    marginals, _, info = GibbsEngine(**SHORT).run(theta, GibbsEngine(**SHORT).init(layout))
    assert not info.converged
    assert info.diagnostics["r_hat"] == np.inf
    assert "R-hat of variable 0 is inf" in info.message
    np.testing.assert_array_equal(marginals.values[5:7], 0.0)


def test_slow_mixing_is_reported():
    layout = Layout([2] * 8, [(i, j) for i in range(8) for j in range(i + 1, 8)])
    theta = np.concatenate((np.zeros(16), np.tile([1.0, -1.0, -1.0, 1.0], layout.n_edges)))
    engine = GibbsEngine(**SHORT)
    _, _, info = engine.run(theta, engine.init(layout))
    assert not info.converged
    assert info.residual > 0.05
    assert info.diagnostics["ess"] < 200


def test_conditionals_are_less_noisy_than_counts():
    expected = truth("star").values
    n_nodes = ZOO["star"].layout.node_offset[-1]
    of_means, of_counts = [], []
    for seed in range(20):
        marginals, state, _ = solve(GibbsEngine(**SHORT, random_state=seed), "star")
        counts = [
            np.bincount(draws.ravel(), minlength=s) / draws.size
            for draws, s in zip(state.draws, ZOO["star"].states, strict=True)
        ]
        of_means.append(marginals.values[:n_nodes] - expected[:n_nodes])
        of_counts.append(np.concatenate(counts) - expected[:n_nodes])
    assert np.square(of_means).mean() < 0.3 * np.square(of_counts).mean()


def test_cells_that_no_chain_visited_have_their_probability():
    layout = Layout([2, 2], [(0, 1)])
    theta = np.array([0.0] * 4 + [0.0, -12.0, -12.0, -2.0])
    engine = GibbsEngine(**SHORT)
    marginals, state, _ = engine.run(theta, engine.init(layout))
    assert engine.pair_marginals(theta, state, np.array([(0, 1)]))[0][0, 1] == 0.0
    assert 0.2 < layout.edge(marginals.values, 0)[0, 1] / np.exp(-12.0) < 5.0


def test_moments_are_sums_over_chains_of_conditionals():
    animal = ZOO["mixed cardinalities"]
    layout, joint = animal.layout, truth("mixed cardinalities").joint
    chains = scattered(layout, make_streams(0, 7))
    expected = np.zeros(layout.n_parameters)
    for x in chains.state.T.astype(int):
        p = []
        for i in range(4):
            own = joint[tuple(slice(None) if v == i else x[v] for v in range(4))]
            p.append(own / own.sum())
            layout.node(expected, i)[:] += p[i]
        for k, (i, j) in enumerate(layout.edges):
            layout.edge(expected, k)[:, x[j]] += p[i]
            layout.edge(expected, k)[x[i], :] += p[j]
    for max_rows in (1, 12, None):
        tables = tables_of(layout, animal.theta, max_rows)
        sums = np.zeros(layout.n_parameters)
        add_moments(tables, chains.state, sums)
        np.testing.assert_allclose(sums, expected, rtol=1e-10, atol=1e-12)


def fitted(rows, columns, table):
    layout = Layout([len(rows), len(columns)], [(0, 1)])
    values = np.concatenate((rows, columns, np.ravel(table)))
    fit_margins(values, layout.states, layout.edges, layout.node_offset, layout.edge_offset)
    return layout.edge(values, 0)


def test_fitted_tables_keep_odds_ratios_and_zeros():
    table = fitted([0.3, 0.7], [0.2, 0.5, 0.3], [[0.1, 0.2, 0.1], [0.3, 0.0, 0.3]])
    np.testing.assert_allclose(table.sum(axis=1), [0.3, 0.7], atol=1e-12)
    np.testing.assert_allclose(table.sum(axis=0), [0.2, 0.5, 0.3], atol=1e-2)
    dense = fitted([0.3, 0.7], [0.4, 0.6], [[0.1, 0.3], [0.4, 0.2]])
    np.testing.assert_allclose(dense.sum(axis=1), [0.3, 0.7], atol=1e-12)
    np.testing.assert_allclose(dense.sum(axis=0), [0.4, 0.6], atol=1e-12)
    odds = dense[0, 0] * dense[1, 1] / (dense[0, 1] * dense[1, 0])
    assert odds == pytest.approx(0.1 * 0.2 / (0.3 * 0.4))


def test_margins_that_no_such_table_has_are_met_all_the_same():
    # The zeros force the first row to be at most the first column.
    table = fitted([0.51, 0.49], [0.5, 0.5], [[0.5, 0.0], [0.1, 0.4]])
    np.testing.assert_allclose(table.sum(axis=1), [0.51, 0.49], atol=1e-12)
    np.testing.assert_allclose(table.sum(axis=0), [0.5, 0.5], atol=1e-12)
    assert 0.0 <= table[0, 1] < 0.02


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_chains": 1}, "n_chains must be at least 2"),
        ({"thinning": 0}, "thinning"),
        ({"burn_in": -1}, "burn_in"),
        ({"n_sweeps": 15, "thinning": 5}, "n_sweeps must be at least 4 times thinning"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        GibbsEngine(**settings)


def test_memory_is_estimated_first():
    engine = GibbsEngine(n_chains=1000, n_sweeps=100_000, thinning=1)
    with pytest.raises(MemoryBudgetError, match="fewer chains"):
        engine.init(Layout([2] * 100))


def test_other_variables_are_refused():
    engine = GibbsEngine(**SHORT)
    with pytest.raises(ModelError, match="same variables"):
        engine.grow(engine.init(Layout([2, 2])), Layout([2, 3]))


def test_the_chains_are_those_of_the_state():
    animal = ZOO["chain"]
    state = GibbsEngine(n_chains=10, burn_in=10).init(animal.layout)
    other = GibbsEngine(n_chains=33, burn_in=10)
    for rng in (None, np.random.default_rng(0)):
        _, after, info = other.run(animal.theta, state, rng)
        assert after.chains.n_chains == 10
        assert info.diagnostics["n_draws"] == 2000
