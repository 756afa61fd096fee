"""Chains on a device, and fits by likelihood that follow chains."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft import fit_parameters, refit_by_likelihood
from edgegraft.core import Layout, all_pairs
from edgegraft.counts import PairCounts
from edgegraft.datasets import make_scale_free
from edgegraft.errors import ConvergenceWarning, DataError, ModelError
from edgegraft.inference import ExactEngine, GibbsEngine, annealed_log_partition, gibbs_sample
from edgegraft.inference.chains import Indicators
from edgegraft.inference.sampling import PersistentChains
from edgegraft.ingest import pack
from edgegraft.learn import (
    by_likelihood,
    fit_for_prediction,
    graph_likelihood,
    margins,
    model_shares,
)
from edgegraft.learn.by_likelihood import Gain
from edgegraft.learn.graph_likelihood import GraphLikelihood
from edgegraft.learn.margins import compare_margins, match_margins
from edgegraft.model import PairwiseMRF, questions
from edgegraft.objective import Likelihood
from edgegraft.table import PackedTable, Schema, TableRows
from tests.conftest import DEVICE
from tests.zoo import ZOO, truth

pytest.importorskip("torch", reason="PyTorch, the extra gpu, is not installed")

from edgegraft.core.backend import find_backend
from edgegraft.device.chains import DeviceChains, colours_of

LAYOUT = Layout([2, 3, 2, 4, 3], [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (0, 4)])
THETA = np.random.default_rng(0).normal(size=LAYOUT.n_parameters)


def on_device(n_chains=4000, seed=0, theta=THETA):
    codes = np.random.default_rng(seed).integers(0, LAYOUT.states[:, None], (5, n_chains))
    found = DeviceChains(LAYOUT, find_backend(DEVICE), codes.astype(np.uint16), seed)
    found.load(theta)
    return found, codes


def test_products_with_indicators_are_those_of_plain_numpy():
    found, codes = on_device(50)
    here = Indicators(LAYOUT, codes.astype(np.uint16))
    weights = np.random.default_rng(1).normal(size=50)
    np.testing.assert_array_equal(found.codes(), codes)
    expected = [
        sum(LAYOUT.node(THETA, i)[x[i]] for i in range(5))
        + sum(LAYOUT.edge(THETA, k)[x[i], x[j]] for k, (i, j) in enumerate(LAYOUT.edges))
        for x in codes.T
    ]
    other = np.random.default_rng(2).normal(size=len(THETA))
    assert found.edge_terms().shape == (50,)
    for draws in (found, here):
        np.testing.assert_allclose(draws.energies(THETA), expected, atol=1e-5)
        # <weights, energies> is the same whichever way it is summed
        means = draws.means(weights)
        np.testing.assert_allclose(means @ other, weights @ draws.energies(other) / 50, atol=1e-5)


def test_chains_have_the_marginals_of_the_model():
    found, _ = on_device()
    found.sweep(30)
    values = np.zeros(len(THETA))
    for _ in range(20):
        found.sweep(3)
        values += found.means(np.ones(4000)) / 20
    exact = ExactEngine()
    expected = exact.run(THETA, exact.init(LAYOUT))[0].values
    np.testing.assert_allclose(values, expected, atol=0.01)


def test_the_same_seed_gives_the_same_chains():
    runs = []
    start = np.zeros((5, 64), np.uint16)
    for seed in (0, 0, 1):
        found = DeviceChains(LAYOUT, find_backend(DEVICE), start, seed)
        found.load(THETA)
        found.sweep(5)
        runs.append(found.codes())
    np.testing.assert_array_equal(runs[0], runs[1])
    assert (runs[0] != runs[2]).any()


@pytest.mark.parametrize("name", ["grid", "cycle", "mixed cardinalities"])
def test_colours_of_neighbours_differ(name):
    layout = ZOO[name].layout
    colour = colours_of(layout)
    i, j = layout.edges.T
    assert (colour[i] != colour[j]).all()
    assert colour.max() <= np.bincount(layout.edges.ravel()).max()


@pytest.mark.parametrize("name", ["grid", "mixed cardinalities"])
def test_log_partition_and_samples_on_a_device(name):
    animal = ZOO[name]
    found = annealed_log_partition(
        animal.layout, animal.theta, n_chains=512, random_state=0, device=DEVICE
    )
    assert abs(found.value - truth(name).log_partition) < 4 * found.standard_error + 1e-3
    rows, _ = gibbs_sample(
        animal.layout, animal.theta, 3000, n_chains=1000, burn_in=100, thinning=5,
        random_state=0, device=DEVICE,
    )  # fmt: skip
    shares = np.bincount(rows[:, 0], minlength=animal.layout.states[0]) / 3000
    np.testing.assert_allclose(shares, animal.layout.node(truth(name).values, 0), atol=0.05)


def test_the_engine_on_a_device_continues_its_chains():
    engine = GibbsEngine(200, 100, 50, 5, device=DEVICE)
    first, state, info = engine.run(THETA, engine.init(LAYOUT))
    again, _, _ = engine.run(THETA, engine.init(LAYOUT))
    onward, _, warm = engine.run(THETA, state)
    np.testing.assert_array_equal(first.values, again.values)
    assert (onward.values != first.values).any()
    assert warm.n_iter < info.n_iter
    exact = ExactEngine()
    np.testing.assert_allclose(
        onward.values, exact.run(THETA, exact.init(LAYOUT))[0].values, atol=0.05
    )


def test_impossible_states_are_left_and_a_model_without_any_other_is_refused():
    layout = Layout([2, 2], [(0, 1)])
    theta = np.array([0, 0, 0, 0, -np.inf, 0.0, 0.0, -np.inf])
    rows, _ = gibbs_sample(layout, theta, 100, n_chains=100, random_state=0, device=DEVICE)
    assert (rows[:, 0] != rows[:, 1]).all()
    odd = Layout([2, 2, 2], [(0, 1), (1, 2), (0, 2)])  # no two of three can differ all
    engine = GibbsEngine(10, 20, 5, 5, device=DEVICE)
    state, theta = engine.init(odd), np.concatenate((np.zeros(6), np.tile(theta[4:], 3)))
    with pytest.raises(ModelError, match="probability zero"):
        engine.run(theta, state)


@pytest.mark.parametrize("device", ["cpu", DEVICE])
@pytest.mark.parametrize("kinds", ["nominal", "ordinal"])
def test_a_fit_by_chains_comes_near_the_exact_maximum(device, kinds):
    rows = make_scale_free(6, 3, 2000, random_state=1).X.astype(int)
    table = pack(rows, kinds=kinds)
    edges = all_pairs(6)
    best, _ = fit_parameters(
        table, edges, objective="likelihood", engine="exact", ridge=1e-3, tol=1e-6
    )
    start, _ = fit_parameters(table, edges, ridge=0.02 if kinds == "nominal" else 0.5)
    found, info = fit_parameters(
        table, edges, objective="likelihood", engine="chains", ridge=1e-3, start=start,
        device=device,
    )  # fmt: skip
    codes = table.codes().astype(np.int64)

    def height(model, ridge):
        penalty = ridge * (model.theta[int(model.layout.node_offset[-1]) :] ** 2).sum()
        return model.energy(codes=codes).mean() - model.log_partition().value - penalty

    assert info.engine == "chains"
    assert np.isnan(info.objective)
    # Weights of scores have a ridge of their own scale.
    ridge, slack = (1e-3, 1e-6) if kinds == "nominal" else (0.0, 0.01)
    low, high, reached = (height(each, ridge) for each in (start, best, found))
    assert low < high - 0.02
    assert high - 0.004 < reached <= high + slack


@pytest.mark.parametrize("by", ["exact", "chains"])
def test_a_model_is_fitted_again_only_as_far_as_unseen_rows_gain(by, monkeypatch):
    rows = make_scale_free(8, 3, 3000, random_state=3).X.astype(int)
    train, test = rows[:2000], rows[2000:]
    model, _ = fit_parameters(train, ridge=0.02)
    if by == "chains":
        monkeypatch.setattr(graph_likelihood, "affordable", lambda *_: None)
    again, refit = refit_by_likelihood(model, train, ridge=0.02, n_steps=40, device=DEVICE)

    def likelihood(found):
        return found.energy(codes=test).mean() - found.log_partition().value

    assert np.isfinite(refit.penalty)
    assert refit.gain.value > refit.gain.error > 0
    assert likelihood(again) > likelihood(model)
    monkeypatch.setattr(by_likelihood._Judge, "judge", lambda *_: Gain(-1.0, 0.1))
    same, refit = refit_by_likelihood(model, train, ridge=0.02, n_steps=4)
    assert same is model
    assert np.isinf(refit.penalty)


def test_a_last_fit_that_held_out_rows_find_worse_is_not_used(monkeypatch):
    rows = make_scale_free(6, 3, 1000, random_state=3).X.astype(int)
    model, _ = fit_parameters(rows, ridge=0.02)
    path = by_likelihood._follow_path

    def follow(graph, judge, stop):
        tried = path(graph, judge, stop)
        monkeypatch.setattr(by_likelihood._Judge, "judge", lambda *_: Gain(-1.0, 0.1))
        return [each._replace(gain=Gain(1.0, 0.1)) for each in tried]

    monkeypatch.setattr(by_likelihood, "_follow_path", follow)
    with pytest.warns(ConvergenceWarning, match="is not used"):
        same, refit = refit_by_likelihood(model, rows, ridge=0.02)
    assert same is model
    assert np.isinf(refit.penalty)


def test_a_refit_of_ordered_columns_starts_from_the_fit_for_prediction():
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(400, 1)) + rng.normal(size=(400, 5))
    table = pack(np.digitize(normal, [-1.5, 0.0, 1.5]), kinds="ordinal")
    made = fit_for_prediction(TableRows(table))
    strengths = made.penalty, made.ridge
    refitting = by_likelihood._Refitting(
        made.model, TableRows(table), strengths, PersistentChains(), 1
    )
    start, graph = refitting.without(TableRows(table))
    assert graph.layout.n_parameters < made.model.layout.n_parameters  # weights of scores
    np.testing.assert_array_equal(graph.edges, made.model.edges)
    np.testing.assert_allclose(start, refitting.first, atol=0.02)


def graph_of(rows, **chains):
    table = TableRows(PackedTable.from_codes(rows))
    found = PersistentChains(random_state=0, **chains)
    return GraphLikelihood(table, all_pairs(rows.shape[1]), None, 0.0, found, 20)


def test_a_path_begins_at_the_independent_model():
    rows = make_scale_free(6, 3, 500, random_state=1).X.astype(int)
    graph = graph_of(rows)
    fitted, penalty = graph.begin()
    n_nodes = int(graph.layout.node_offset[-1])
    stays = graph.fit(1.001 * penalty, fitted.theta)
    moves = graph.fit(0.9 * penalty, fitted.theta)
    assert not stays.theta[n_nodes:].any()
    assert moves.theta[n_nodes:].any()


def test_likelihoods_by_annealing_are_those_of_exact_inference(monkeypatch):
    rows = make_scale_free(6, 3, 500, random_state=1).X.astype(int)
    theta = fit_parameters(PackedTable.from_codes(rows), ridge=0.01)[0].theta
    expected, none = graph_of(rows).likelihoods(theta, rows)
    monkeypatch.setattr(graph_likelihood, "affordable", lambda *_: None)
    found, error = graph_of(rows, device=find_backend(DEVICE)).likelihoods(theta, rows)
    assert none == 0.0
    assert 0.0 < error < 0.05
    np.testing.assert_allclose(found, expected, atol=4 * error)


def test_a_fit_whose_log_z_misses_a_mode_gains_nothing():
    class Missing:
        def likelihoods(self, theta, rows):
            return np.zeros(len(rows)), np.inf

    judge = by_likelihood._Judge(np.zeros((3, 2)), np.ones(3), -1.0, 0.0)
    assert judge.judge(Missing(), THETA) == Gain(-np.inf, np.inf)


def test_chains_begin_where_they_are_told():
    codes = np.random.default_rng(0).integers(0, LAYOUT.states[:, None], (5, 64)).astype(np.uint16)
    state = PersistentChains(64).init(LAYOUT, codes)
    np.testing.assert_array_equal(state.codes(), codes)


def test_rows_that_a_refit_cannot_use_are_refused():
    rows = np.zeros((30, 3), int)
    rows[::2] = 1
    model, _ = fit_parameters(rows, ridge=0.1)
    with pytest.raises(DataError, match="held out"):
        refit_by_likelihood(model, rows)
    with pytest.raises(DataError, match="2 columns"):
        refit_by_likelihood(model, rows[:, :2])
    with pytest.raises(DataError, match="row 1"):
        refit_by_likelihood(model, rows, weights=[1, -1] * 15)


def test_shares_are_matched_by_chains_on_the_device(monkeypatch):
    for module in (margins, model_shares):
        monkeypatch.setattr(module, "affordable", lambda *_: None)
    rows = make_scale_free(12, 3, 1000, random_state=2).X.astype(int)
    rows[:, 5] = np.where(rows[:, 0] == rows[:, 1], rows[:, 2], rows[:, 5])  # not pairwise
    table = PackedTable.from_codes(rows)
    model, _ = fit_parameters(table, [(i, i + 1) for i in range(11)], ridge=0.01)
    theta = model.theta.copy()
    theta[:36:3] += 0.3
    model = PairwiseMRF(model.schema, model.edges, theta)
    counts = PairCounts(TableRows(table, device=find_backend(DEVICE)))
    found, agreement = match_margins(model, counts, 1e-3)
    exact = ExactEngine()
    shares = exact.run(found.theta, exact.init(found.layout))[0].values[:36]
    wanted = Likelihood(PairCounts(table), exact).margins()
    assert agreement.engine == "gibbs"
    assert np.abs(shares - wanted).max() < 0.01
    compared = compare_margins(found, counts)
    assert compared.engine == "gibbs"
    assert compared.columns == pytest.approx(np.abs(shares - wanted).max(), abs=0.01)


def test_a_model_samples_and_answers_on_a_device(monkeypatch):
    animal = ZOO["grid"]
    model = PairwiseMRF(Schema.from_states(animal.layout.states), animal.edges, animal.theta)
    rows = model.sample_codes(2000, engine="gibbs", random_state=0, device=DEVICE)
    shares = np.bincount(rows[:, 0], minlength=animal.layout.states[0]) / 2000
    np.testing.assert_allclose(shares, animal.layout.node(truth("grid").values, 0), atol=0.05)
    monkeypatch.setattr(questions, "affordable", lambda *_: None)
    found = model.log_partition(device=DEVICE)
    assert abs(found.value - truth("grid").log_partition) < 4 * found.standard_error + 1e-3
