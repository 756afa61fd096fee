"""Annealed importance sampling against models whose log Z is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from edgegraft.core import Layout
from edgegraft.errors import ConvergenceWarning, DataError, ModelError
from edgegraft.inference import AnnealedLogPartition, ExactEngine, ais, annealed_log_partition
from edgegraft.model import PairwiseMRF
from edgegraft.table import Schema
from tests.zoo import ZOO, truth


def grid(rows, columns):
    at = np.arange(rows * columns).reshape(rows, columns)
    across = np.stack((at[:, :-1].ravel(), at[:, 1:].ravel()), axis=1)
    return np.concatenate((across, np.stack((at[:-1].ravel(), at[1:].ravel()), axis=1)))


def normal(states, edges, scale, seed=0):
    layout = Layout(states, edges)
    return layout, scale * np.random.default_rng(seed).normal(size=layout.n_parameters)


def weak_grid():
    return normal([2] * 100, grid(10, 10), 0.5)


def strong_grid():
    return normal([2] * 100, grid(10, 10), 2.0)


def ordered_grid():
    # An Ising model below its critical temperature: two modes, far apart.
    layout = Layout([2] * 36, grid(6, 6))
    return layout, np.concatenate((np.zeros(72), np.tile([0.9, -0.9, -0.9, 0.9], layout.n_edges)))


def colouring():
    # Neighbours differ in colour: a quarter of the entries is zero.
    layout, theta = normal([4] * 25, grid(5, 5), 0.5)
    for k in range(layout.n_edges):
        np.fill_diagonal(layout.edge(theta, k), -np.inf)
    return layout, theta


MODELS = [strong_grid, ordered_grid, colouring]


def exact_log_partition(layout, theta):
    engine = ExactEngine()
    return engine.run(theta, engine.init(layout))[0].log_partition


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_known_models(make):
    layout, theta = make()
    found = annealed_log_partition(layout, theta, random_state=1)
    assert abs(found.value - exact_log_partition(layout, theta)) < 4 * found.standard_error
    assert found.standard_error < 0.15
    assert found.reliable


@pytest.mark.parametrize("name", ZOO)
def test_the_zoo(name):
    animal, expected = ZOO[name], truth(name).log_partition
    found = annealed_log_partition(animal.layout, animal.theta, random_state=0)
    assert abs(found.value - expected) <= 4 * found.standard_error + 1e-9
    assert found.standard_error < 0.05


def test_errors_are_as_large_as_stated():
    layout, theta = normal([3] * 12, grid(3, 4), 1.0)
    exact = exact_log_partition(layout, theta)
    runs = [
        annealed_log_partition(layout, theta, n_chains=64, n_temperatures=30, random_state=seed)
        for seed in range(40)
    ]
    z = [(found.value - exact) / found.standard_error for found in runs]
    assert abs(np.mean(z)) < 0.5
    assert 0.75 < np.std(z) < 1.3


def test_few_even_weights_are_not_passed_off_as_precision():
    layout, theta = normal([5] * 49, grid(7, 7), 3.0)
    exact = exact_log_partition(layout, theta)
    for seed in range(5):
        found = annealed_log_partition(
            layout, theta, n_chains=64, n_temperatures=4, random_state=seed
        )
        assert not found.reliable
        assert found.standard_error > 0.5
        assert abs(found.value - exact) < 4 * found.standard_error


def test_the_gauge_does_not_matter():
    layout, theta = strong_grid()
    moved = theta.copy()
    for k, (i, _) in enumerate(layout.edges):  # the same model, written otherwise
        layout.node(moved, i)[:] += [5.0, -3.0]
        layout.edge(moved, k)[:] -= [[5.0], [-3.0]]
    one = annealed_log_partition(layout, theta, n_temperatures=50, random_state=0)
    same = annealed_log_partition(layout, moved, n_temperatures=50, random_state=0)
    assert one.value == pytest.approx(same.value, abs=1e-6)


def test_results_do_not_depend_on_threads():
    layout, theta = weak_grid()
    one = annealed_log_partition(layout, theta, n_temperatures=40, random_state=0)
    two = annealed_log_partition(layout, theta, n_temperatures=40, random_state=0, n_jobs=3)
    assert one == two
    other = annealed_log_partition(layout, theta, n_temperatures=40, random_state=1)
    assert one != other


def test_temperatures_are_added_until_the_weights_are_even(monkeypatch):
    steps = []
    lead = ais.lead_chains

    def counted(path, betas, *rest):
        if betas[0] == 1.0:  # chains that settle or are led back
            return lead(path, betas, *rest)
        steps.append(len(betas) - 1)
        assert betas[0] == 0.0
        assert betas[-1] == 1.0
        assert (np.diff(betas) > 0).all()
        return lead(path, betas, *rest)

    monkeypatch.setattr(ais, "lead_chains", counted)
    annealed_log_partition(*weak_grid(), random_state=0)
    easy = steps.copy()
    steps.clear()
    annealed_log_partition(*ordered_grid(), random_state=0)
    assert easy == [64, 128, 64, 128]  # the second way has a pilot of its own
    first = steps[: steps.index(max(steps)) + 1]
    assert first == [64 * 2**k for k in range(len(first))]
    assert len(first) > 2
    assert steps[len(first) :] == [64, first[-1]]


def test_chains_that_all_die_are_not_hidden():
    layout = Layout([2, 2, 2], [(0, 1), (1, 2), (0, 2)])
    differ = [-np.inf, 0.0, 0.0, -np.inf]
    theta = np.array([0.0] * 6 + differ * 3)  # three variables of two states cannot all differ
    found = annealed_log_partition(layout, theta, n_temperatures=8, random_state=0)
    assert found == AnnealedLogPartition(-np.inf, np.inf, 0.0)
    assert not found.reliable


def test_bad_arguments_are_refused():
    layout, theta = weak_grid()
    with pytest.raises(ModelError, match="parameters"):
        annealed_log_partition(layout, theta[1:])
    with pytest.raises(ModelError, match="variable 0 is nan"):
        annealed_log_partition(layout, np.full_like(theta, np.nan))
    for name in ("n_chains", "n_temperatures"):
        with pytest.raises(ValueError, match=name):
            annealed_log_partition(layout, theta, **{name: 1})


def two_modes(coupling):
    """Return a model of 30 variables with a mode of state 1 alone and one of the other two.

    All variables are alike, so Z is a sum over the number of those in state 1.
    """
    n = 30
    layout = Layout([3] * n, np.stack(np.triu_indices(n, 1), axis=1))
    theta = np.zeros(layout.n_parameters)
    for i in range(n):
        layout.node(theta, i)[1] = -4.0
    for k in range(layout.n_edges):
        layout.edge(theta, k)[1, 1] = coupling / n
    ones = np.arange(n + 1)
    ways = gammaln(n + 1) - gammaln(ones + 1) - gammaln(n - ones + 1)
    terms = ways + (n - ones) * np.log(2) - 4.0 * ones + coupling / n * ones * (ones - 1) / 2
    exact = logsumexp(terms)
    return layout, theta, exact, np.exp(terms - exact)


def draw_rows(shares, rng):
    n = len(shares) - 1
    rows = rng.choice([0, 2], (300, n))
    for row, ones in zip(rows, rng.choice(n + 1, size=300, p=shares), strict=True):
        row[rng.permutation(n)[:ones]] = 1
    return rows


@pytest.mark.parametrize("coupling", [10.0, 9.7])
def test_a_mode_that_annealing_misses_is_found_from_rows_and_otherwise_reported(coupling):
    # 10: the mode of ones has nearly all of Z; 9.7: both modes have a share.
    layout, theta, exact, shares = two_modes(coupling)
    alone = annealed_log_partition(layout, theta, random_state=0, n_chains=128)
    assert not alone.reliable
    assert alone.missed > 1.0
    rows = draw_rows(shares, np.random.default_rng(0))
    found = annealed_log_partition(layout, theta, random_state=0, n_chains=128, rows=rows)
    assert found.reliable
    assert abs(found.value - exact) < 4 * found.standard_error < 0.5


def test_a_way_that_misses_a_mode_is_noticed_on_the_way_back(monkeypatch):
    # With the first way alone, as if rows had not been used for a second.
    layout, theta, exact, shares = two_modes(10.0)
    monkeypatch.setattr(ais, "from_shares", lambda path, states: path)
    rows = draw_rows(shares, np.random.default_rng(0))
    found = annealed_log_partition(layout, theta, random_state=0, n_chains=128, rows=rows)
    assert found.value < exact - 4.0
    assert found.missed > 3.0
    assert not found.reliable


def test_modes_that_hardly_count_are_not_called_missing():
    layout, theta, exact, shares = two_modes(9.0)  # the mode of ones has exp(-10) of Z
    for rows in (None, draw_rows(shares, np.random.default_rng(0))):
        found = annealed_log_partition(layout, theta, random_state=0, n_chains=128, rows=rows)
        assert found.reliable
        assert abs(found.value - exact) < 4 * found.standard_error


def test_rows_that_are_none_of_the_model_are_refused():
    layout, theta = weak_grid()
    for rows in (np.zeros((5, 3), int), np.zeros((5, 100)), np.full((5, 100), 2)):
        with pytest.raises(DataError, match="rows"):
            annealed_log_partition(layout, theta, n_temperatures=8, rows=rows)


def test_a_model_says_that_its_log_partition_is_not_known():
    layout, theta, _, shares = two_modes(10.0)
    model = PairwiseMRF(Schema.from_states(layout.states), layout.edges, theta)
    with pytest.warns(ConvergenceWarning, match="is not known"):
        found = model.log_partition()
    assert found.standard_error == np.inf
    assert "not known" in found.approximation
    rows = draw_rows(shares, np.random.default_rng(0))
    likely = model.log_likelihood(codes=rows).log_partition  # rows that show the mode
    assert likely.standard_error < 0.1
