"""Edges of ordered columns: features, their loss, and tests with signs."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.conditional.features import Features
from edgegraft.config import Plan
from edgegraft.core import all_pairs
from edgegraft.learn import Settings, certify, discover, grow
from edgegraft.learn.graded import GradedRidge, fit_graded
from edgegraft.objective import Penalty, Pseudolikelihood, scoring
from edgegraft.objective.featured import Featured, featured
from edgegraft.optimize import Stopping, fit_parameters, minimize
from edgegraft.table import PackedTable, Schema, Variable
from tests.judge_cases import TRIANGLE, rows_of, verdicts_of

KINDS = ["ordinal", "nominal", "numeric", "ordinal", "nominal", "count"]
STATES = [4, 3, 5, 2, 2, 3]


def levels(n_rows=400, seed=0, missing=0.0):
    """Return codes of six columns along a chain of trends."""
    rng = np.random.default_rng(seed)
    trend = rng.normal(size=n_rows)
    columns = []
    for s in STATES:
        trend = 0.6 * trend + 0.8 * rng.normal(size=n_rows)
        columns.append(np.searchsorted(np.quantile(trend, np.linspace(0, 1, s + 1)[1:-1]), trend))
    codes = np.stack(columns, axis=1)
    return np.where(rng.random(codes.shape) < missing, -1, codes)


def schema_of(kinds=KINDS, states=STATES):
    return Schema(
        Variable(f"x{i}", tuple(range(s)), kind=kind)
        for i, (kind, s) in enumerate(zip(kinds, states, strict=True))
    )


def loss_of(missing=0.0):
    loss = featured(Pseudolikelihood(PackedTable.from_codes(levels(missing=missing), schema_of())))
    assert isinstance(loss, Featured)
    return loss


def point(loss, edges, seed=1):
    layout = loss.layout(edges)
    noise = 0.2 * np.random.default_rng(seed).normal(size=layout.n_parameters)
    return layout, loss.start(layout) + noise


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_gradients_are_those_of_the_loss(missing):
    loss = loss_of(missing)
    layout, theta = point(loss, [(0, 1), (1, 4), (2, 3), (0, 5)])
    state = loss.init(layout)
    found = loss.evaluate(theta, state)
    for k, step in enumerate(np.eye(len(theta)) * 1e-5):
        rise = loss.evaluate(theta + step, state).value - loss.evaluate(theta - step, state).value
        assert found.gradient[k] == pytest.approx(rise / 2e-5, abs=1e-7)


def test_the_loss_is_that_of_its_tables():
    loss = loss_of()
    layout, theta = point(loss, [(0, 1), (2, 5)])
    table = loss.features.matrix(2) @ layout.edge(theta, 1) @ loss.features.matrix(5).T
    whole = loss.expand(theta, layout)
    np.testing.assert_allclose(whole[-15:].reshape(5, 3), table)
    np.testing.assert_allclose(loss.features.weights_of(whole, layout.edges), theta)
    plain = loss.inner.evaluate(whole, loss.inner.init(type(layout)(layout.states, layout.edges)))
    assert loss.evaluate(theta, loss.init(layout)).value == plain.value


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_products_give_the_gradients_of_tables(missing, monkeypatch):
    loss = loss_of(missing)
    layout, theta = point(loss, [(0, 1), (2, 3)])
    pairs = np.array([(0, 1), (3, 2), (5, 1), (0, 4), (4, 5), (5, 4)])
    found = []
    for price in (0.0, np.inf):
        monkeypatch.setattr(scoring, "price", lambda *_, price=price: price)
        state = loss.evaluate(theta, loss.init(layout)).state
        found.append(loss.edge_gradients(theta, state, pairs))
        whole = state.inner.known.pairs.residuals.whole
        assert (whole is None) == np.isinf(price)
    np.testing.assert_allclose(found[0].values, found[1].values, atol=1e-12)
    tables = loss.inner.edge_gradients(loss.expand(theta, layout), state.inner, pairs)
    np.testing.assert_allclose(found[0].values, loss.features.fold_pairs(tables).values, atol=1e-12)


def test_a_penalised_search_ends_where_nothing_violates():
    found = grow(loss_of(), Penalty(0.1, group_weight="noise"), Settings(relaxed=False, tol=1e-5))
    assert len(found.graph) >= 3
    checked = certify(found)
    assert checked.n_violating == 0
    assert checked.residual <= 1e-5


def test_tests_of_binary_columns_are_those_of_tables():
    codes = levels()[:, [3, 4]] ^ (np.random.default_rng(0).random((400, 2)) < 0.2)
    codes = np.column_stack((codes, np.random.default_rng(1).integers(0, 2, 400)))
    scored, plain = (
        verdicts_of(rows_of(codes, [2] * 3, kinds), TRIANGLE) for kinds in (["ordinal"] * 3, None)
    )
    # The ridge of a tenth of a row is of other parameters.
    np.testing.assert_allclose(scored.statistic, plain.statistic, rtol=0.01, atol=0.01)
    np.testing.assert_array_equal(scored.dof, plain.dof)


def test_reversing_a_scale_turns_signs_and_nothing_else():
    codes = levels(1200)
    turned = codes.copy()
    turned[:, 2] = 4 - codes[:, 2]
    one, other = (discover(PackedTable.from_codes(rows, schema_of())) for rows in (codes, turned))
    np.testing.assert_array_equal(one.model.edges, other.model.edges)
    np.testing.assert_allclose(one.tests.p_value, other.tests.p_value, rtol=1e-3)
    mine, turned = one.model.edge_columns, other.model.edge_columns
    with_it = (one.model.edges == 2).any(axis=1) & (mine["sign"] != 0)
    assert with_it.any()
    flips = np.where(with_it, -1.0, 1.0)
    for name in ("sign", "weight", "effect"):
        np.testing.assert_allclose(flips * mine[name], turned[name], atol=2e-3)
    np.testing.assert_allclose(mine["strength"], turned["strength"], atol=2e-3)


def test_effects_are_partial_correlations():
    rng = np.random.default_rng(0)
    precision = np.eye(4)
    precision[0, 1] = precision[1, 0] = -0.4
    precision[1, 2] = precision[2, 1] = 0.3
    rows = rng.multivariate_normal(np.zeros(4), np.linalg.inv(precision), 4000)
    cuts = np.quantile(rows, np.linspace(0, 1, 17)[1:-1], axis=0)
    codes = np.stack([np.searchsorted(cuts[:, i], rows[:, i]) for i in range(4)], axis=1)
    found = discover(PackedTable.from_codes(codes, schema_of(["numeric"] * 4, [16] * 4)))
    columns = found.model.edge_columns
    at = {tuple(edge): k for k, edge in enumerate(found.model.edges.tolist())}
    assert sorted(map(tuple, found.model.edges.tolist())) == [(0, 1), (1, 2)]
    for edge, value in (((0, 1), 0.4), ((1, 2), -0.3)):
        k = at[edge]
        assert columns["effect"][k] == pytest.approx(value, abs=0.04)
        assert columns["effect_low"][k] < value < columns["effect_high"][k]
        assert columns["weight"][k] == columns["effect"][k]


def test_a_u_shape_is_found_and_is_not_linear():
    rng = np.random.default_rng(0)
    first = rng.normal(size=800)
    second = first**2 + rng.normal(size=800)
    rows = np.stack((first, second, rng.normal(size=800)), axis=1)
    cuts = np.quantile(rows, np.linspace(0, 1, 8)[1:-1], axis=0)
    codes = np.stack([np.searchsorted(cuts[:, i], rows[:, i]) for i in range(3)], axis=1)
    found = discover(PackedTable.from_codes(codes, schema_of(["ordinal"] * 3, [7] * 3)))
    assert found.model.edges.tolist() == [[0, 1]]
    columns = found.model.edge_columns
    assert (columns["linear_is_enough"][0], columns["sign"][0]) == (False, 0.0)
    assert abs(columns["effect"][0]) < 0.1
    assert columns["strength"][0] > 0.5


def test_all_pairs_fit_in_one_model():
    table = PackedTable.from_codes(levels(), schema_of())
    found = discover(table, Plan(fdr=None, penalty=1e-9))
    assert len(found.model.edges) == len(all_pairs(6))


def test_missing_cells_do_not_make_edges():
    """Two columns that a third explains, which is missing in a tenth of the rows."""
    rng = np.random.default_rng(0)
    cause = rng.random(3000) < 0.4
    age = rng.integers(0, 10, 3000) + 6 * cause  # nearly decided by the cause
    weight = np.clip((6 + 4 * cause + 2 * rng.normal(size=3000)).astype(int), 0, 15)
    codes = np.stack((cause, age, weight), axis=1).astype(int)
    codes[rng.random(3000) < 0.1, 0] = -1
    table = PackedTable.from_codes(codes, schema_of(["nominal", "numeric", "numeric"], [2, 16, 16]))
    assert sorted(discover(table).model.edges.tolist()) == [[0, 1], [0, 2]]


def test_a_graded_ridge_of_equal_weights_is_a_ridge():
    table = PackedTable.from_codes(levels(), schema_of())
    loss = featured(Pseudolikelihood(table))
    layout = loss.layout([(0, 1), (1, 2)])
    size = layout.n_parameters - int(layout.node_offset[-1])
    rules = Penalty(0.0, 0.05), GradedRidge(ridge=0.05, weights=np.full(size, 0.05))
    plain, graded = (minimize(loss, rule, layout, None, Stopping(1e-6)) for rule in rules)
    np.testing.assert_allclose(graded.theta, plain.theta, atol=1e-4)


def test_whole_tables_of_few_levels_predict_better():
    """Answers that are alike, which no trend and no curve explains."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 5, 3000)
    second = np.where(rng.random(3000) < 0.5, first, rng.integers(0, 5, 3000))
    codes = np.stack((first, second, rng.integers(0, 5, 3000)), axis=1)
    table = PackedTable.from_codes(codes, schema_of(["ordinal"] * 3, [5] * 3))
    fitted, held_out = table.take(np.arange(1000)), codes[1000:]
    plain, whole = (discover(fitted, Plan(ridge=ridge)).model for ridge in (0.02, "auto"))
    assert plain.edges.tolist() == whole.edges.tolist() == [[0, 1]]
    gain = whole.pseudo_log_likelihood(codes=held_out) - plain.pseudo_log_likelihood(codes=held_out)
    assert gain.mean() > 0.1
    numbers = table.with_schema(schema_of(["numeric"] * 3, [5] * 3))
    found = discover(numbers.take(np.arange(1000)))
    assert fit_graded(found.search.objective, found.model, 0.02, 1e-3) is None


@pytest.mark.parametrize("objective", ["pseudolikelihood", "likelihood"])
def test_parameters_of_ordered_columns_are_weights_of_scores(objective):
    rows = PackedTable.from_codes(levels(), schema_of())
    model, info = fit_parameters(rows, [(0, 1), (0, 2)], objective, ridge=0.02)
    assert info.converged
    loss = Pseudolikelihood(rows)
    features = Features.of(rows.schema, loss.state_weights())
    weights = features.weights_of(model.theta, model.edges)
    back = features.expand(weights, features.layout(model.edges))
    np.testing.assert_allclose(back, model.theta, atol=1e-9)
    again, info = fit_parameters(rows, [(0, 1), (0, 2)], objective, ridge=0.02, start=model)
    assert info.n_iter <= 3
    np.testing.assert_allclose(again.theta, model.theta, atol=1e-3)
    few, _ = fit_parameters(rows, objective=objective, penalty=0.2)
    assert few.n_edges < 15


def pairs_of_levels(n_pairs, n_rows, checkers, seed, s=5):
    """Return columns of equal margins, every second of which is linear in the one before."""
    table = np.exp(0.8 * np.outer(*[np.linspace(-1.4, 1.4, s)] * 2))
    table *= np.exp(checkers * np.outer(*[(-1.0) ** np.arange(s)] * 2))
    for _ in range(200):
        table /= table.sum(axis=0)
        table /= table.sum(axis=1, keepdims=True)
    rng = np.random.default_rng(seed)
    first = rng.integers(0, s, (n_rows, n_pairs))
    second = (rng.random((n_rows, n_pairs, 1)) > np.cumsum(table, axis=1)[first]).sum(axis=2)
    return np.concatenate((first, second), axis=1)


def test_the_rest_of_the_table_has_a_test_of_its_own():
    n, schema = 10, schema_of(["ordinal"] * 20, [5] * 20)
    p = {}
    for checkers, n_seeds in ((0.0, 3), (0.3, 1)):
        found = []
        for seed in range(n_seeds):
            codes = pairs_of_levels(n, 800, checkers, seed)
            model = discover(PackedTable.from_codes(codes, schema)).model
            columns, true = model.edge_columns, model.edges[:, 1] - model.edges[:, 0] == n
            found.append(np.stack((columns["p_rest"], columns["p_table"]))[:, true])
        p[checkers] = np.concatenate(found, axis=1)
    assert p[0.0].shape[1] == 30
    # Linear pairs: both p-values are uniform.
    assert ((p[0.0] <= 0.05).sum(axis=1) <= 5).all()
    assert ((p[0.0] <= 0.5).mean(axis=1) > 0.25).all()
    assert (p[0.3][1] <= 0.001).mean() > 0.9


def test_a_score_that_few_rows_have_is_zero():
    """A fit with it ended at infinity, and the search did not end."""
    schema = schema_of(["ordinal", "ordinal"], [4, 4])
    margins = np.array([6861.0, 2, 3, 13134, 5000, 5000, 5000, 5000])
    features = Features.of(schema, margins)
    assert not features.matrix(0)[:, 1].any()
    assert np.abs(features.matrix(0)).max() < 2
    assert features.matrix(1).any(axis=0).all()
