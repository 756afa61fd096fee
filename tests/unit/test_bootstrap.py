"""The bootstrap: replicates against copied rows, threads, frequencies, intervals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import chdtrc

from edgegraft import pack
from edgegraft.conditional.coordinates import state_weights
from edgegraft.conditional.features import Features
from edgegraft.conditional.judge import Judge, Network, Verdicts
from edgegraft.conditional.replicates import Replicated
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.config import Plan
from edgegraft.core import find_pairs
from edgegraft.datasets import make_chain
from edgegraft.learn import discover
from edgegraft.learn.bootstrap import Draws, bootstrap
from edgegraft.objective import Penalty, Pseudolikelihood
from edgegraft.optimize import Stopping, minimize
from edgegraft.table import PackedTable, TableRows

N_ROWS = 800
NOISE = Penalty(2 / np.sqrt(N_ROWS), 1e-3, group_weight="noise")


def make_codes(states=3, n_rows=N_ROWS, seed=0, missing=0.0):
    """Columns 0 and 1 depend strongly, 1 and 2 a little; 3 to 5 on nothing."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, states, (n_rows, 6))
    codes[:, 1] = np.where(rng.random(n_rows) < 0.6, codes[:, 0], codes[:, 1])
    codes[:, 2] = np.where(rng.random(n_rows) < 0.2, codes[:, 1], codes[:, 2])
    codes[rng.random(codes.shape) < missing] = -1
    return codes


@pytest.fixture(scope="module")
def table():
    return PackedTable.from_codes(make_codes())


@pytest.fixture(scope="module")
def found(table):
    return discover(table)


def draws_of(n_rows, n=3, base=None):
    return Draws(np.ones(n_rows) if base is None else base, n, 0)


def replicated(found, table, n, plan=None, **options):
    """The bootstrap of a discovery."""
    plan = plan or found.plan
    return bootstrap(found.model, table, n, plan=plan, ranking=found.ranking, **options)


def frequency_of(result, edge):
    at = np.flatnonzero((result.edges == edge).all(axis=1))
    return float(result.frequency[at[0]]) if len(at) else 0.0


def assert_same(one, other):
    for left, right in zip(one, other, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_a_reweighted_objective_is_that_of_copied_rows(missing):
    codes = make_codes(missing=missing)
    whole = TableRows(PackedTable.from_codes(codes))
    counts = np.random.default_rng(1).multinomial(N_ROWS, np.full(N_ROWS, 1 / N_ROWS))
    copied = Pseudolikelihood(
        PackedTable.from_codes(np.repeat(codes, counts, axis=0), whole.schema)
    )
    again = Pseudolikelihood(whole.reweighted(counts))
    assert again.n_rows == copied.n_rows == N_ROWS
    penalty = Penalty(0.0, 1e-2)
    layout = discover(PackedTable.from_codes(codes)).model.layout
    theta = np.random.default_rng(2).normal(0, 0.3, layout.n_parameters)
    here, there = (loss.evaluate(theta, loss.init(layout)) for loss in (again, copied))
    assert here.value == pytest.approx(there.value, rel=1e-12)
    np.testing.assert_allclose(here.gradient, there.gradient, atol=1e-13)
    fits = [minimize(loss, penalty, layout, None, Stopping(1e-9)).theta for loss in (again, copied)]
    np.testing.assert_allclose(fits[0], fits[1], atol=1e-6)


def test_the_number_of_threads_changes_nothing(table, found):
    one = replicated(found, table, 12, random_state=3)
    assert_same(one, replicated(found, table, 12, random_state=3, n_jobs=3))
    other = replicated(found, table, 12, random_state=4)
    assert not np.array_equal(one.frequency, other.frequency)


def judged(rows, edges):
    pairs = [(i, j) for i, j in edges.tolist()]
    return Verdicts.of(Judge(rows).ask(Network(6, edges), pairs))


def test_the_fit_itself_as_a_replicate_is_tested_without_what_chance_has_added():
    rows = ConditionalRows(PackedTable.from_codes(make_codes(3, missing=0.05)))
    edges = np.array([[0, 1], [1, 2], [0, 3], [2, 5]])
    p = Replicated(rows, edges).p_values(edges, np.ones((1, N_ROWS)))
    tests = judged(rows, edges)
    plain = chdtrc(tests.dof, np.maximum(tests.statistic - tests.dof, 0.0))
    np.testing.assert_allclose(p[0], plain, rtol=1e-6)


def test_ordered_columns_are_replicated_in_two_parts():
    codes = make_codes(5)
    codes[:, 3] = np.abs(codes[:, 2] - 2)  # a U-shape, which linear scores do not see
    columns = {f"x{j}": column.tolist() for j, column in enumerate(codes.T)}
    table = pack(columns, kinds="ordinal")
    features = Features.of(table.schema, np.concatenate(state_weights(table, np.ones(N_ROWS))))
    rows, edges = ConditionalRows(table, features=features), np.array([[0, 1], [2, 3]])
    pairs = np.concatenate((edges, [[0, 5]]))
    p = Replicated(rows, edges).p_values(pairs, np.ones((1, N_ROWS)))[0]
    assert p[:2].max() < 1e-6 < p[2]


def test_pairs_of_a_constant_column_are_untestable():
    codes = make_codes()
    codes[:, 4] = 0
    rows = ConditionalRows(PackedTable.from_codes(codes))
    p = Replicated(rows, np.array([[0, 1]])).p_values(
        np.array([[0, 1], [2, 4]]), np.ones((2, N_ROWS))
    )
    assert np.isnan(p).tolist() == [[False, True]] * 2


def test_some_rows_keep_the_coordinates_of_all():
    codes, chosen = make_codes(missing=0.1), np.arange(50, 500)
    whole, weights = PackedTable.from_codes(codes), np.arange(1.0, N_ROWS + 1)
    part = ConditionalRows(whole, weights).take(chosen)
    alone = ConditionalRows(whole.take(chosen), weights[chosen])
    for one, other in zip(part.count(0, [1, 2]), alone.count(0, [1, 2]), strict=True):
        np.testing.assert_array_equal(one, other)
    assert part.weight == alone.weight


def test_first_order_tests_follow_those_of_reweighted_rows(table, found):
    edges, draws = found.search.graph.layout.edges, draws_of(N_ROWS, 40)
    weights = np.stack([draws.weights(k) for k in range(40)])
    p = Replicated(ConditionalRows(table), edges).p_values(edges, weights)
    again = [judged(ConditionalRows(table, row), edges).p_value for row in weights]
    weak = np.flatnonzero((edges == [1, 2]).all(axis=1))[0]
    assert np.corrcoef(np.log(p[:, weak]), np.log(np.stack(again)[:, weak]))[0, 1] > 0.95


def test_results_begin_with_the_kept_edges(table, found):
    result = replicated(found, table, 20)
    m = len(found.model.edges)
    np.testing.assert_array_equal(result.edges[:m], found.model.edges)
    np.testing.assert_allclose(result.strength[:m], found.model.edge_strengths(), atol=0.01)
    assert np.isnan(result.lower[m:]).all()
    assert np.isfinite(result.lower[:m]).all()
    assert (np.diff(result.frequency[m:]) <= 0).all()
    assert (result.n, result.level) == (20, 0.95)


def make_near_copies(n_rows=120):
    """Column 1 repeats 0 but for 5 rows in a hundred, column 2 likewise 1; column 3 is chance."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2, (n_rows, 4))
    for j in (1, 2):
        codes[:, j] = codes[:, j - 1] ^ (rng.random(n_rows) < 0.05)
    return codes


def test_edges_of_near_copies_have_the_frequencies_of_their_tests():
    table = PackedTable.from_codes(make_near_copies())
    found = discover(table)
    q = dict(zip(map(tuple, found.tests.edges.tolist()), found.tests.q_value, strict=True))
    result = replicated(found, table, 30)
    assert max(q[0, 1], q[1, 2]) <= found.plan.fdr
    for edge in ((0, 1), (1, 2)):
        assert frequency_of(result, list(edge)) > 0.5
    assert np.isfinite(result.lower[: len(found.model.edges)]).all()
    # Pairs that are not in the network are listed for their frequency: none without one.
    assert np.isfinite(result.frequency[len(found.model.edges) :]).all()


def test_replicates_are_cut_as_the_fit_was():
    data = make_chain(6, n_rows=120, couplings="ising", random_state=0)
    table = PackedTable.from_codes(data.X.astype(int))
    found = discover(table, Plan(fwer=0.01))
    as_planned = replicated(found, table, 20).frequency
    assert as_planned.tolist() == replicated(found, table, 20, Plan(fwer=0.01)).frequency.tolist()
    assert as_planned.sum() < replicated(found, table, 20, Plan(fdr=0.2)).frequency.sum()


def test_frequencies_do_not_contradict_tests():
    data = make_chain(8, n_rows=250, couplings="ising", random_state=3)
    table = PackedTable.from_codes(data.X.astype(int))
    found = discover(table)
    result = replicated(found, table, 100, n_jobs=2)
    at = find_pairs(found.model.edges, found.tests.edges, 8)
    q, frequency = found.tests.q_value[at], result.frequency[: len(at)]
    assert (frequency[q < 1e-4] > 0.6).all()
    assert (frequency[q < 1e-8] > 0.9).all()
    order = np.argsort(q)
    assert np.corrcoef(np.arange(len(q)), frequency[order])[0, 1] <= 0


def test_draws_take_as_many_rows_as_the_weights_say():
    base = np.array([0.0, 1.5, 2.5, 0.25])
    draws = draws_of(4, 400, base)
    drawn = np.array([draws.weights(k) for k in range(400)])
    np.testing.assert_allclose(drawn.sum(axis=1), base.sum())
    assert not drawn[:, 0].any()
    np.testing.assert_allclose(drawn.mean(axis=0), base, atol=0.2)


def test_a_run_without_a_cut_lets_chance_in_as_often_as_its_threshold_says():
    passed = []
    for seed in range(4):
        table = PackedTable.from_codes(make_codes(5, seed=seed))
        found = discover(table)
        result = replicated(found, table, 40, Plan(fdr=None))
        assert frequency_of(result, [0, 1]) == 1.0
        passed.append(result.frequency[(result.edges >= 3).any(axis=1)].sum())
    # 12 pairs with an independent column, of which chance passes .05, and more again on replicates.
    assert np.mean(passed) <= 12 * 0.15


def test_intervals_are_those_of_the_effects_at_any_level(table, found):
    columns = found.model.edge_columns
    low, high = np.sort(np.abs((columns["effect_low"], columns["effect_high"])), axis=0)
    result = replicated(found, table, 2)
    m = found.model.n_edges
    np.testing.assert_allclose(result.lower[:m], low, atol=0.01)
    np.testing.assert_allclose(result.upper[:m], high, atol=0.01)
    wide = replicated(found, table, 2, level=0.999)
    assert (wide.lower[:m] < result.lower[:m]).all()
    assert (wide.upper[:m] > result.upper[:m]).all()
