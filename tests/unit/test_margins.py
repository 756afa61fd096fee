"""Shares of a network's model are those of the data."""

import warnings

import numpy as np
import pytest

from edgegraft.conditional.features import Features
from edgegraft.core import Layout, all_pairs
from edgegraft.counts import PairCounts
from edgegraft.datasets import make_grid, make_scale_free
from edgegraft.estimators import GraftedMRF
from edgegraft.inference import ExactEngine, GibbsEngine
from edgegraft.inference.chains import Chains, HostChains, make_streams
from edgegraft.ingest import pack
from edgegraft.learn import discovery, margins, model_shares
from edgegraft.learn.margins import Agreement, compare_margins, match_margins
from edgegraft.learn.model_shares import find_shares
from edgegraft.model import PairwiseMRF
from edgegraft.objective import Likelihood
from edgegraft.table import PackedTable, TableRows


def differences(model, table, engine=None):
    """Return the largest differences of single shares and of edges."""
    engine = engine or ExactEngine()
    data = Likelihood(PairCounts(table), ExactEngine())
    layout = model.layout
    truth = np.concatenate((data.margins(), data.pair_frequencies(layout)))
    found = engine.run(model.theta, engine.init(layout))[0].values
    n = int(layout.node_offset[-1])
    return np.abs(found - truth)[:n].max(), np.abs(found - truth)[n:].max()


@pytest.fixture(scope="module")
def table():
    rows = make_scale_free(12, 3, 500, random_state=2).X.astype(int)
    rows[:, 5] = np.where(rows[:, 0] == rows[:, 1], rows[:, 2], rows[:, 5])  # not pairwise
    return PackedTable.from_codes(rows)


@pytest.mark.parametrize("kinds", ["nominal", "ordinal"])
def test_a_default_fit_has_the_shares_of_its_rows(table, kinds):
    rows = table.codes()
    fitted = GraftedMRF(kinds=kinds, random_state=0).fit(rows)
    single, pairs = differences(fitted.model_, pack(rows))
    assert single < 0.001
    shares = fitted._details["shares"]
    assert shares["engine"] == "exact"
    assert shares["columns"] == pytest.approx(single, abs=1e-6)
    assert shares["edges"] == pytest.approx(pairs, abs=1e-6)
    assert f"{single:.4f}" in shares["text"]


@pytest.fixture
def chains_alone(monkeypatch):
    monkeypatch.setattr(margins, "affordable", lambda *_: None)
    monkeypatch.setattr(model_shares, "affordable", lambda *_: None)


def chain_model(table):
    """Return a model of a chain of columns whose shares are not those of the table."""
    theta = np.random.default_rng(0).normal(0, 0.5, 36 + 99)
    return PairwiseMRF(table.schema, [(i, i + 1) for i in range(11)], theta)


def exact_shares(model):
    engine = ExactEngine()
    return engine.run(model.theta, engine.init(model.layout))[0].values


@pytest.mark.parametrize("max_states", [1000, 0])
def test_chains_are_as_good_as_their_noise(table, max_states, monkeypatch, chains_alone):
    monkeypatch.setattr(margins, "_RULE", margins._Rule(max_states=max_states, far=1.0))
    start = chain_model(table)
    found, agreement = match_margins(start, PairCounts(table), 1e-3)
    assert agreement.engine == "gibbs"
    assert differences(start, table)[0] > 0.1
    assert differences(found, table)[0] < 0.01
    assert 0 < agreement.error < 0.01
    assert np.array_equal(found.theta[36:], start.theta[36:])


@pytest.mark.parametrize("weights", [None, np.linspace(0.0, 2.0, 500)])
def test_shares_by_chains_are_those_of_exact_inference(table, weights, chains_alone):
    rows = table.codes()
    rows[::7, 3] = -1  # chains that start there draw the cell
    rows = TableRows(PackedTable.from_codes(rows, table.schema), weights)
    model = chain_model(table)
    exact = exact_shares(model)
    found = find_shares(model, rows, exact, seed=0)
    assert found.settled
    assert not found.differ_from(exact)
    z = (found.values - exact)[:36] / found.error
    assert 0.5 < np.sqrt((z**2).mean()) < 1.6
    assert np.abs(found.values - exact).max() < 0.01
    assert found.differ_from(exact + np.where(np.arange(len(exact)) == 5, 0.03, 0.0))
    drawn = found.draw().codes()
    assert np.mean(drawn[:, 0] == 0) == pytest.approx(found.values[0])


def test_shares_that_are_the_datas_are_not_touched(chains_alone):
    model = chain_model(PackedTable.from_codes([[2] * 12]))
    engine = ExactEngine()
    draws = engine.sample(model.theta, engine.init(model.layout), 400_000, np.random.default_rng(0))
    found, agreement = match_margins(model, PairCounts(PackedTable.from_codes(draws)), 1e-3)
    assert np.array_equal(found.theta, model.theta)
    assert agreement.columns < 0.01


def test_shares_of_chains_that_stay_where_they_begin_are_not_known(chains_alone):
    coupling = np.array([3.0, -3.0, -3.0, 3.0])  # of 30 columns in a ring: all alike
    pairs = np.array([(i, i + 1) for i in range(29)] + [(0, 29)])
    theta = np.concatenate((np.zeros(60), np.tile(coupling, 30)))
    rows = np.repeat([[0], [1]], (300, 700), axis=0) * np.ones((1, 30), int)
    counts = PairCounts(PackedTable.from_codes(rows))
    model = PairwiseMRF(counts.schema, pairs, theta)
    found, agreement = match_margins(model, counts, 1e-3)
    assert np.isnan(agreement.columns)
    assert "not known" in str(agreement)
    assert np.isnan(compare_margins(found, counts).edges)


def test_a_correction_that_chains_find_worse_is_not_made(table, monkeypatch, chains_alone):
    monkeypatch.setattr(margins, "_newton_step", lambda layout, *_: np.eye(layout.n_parameters)[0])
    monkeypatch.setattr(margins, "_fit_tables", lambda model, *_: 2.0 * model.theta)
    start = chain_model(table)
    theta = start.theta.copy()
    theta[0] += 3.0
    start = PairwiseMRF(start.schema, start.edges, theta)
    found, agreement = match_margins(start, PairCounts(table), 1e-3)
    assert np.array_equal(found.theta, start.theta)
    assert agreement.columns == pytest.approx(differences(start, table)[0], abs=0.03)


def test_a_grid_too_wide_for_exact_inference():
    rows = make_grid(11, 11, n_rows=1500, random_state=0).X
    fitted = GraftedMRF(random_state=0).fit(rows)
    engine = GibbsEngine(n_sweeps=1000, burn_in=300)
    assert differences(fitted.model_, pack(rows), engine)[0] < 0.02


@pytest.fixture(scope="module")
def two_modes():
    """Return a model of two modes, and rows of the smaller one.

    All pairs attract each other, and few ones too little to make more of them: chains that start
    with none stay so, and their rows have the conditionals of the whole model.
    """
    n = 20
    pairs = all_pairs(n)
    theta = np.concatenate((np.tile([0.0, -4.2], n), np.tile([0.0, 0.0, 0.0, 0.5], len(pairs))))
    start = Chains(np.zeros((n, 1000), np.uint16), make_streams(0, 1000))
    chains, draws = HostChains(Layout([2] * n, pairs), theta, start, 1), np.empty((n, 6, 1000), int)
    chains.sweep(30)
    chains.record(draws, 3)
    rows = draws.reshape(n, -1).T
    table = PackedTable.from_codes(rows[rows.sum(axis=1) <= n // 2])
    return PairwiseMRF(table.schema, pairs, theta), table


@pytest.mark.parametrize("scored", [False, True])
def test_a_mode_without_rows_is_taken_out_of_the_model(
    two_modes, scored, monkeypatch, chains_alone
):
    (start, table), features = two_modes, None
    counts = PairCounts(table)
    if scored:  # the same model, its tables made of scores
        features = Features.of(table.schema, counts.margins().values, np.ones(20, int))
        p = table.codes().mean(axis=0)
        nodes = np.stack((np.zeros(20), -4.2 + 0.5 * (p.sum() - p)), axis=1).ravel()
        weights = 0.5 * np.sqrt((p * (1 - p))[start.edges].prod(axis=1))
        theta = features.expand(np.concatenate((nodes, weights)), features.layout(start.edges))
        start = PairwiseMRF(table.schema, start.edges, theta)
    assert differences(start, table)[0] > 0.5
    with monkeypatch.context() as patch:
        patch.setattr(margins, "_RULE", margins._Rule(far=1.0))
        found, _ = match_margins(start, counts, 1e-4)  # by node vectors alone
        assert differences(found, table)[0] > 0.02
    found, agreement = match_margins(start, counts, 1e-4, features=features)
    assert agreement.columns < 0.02
    assert max(differences(found, table)) < 0.02
    # What the rows say of the 20 columns given the others is kept.
    before, after = (m.pseudo_log_likelihood(codes=table.codes()).mean() for m in (start, found))
    assert after > before - 0.03
    if features is not None:
        again = features.expand(
            features.weights_of(found.theta, found.edges), features.layout(found.edges)
        )
        assert np.allclose(again, found.theta)


def test_too_large_models_are_left_alone(table, monkeypatch, chains_alone):
    monkeypatch.setattr(model_shares, "_RULE", model_shares._Rule(look_ups=1.0))
    model = PairwiseMRF(table.schema, np.array([(0, 1)]), np.zeros(45))
    assert match_margins(model, PairCounts(table), 1e-3) == (model, None)


@pytest.mark.parametrize(("difference", "warned"), [(0.06, True), (0.04, False), (np.nan, False)])
def test_a_model_whose_shares_are_far_off_warns(table, monkeypatch, difference, warned):
    def match(model, *_, **__):
        return model, Agreement(difference, 0.1, "gibbs", 0.01)

    monkeypatch.setattr(discovery, "match_margins", match)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        discovery.discover(table)
    assert any("differ from the data's by at most 0.06" in str(w.message) for w in caught) == warned


def test_shares_that_are_not_known_are_stored_as_such(table, monkeypatch):
    unknown = Agreement(np.nan, np.nan, "gibbs", 0.02)
    monkeypatch.setattr(discovery, "match_margins", lambda model, *_, **__: (model, unknown))
    shares = GraftedMRF(random_state=0).fit(table.codes())._details["shares"]
    assert shares["columns"] is None
    assert "not known" in shares["text"]
