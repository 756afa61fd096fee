"""The sampler against brute force: all states of small models, enumerated in plain NumPy."""

import itertools

import numpy as np
import pytest
from scipy import stats

from edgegraft.core import Layout
from edgegraft.datasets import gibbs_sample, graphs
from edgegraft.errors import DataError, ModelError
from edgegraft.inference.chains import HostChains, make_streams, scattered, tables_of
from edgegraft.kernels.gibbs.sweeps import add_moments, fill_uniform, sweep
from edgegraft.kernels.gibbs.tables import refill


def enumerate_model(layout, theta):
    """All states and their exact probabilities."""
    X = np.array(list(itertools.product(*(range(s) for s in layout.states))))
    score = sum(layout.node(theta, i)[X[:, i]] for i in range(layout.n_variables))
    for k, (i, j) in enumerate(layout.edges):
        score = score + layout.edge(theta, k)[X[:, i], X[:, j]]
    p = np.exp(score - score.max())
    return X, p / p.sum()


def conditional(layout, theta, x, i):
    """``p(x_i | rest)`` by definition."""
    score = layout.node(theta, i).copy()
    for k, (a, b) in enumerate(layout.edges):
        table = layout.edge(theta, k)
        if a == i:
            score = score + table[:, x[b]]
        elif b == i:
            score = score + table[x[a], :]
    p = np.exp(score - score.max())
    return p / p.sum()


def draw_model(states, edges, scale, seed):
    layout = Layout(states, edges)
    return layout, np.random.default_rng(seed).normal(0, scale, layout.n_parameters)


def mixed():
    # Variable 4 stands alone; the others form a triangle with a tail, with 2 to 6 states.
    return draw_model([2, 3, 6, 2, 3], [(0, 1), (0, 2), (1, 2), (2, 3)], 0.8, 1)


def hub():
    # 9 neighbours of variable 0: several groups, so rows are multiplied.
    return draw_model([5] + [2] * 9, graphs.star(10), 0.7, 2)


def zeros():
    layout, theta = draw_model([3, 3, 2, 4], [(0, 1), (1, 2), (1, 3), (2, 3)], 0.7, 3)
    layout.edge(theta, 0)[0, 1] = -np.inf
    layout.edge(theta, 1)[2, 1] = -np.inf
    layout.edge(theta, 3)[0, 3] = -np.inf
    layout.node(theta, 3)[0] = -np.inf
    return layout, theta


def forbidden_pairs_at_a_hub():
    # Each neighbour forbids one state of the hub: a product of rows can be zero throughout.
    layout, theta = draw_model([3] + [2] * 9, graphs.star(10), 0.5, 4)
    for k in range(9):
        layout.edge(theta, k)[k % 3, 1] = -np.inf
    return layout, theta


MODELS = [mixed, hub, zeros, forbidden_pairs_at_a_hub]


def p_value(X, states, p):
    """Chi-square of observed states, rare ones pooled."""
    weights = np.concatenate((np.cumprod(states[:0:-1])[::-1], [1]))
    observed = np.bincount(X.astype(np.int64) @ weights, minlength=len(p))
    assert observed[p == 0].sum() == 0
    expected = p * len(X)
    rare = expected < 5
    observed = np.append(observed[~rare], observed[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    kept = expected > 0
    return stats.chisquare(observed[kept], expected[kept]).pvalue


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_frequencies_are_the_exact_probabilities(make):
    layout, theta = make()
    _, p = enumerate_model(layout, theta)
    X, _ = gibbs_sample(
        layout, theta, 60_000, n_chains=512, burn_in=200, thinning=20, random_state=5
    )
    assert p_value(X, layout.states, p) > 1e-3


def test_the_chi_square_would_catch_a_wrong_sampler():
    layout, theta = mixed()
    other = theta.copy()
    layout.edge(other, 3)[2, 1] += 0.25
    _, p = enumerate_model(layout, theta)
    X, _ = gibbs_sample(layout, other, 60_000, thinning=20, random_state=5)
    assert p_value(X, layout.states, p) < 1e-6


@pytest.mark.parametrize("max_rows", [1, 12, None])
@pytest.mark.parametrize("make", [mixed, hub, zeros], ids=lambda make: make.__name__)
def test_conditionals_equal_their_definition(make, max_rows):
    layout, theta = make()
    states, p = enumerate_model(layout, theta)
    state = states[np.random.default_rng(0).choice(len(p), 50, p=p)]
    tables = tables_of(layout, theta, max_rows)
    totals = np.zeros(layout.n_parameters)
    add_moments(tables, np.ascontiguousarray(state.T.astype(np.uint16)), totals)
    for i in range(layout.n_variables):
        expected = sum(conditional(layout, theta, x, i) for x in state)
        np.testing.assert_allclose(layout.node(totals, i), expected, rtol=1e-12, atol=1e-13)


def swept(layout, theta, beta, x, uniform):
    """A state after every variable has been drawn once, edge terms counting `beta` times."""
    scaled = np.concatenate((theta[: layout.edge_offset[0]], beta * theta[layout.edge_offset[0] :]))
    for i, u in enumerate(uniform):
        x[i] = (np.cumsum(conditional(layout, scaled, x, i))[:-1] <= u).sum()
    return x


@pytest.mark.parametrize("make", [mixed, hub], ids=lambda make: make.__name__)
def test_chains_led_through_temperatures_are_those_of_the_conditionals(make):
    layout, theta = make()
    start, betas = scattered(layout, make_streams(0, 6)), [0.0, 0.3, 1.0]
    streams, x = start.streams.copy(), start.state.T.astype(np.int64)
    chains = HostChains(layout, theta, start, 1, max_rows=16)
    for beta in betas:
        chains.sweep(1, beta=beta)
        uniform = np.empty((layout.n_variables, 6))
        for row in uniform:
            fill_uniform(streams, row)
        x = np.array([swept(layout, theta, beta, *own) for own in zip(x, uniform.T, strict=True)])
        terms = sum(
            layout.edge(theta, e)[x[:, i], x[:, j]] for e, (i, j) in enumerate(layout.edges)
        )
        np.testing.assert_allclose(chains.edge_terms(), terms, atol=1e-12)
        np.testing.assert_array_equal(chains.codes(), x.T)
    np.testing.assert_array_equal(chains.ends().streams, streams)


def test_states_that_are_impossible_are_left():
    layout, theta = zeros()
    chains = HostChains(layout, theta, scattered(layout, make_streams(0, 50)), 1)
    chains.sweep(30)
    assert np.isfinite(chains.edge_terms()).all()
    assert (chains.codes()[3] > 0).all()


def strong_hub():
    """A hub of 300 neighbours that pull hard and disagree: any product of rows underflows."""
    layout = Layout([3] + [2] * 300, graphs.star(301))
    theta = np.zeros(layout.n_parameters)
    for k in range(300):
        layout.edge(theta, k)[k % 3] = -100.0
    layout.node(theta, 0)[:] = np.log([0.2, 0.3, 0.5])
    return layout, theta


def test_underflow_is_worked_out_in_logarithms():
    layout, theta = strong_hub()
    # Every state of the hub is pulled down equally, so its marginal is its own potential.
    X, info = gibbs_sample(layout, theta, 8000, burn_in=10, thinning=1, random_state=0)
    assert info.n_rescued >= 8000
    observed = np.bincount(X[:, 0], minlength=3)
    assert stats.chisquare(observed, [1600, 2400, 4000]).pvalue > 1e-3


def test_wide_variables():
    layout, theta = draw_model([300, 3, 21], [(0, 1), (0, 2), (1, 2)], 1.0, 7)
    _, p = enumerate_model(layout, theta)
    X, _ = gibbs_sample(layout, theta, 40_000, thinning=5, random_state=1)
    assert X.dtype == np.uint16
    joint = p.reshape(300, 3, 21)
    for axis, marginal in enumerate((joint.sum((1, 2)), joint.sum((0, 2)), joint.sum((0, 1)))):
        observed = np.bincount(X[:, axis], minlength=len(marginal))
        assert stats.chisquare(observed, marginal * len(X)).pvalue > 1e-3


@pytest.mark.parametrize("n_samples", [1, 63, 1000])
def test_rows_do_not_depend_on_threads(n_samples):
    layout, theta = hub()
    one, info = gibbs_sample(layout, theta, n_samples, burn_in=20, random_state=3, n_jobs=1)
    two, same = gibbs_sample(layout, theta, n_samples, burn_in=20, random_state=3, n_jobs=2)
    np.testing.assert_array_equal(one, two)
    assert info == same
    other, _ = gibbs_sample(layout, theta, n_samples, burn_in=20, random_state=4)
    assert n_samples == 1 or (one != other).any()


def test_a_chain_does_not_depend_on_its_company():
    layout, theta = hub()
    tables = tables_of(layout, theta)
    rng = np.random.default_rng(0)
    streams = rng.integers(1, 1 << 63, (4, 37), np.uint64)
    state = np.zeros((10, 37), np.uint16)
    alone, own = state[:, [20]].copy(), streams[:, [20]].copy()
    sweep(tables, state, streams, 50)
    sweep(tables, alone, own, 50)
    np.testing.assert_array_equal(state[:, [20]], alone)
    np.testing.assert_array_equal(streams[:, [20]], own)


def test_sweeps_continue_where_the_last_call_ended():
    layout, theta = mixed()
    tables = tables_of(layout, theta)
    streams = np.random.default_rng(0).integers(1, 1 << 63, (4, 8), np.uint64)
    state = np.zeros((5, 8), np.uint16)
    again, again_streams = state.copy(), streams.copy()
    sweep(tables, state, streams, 7)
    sweep(tables, again, again_streams, 3)
    sweep(tables, again, again_streams, 4)
    np.testing.assert_array_equal(state, again)


def test_refill_equals_fresh_tables():
    layout, theta = hub()
    tables = tables_of(layout, np.zeros_like(theta))
    refill(tables, theta)
    np.testing.assert_array_equal(tables.values, tables_of(layout, theta).values)


def test_large_models_use_smaller_groups():
    n = 40_000
    layout = Layout(np.full(n, 5), graphs.regular(n, 4, np.random.default_rng(0)))
    tables = tables_of(layout, np.zeros(layout.n_parameters))
    assert tables.values.nbytes < 200e6


def xoshiro(words):
    """The generator of Blackman and Vigna in Python integers."""
    mask = (1 << 64) - 1
    s = [int(w) for w in words]

    def rotl(x, k):
        return ((x << k) | (x >> (64 - k))) & mask

    while True:
        result = (rotl((s[0] + s[3]) & mask, 23) + s[0]) & mask
        t = (s[1] << 17) & mask
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 45)
        yield (result >> 11) * 2.0**-53


def test_streams_are_xoshiro256():
    streams = np.random.default_rng(0).integers(1, 1 << 63, (4, 5), np.uint64)
    twins = [xoshiro(streams[:, c].copy()) for c in range(5)]
    out = np.empty(5)
    for _ in range(100):
        fill_uniform(streams, out)
        assert out.tolist() == [next(twin) for twin in twins]


def test_an_impossible_model_is_refused():
    layout = Layout([2, 2], [(0, 1)])
    theta = np.zeros(8)
    theta[4:] = -np.inf
    with pytest.raises(ModelError, match="probability zero"):
        gibbs_sample(layout, theta, 10, random_state=0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_potentials_are_named(bad):
    layout, theta = mixed()
    theta[3] = bad
    with pytest.raises(ModelError, match="variable 1 is"):
        gibbs_sample(layout, theta, 10)


def test_bad_arguments_are_named():
    layout, theta = mixed()
    with pytest.raises(ModelError, match="parameters"):
        gibbs_sample(layout, theta[:-1], 10)
    for name in ("n_samples", "n_chains", "burn_in", "thinning"):
        arguments = {"n_samples": 10, name: -1}
        with pytest.raises(ValueError, match=name):
            gibbs_sample(layout, theta, **arguments)


def test_no_rows_and_no_variables():
    layout, theta = mixed()
    X, _ = gibbs_sample(layout, theta, 0, burn_in=1, random_state=0)
    assert X.shape == (0, 5)
    with pytest.raises(DataError, match="no variables"):
        gibbs_sample(Layout([]), [], 3)
