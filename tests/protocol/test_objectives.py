"""Protocol of objectives: every objective on every graph and every kind of table."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from edgegraft import PackedTable
from tests import pseudolikelihood_twin as twin
from tests.protocol.objective_parts import (
    GRAPHS,
    OBJECTIVES,
    STATES,
    TABLES,
    Layout,
    graph,
    objective,
    point,
)

every_objective = pytest.mark.parametrize("name", OBJECTIVES)
every_graph = pytest.mark.parametrize("shape", GRAPHS)
every_table = pytest.mark.parametrize("table", TABLES)


def solve(name, table, shape, seed=1):
    """Return an objective, a layout, a point, and its evaluation from a cold state."""
    loss, layout = objective(name, table), graph(shape)
    theta = point(layout, seed)
    return loss, layout, theta, loss.evaluate(theta, loss.init(layout))


def assert_close(name, found, expected, times=1.0):
    np.testing.assert_allclose(found, expected, rtol=0, atol=times * OBJECTIVES[name].close)


def outside(layout):
    inside = set(map(tuple, layout.edges.tolist()))
    pairs = itertools.combinations(range(layout.n_variables), 2)
    return np.array([pair for pair in pairs if pair not in inside])


@every_objective
@every_graph
@every_table
def test_the_gradient_is_that_of_the_value(name, shape, table):
    loss, layout, theta, found = solve(name, table, shape)
    assert found.trusted
    assert found.gradient.shape == (layout.n_parameters,)
    single = "single" in name
    h = 1e-2 if single else 1e-4
    for way in np.random.default_rng(0).normal(size=(3, layout.n_parameters)):
        ahead, behind = (loss.evaluate(theta + d * way, found.state).value for d in (h, -h))
        slope = (ahead - behind) / (2 * h)
        assert slope == pytest.approx(found.gradient @ way, abs=2e-3 if single else 2e-6)


@every_objective
@every_table
def test_gradients_of_edges_are_parts_of_the_gradient(name, table):
    loss, layout, theta, found = solve(name, table, "loop")
    for edges in (layout.edges, layout.edges[::-1, ::-1]):
        tables = loss.edge_gradients(theta, found.state, edges)
        np.testing.assert_array_equal(tables.edges, edges)
        for (i, j), own in zip(edges.tolist(), tables, strict=True):
            k = int(np.flatnonzero((layout.edges == sorted((i, j))).all(axis=1))[0])
            expected = layout.edge(found.gradient, k)
            assert_close(name, own, expected if i < j else expected.T)


@every_objective
@every_graph
@every_table
def test_gradients_of_other_pairs_equal_those_of_zero_tables(name, shape, table):
    if not OBJECTIVES[name].steady:
        pytest.skip("an edge of zeros changes the approximation")
    loss, layout, theta, found = solve(name, table, shape)
    pairs = outside(layout)
    grown = layout.grow(pairs)
    wider = loss.evaluate(grown.carry(theta, layout), loss.init(grown))
    assert_close(name, wider.value, found.value)
    tables = loss.edge_gradients(theta, found.state, np.concatenate((pairs, pairs[:, ::-1])))
    for k in range(len(pairs)):
        expected = grown.edge(wider.gradient, layout.n_edges + k)
        assert_close(name, tables[k], expected, times=10)
        assert_close(name, tables[len(pairs) + k], tables[k].T)


@every_objective
@every_table
def test_batches_of_pairs_do_not_depend_on_earlier_batches(name, table):
    loss, layout, theta, found = solve(name, table, "tree")
    pairs = outside(layout)
    whole = loss.edge_gradients(theta, found.state, pairs)
    again = loss.evaluate(theta, loss.init(layout)).state
    for k in range(len(pairs)):
        (one,) = loss.edge_gradients(theta, again, pairs[[k]])
        assert_close(name, one, whole[k])


@every_objective
@every_table
def test_an_evaluation_changes_neither_state_nor_parameters(name, table):
    loss, layout, theta, found = solve(name, table, "loop")
    cold, other = loss.init(layout), point(layout, seed=2)
    before = loss.evaluate(theta, cold)
    elsewhere = loss.evaluate(other, before.state)
    loss.edge_gradients(other, elsewhere.state, outside(layout))
    for state in (cold, before.state):
        after = loss.evaluate(theta, state)
        assert_close(name, after.value, found.value)
        assert_close(name, after.gradient, found.gradient)
    np.testing.assert_array_equal(before.gradient, found.gradient)


@every_objective
@every_table
def test_warm_and_cold_states_give_the_same_value(name, table):
    loss, layout, _, found = solve(name, table, "loop")
    other = point(layout, seed=2)
    warm, cold = (loss.evaluate(other, s) for s in (found.state, loss.init(layout)))
    assert_close(name, warm.value, cold.value, times=10)
    assert_close(name, warm.gradient, cold.gradient, times=10)


@every_objective
@every_table
@pytest.mark.parametrize("to", ["no edges", "tree"])
def test_a_grown_state_gives_the_same_value_as_a_new_one(name, table, to):
    loss, layout, theta, found = solve(name, table, "loop")
    for target in (layout.grow(outside(layout)), graph(to)):
        there = target.carry(theta, layout)
        grown = loss.evaluate(there, loss.grow(found.state, target))
        fresh = loss.evaluate(there, loss.init(target))
        assert_close(name, grown.value, fresh.value, times=10)
        assert_close(name, grown.gradient, fresh.gradient, times=10)


@every_objective
@every_table
def test_curvature_is_positive_and_has_the_right_magnitude(name, table):
    loss, layout = objective(name, table), graph("loop")
    curvature, theta, state = loss.curvature(layout), loss.start(layout), loss.init(layout)
    assert curvature.shape == (layout.n_parameters,)
    assert np.isfinite(curvature).all()
    assert (curvature > 0).all()
    if "single" in name:
        return
    h = 1e-3
    for k in range(0, layout.n_parameters, 3):
        step = np.zeros(layout.n_parameters)
        step[k] = h
        ends = [loss.evaluate(theta + d, state).gradient[k] for d in (step, -step)]
        own = (ends[0] - ends[1]) / (2 * h)
        assert own / 3 <= curvature[k] + 1e-3
        assert curvature[k] <= 3 * own + 1e-3


@every_objective
@every_table
def test_the_start_is_the_best_independent_model(name, table):
    loss, layout = objective(name, table), graph("loop")
    theta = loss.start(layout)
    nodes = int(layout.node_offset[-1])
    assert np.isfinite(theta).all()
    assert not theta[nodes:].any()
    bare = Layout(STATES)
    found = loss.evaluate(theta[:nodes], loss.init(bare))
    assert_close(name, found.gradient, 0.0, times=10)
    assert 0.0 < found.value < np.log(STATES).sum()
    assert_close(name, loss.evaluate(theta, loss.init(layout)).value, found.value, times=10)


@every_objective
@every_table
def test_constants_added_to_node_vectors_change_nothing(name, table):
    loss, layout, theta, found = solve(name, table, "loop")
    shifted = theta.copy()
    for i in range(layout.n_variables):
        layout.node(shifted, i)[:] += i - 2.0
    moved = loss.evaluate(shifted, loss.init(layout))
    assert_close(name, moved.value, found.value, times=100)
    assert_close(name, moved.gradient, found.gradient, times=100)


@every_objective
@every_table
def test_convex_losses_lie_below_their_chords_and_above_their_tangents(name, table):
    if not OBJECTIVES[name].convex:
        pytest.skip("the Bethe approximation is not convex")
    loss, layout, theta, found = solve(name, table, "loop")
    other = point(layout, seed=4)
    there = loss.evaluate(other, found.state)
    middle = loss.evaluate((theta + other) / 2, found.state)
    slack = 10 * OBJECTIVES[name].close
    assert middle.value <= (found.value + there.value) / 2 + slack
    assert there.value >= found.value + found.gradient @ (other - theta) - slack


@every_objective
def test_a_row_of_weight_two_is_two_rows(name):
    codes = TABLES["missing"].codes
    counts = np.random.default_rng(0).integers(0, 3, len(codes))
    layout = graph("loop")
    theta = point(layout)
    make = OBJECTIVES[name].make
    repeated = np.repeat(codes, counts, axis=0)
    schema = PackedTable.from_codes(codes).schema
    pairs = outside(layout)
    sides = []
    for loss in (
        make(PackedTable.from_codes(codes, schema), counts.astype(float)),
        make(PackedTable.from_codes(repeated, schema), None),
    ):
        found = loss.evaluate(theta, loss.init(layout))
        sides.append((loss.n_rows, found, loss.edge_gradients(theta, found.state, pairs).values))
    (weight, one, scores), (n_rows, other, expected) = sides
    if loss.terms == 2:  # the likelihood counts rows with at least one known cell
        assert weight == n_rows == counts.sum()
    assert_close(name, one.value, other.value, times=10)
    assert_close(name, one.gradient, other.gradient, times=10)
    assert_close(name, scores, expected, times=10)


@every_objective
@every_table
def test_an_objective_describes_itself(name, table):
    loss, rows = objective(name, table), TABLES[table]
    assert loss.schema.n_states.tolist() == STATES
    assert loss.terms == (1 if name.startswith("likelihood") else 2)
    if rows.weights is None:
        assert loss.n_rows == len(rows.codes)
    else:
        assert loss.n_rows == pytest.approx(rows.weights.sum(), rel=0.05)


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if not name.startswith("likelihood")])
@every_graph
@every_table
def test_pseudolikelihoods_match_their_definition(name, shape, table):
    _, layout, theta, found = solve(name, table, shape)
    rows = TABLES[table]
    value, gradient = twin.evaluate(rows.codes, layout, theta, rows.weights)
    assert_close(name, found.value, value, times=10)
    assert_close(name, found.gradient, gradient)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("pseudolikelihood", "pseudolikelihood, two threads"),
        ("blocks", "blocks, two threads"),
        ("blocks", "blocks, no room"),
    ],
)
@every_table
def test_the_bytes_do_not_depend_on_threads_and_memory(one, other, table):
    sides = []
    for name in (one, other):
        loss, layout, theta, found = solve(name, table, "loop")
        scores = loss.edge_gradients(theta, found.state, outside(layout)).values
        sides.append((found.value, found.gradient.tobytes(), scores.tobytes()))
    assert sides[0] == sides[1]
