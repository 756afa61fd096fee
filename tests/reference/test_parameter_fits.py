"""Fits compared with generic solvers, and with known optima of real data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

from edgegraft.core import Layout
from edgegraft.datasets import make_scale_free
from edgegraft.objective import Penalty
from edgegraft.optimize import fit_parameters
from edgegraft.table import PackedTable
from tests import fit_checks
from tests import pseudolikelihood_twin as twin
from tests.conftest import random_codes
from tests.message_models import enumerate_all

STATES = [2, 3, 2, 3]
EDGES = [(0, 1), (1, 2), (2, 3), (0, 3), (1, 3)]


@pytest.fixture(scope="module")
def codes():
    data = make_scale_free(4, n_states=[2, 3, 2, 3], n_rows=800, random_state=0, burn_in=200)
    return data.X.astype(np.int64)


def test_likelihood_with_a_ridge_against_lbfgs(codes):
    layout = Layout(STATES, EDGES)
    frequencies = np.concatenate(
        [np.bincount(codes[:, i], minlength=s) for i, s in enumerate(STATES)]
        + [
            np.bincount(codes[:, i] * STATES[j] + codes[:, j], minlength=STATES[i] * STATES[j])
            for i, j in EDGES
        ]
    ) / len(codes)
    ridge = np.repeat([0.0, 0.01], [sum(STATES), layout.n_parameters - sum(STATES)])

    def total(theta):
        truth = enumerate_all(theta, layout)
        value = truth.log_partition - theta @ frequencies + ridge @ theta**2
        return value, truth.values - frequencies + 2 * ridge * theta

    best = scipy_minimize(
        total, np.zeros(layout.n_parameters), jac=True, method="L-BFGS-B",
        options={"maxiter": 2000, "gtol": 1e-9, "ftol": 1e-15},
    )  # fmt: skip
    model, info = fit_parameters(codes, EDGES, "likelihood", ridge=0.01, engine="exact", tol=1e-8)
    assert info.converged
    assert info.objective == pytest.approx(best.fun, abs=1e-10)
    first = int(layout.edge_offset[0])
    np.testing.assert_allclose(model.theta[first:], best.x[first:], atol=1e-5)


@pytest.mark.parametrize("kind", ["complete", "missing", "weighted"])
def test_pseudolikelihood_with_penalty_against_a_smooth_solver(codes, kind):
    """Compare with L-BFGS on a smoothed norm.

    min f(w) + c ||w|| is solved as f + c sqrt(||w||^2 + eps), with eps going to zero.
    """
    codes = codes.copy()
    if kind != "complete":
        codes[random_codes(STATES, len(codes), 0.1, seed=4) < 0] = -1
    weights = np.random.default_rng(1).uniform(0, 2, len(codes)) if kind == "weighted" else None
    layout, penalty = Layout(STATES, EDGES), Penalty(0.004, 0.002)

    def total(theta, eps):
        value, gradient = twin.evaluate(codes, layout, theta, weights)
        for k in range(layout.n_edges):
            w, g = layout.edge(theta, k), layout.edge(gradient, k)
            norm = np.sqrt((w**2).sum() + eps)
            c = fit_checks.weight(penalty, w.size)
            value += c * norm + penalty.ridge * (w**2).sum()
            g += c * w / norm + 2 * penalty.ridge * w
        return value, gradient

    theta = np.zeros(layout.n_parameters)
    for eps in (1e-2, 1e-5, 1e-8, 1e-12):
        theta = scipy_minimize(
            total, theta, args=(eps,), jac=True, method="L-BFGS-B",
            options={"maxiter": 3000, "gtol": 1e-8, "ftol": 1e-15},
        ).x  # fmt: skip
    best = twin.evaluate(codes, layout, theta, weights)[0]
    best += fit_checks.penalty_value(theta, layout, penalty)
    model, info = fit_parameters(
        PackedTable.from_codes(codes), EDGES, penalty=0.004, ridge=0.002, weights=weights, tol=1e-7
    )
    assert info.converged
    assert info.objective == pytest.approx(best, abs=1e-5)
    assert info.objective <= best + 1e-9
    full = layout.carry(model.theta, model.layout)
    _, gradient = twin.evaluate(codes, layout, full, weights)
    assert fit_checks.residual(full, gradient, layout, penalty) < 1.1e-7


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["likelihood", "pseudolikelihood"])
def test_optima_of_nltcs(shared_data, objective):
    path = shared_data / "debd" / "nltcs.npz"
    if not path.is_file():
        pytest.skip("nltcs.npz is not in the folder of real data")
    data = np.load(path)
    train, test = (data[part].astype(np.int64) for part in ("train", "test"))
    model, info = fit_parameters(train, None, objective, engine="exact")
    assert info.converged

    def pseudo(rows):
        return -twin.evaluate(rows, model.layout, model.theta)[0]

    def log_likelihood(rows):
        return float((model.energy(codes=rows) - model.log_partition(engine="exact").value).mean())

    if objective == "likelihood":
        assert log_likelihood(train) == pytest.approx(-6.025468, abs=5e-5)
        assert log_likelihood(test) == pytest.approx(-6.02841, abs=5e-5)
        assert pseudo(test) == pytest.approx(-4.95010, abs=5e-5)
    else:
        assert pseudo(train) == pytest.approx(-4.948242, abs=5e-5)
        assert pseudo(test) == pytest.approx(-4.95056, abs=5e-5)
