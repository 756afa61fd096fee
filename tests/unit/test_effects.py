"""Strengths and effects of edges: brute force, symmetries, strong edges, every kind of table."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from edgegraft import GraftedMRF, load
from edgegraft.core import Layout
from edgegraft.io import edge_table
from edgegraft.learn.effective_score import ENOUGH, Verdicts
from edgegraft.learn.effects import edge_effects
from edgegraft.model import PairwiseMRF
from edgegraft.table import PackedTable, Schema, Variable
from edgegraft.table.blocks import TableRows
from edgegraft.table.numbers import scores_of

KINDS = ("nominal", "ordinal", "nominal", "numeric")
STATES = (3, 4, 2, 3)


def whole_table(seed, edges, scale=1.0):
    """A model and all of its rows, weighted by their probabilities."""
    rng = np.random.default_rng(seed)
    schema = Schema(
        Variable(f"x{i}", tuple(range(s)), kind=kind)
        for i, (s, kind) in enumerate(zip(STATES, KINDS, strict=True))
    )
    layout = Layout(schema.n_states, np.array(edges))
    model = PairwiseMRF(schema, edges, scale * rng.normal(size=layout.n_parameters))
    codes = np.array(list(product(*map(range, STATES))))
    energy = model.energy(codes=codes)
    p = np.exp(energy - energy.max())
    return model, TableRows(PackedTable.from_codes(codes, schema), 1e6 * p / p.sum())


def expected(model, rows, i, j):
    """The covariance that the rest leaves of the indicators of two columns, and their variances."""
    codes, p = rows.table.codes(), rows.weights / rows.weights.sum()
    rest = [k for k in range(len(STATES)) if k not in (i, j)]
    shared = np.zeros((STATES[i], STATES[j]))
    first, second = (np.zeros((STATES[k],) * 2) for k in (i, j))
    for values in product(*(range(STATES[k]) for k in rest)):
        chosen = (codes[:, rest] == values).all(axis=1)
        joint = np.zeros((STATES[i], STATES[j]))
        np.add.at(joint, (codes[chosen, i], codes[chosen, j]), p[chosen])
        share = joint.sum()
        joint /= share
        a, b = joint.sum(axis=1), joint.sum(axis=0)
        shared += share * (joint - np.outer(a, b))
        first += share * (np.diag(a) - np.outer(a, a))
        second += share * (np.diag(b) - np.outer(b, b))
    return shared, first, second


@pytest.mark.parametrize("seed", range(4))
def test_effects_are_those_of_all_rows(seed):
    edges = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (0, 3)][: 4 + seed % 3]
    model, rows = whole_table(seed, edges)
    m = len(edges)
    huge = Verdicts.of(np.repeat([[1e12], [1.0], [0.0], [1.0], [0.0]], m, axis=1))
    found = edge_effects(model, rows, huge)
    margins = [np.bincount(c, rows.weights) for c in rows.table.codes().T]
    for k, (i, j) in enumerate(edges):
        shared, v, u = expected(model, rows, i, j)
        ordered = [KINDS[c] != "nominal" or STATES[c] == 2 for c in (i, j)]
        a, b = (
            scores_of(margins[c], 1, KINDS[c]) if is_ordered else np.eye(STATES[c])
            for c, is_ordered in zip((i, j), ordered, strict=True)
        )
        c, v, u = a.T @ shared @ b, a.T @ v @ a, b.T @ u @ b
        tau = np.trace(c @ np.linalg.pinv(u) @ c.T) * np.trace(c.T @ np.linalg.pinv(v) @ c)
        value = (tau / (np.trace(v) * np.trace(u))) ** 0.25
        assert found.signed[k] == all(ordered)
        assert abs(found.effect[k]) == pytest.approx(value, abs=1e-9)
        if all(ordered):
            assert np.sign(found.effect[k]) == np.sign(c[0, 0])
            assert found.strength[k] >= abs(found.effect[k]) - 1e-9


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
