"""Counts, losses and networks of rows in blocks are those of one table, whoever adds up which."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.core import Layout, find_pairs
from edgegraft.counts import PairCounts
from edgegraft.datasets import make_chain
from edgegraft.errors import DataError, ModelError
from edgegraft.learn import Plan, discover
from edgegraft.objective import Pseudolikelihood, pseudolikelihood
from edgegraft.table import PackedTable, Schema, StoredRows, TableRows, Variable
from edgegraft.table.blocks import draw_rows, sample_rows
from tests.conftest import CutTable

STATES = [2, 3, 5, 20, 70]  # planes alone, planes and codes, codes alone
EDGES = [(0, 1), (1, 2), (0, 3), (2, 4)]


def codes(n_rows=1700, missing=True, seed=0):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, s, n_rows) for s in STATES], axis=1)
    X[:, 1] = np.where(rng.random(n_rows) < 0.5, X[:, 0], X[:, 1])
    if missing:  # none in the first block
        X[600:, 1:][rng.random((n_rows - 600, len(STATES) - 1)) < 0.1] = -1
    X[0], X[1] = 0, np.array(STATES) - 1
    return X


def parameters(layout, seed=1):
    return np.random.default_rng(seed).normal(0, 0.3, layout.n_parameters)


@pytest.fixture(params=[False, True], ids=["complete", "missing"])
def table(request):
    return PackedTable.from_codes(codes(missing=request.param))


@pytest.fixture(params=[False, True], ids=["plain", "weighted"])
def weights(request):
    return np.random.default_rng(5).integers(0, 4, 1700) / 2 if request.param else None


def in_blocks(table, weights=None, **options):
    return StoredRows(CutTable(table), weights, **options)


@pytest.mark.parametrize("options", [{}, {"n_jobs": 3}, {"max_bytes": 0}, {"max_bytes": 10_000}])
def test_work_is_done_once_per_block_and_comes_back_in_order(table, weights, options):
    rows = in_blocks(table, weights, **options)
    for _ in range(2):  # the second time some blocks are kept
        found = list(rows.map(lambda block, k: (k, block.table.codes(), block.weights), range(4)))
        assert [k for k, _, _ in found] == [0, 1, 2, 3]
        np.testing.assert_array_equal(np.concatenate([c for _, c, _ in found]), table.codes())
        if weights is not None:
            np.testing.assert_array_equal(np.concatenate([w for _, _, w in found]), weights)


def test_blocks_are_kept_as_far_as_memory_allows(table):
    read = []

    class Watched(CutTable):
        def block(self, k):
            read.append(k)
            return super().block(k)

    one = StoredRows(CutTable(table)).map(lambda block: block.table.nbytes)
    rows = StoredRows(Watched(table), max_bytes=2 * max(one))
    for _ in range(2):
        list(rows.map(lambda block: block.n_rows))
    assert read == [0, 1, 2, 3, 2, 3]


def test_a_subsample_of_a_table_has_its_rows_and_weights():
    X = np.arange(5000)[:, None] % 7
    rows = TableRows(PackedTable.from_codes(X), np.arange(1, 5001.0), n_jobs=2)
    one, other = (rows.subsample(0.2, np.random.default_rng(7)) for _ in range(2))
    assert one.n_rows == pytest.approx(1000, rel=0.05)
    assert one.n_jobs == 2
    np.testing.assert_array_equal(one.weights, other.weights)
    np.testing.assert_array_equal(one.table.codes(), X[one.weights.astype(int) - 1])
    assert rows.subsample(1.0, np.random.default_rng(0)).weight == rows.weight
    with pytest.raises(ValueError, match="share"):
        rows.subsample(1.5, np.random.default_rng(0))


@pytest.mark.parametrize("share", [0.3, 0.001])
def test_subsample_draws_rows_once(share):
    rows = draw_rows(10_001, share, np.random.default_rng(0))
    assert len(np.unique(rows)) == len(rows)
    assert rows.max() < 10_001


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_counts_of_blocks_are_those_of_the_table(table, weights, n_jobs):
    whole = PairCounts(table, weights=weights)
    parts = PairCounts(in_blocks(table, weights, n_jobs=n_jobs))
    edges = [(1, 0), (2, 4), (3, 4), (3, 2), (1, 0)]
    np.testing.assert_array_equal(parts.margins().values, whole.margins().values)
    np.testing.assert_array_equal(parts.pairs(edges).values, whole.pairs(edges).values)
    all_pairs = np.concatenate([t.values for t in parts.blocks(1 << 14)])
    np.testing.assert_array_equal(
        all_pairs, np.concatenate([t.values for t in whole.blocks(1 << 14)])
    )


def test_start_and_curvature_are_those_of_the_rows(table, weights):
    layout = Layout(STATES, EDGES)
    whole = Pseudolikelihood(table, weights=weights)
    split = Pseudolikelihood(in_blocks(table, weights))
    assert (split.n_rows, split.terms) == (whole.n_rows, whole.terms)
    for name in ("start", "curvature"):
        np.testing.assert_array_equal(getattr(split, name)(layout), getattr(whole, name)(layout))


def test_all_pairs_are_worked_out_once_many_were_asked_for(monkeypatch):
    table = PackedTable.from_codes(codes())
    asked = []
    true = pseudolikelihood.score_block

    def score(block, **given):
        if block.n_rows < 512:  # the last
            asked.append(len(given["edges"]))
        return true(block, **given)

    monkeypatch.setattr(pseudolikelihood, "score_block", score)
    loss = Pseudolikelihood(in_blocks(table))
    layout = Layout(STATES, EDGES)
    state = loss.evaluate(parameters(layout), loss.init(layout)).state
    for edges in ([(0, 1)], [(2, 1), (0, 3)], [(3, 2)], [(4, 1), (1, 4)]):
        loss.edge_gradients(parameters(layout), state, edges)
    assert asked == [1, 10]  # one pair, then all ten, then nothing


def test_a_sample_has_rows_of_every_block(table, weights):
    drawn = sample_rows(in_blocks(table, weights), 400, np.random.default_rng(0))
    again = sample_rows(in_blocks(table, weights, n_jobs=3), 400, np.random.default_rng(0))
    assert 300 <= drawn.table.n_rows <= 500
    np.testing.assert_array_equal(drawn.table.codes(), again.table.codes())
    rows = {tuple(row) for row in table.codes().tolist()}
    assert {tuple(row) for row in drawn.table.codes().tolist()} <= rows
    assert (drawn.weights is None) == (weights is None)


def test_a_sample_of_everything_is_the_table(table, weights):
    drawn = sample_rows(in_blocks(table, weights), 10**9, np.random.default_rng(0))
    np.testing.assert_array_equal(drawn.table.codes(), table.codes())
    if weights is not None:
        np.testing.assert_array_equal(drawn.weights, weights)


def test_what_does_not_fit_is_refused(table):
    loss = Pseudolikelihood(in_blocks(table))
    with pytest.raises(ModelError, match="numbers of states"):
        loss.init(Layout([2, 2]))
    with pytest.raises(ModelError, match="shape"):
        loss.evaluate(np.zeros(3), loss.init(Layout(STATES)))
    with pytest.raises(ValueError, match="'half'"):
        Pseudolikelihood(in_blocks(table), precision="half")
    with pytest.raises(DataError, match="all weights are zero"):
        in_blocks(table, np.zeros(1700))
    with pytest.raises(DataError, match="weights of their own"):
        Pseudolikelihood(in_blocks(table), weights=np.ones(1700))


# Learning from blocks


def network_rows(n_rows=6000):
    return make_chain(8, n_states=3, n_rows=n_rows, random_state=0).X.astype(int)


def as_blocks(X, **options):
    return in_blocks(PackedTable.from_codes(X), **options)


def edges_of(found):
    return set(map(tuple, found.model.edges.tolist()))


def score(found, X):
    return float(found.model.pseudo_log_likelihood(codes=X).mean())


def test_a_network_is_found_from_blocks():
    X = network_rows()
    plan = Plan(tol=1e-4)
    found = discover(as_blocks(X), plan, sample_rows=2000)
    assert edges_of(found) == {(k, k + 1) for k in range(7)}
    assert found.converged
    assert found.search.objective.n_rows == 6000
    assert found.certificate.exhaustive
    assert found.certificate.n_violating == 0
    # The model is that of all rows: the plain fit of the same edges agrees within its tolerance.
    whole = discover(PackedTable.from_codes(X), plan)
    assert edges_of(whole) == edges_of(found)
    assert score(found, X) == pytest.approx(score(whole, X), abs=5e-6)


def test_threads_do_not_change_what_is_learned():
    X = network_rows()
    one = discover(as_blocks(X), sample_rows=2000)
    for options in ({"n_jobs": 3}, {"max_bytes": 0}):
        other = discover(as_blocks(X, **options), sample_rows=2000)
        assert other.model == one.model
        np.testing.assert_array_equal(other.tests.p_value, one.tests.p_value)


def test_rows_that_fit_are_learned_from_as_any_table():
    X = network_rows(1500)
    assert discover(as_blocks(X)).model == discover(PackedTable.from_codes(X)).model


def test_ordered_columns_are_learned_from_blocks():
    rng = np.random.default_rng(0)
    chain = rng.normal(size=(6000, 6))
    for k in range(1, 6):
        chain[:, k] += 0.8 * (-1) ** k * chain[:, k - 1]
    cuts = np.quantile(chain, [0.2, 0.5, 0.7, 0.9], axis=0)
    X = np.stack([np.searchsorted(cuts[:, i], chain[:, i]) for i in range(6)], axis=1)
    X = np.column_stack((X, rng.integers(0, 3, 6000)))
    kinds = ["ordinal"] * 4 + ["numeric"] * 2 + ["nominal"]
    schema = Schema(
        Variable(f"x{i}", tuple(range(5 if i < 6 else 3)), kind=kind)
        for i, kind in enumerate(kinds)
    )
    table = PackedTable.from_codes(X, schema)
    plan = Plan(tol=1e-4)
    whole = discover(table, plan)
    found = discover(in_blocks(table), plan, sample_rows=2000)
    assert {(k, k + 1) for k in range(5)} <= edges_of(found) <= edges_of(whole)
    assert score(found, X) == pytest.approx(score(whole, X), abs=0.02)
    order = find_pairs(found.model.edges, whole.model.edges, 7)
    mine, other = found.model.edge_columns, whole.model.edge_columns
    np.testing.assert_array_equal(mine["sign"], other["sign"][order])
    np.testing.assert_allclose(mine["effect"], other["effect"][order], atol=0.08)
    again = discover(in_blocks(table, n_jobs=2), plan, sample_rows=2000)
    assert again.model == found.model


def test_weights_belong_to_the_rows():
    X = network_rows(3000)
    weights = np.random.default_rng(0).integers(0, 3, 3000).astype(float)
    repeated = discover(PackedTable.from_codes(np.repeat(X, weights.astype(int), axis=0)))
    found = discover(as_blocks(X, weights=weights), sample_rows=1500)
    assert edges_of(found) == edges_of(repeated)
    assert score(found, X) == pytest.approx(score(repeated, X), abs=1e-4)
    with pytest.raises(DataError, match="weights of their own"):
        discover(as_blocks(X), weights=weights)


def test_the_likelihood_needs_no_stages():
    plan = Plan(objective="likelihood")
    found = discover(as_blocks(network_rows(3000)), plan, sample_rows=1000)
    assert edges_of(found) <= {(k, k + 1) for k in range(7)}
    assert edges_of(found)


def test_an_observer_ends_the_search_before_all_rows():
    class Stop:
        def on_event(self, event, growth):
            return True

    found = discover(as_blocks(network_rows()), sample_rows=2000, observers=[Stop()])
    assert found.search.reason == "stopped by an observer"
    assert found.search.objective.n_rows < 6000
