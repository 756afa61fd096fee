"""Protocol of penalties: every penalty, compared with its definition and with theory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from edgegraft.optimize import Stopping, minimize
from tests import fit_checks
from tests.protocol.objective_parts import (
    PENALTIES,
    PairTables,
    graph,
    objective,
    point,
    table_offsets,
)

LAYOUT = graph("loop")
NODES = int(LAYOUT.node_offset[-1])

every_penalty = pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
every_step = pytest.mark.parametrize("step", ["one", "per group", "per parameter"])


def draw(seed):
    return np.random.default_rng(seed).normal(size=LAYOUT.n_parameters)


def steps_of(penalty, kind):
    """Return steps as `prox` takes them, and the same steps per parameter."""
    rng = np.random.default_rng(2)
    if kind == "one":
        return 0.7, np.full(LAYOUT.n_parameters, 0.7)
    if kind == "per parameter":
        steps = rng.uniform(0.1, 3, LAYOUT.n_parameters)
        return steps, steps
    sizes = np.diff(penalty.groups(LAYOUT).offsets)
    steps = rng.uniform(0.1, 3, len(sizes))
    return steps, np.repeat(steps, sizes)


def tables_of(gradient):
    shapes = LAYOUT.states[LAYOUT.edges]
    return PairTables(LAYOUT.edges, shapes, gradient[NODES:], table_offsets(shapes))


@every_penalty
def test_the_value_matches_the_definition(penalty):
    theta = draw(0)
    expected = fit_checks.penalty_value(theta, LAYOUT, penalty)
    assert penalty.value(theta, LAYOUT) == pytest.approx(expected, rel=1e-13)
    assert penalty.value(np.zeros(LAYOUT.n_parameters), LAYOUT) == 0.0


@every_penalty
def test_groups_cover_the_parameters(penalty):
    groups = penalty.groups(LAYOUT)
    assert groups.offsets[0] == 0
    assert groups.offsets[-1] == LAYOUT.n_parameters
    assert (np.diff(groups.offsets) > 0).all()
    assert len(groups.strength) == len(groups.ridge) == len(groups.offsets) - 1
    if not penalty.penalize_nodes:
        own = groups.offsets[1:] <= NODES
        assert not groups.strength[own].any()
        assert not groups.ridge[own].any()


@every_penalty
@every_step
def test_the_prox_is_optimal(penalty, step):
    theta = draw(1)
    given, steps = steps_of(penalty, step)
    found = penalty.prox(theta, given, LAYOUT)
    violation = penalty.violation(found, (found - theta) / steps, LAYOUT)
    assert violation.max() < 1e-12
    assert fit_checks.residual(found, (found - theta) / steps, LAYOUT, penalty) < 1e-12

    def total(w):
        return ((w - theta) ** 2 / (2 * steps)).sum() + penalty.value(w, LAYOUT)

    rng, best = np.random.default_rng(3), total(found)
    for size in (1e-6, 1e-3, 1.0):
        for _ in range(20):
            assert total(found + size * rng.normal(size=len(theta))) >= best - 1e-13


@every_penalty
def test_the_prox_is_nonexpansive_and_tiny_steps_change_nothing(penalty):
    one, other = draw(4), draw(5)
    ends = [penalty.prox(theta, 0.8, LAYOUT) for theta in (one, other)]
    assert np.linalg.norm(ends[0] - ends[1]) <= np.linalg.norm(one - other) + 1e-12
    np.testing.assert_allclose(penalty.prox(one, 1e-13, LAYOUT), one, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(one, draw(4))


@every_penalty
def test_a_large_step_gives_exact_zeros(penalty):
    found = penalty.prox(draw(6), 1e6, LAYOUT)
    shrunk = found if penalty.penalize_nodes else found[NODES:]
    if penalty.penalty:
        assert not shrunk.any()
    if not penalty.penalize_nodes:
        np.testing.assert_array_equal(found[:NODES], draw(6)[:NODES])


@every_penalty
def test_the_violation_of_active_groups_is_the_gradient_of_the_whole(penalty):
    theta, slope, h = draw(7), draw(8), 1e-6
    whole = np.empty(len(theta))
    for k in range(len(theta)):
        step = np.zeros(len(theta))
        step[k] = h
        ends = [penalty.value(theta + d, LAYOUT) for d in (step, -step)]
        whole[k] = slope[k] + (ends[0] - ends[1]) / (2 * h)
    squares = np.add.reduceat(whole**2, penalty.groups(LAYOUT).offsets[:-1])
    found = penalty.violation(theta, slope, LAYOUT)
    np.testing.assert_allclose(found, np.sqrt(squares), rtol=0, atol=1e-6)


@every_penalty
def test_the_score_shows_whether_a_zero_edge_violates(penalty):
    theta = point(LAYOUT).copy()
    theta[NODES:] = 0.0
    slope = 0.4 * draw(9)
    scores = penalty.score(slope, LAYOUT)
    groups = penalty.groups(LAYOUT)
    violation = penalty.violation(theta, slope, LAYOUT)
    edge_of = np.searchsorted(LAYOUT.edge_offset, groups.offsets[:-1], "right") - 1
    for k in range(LAYOUT.n_edges):
        worst = violation[(edge_of == k) & (groups.offsets[:-1] >= NODES)].max()
        cells = np.diff(LAYOUT.edge_offset)[[k]]
        (weight,) = penalty.edge_weights(LAYOUT.edges[[k]], cells)
        excess = (scores[k] - penalty.penalty) * weight
        assert worst == pytest.approx(max(0.0, excess), abs=1e-12)


@every_penalty
def test_scores_of_a_gradient_and_of_tables_agree(penalty):
    slope = draw(10)
    scores = penalty.score(slope, LAYOUT)
    np.testing.assert_array_equal(scores, penalty.score(tables_of(slope)))
    np.testing.assert_allclose(penalty.score(3.0 * slope, LAYOUT), 3.0 * scores, rtol=1e-13)
    assert penalty.largest_useful(slope, LAYOUT) == scores.max()
    assert penalty.largest_useful(tables_of(slope)) == scores.max()


@every_penalty
@pytest.mark.parametrize("name", ["likelihood, exact", "pseudolikelihood", "blocks"])
def test_the_largest_useful_penalty_is_where_the_first_edge_enters(penalty, name):
    if penalty.penalize_nodes:
        pytest.skip("with shrunk node vectors, the best model without edges differs")
    loss = objective(name, "complete")
    at_start = loss.evaluate(loss.start(LAYOUT), loss.init(LAYOUT))
    largest = penalty.largest_useful(at_start.gradient, LAYOUT)
    assert largest > 0
    for share, edges in ((1.001, False), (0.9, True)):
        rule = replace(penalty, penalty=share * largest)
        found = minimize(loss, rule, LAYOUT, None, Stopping(tol=1e-7))
        assert found.info.converged
        assert found.theta[NODES:].any() == edges


@every_penalty
def test_only_noise_weights_depend_on_data(penalty):
    loss = objective("pseudolikelihood", "complete")
    assert penalty.bound(loss) is penalty
