"""Strengths and effects of edges: brute force, symmetries, hubs, intervals, every kind of table."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest

from edgegraft import GraftedMRF, load
from edgegraft.conditional.features import Features
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.config import Plan
from edgegraft.core import Layout
from edgegraft.datasets import make_mrf
from edgegraft.grafting.problem import losses
from edgegraft.io import edge_table
from edgegraft.learn import discover
from edgegraft.learn.coupling import couple, slopes_of
from edgegraft.learn.effects import ENOUGH, LEVEL, edge_effects
from edgegraft.model import PairwiseMRF
from edgegraft.objective import Penalty
from edgegraft.optimize import Stopping, minimize
from edgegraft.table import PackedTable, Schema, TableRows, Variable
from edgegraft.table.numbers import scores_of

KINDS = ("nominal", "ordinal", "nominal", "numeric", "nominal")
STATES = (3, 4, 2, 3, 5)
EDGES = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (0, 4), (3, 4), (2, 4)]


def drawn_table(seed, n_rows=2000, scale=0.6):
    """A model of columns of every kind, and rows that are drawn from it."""
    rng = np.random.default_rng(seed)
    schema = Schema(
        Variable(f"x{i}", tuple(range(s)), kind=kind)
        for i, (s, kind) in enumerate(zip(STATES, KINDS, strict=True))
    )
    layout = Layout(schema.n_states, np.array(EDGES))
    model = PairwiseMRF(schema, EDGES, scale * rng.normal(size=layout.n_parameters))
    codes = np.array(list(product(*map(range, STATES))))
    energy = model.energy(codes=codes)
    p = np.exp(energy - energy.max())
    return model, codes[rng.choice(len(codes), n_rows, p=p / p.sum())]


def ising(edges, coupling):
    layout = Layout(np.full(int(np.max(edges)) + 1, 2), edges)
    table = coupling * np.array([1.0, -1.0, -1.0, 1.0])
    theta = np.concatenate((np.zeros(2 * layout.n_variables), np.tile(table, len(edges))))
    return PairwiseMRF(Schema.from_states(layout.states), edges, theta)


def fit(table, edges):
    """The model of some edges with a negligible ridge."""
    loss, _ = losses(TableRows(table), Plan())
    layout = Layout(table.schema.n_states, np.asarray(edges), table.schema.widths)
    rule, start = Penalty(0.0, 0.1 / loss.n_rows), np.zeros(layout.n_parameters)
    theta = minimize(loss, rule, layout, start, Stopping(1e-5, 300), quiet=True).theta
    return PairwiseMRF(table.schema, layout.edges, loss.expand(theta, layout))


def fitted_table(weights, first, second):
    """Iterative proportional fitting of a single table."""
    q = np.exp(weights - weights.max())
    for _ in range(20_000):
        q *= (first / q.sum(axis=1))[:, None]
        q *= second / q.sum(axis=0)
    return q


@pytest.mark.parametrize("seed", range(3))
def test_effects_are_those_of_the_table_at_the_margins(seed):
    model, codes = drawn_table(seed)
    table = PackedTable.from_codes(codes, model.schema)
    found = edge_effects(model, TableRows(table))
    margins = [np.bincount(c, minlength=s) / len(c) for c, s in zip(codes.T, STATES, strict=True)]
    shapes = edge_effects(model, TableRows(table), p_rest=np.zeros(len(EDGES)))
    for k, (i, j) in enumerate(EDGES):
        a, b = margins[i], margins[j]
        q = fitted_table(model.layout.edge(model.theta, k), a, b)
        ordered = [KINDS[c] != "nominal" or STATES[c] == 2 for c in (i, j)]
        left, right = (
            scores_of(margins[c], 1, KINDS[c]) if is_ordered else np.eye(STATES[c])
            for c, is_ordered in zip((i, j), ordered, strict=True)
        )
        shared = left.T @ (q - np.outer(a, b)) @ right
        v = left.T @ (np.diag(a) - np.outer(a, a)) @ left
        u = right.T @ (np.diag(b) - np.outer(b, b)) @ right
        assert found.signed[k] == all(ordered)
        if all(ordered):
            assert found.effect[k] == pytest.approx(shared[0, 0], abs=1e-8)
            both = [scores_of(margins[c], min(2, STATES[c] - 1), KINDS[c]) for c in (i, j)]
            largest = np.linalg.svd(both[0].T @ q @ both[1], compute_uv=False)[0]
            assert shapes.strength[k] == pytest.approx(largest, abs=1e-8)
        else:
            of_first = np.trace(shared @ np.linalg.pinv(u) @ shared.T) / np.trace(v)
            of_second = np.trace(shared.T @ np.linalg.pinv(v) @ shared) / np.trace(u)
            assert found.effect[k] == pytest.approx((of_first * of_second) ** 0.25, abs=1e-8)


@pytest.mark.parametrize("scale", [0.5, 5.0, 25.0])
def test_tables_have_their_margins(scale):
    rng = np.random.default_rng(0)
    weights = scale * rng.normal(size=(50, 4, 3))
    a, b = rng.dirichlet(np.ones(4), 50), rng.dirichlet(np.ones(3), 50)
    a[0] = 0.5, 0.0, 0.5, 0.0
    q = couple(weights, a, b)
    np.testing.assert_allclose(q.sum(axis=2), a, atol=2e-9)
    np.testing.assert_allclose(q.sum(axis=1), b, atol=2e-9)
    np.testing.assert_allclose(q, couple(weights + rng.normal(size=(50, 1, 3)), a, b), atol=1e-7)


def test_slopes_are_those_of_differences():
    rng = np.random.default_rng(1)
    weights, by_table = rng.normal(size=(2, 20, 4, 3))
    a, b = rng.dirichlet(np.ones(4), 20), rng.dirichlet(np.ones(3), 20)
    changes = rng.normal(size=weights.shape), a * rng.normal(size=a.shape), b * rng.normal()
    changes = changes[0], changes[1] - a * changes[1].sum(axis=1, keepdims=True), 0 * changes[2]
    ends = []
    for h in (1e-5, -1e-5):
        q = couple(*(x + h * dx for x, dx in zip((weights, a, b), changes, strict=True)))
        ends.append((q * by_table).sum(axis=(1, 2)))
    slopes = slopes_of(couple(weights, a, b), by_table)
    expected = (slopes.weights * changes[0]).sum(axis=(1, 2)) + (slopes.first * changes[1]).sum(1)
    np.testing.assert_allclose((ends[0] - ends[1]) / 2e-5, expected, atol=1e-4)


@pytest.mark.parametrize("coupling", [0.6, 1.0])
def test_the_edges_of_a_hub_keep_strength_and_sign(coupling):
    model = ising([(0, k) for k in range(1, 101)], coupling)
    table = PackedTable.from_codes(model.sample_codes(1000, random_state=0), model.schema)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = discover(table).model
    true = found.edges[:, 0] == 0
    columns = {name: values[true] for name, values in found.edge_columns.items()}
    assert true.sum() == 100
    assert (columns["sign"] == 1).all()
    assert columns["strength"].min() > np.tanh(coupling) - 0.2
    low, high = columns["effect_low"], columns["effect_high"]
    assert ((low < np.tanh(coupling)) & (np.tanh(coupling) < high)).mean() > 0.85
    assert found.edge_columns["strength"][~true].max(initial=0.0) < columns["strength"].min()


def test_effects_do_not_depend_on_labels():
    model, codes = drawn_table(5)
    rng = np.random.default_rng(0)
    orders = [
        rng.permutation(s) if kind == "nominal" and s > 2 else np.arange(s)[::-1]
        for s, kind in zip(STATES, KINDS, strict=True)
    ]
    nodes = [model.layout.node(model.theta, i)[order] for i, order in enumerate(orders)]
    tables = [
        model.layout.edge(model.theta, k)[np.ix_(orders[i], orders[j])].ravel()
        for k, (i, j) in enumerate(EDGES)
    ]
    other = PairwiseMRF(model.schema, EDGES, np.concatenate((*nodes, *tables)))
    moved = np.stack([np.argsort(o)[c] for o, c in zip(orders, codes.T, strict=True)], axis=1)
    each = [
        edge_effects(m, TableRows(PackedTable.from_codes(c, m.schema)), LEVEL)
        for m, c in ((model, codes), (other, moved))
    ]
    np.testing.assert_allclose(*(found.effect for found in each), atol=1e-7)  # both ends turn
    np.testing.assert_allclose(*(found.low for found in each), atol=1e-5)
    np.testing.assert_allclose(*(found.high for found in each), atol=1e-5)


def test_intervals_cover_in_a_triangle():
    model = ising([(0, 1), (0, 2), (1, 2)], 1.0)
    hits = []
    for seed in range(40):
        table = PackedTable.from_codes(model.sample_codes(1000, random_state=seed), model.schema)
        found = edge_effects(fit(table, model.edges), TableRows(table), LEVEL)
        hits.append((found.low <= np.tanh(1.0)) & (np.tanh(1.0) <= found.high))
    assert 0.86 < np.mean(hits) < 1.0


def test_intervals_follow_weights_and_threads():
    model, codes = drawn_table(2, 2000)
    weights = np.random.default_rng(0).integers(1, 4, 2000).astype(float)
    whole = PackedTable.from_codes(np.repeat(codes, weights.astype(int), axis=0), model.schema)
    table = PackedTable.from_codes(codes, model.schema)
    found = edge_effects(model, TableRows(table, weights), LEVEL, n_jobs=2)
    repeated = edge_effects(model, TableRows(whole), LEVEL)
    for one, other in zip(found, repeated, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    assert (found.low <= found.effect).all()
    assert (found.effect <= found.high).all()
    twice = edge_effects(model, TableRows(table, 4 * weights), LEVEL)
    narrow = (twice.high - twice.low) / (found.high - found.low)
    np.testing.assert_allclose(narrow[found.signed], 0.5, atol=0.06)


def test_states_that_do_not_occur_change_nothing():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 3, 1000)
    codes = np.stack((first, np.where(rng.random(1000) < 0.5, first, rng.integers(0, 3, 1000))), 1)
    found = []
    for states in ([3, 3], [5, 4]):
        layout = Layout(np.array(states), [(0, 1)])
        theta = np.zeros(layout.n_parameters)
        layout.edge(theta, 0)[:3, :3] = np.eye(3)
        model = PairwiseMRF(Schema.from_states(layout.states), layout.edges, theta)
        table = PackedTable.from_codes(codes, model.schema)
        found.append(edge_effects(model, TableRows(table), LEVEL))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_rows_that_cannot_tell_give_no_interval():
    model, codes = drawn_table(3, 12)
    table = PackedTable.from_codes(codes, model.schema)
    found = edge_effects(model, TableRows(table), LEVEL)
    assert np.isnan(found.low).any()
    assert np.isfinite(found.effect).all()
    unknown = edge_effects(model, TableRows(table))
    assert np.isnan(unknown.low).all()


def test_drawn_cells_count_as_neighbours_alone():
    data = make_mrf([(0, 1), (1, 2), (2, 3)], [3] * 4, 2000, edge_scale=0.8, random_state=0)
    gone = np.random.default_rng(0).random((2000, 4)) < 0.3
    table = PackedTable.from_codes(data.X)
    features = Features.plain(table.schema)
    every = edge_effects(data.model, ConditionalRows(table, None, features), LEVEL)
    known = ConditionalRows(table, None, features, drawn=gone)
    fewer = edge_effects(data.model, known, LEVEL)
    share = ((fewer.high - fewer.low) / (every.high - every.low)) ** 2
    assert (share > 1.5).all()  # .49 of the rows know both ends
    assert (share < 3.0).all()


def test_a_copy_is_stronger_than_anything_else():
    rng = np.random.default_rng(0)
    for n_states in (2, 3):
        first = rng.integers(0, n_states, 3000)
        rows = {"first": first}
        for name, noise in (("copy", 0.02), ("near", 0.4), ("far", 0.75)):
            own = rng.integers(0, n_states, 3000)
            rows[name] = np.where(rng.random(3000) < noise, own, first)
        text = pd.DataFrame(rows).astype(str)
        fitted = GraftedMRF(random_state=0).fit(text)
        frame = fitted.edges_frame().set_index(["first", "second"])
        assert fitted.edges_[0].tolist() == [0, 1]
        assert frame.loc[("first", "copy"), "strength"] > 0.8
        assert (frame["strength"].diff().dropna() <= 0).all()
        assert ((frame["effect_low"] <= frame["effect"]) & (frame["strength"] <= 1)).all()
        assert (frame["sign"] == (1 if n_states == 2 else 0)).all()


def test_strength_is_one_number_everywhere(tmp_path):
    rng = np.random.default_rng(1)
    trait = rng.normal(size=900)
    frame = pd.DataFrame(
        {
            "up": np.digitize(trait + rng.normal(size=900), [-1, 0, 1]),
            "down": np.digitize(rng.normal(size=900) - trait, [-1, 0, 1]),
            "town": np.where(trait + rng.normal(size=900) > 0, "x", rng.choice(["y", "z"], 900)),
        }
    )
    fitted = GraftedMRF(random_state=0, kinds={"up": "ordinal", "down": "ordinal"}).fit(frame)
    fitted.save(tmp_path / "m.edgegraft")
    model = load(tmp_path / "m.edgegraft")
    shown = fitted.edges_frame()
    np.testing.assert_array_equal(shown["strength"], fitted.edge_strengths_)
    np.testing.assert_array_equal(np.sort(model.edge_strengths())[::-1], fitted.edge_strengths_)
    exported = edge_table(model)
    np.testing.assert_array_equal(exported["strength"], shown["strength"])
    np.testing.assert_array_equal(exported["weight"], shown["weight"])
    np.testing.assert_array_equal(np.abs(exported["weight"]), exported["strength"])
    signs = {frozenset(row[:2]): row[2] for row in shown[["first", "second", "sign"]].values}
    assert signs[frozenset(("up", "down"))] == -1
    linear = (shown["p_rest"] > ENOUGH) | shown["p_rest"].isna()
    np.testing.assert_allclose(shown["strength"][linear], shown["effect"][linear].abs())
    again = fitted.bootstrap(frame, 20)
    np.testing.assert_allclose(again["strength"][: len(shown)], model.edge_strengths())
    assert model.edge_strengths(correction="apc").shape == (model.n_edges,)
