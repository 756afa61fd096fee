"""From a table to a network: the whole way, its parts, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from edgegraft.counts import PairCounts
from edgegraft.datasets import make_scale_free, make_star
from edgegraft.errors import MemoryBudgetError
from edgegraft.grafting import candidates
from edgegraft.grafting.problem import chance_level, search_settings
from edgegraft.learn import (
    Plan,
    Problem,
    SearchState,
    Settings,
    discover,
    grow,
    run_search,
)
from edgegraft.learn.reweigh import reweighed, unexplained
from edgegraft.model import PairwiseMRF
from edgegraft.objective import Penalty, Pseudolikelihood
from edgegraft.objective.noise import noise_weights
from edgegraft.table import PackedTable, TableRows
from tests.learn_cases import make_loss, make_table, penalised

NOISE = Penalty(0.02, 1e-3, group_weight="noise")


@pytest.fixture(scope="module")
def ising():
    data = make_scale_free(30, 2, 4000, couplings="ising", random_state=0)
    return PackedTable.from_codes(data.X.astype(int)), data.edges


def pairs(edges):
    return set(map(tuple, np.asarray(edges).tolist()))


def test_nothing_tuned_finds_the_network(ising):
    table, truth = ising
    found = discover(table)
    kept, true = pairs(found.model.edges), pairs(truth)
    assert 2 * len(kept & true) / (len(kept) + len(true)) > 0.95
    assert len(pairs(found.tests.edges) & true) >= len(kept & true)
    assert pairs(found.tests.edges[found.kept]) == kept
    assert found.converged
    assert found.certificate.exhaustive
    assert found.certificate.n_violating == found.certificate.n_cut  # all were tested


def test_threads_do_not_change_a_bit(ising):
    table, _ = ising
    one, two = (discover(table, Plan(n_jobs=n)) for n in (1, 2))
    assert one.model.theta.tobytes() == two.model.theta.tobytes()
    assert one.tests.p_value.tobytes() == two.tests.p_value.tobytes()


def test_a_weight_of_two_is_two_rows():
    table, _ = make_table(n=8, n_rows=600)
    codes, rng = table.codes(), np.random.default_rng(0)
    weights = rng.integers(0, 3, len(codes))
    copied = PackedTable.from_codes(np.repeat(codes, weights, axis=0), table.schema)
    there, here = discover(copied), discover(table, weights=weights)
    assert pairs(there.model.edges) == pairs(here.model.edges)
    order = np.lexsort(here.model.edges.T[::-1]), np.lexsort(there.model.edges.T[::-1])
    np.testing.assert_allclose(
        here.model.edge_strengths()[order[0]], there.model.edge_strengths()[order[1]], atol=0.02
    )


def test_columns_without_a_network_have_none():
    rng = np.random.default_rng(0)
    table = PackedTable.from_codes(rng.integers(0, 3, (2000, 25)))
    found = discover(table)
    assert len(found.tests.edges) > 0  # chance passes the test once in a while
    assert found.model.n_edges == 0


def test_without_a_rate_all_edges_are_kept(ising):
    table, _ = ising
    found = discover(table, Plan(fdr=None))
    assert found.kept.all()
    assert found.model.n_edges == len(found.tests.edges)


@pytest.mark.parametrize("refit", [False, True])
def test_a_penalised_search_is_refitted_or_kept(ising, refit):
    table, _ = ising
    found = discover(table, Plan(relaxed=False, penalty=0.05, refit=refit, fdr=None))
    shrunk = found.search.model()
    if refit:
        norms = PairwiseMRF(table.schema, found.model.edges, found.model.theta).edge_strengths()
        assert norms.sum() > 1.2 * shrunk.edge_strengths().sum()
    else:
        assert found.model == shrunk


def test_the_likelihood_learns_nearly_the_same_network():
    table, _ = make_table(n=10, n_rows=4000, n_states=2)
    found = discover(table, Plan(objective="likelihood", inference="exact"))
    other = discover(table)
    assert len(pairs(found.model.edges) ^ pairs(other.model.edges)) <= 2


def test_block_sums_get_a_budget():
    assert search_settings(Plan(), 2000).max_tables is None
    assert search_settings(Plan(), 20_000).max_tables == 2_000_000
    assert search_settings(Plan(max_tables=10), 20_000).max_tables == 10


def test_a_table_budget_ends_a_search_that_finds_nothing():
    rng = np.random.default_rng(0)
    table = PackedTable.from_codes(rng.integers(0, 2, (500, 60)))
    loss = Pseudolikelihood(table)
    growth = grow(loss, Penalty(1.0), penalised(max_tables=200, max_tests=50))
    assert growth.reason == "the table budget is spent"
    assert growth.n_tables < 1770


def test_relaxed_fits_shrink_nothing():
    table, _ = make_table()
    loss, counts = make_loss(table), PairCounts(table)
    penalty = replace(NOISE, penalty=chance_level(loss))
    relaxed = grow(loss, penalty, Settings(tol=1e-4), counts=counts)
    assert relaxed.reason == "no pair violates optimality"
    everything = np.stack(np.triu_indices(len(table.schema), 1), axis=1)
    outside = everything[~relaxed.graph.contains(everything)]
    assert not relaxed.judge(outside).violates.any()
    assert (
        np.abs(relaxed.solution.gradient + 2e-3 * relaxed.solution.theta)[
            int(relaxed.solution.layout.edge_offset[0]) :
        ].max()
        < 1e-4
    )


def test_warm_runs_end_where_cold_ones_do():
    table, _ = make_table()
    loss = make_loss(table)
    settings = penalised(tol=1e-6)
    first = grow(loss, Penalty(0.03, 1e-3), settings)
    warm = run_search(first.warm(replace(first.problem, penalty=Penalty(0.01, 1e-3))))
    cold = grow(loss, Penalty(0.01, 1e-3), settings)
    assert pairs(warm.graph.layout.edges) == pairs(cold.graph.layout.edges)
    np.testing.assert_allclose(
        warm.solution.info.objective, cold.solution.info.objective, rtol=1e-8
    )
    assert warm.n_tests > first.n_tests


def test_warm_runs_take_other_rows():
    table, _ = make_table()
    loss = make_loss(table)
    half = make_loss(table.take(np.arange(1000)))
    first = grow(half, NOISE, penalised(tol=1e-6))
    warm = run_search(first.warm(replace(first.problem, objective=loss, penalty=NOISE)))
    cold = grow(loss, NOISE, penalised(tol=1e-6))
    np.testing.assert_allclose(
        warm.solution.info.objective, cold.solution.info.objective, rtol=1e-8
    )


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_unexplained_variance_is_that_of_the_conditionals(missing):
    table, _ = make_table(n=5, n_rows=300)
    rng = np.random.default_rng(0)
    codes, weights = table.codes(), rng.integers(0, 3, 300).astype(float)
    codes[rng.random(codes.shape) < missing] = -1
    table = PackedTable.from_codes(codes, table.schema)
    model = grow(make_loss(table), Penalty(0.01, 1e-3), penalised()).model()
    found = unexplained(TableRows(table, weights), model.theta, model.layout)
    for i, name in enumerate(model.names):
        known = codes[:, i] >= 0
        chance = model.predict_proba(target=name, codes=np.where(np.eye(5)[i], -1, codes))
        left = np.average(1 - (chance[known] ** 2).sum(axis=1), weights=weights[known])
        share = np.bincount(codes[known, i], weights[known]) / weights[known].sum()
        expected = left / (1 - (share**2).sum())
        if not missing:  # there, edges of missing cells are left out
            np.testing.assert_allclose(found[i], min(expected, 1.0), rtol=1e-10)
        assert 0 < found[i] <= 1


def test_noise_is_what_a_fit_leaves(ising):
    table, _ = ising
    growth = grow(make_loss(table), NOISE, Settings(tol=1e-4))
    solution, objective = growth.solution, growth.objective
    after = reweighed(NOISE, objective, solution.theta, solution.layout)
    left = unexplained(TableRows(table), growth.model().theta, growth.model().layout)
    assert left.min() < 0.8
    expected = noise_weights(objective, left)
    np.testing.assert_array_equal(after.noise.spread, expected.spread)
    plain = Penalty(0.1)
    assert reweighed(plain, objective, solution.theta, solution.layout) is plain


def test_a_column_of_too_many_categories_is_refused_before_any_work(monkeypatch):
    codes = np.stack([np.arange(400), np.arange(400) % 2], axis=1)
    table = PackedTable.from_codes(codes)
    monkeypatch.setattr("edgegraft.grafting.problem.MAX_BYTES", 8 * 399**2)
    with pytest.raises(MemoryBudgetError, match="'x0' has 400 categories"):
        discover(table)


def test_triangles_are_looked_for_again_only_when_the_graph_has_grown(monkeypatch):
    table, _ = make_table()
    growth = SearchState.begin(Problem(make_loss(table), NOISE, penalised(max_tests=4)))
    growth.ranked = True
    growth.graph.add(np.array([(0, 1), (1, 2)]))
    growth.stream.remove(growth.graph.layout.edges)
    looks = []
    monkeypatch.setattr(
        candidates, "closing_pairs", lambda *a: looks.append(a) or np.empty((0, 2), np.int64)
    )
    for _ in range(3):
        candidates.fill(growth)
    assert len(looks) == 1


def test_edges_that_are_added_for_a_test_do_not_undo_convergence():
    options = {"couplings": "ising", "coupling_range": (1.0, 1.5)}
    data = make_star(12, n_rows=150, random_state=0, **options)
    found = discover(PackedTable.from_codes(data.X.astype(int)))
    assert len(found.tests.edges) > len(found.model.edges)
    assert found.converged
