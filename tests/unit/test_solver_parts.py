"""The solver's parts against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.core import Layout
from edgegraft.counts import PairCounts
from edgegraft.inference import ExactEngine
from edgegraft.kernels.solver import dot, rows_times, subtract_rows
from edgegraft.objective import Likelihood, Penalty, Pseudolikelihood
from edgegraft.objective.penalty import Groups
from edgegraft.optimize import Stopping, minimize
from edgegraft.optimize.coordinates import ContrastCoordinates, Coordinates
from edgegraft.optimize.descent import solve_step
from edgegraft.optimize.metric import DenseMetric, Metric
from edgegraft.table import PackedTable, TableRows
from tests.conftest import random_codes


@pytest.mark.parametrize("size", [0, 1, 7, 1024, 2500])
def test_products_are_those_of_numpy(size):
    rng = np.random.default_rng(size)
    rows, vector, share = rng.normal(size=(5, size)), rng.normal(size=size), rng.normal(size=5)
    np.testing.assert_allclose(rows_times(rows, vector), rows @ vector, atol=1e-11)
    assert dot(rows[0], vector) == pytest.approx(rows[0] @ vector, abs=1e-11)
    out = vector.copy()
    subtract_rows(out, share, rows)
    np.testing.assert_allclose(out, vector - share @ rows, atol=1e-12)


def learned(size=12, n_pairs=7, memory=4, seed=0):
    """A metric that has seen a quadratic, and the same matrix by dense BFGS updates."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, size))
    hessian = root @ root.T + np.eye(size)
    diagonal = np.diag(hessian).copy()
    metric = Metric(diagonal, memory)
    steps = rng.normal(size=(n_pairs, size))
    for s in steps:
        assert metric.update(s, hessian @ s)
    s = steps[-1]
    y = hessian @ s
    dense = np.diag(diagonal) * (y @ (y / diagonal)) / (s @ y)
    for s in steps[-memory:]:
        y = hessian @ s
        dense += np.outer(y, y) / (y @ s)
        dense -= np.outer(dense_times(dense, y, s), dense_times(dense, y, s)) / _bend(dense, y, s)
    return metric, dense


def dense_times(dense, y, s):
    # `dense` already holds y y' / y's: take it out again.
    return (dense - np.outer(y, y) / (y @ s)) @ s


def _bend(dense, y, s):
    return s @ dense_times(dense, y, s)


def test_the_compact_form_is_bfgs():
    metric, dense = learned()
    model = metric.model()
    found = np.stack([model.times(unit) for unit in np.eye(12)], axis=1)
    np.testing.assert_allclose(found, dense, rtol=1e-9, atol=1e-9)
    values = np.linalg.eigvals(dense / metric.diagonal[:, None]).real
    assert model.spectrum == pytest.approx((values.min(), values.max()), rel=1e-6)


def test_solving_inverts_the_model():
    metric, dense = learned(seed=1)
    vector = np.random.default_rng(2).normal(size=12)
    np.testing.assert_allclose(metric.solve(vector), np.linalg.solve(dense, vector), rtol=1e-8)


def test_a_part_of_the_model_is_its_block():
    metric, dense = learned(seed=3)
    chosen = np.array([1, 4, 5, 9])
    model = metric.model(chosen)
    found = np.stack([model.times(unit) for unit in np.eye(4)], axis=1)
    np.testing.assert_allclose(found, dense[np.ix_(chosen, chosen)], rtol=1e-8, atol=1e-9)


def test_flat_pairs_are_not_learned_and_copies_are_apart():
    metric, _ = learned()
    other = metric.copy()
    assert not metric.update(np.ones(12), -np.ones(12))
    assert other.update(np.ones(12), 5 * np.ones(12))
    vector = np.arange(12.0)
    assert not np.allclose(metric.solve(vector), other.solve(vector))


def test_a_step_minimises_its_model(monkeypatch):
    monkeypatch.setattr("edgegraft.optimize.descent.ACCURACY", 1e-10)
    monkeypatch.setattr("edgegraft.optimize.descent.MAX_INNER", 5000)
    metric, dense = learned()
    groups = Groups(np.array([0, 3, 6, 12]), np.array([0.0, 2.0, 500.0]), np.zeros(3))
    rng = np.random.default_rng(5)
    x, slope = rng.normal(size=12), rng.normal(size=12)
    z = solve_step(x, slope, np.ones(3), metric, groups)
    gradient = slope + dense @ (z - x)
    assert groups.violation(z, gradient).max() < 1e-6
    assert not z[6:].any()
    steps = np.full(12, 0.01)
    np.testing.assert_allclose(groups.prox(z - steps * gradient, steps), z, atol=1e-7)


@pytest.mark.parametrize("pairs", ["known", "unknown", "wide"])
def test_coordinates_keep_the_model_and_its_slope(pairs, monkeypatch):
    if pairs == "wide":
        monkeypatch.setattr("edgegraft.optimize.coordinates.WIDEST", 5)
    states = [2, 3, 4]
    layout = Layout(states, [(0, 1), (1, 2), (0, 2)])
    counts = PairCounts(PackedTable.from_codes(random_codes(states, 200, seed=1)))
    loss = Likelihood(counts, ExactEngine())
    known = None if pairs == "unknown" else loss.pair_frequencies(layout)
    margins = loss.init(layout).frequencies[:9]
    coordinates = Coordinates(layout, margins, known)
    rng = np.random.default_rng(0)
    theta, gradient, inner = rng.normal(size=(3, layout.n_parameters))
    np.testing.assert_allclose(coordinates.outward(coordinates.inward(theta)), theta, atol=1e-12)
    np.testing.assert_array_equal(coordinates.inward(theta)[9:], theta[9:])
    # The gradient is carried by the transpose of the outward map.
    assert coordinates.gradient(gradient) @ inner == pytest.approx(
        gradient @ coordinates.outward(inner)
    )


def test_contrasts_keep_tables_of_smallest_norm_and_their_slope():
    layout = Layout([2, 2, 2], [(0, 1), (1, 2)])
    contrasts = ContrastCoordinates(layout, np.array([0.3, 0.7, 0.5, 0.5, 0.9, 0.1]))
    rng = np.random.default_rng(0)
    inner, gradient = rng.normal(size=8), rng.normal(size=layout.n_parameters)
    theta = contrasts.outward(inner)
    np.testing.assert_allclose(theta[6:], np.outer(inner[6:], [1, -1, -1, 1]).ravel())
    np.testing.assert_allclose(contrasts.inward(theta), inner, atol=1e-12)
    assert contrasts.gradient(gradient) @ inner == pytest.approx(gradient @ theta)


@pytest.mark.parametrize("ridge", [0.0, 0.02])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_contrasts_and_whole_tables_reach_the_same_minimum(ridge, missing, monkeypatch):
    codes = random_codes([2] * 5, 400, missing, seed=4)
    codes[:250, 3] = codes[:250, 0]
    codes[codes[:, 1] == 1, 2] = 1
    weights = np.random.default_rng(1).integers(1, 5, 400) / 2.0
    rows = TableRows(PackedTable.from_codes(codes), weights)
    loss = Pseudolikelihood(rows, precision="double")
    layout = loss.layout(np.stack(np.triu_indices(5, 1), axis=1))
    rule, stopping = Penalty(0.02, ridge), Stopping(tol=1e-8)
    start = np.random.default_rng(2).normal(size=layout.n_parameters)  # not made of contrasts
    found = [minimize(loss, rule, layout, at, stopping) for at in (None, start)]
    tables = found[0].theta[10:].reshape(-1, 4)
    if not missing:  # else a table's ends are not those of the nodes
        np.testing.assert_array_equal(tables, tables[:, :1] * [1, -1, -1, 1])
    plain = Coordinates(layout, loss.margins())
    monkeypatch.setattr("edgegraft.optimize.descent._coordinates", lambda *_: plain)
    whole = minimize(loss, rule, layout, None, stopping)
    empty = ~whole.theta[10:].reshape(-1, 4).any(axis=1)
    assert 0 < empty.sum() < layout.n_edges
    for each in found:
        assert each.info.converged
        assert each.info.objective == pytest.approx(whole.info.objective, abs=1e-11)
        np.testing.assert_array_equal(~each.theta[10:].reshape(-1, 4).any(axis=1), empty)
        np.testing.assert_allclose(each.theta[10:], whole.theta[10:], atol=1e-5)


def test_plain_coordinates_change_nothing():
    layout = Layout([2, 2], [(0, 1)])
    coordinates = Coordinates(layout, np.full(4, 0.5), centred=False)
    theta = np.arange(8.0)
    for map_ in (coordinates.inward, coordinates.outward, coordinates.gradient):
        np.testing.assert_array_equal(map_(theta), theta)


def test_centred_edges_are_uncorrelated_with_nodes_at_the_optimum():
    """On a forest that fits the data the Hessian has no entries between nodes and edges."""
    states = [2, 3, 2]
    codes = random_codes(states, 400, seed=2)
    codes[:100, 1] = codes[:100, 0]
    counts = PairCounts(PackedTable.from_codes(codes))
    loss = Likelihood(counts, ExactEngine())
    layout = Layout(states, [(0, 1), (1, 2)])
    frequencies = loss.init(layout).frequencies
    pairs = loss.pair_frequencies(layout)
    coordinates = Coordinates(layout, frequencies[:7], pairs)

    inner = coordinates.inward(loss.bethe_start(layout))
    state, h = loss.init(layout), 1e-5

    def slope(at):
        return coordinates.gradient(loss.evaluate(coordinates.outward(at), state).gradient)

    for k in range(7):
        unit = np.eye(layout.n_parameters)[k]
        column = (slope(inner + h * unit) - slope(inner - h * unit)) / (2 * h)
        assert np.abs(column[7:]).max() < 1e-5


def test_the_penalty_may_reach_the_nodes():
    assert Penalty(1.0, penalize_nodes=True).groups(Layout([2, 2])).strength.all()


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_the_dense_metric_solves_its_equation_and_saves_evaluations(missing):
    states = [2, 3, 2, 4]
    codes = random_codes(states, 500, missing, seed=6)
    codes[:200, 2] = codes[:200, 0]
    table = PackedTable.from_codes(codes)
    layout = Layout(states, np.stack(np.triu_indices(4, 1), axis=1))
    counts, loss = PairCounts(table), Pseudolikelihood(table, precision="double")
    metric = DenseMetric(layout, counts, 0.01, np.ones(layout.n_parameters))
    unit = np.eye(layout.n_parameters)
    matrix = np.stack([metric.solve(row) for row in unit])
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-10)
    assert np.linalg.eigvalsh(matrix).min() > 0
    penalty, stopping = Penalty(0.0, 0.01), Stopping(tol=1e-7)
    plain = minimize(loss, penalty, layout, None, stopping)
    dense = minimize(loss, penalty, layout, None, stopping, counts=counts)
    assert dense.info.objective == pytest.approx(plain.info.objective, abs=1e-11)
    np.testing.assert_allclose(dense.theta, plain.theta, atol=1e-4)
    assert dense.info.n_evaluations <= plain.info.n_evaluations


def test_unfit_parts_are_refused_before_any_work():
    class Curve:
        """Something with a value, but not an objective."""

        def evaluate(self, theta, state):
            raise AssertionError("the solver went to work")

    layout = Layout([2, 2], [(0, 1)])
    with pytest.raises(TypeError, match=r"Curve lacks init, grow, .*derive it from .*Objective"):
        minimize(Curve(), Penalty(0.1), layout)
    loss = Likelihood(PairCounts(PackedTable.from_codes([[0, 0], [1, 1]])), ExactEngine())
    with pytest.raises(TypeError, match=r"float lacks groups.*Penalty"):
        minimize(loss, 0.1, layout)
