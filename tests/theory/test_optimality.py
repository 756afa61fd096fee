"""Theory of optima: optimality conditions, forests, the largest penalty."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.core import Layout
from edgegraft.counts import PairCounts
from edgegraft.datasets import make_chain, make_scale_free
from edgegraft.inference import BeliefPropagation, ExactEngine, TreeReweighted
from edgegraft.objective import Likelihood, Penalty, Pseudolikelihood
from edgegraft.optimize import Stopping, fit_parameters, minimize
from edgegraft.table import PackedTable
from tests import fit_checks
from tests import pseudolikelihood_twin as twin

PENALTIES = {
    "none": Penalty(),
    "ridge": Penalty(0.0, 0.01),
    "group": Penalty(0.01),
    "group and ridge": Penalty(0.01, 0.01),
    "states": Penalty(0.002, 0.001, group_weight="states"),
    "nodes too": Penalty(0.01, 0.01, penalize_nodes=True),
}
ENGINES = {
    "exact": ExactEngine(),
    "bp": BeliefPropagation(tol=1e-9),
    "trw": TreeReweighted(tol=1e-8, max_iter=5000),
}


@pytest.fixture(scope="module")
def table():
    data = make_scale_free(8, n_states=3, n_rows=2000, random_state=1, burn_in=200)
    return PackedTable.from_codes(data.X.astype(np.int64)), data.edges


def graph(table, edges):
    extra = [(0, 7), (3, 6)]
    both = {tuple(e) for e in edges.tolist()} | set(extra)
    return Layout(table.schema.n_states, sorted(both))


def assert_optimal(found, penalty, gradient, layout, tol):
    assert found.info.converged
    assert fit_checks.residual(found.theta, gradient, layout, penalty) <= tol
    assert (np.diff(found.info.path) <= 1e-8 * np.abs(found.info.path[1:])).all()


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("engine", ENGINES)
def test_likelihood_fits_meet_the_conditions(table, engine, name):
    packed, edges = table
    layout = graph(packed, edges)
    loss = Likelihood(PairCounts(packed), ENGINES[engine])
    found = minimize(loss, PENALTIES[name], layout, stopping=Stopping(tol=1e-5))
    cold = loss.evaluate(found.theta, loss.init(layout))
    assert_optimal(found, PENALTIES[name], cold.gradient, layout, 1.5e-5)


@pytest.mark.parametrize("name", PENALTIES)
def test_pseudolikelihood_fits_meet_the_conditions(table, name):
    packed, edges = table
    layout = graph(packed, edges)
    loss = Pseudolikelihood(packed, precision="double")
    found = minimize(loss, PENALTIES[name], layout, stopping=Stopping(tol=1e-5))
    _, gradient = twin.evaluate(packed.codes(), layout, found.theta)
    assert_optimal(found, PENALTIES[name], gradient, layout, 1.01e-5)


@pytest.mark.parametrize("engine", ["exact", "bp", "trw"])
def test_a_forest_reproduces_the_pairs_exactly(engine):
    data = make_chain(9, n_states=3, n_rows=3000, random_state=2, burn_in=200)
    edges = [(0, 1), (1, 2), (1, 3), (3, 4), (5, 6), (6, 7)]
    counts = PairCounts(PackedTable.from_codes(data.X.astype(np.int64)))
    model, info = fit_parameters(counts, edges, "likelihood", engine=engine)
    assert info.converged
    for i, j in edges:
        expected = counts.pairs([(i, j)])[0] / 3000
        found = model.pair_marginal(model.names[i], model.names[j], engine="exact")
        np.testing.assert_allclose(np.asarray(found.table), expected, atol=1e-5)


def test_a_warm_start_keeps_the_solution(table):
    packed, edges = table
    layout = graph(packed, edges)
    loss = Likelihood(PairCounts(packed), ExactEngine())
    penalty = Penalty(0.005, 0.001)
    cold = minimize(loss, penalty, layout)
    again = minimize(loss, penalty, layout, cold)
    assert again.info.n_evaluations == 1
    np.testing.assert_allclose(again.theta, cold.theta, rtol=0, atol=1e-12)
    fewer = Layout(layout.states, layout.edges[:-2])
    grown = fewer.grow(layout.edges[-2:])
    warm = minimize(loss, penalty, grown, minimize(loss, penalty, fewer))
    assert warm.info.objective == pytest.approx(cold.info.objective, abs=1e-7)
    assert warm.info.n_evaluations <= cold.info.n_evaluations
