"""Grafting and grafting-light against the conditions of optimality under plain l1."""

from __future__ import annotations

import numpy as np
import pytest
from tests.learn_cases import make_loss, make_table

from edgegraft.core import Layout
from edgegraft.optimize import Stopping, minimize
from paper.feature_grafting import FeaturePenalty, graft_features
from tests import fit_checks

PENALTY, TOL = 0.02, 1e-5


@pytest.fixture(scope="module")
def loss():
    return make_loss(make_table()[0])


def weights(found):
    """Return the parameters of edges, and which of them were activated."""
    first = int(found.solution.layout.edge_offset[0])
    return found.solution.theta[first:], found.allowed[first:]


def test_grafting_ends_at_the_optimum_of_plain_l1(loss):
    found = graft_features(loss, PENALTY, tol=TOL)
    theta, allowed = weights(found)
    assert (theta[~allowed] == 0).all()
    assert 0 < allowed.sum() == found.n_activations
    solution = found.solution
    plain = FeaturePenalty(PENALTY)
    worst = fit_checks.residual(solution.theta, solution.gradient, solution.layout, plain)
    assert worst <= 1.2 * TOL
    pairs = np.stack(np.triu_indices(12, 1), axis=1)
    at_once = minimize(loss, plain, Layout(loss.schema.n_states, pairs), None, Stopping(TOL))
    assert solution.info.objective == pytest.approx(at_once.info.objective, rel=1e-6)


def test_grafting_light_allows_only_what_it_activated(loss):
    found = graft_features(loss, PENALTY, light=True, tol=TOL, max_edges=8)
    theta, allowed = weights(found)
    assert found.solution.layout.n_edges <= 8
    assert (theta[~allowed] == 0).all()
    assert 0 < allowed.sum() == found.n_activations


def test_nothing_is_activated_by_a_penalty_too_large(loss):
    found = graft_features(loss, 10.0)
    assert (found.solution.layout.n_edges, found.n_activations) == (0, 0)


@pytest.mark.parametrize("nodes", [False, True])
def test_the_penalty_is_its_definition(nodes):
    layout = Layout([2, 3, 4, 2], [(0, 1), (1, 2), (0, 3)])
    penalty = FeaturePenalty(0.3, 0.1, penalize_nodes=nodes)
    theta = np.random.default_rng(0).normal(size=layout.n_parameters)
    assert penalty.value(theta, layout) == pytest.approx(
        fit_checks.penalty_value(theta, layout, penalty), rel=1e-13
    )
    moved = penalty.prox(theta, 0.7, layout)
    assert fit_checks.residual(moved, (moved - theta) / 0.7, layout, penalty) < 1e-12
