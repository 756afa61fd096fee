"""Fits over all rows by way of few of them: the same optimum, with few passes."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.core import Layout
from edgegraft.datasets import make_chain
from edgegraft.objective import Penalty, Pseudolikelihood
from edgegraft.objective.objective import Tilted
from edgegraft.optimize import Stopping, minimize
from edgegraft.table import PackedTable, StoredRows
from tests.conftest import CutTable

EDGES = [(k, k + 1) for k in range(7)] + [(0, 7)]
TIGHT = Stopping(tol=1e-6)


class CountedRows(StoredRows):
    """Rows that count the passes over them, once their margins are known."""

    passes = -1

    def map(self, *given):
        self.passes += 1
        return super().map(*given)


@pytest.fixture(scope="module")
def X():
    X = make_chain(8, n_states=3, n_rows=8000, random_state=0).X.astype(int)
    X[np.random.default_rng(0).random(X.shape) < 0.05] = -1
    return X


def losses(X, sample):
    """Return the loss of all rows with one of a sample beside it, and the rows."""
    table = PackedTable.from_codes(X)
    rows = CountedRows(CutTable(table))
    some = Pseudolikelihood(PackedTable.from_codes(sample, table.schema))
    return Pseudolikelihood(rows, stand_in=some), rows


@pytest.mark.parametrize("penalty", [0.0, 0.03], ids=["ridge", "group norms"])
def test_the_optimum_is_that_of_all_rows_with_a_fraction_of_the_passes(X, penalty):
    rule = Penalty(penalty, ridge=1e-3)
    layout = Layout([3] * 8, EDGES)
    plain = Pseudolikelihood(CountedRows(CutTable(PackedTable.from_codes(X))))
    expected = minimize(plain, rule, layout, stopping=TIGHT)
    loss, rows = losses(X, X[:2000])
    found = minimize(loss, rule, layout, stopping=TIGHT)
    assert found.info.converged
    assert found.info.residual <= TIGHT.tol
    first = int(layout.edge_offset[0])  # node vectors are free of a constant each
    np.testing.assert_allclose(found.theta[first:], expected.theta[first:], atol=1e-3)
    assert found.info.objective == pytest.approx(expected.info.objective, abs=1e-9)
    assert rows.passes <= 0.4 * plain.rows.passes


def test_a_sample_that_misleads_is_left(X):
    """One of other columns: its curvature is wrong where the model has edges."""
    loss, _ = losses(X, np.random.default_rng(1).permuted(X[:300], axis=1))
    found = minimize(loss, Penalty(0.0, ridge=1e-3), Layout([3] * 8, EDGES), stopping=TIGHT)
    assert found.info.converged
    assert found.info.residual <= TIGHT.tol


def test_a_state_that_the_sample_lacks_is_fitted_too(X):
    rows = X.copy()
    rows[::50, 3] = 2
    sample = rows[(rows[:, 3] != 2)][:1000]
    loss, _ = losses(rows, sample)
    found = minimize(loss, Penalty(0.0, ridge=1e-3), Layout([3] * 8, EDGES), stopping=TIGHT)
    assert found.info.converged


def test_the_tilted_loss_has_the_gradient_of_its_value(X):
    layout = Layout([3] * 8, EDGES)
    loss, _ = losses(X, X[:500])
    rng = np.random.default_rng(2)
    at, theta = rng.normal(0, 0.3, (2, layout.n_parameters))
    slope = loss.evaluate(at, loss.init(layout)).gradient
    tilted = Tilted(loss.stand_in, loss, layout, at, slope)
    state = tilted.init(layout)
    np.testing.assert_allclose(tilted.evaluate(at, state).gradient, slope, atol=1e-12)
    here = tilted.evaluate(theta, state)
    way = rng.normal(size=layout.n_parameters)
    ahead, behind = (tilted.evaluate(theta + s * 1e-5 * way, state).value for s in (1, -1))
    assert (ahead - behind) / 2e-5 == pytest.approx(here.gradient @ way, abs=1e-7)


# What is known is not worked out again


def test_a_second_look_at_the_same_parameters_costs_no_pass(X):
    loss, rows = losses(X, X[:500])
    layout = Layout([3] * 8, EDGES)
    theta = np.random.default_rng(3).normal(0, 0.3, layout.n_parameters)
    first = loss.evaluate(theta, loss.init(layout))
    again = loss.evaluate(theta, first.state)
    assert rows.passes == 1
    assert again.value == first.value
    np.testing.assert_array_equal(again.gradient, first.gradient)
    loss.evaluate(theta + 1e-9, again.state)
    assert rows.passes == 2


def test_edges_of_zeros_cost_no_pass_once_all_pairs_are_known(X):
    loss, rows = losses(X, X[:500])
    small, large = Layout([3] * 8, EDGES[:4]), Layout([3] * 8, [*EDGES, (2, 5)])
    theta = np.random.default_rng(4).normal(0, 0.3, small.n_parameters)
    first = loss.evaluate(theta, loss.init(small))
    every = np.stack(np.triu_indices(8, 1), axis=1)
    tables = loss.edge_gradients(theta, first.state, every)
    wide = large.carry(theta, small)
    found = loss.evaluate(wide, loss.grow(first.state, large))
    assert rows.passes == 2
    expected = loss.evaluate(wide, loss.init(large))
    assert rows.passes == 3
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    np.testing.assert_allclose(found.gradient, expected.gradient, atol=1e-12)
    # And back, with the gradients of all pairs still known.
    back = loss.evaluate(theta, loss.grow(found.state, small))
    np.testing.assert_array_equal(back.gradient, first.gradient)
    np.testing.assert_array_equal(
        loss.edge_gradients(theta, back.state, every).values, tables.values
    )
    assert rows.passes == 3


def test_without_edges_the_margins_are_enough(X):
    loss, rows = losses(X, X[:500])
    layout = Layout([3] * 8)
    theta = np.random.default_rng(5).normal(0, 2.0, layout.n_parameters)
    plain = Pseudolikelihood(PackedTable.from_codes(X))
    expected = plain.evaluate(theta, plain.init(layout))
    found = loss.evaluate(theta, loss.init(layout))
    assert rows.passes == 0
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    np.testing.assert_allclose(found.gradient, expected.gradient, atol=1e-13)
    np.testing.assert_allclose(found.state.losses, expected.state.losses, rtol=1e-12)
