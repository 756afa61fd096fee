"""Pseudolikelihood: what does not change results, hostile tables, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit, types
from numba.extending import intrinsic

from edgegraft.core import Layout
from edgegraft.errors import DataError, EdgeError, ModelError
from edgegraft.kernels.conditionals.lanes import LANES, Vectors, load_lanes, store_lanes
from edgegraft.kernels.conditionals.lookup import ROOM
from edgegraft.objective import Pseudolikelihood
from edgegraft.objective.block_sums import columns_of
from edgegraft.objective.bundles import alternatives_of, bundle, route, wire
from edgegraft.table import PackedTable, Schema, TableRows
from tests.pseudolikelihood_twin import evaluate, make_case


@intrinsic
def exp_tile(typingctx, values, at):
    """Replace a vector of values by their exponentials."""

    def codegen(context, builder, sig, args):
        array = context.make_array(sig.args[0])(context, builder, args[0])
        x = load_lanes(builder, array, args[1], LANES)
        store_lanes(builder, Vectors(builder, array.data.type.pointee).exp(x), array, args[1])
        return context.get_dummy_value()

    return types.void(values, types.intp), codegen


@njit
def exp_in_place(values):
    for at in range(0, values.shape[0], LANES):
        exp_tile(values, at)


@pytest.mark.parametrize(
    ("dtype", "least", "tolerance"), [(np.float32, -87.0, 1.2e-7), (np.float64, -708.0, 3e-16)]
)
def test_exponential_is_accurate(dtype, least, tolerance):
    x = np.linspace(least, 20.0, 1 << 16).astype(dtype)
    found = x.copy()
    exp_in_place(found)
    expected = np.exp(x.astype(np.longdouble))
    assert np.abs(found / expected - 1).max() < tolerance
    assert found[np.searchsorted(x, 0)] == pytest.approx(float(np.exp(x[np.searchsorted(x, 0)])))


def test_exponential_of_very_small_numbers_is_not_negative():
    x = np.full(16, -1e30, np.float32)
    exp_in_place(x)
    assert (x >= 0).all()
    assert (x < 1e-37).all()


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_threads_do_not_change_a_bit(lanes, precision):
    _, table, layout, theta = make_case([2, 3, 5, 2, 2, 10] * 4, 3000, 0.05, density=0.3)
    one, two = (Pseudolikelihood(table, n_jobs=k, precision=precision) for k in (1, 2))
    a, b = (o.evaluate(theta, o.init(layout, lanes=lanes)) for o in (one, two))
    assert a.value == b.value
    assert a.gradient.tobytes() == b.gradient.tobytes()
    pairs = np.stack(np.triu_indices(24, 1), axis=1)
    tables = [o.edge_gradients(theta, e.state, pairs) for o, e in ((one, a), (two, b))]
    assert tables[0].values.tobytes() == tables[1].values.tobytes()


def test_evaluating_changes_nothing_of_the_callers():
    _, table, layout, theta = make_case([2, 3, 5], 100)
    theta.flags.writeable = False
    objective = Pseudolikelihood(table)
    state = objective.init(layout)
    first = objective.evaluate(theta, state)
    again = objective.evaluate(theta, state)
    assert first.value == again.value
    assert state.losses is None
    # Kept residuals belong to one point: another point does not see them.
    objective.edge_gradients(theta, first.state, [(0, 1)])
    other = objective.edge_gradients(theta + 0.1, first.state, [(0, 1)]).values
    fresh = objective.edge_gradients(theta + 0.1, state, [(0, 1)]).values
    assert other.tobytes() == fresh.tobytes()


@pytest.mark.parametrize("n_rows", [1, 15, 16, 17, 511, 512, 513, 2047, 2049, 20_000])
def test_block_boundaries(n_rows):
    codes, table, layout, theta = make_case([2, 5, 2], n_rows, density=1.0)
    value, gradient = evaluate(codes, layout, theta)
    objective = Pseudolikelihood(table, precision="double")
    for lanes in (1, 16):
        found = objective.evaluate(theta, objective.init(layout, lanes=lanes))
        assert found.value == pytest.approx(value, rel=1e-13)
        np.testing.assert_allclose(found.gradient, gradient, atol=1e-13)


def test_single_precision_is_enough_for_tight_stopping():
    """Unbalanced states and a strong edge: sums of many equal terms must not drift."""
    rng = np.random.default_rng(0)
    x = (rng.random(60_000) < 0.02).astype(int)
    codes = np.column_stack((x, np.where(rng.random(60_000) < 0.01, 1 - x, x), 0 * x))
    table = PackedTable.from_codes(codes, Schema.from_states([2, 2, 2]))
    layout = Layout([2, 2, 2], [(0, 1)])
    for theta in (np.zeros(layout.n_parameters), np.r_[4.0, 0, 4, 0, 9, 0, 2, -2, -2, 2]):
        single, double = (
            Pseudolikelihood(table, precision=p).evaluate(
                theta, Pseudolikelihood(table, precision=p).init(layout)
            )
            for p in ("single", "double")
        )
        assert single.value == pytest.approx(double.value, rel=1e-7)
        np.testing.assert_allclose(single.gradient, double.gradient, atol=3e-7)


def test_hostile_tables_give_finite_numbers():
    codes = np.array([[0, -1, 0, 2], [0, -1, -1, -1], [-1, -1, -1, -1], [0, -1, 4, 0]])
    table = PackedTable.from_codes(codes, Schema.from_states([1, 3, 70, 4]))
    layout = Layout([1, 3, 70, 4], [(0, 1), (0, 2), (1, 2), (2, 3)])
    objective = Pseudolikelihood(table)
    start = objective.start(layout)
    assert np.isfinite(start).all()
    assert (objective.curvature(layout) > 0).all()
    for theta in (start, 1e4 * np.random.default_rng(0).normal(size=layout.n_parameters)):
        value, gradient = evaluate(codes, layout, theta)
        found = objective.evaluate(theta, objective.init(layout))
        assert found.value == pytest.approx(value, rel=1e-6)
        np.testing.assert_allclose(found.gradient, gradient, atol=1e-6)
        # An all-missing variable has no loss and no gradient of its own.
        assert found.state.losses[1] == 0


def test_one_variable_and_no_edges():
    objective = Pseudolikelihood(PackedTable.from_codes([[0], [1], [1]]))
    layout = Layout([2])
    found = objective.evaluate(objective.start(layout), objective.init(layout))
    assert found.value == pytest.approx(-np.log([1 / 3, 2 / 3, 2 / 3]).mean(), rel=1e-7)
    assert len(objective.edge_gradients(objective.start(layout), found.state, [])) == 0


def test_growing_keeps_a_state_or_makes_one_for_the_new_graph():
    _, table, layout, _ = make_case([2, 3, 5], 40, density=0.0)
    objective = Pseudolikelihood(table)
    state = objective.init(layout)
    assert objective.grow(state, layout) is state
    assert objective.grow(state, layout.grow([(0, 2)])).layout.n_edges == 1


def columns_of_states(states, n_rows=10_000):
    codes = np.zeros((n_rows, len(states)), int)
    table = PackedTable.from_codes(codes, Schema.from_states(states))
    return columns_of(TableRows(table), np.float32)


def test_dense_graphs_are_bundled_and_sparse_ones_are_not():
    pairs = np.stack(np.triu_indices(64, 1), axis=1)
    dense, sparse = Layout([5] * 64, pairs), Layout([5] * 64, pairs[::40])
    columns = columns_of_states([5] * 64)
    assert [w.lanes for w in route(dense, columns)] == [16]
    assert [w.lanes for w in route(sparse, columns)] == [1]


def test_groups_fit_their_room_and_hold_every_source_once():
    states = [2, 3, 5, 40, *[2] * 13]
    layout = Layout(states, np.stack(np.triu_indices(17, 1), axis=1))
    binary = np.flatnonzero(alternatives_of(layout.states) == 1)
    groups = wire(layout, bundle(binary, 1, 1), columns_of_states(states)).groups
    expected = np.concatenate([np.delete(np.arange(17), i) for i in binary])
    assert sorted(groups.source.tolist()) == sorted(expected.tolist())
    alone = np.diff(groups.source_start) == 1
    assert (groups.codes[~alone] * 8 <= ROOM).all()
    assert not alone.all()


def test_refusals_name_what_is_wrong():
    _, table, layout, theta = make_case([2, 3], 10, density=1.0)
    objective = Pseudolikelihood(table)
    state = objective.init(layout)
    with pytest.raises(ModelError, match="variable 1 is nan"):
        objective.evaluate(np.where(np.arange(len(theta)) == 2, np.nan, theta), state)
    with pytest.raises(ModelError, match="shape"):
        objective.evaluate(theta[:-1], state)
    with pytest.raises(ModelError, match="numbers of states"):
        objective.init(Layout([2, 2]))
    with pytest.raises(EdgeError, match="outside"):
        objective.edge_gradients(theta, state, np.array([(0, 2)]))
    with pytest.raises(DataError, match="weight of row 3 is -1"):
        Pseudolikelihood(table, weights=np.where(np.arange(10) == 3, -1.0, 1.0))
    with pytest.raises(DataError, match="shape"):
        Pseudolikelihood(table, weights=np.ones(3))
    with pytest.raises(DataError, match="all weights are zero"):
        Pseudolikelihood(table, weights=np.zeros(10))
    with pytest.raises(ValueError, match="precision"):
        Pseudolikelihood(table, precision="half")
