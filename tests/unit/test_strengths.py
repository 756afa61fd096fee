"""Strengths of edges: gauge, states left out, average-product correction, against plain NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegraft.errors import ModelError
from edgegraft.model import PairwiseMRF
from edgegraft.table import Schema, Variable

ALPHABETS = [("-", "A", "C"), ("A", "-"), ("A", "C", "D", "E"), ("-", "A", "C", "D")]


def twin(model, without=(), apc=False):
    """Zero-sum gauge of the full table, then the states out, then the norm, then the product."""
    n = model.n_variables
    raw = np.zeros((n, n))
    for k, (i, j) in enumerate(model.edges):
        table = model.layout.edge(model.theta, k)
        table = table - table.mean(0) - table.mean(1)[:, None] + table.mean()
        kept = [[label not in without for label in model.schema[int(v)].categories] for v in (i, j)]
        raw[i, j] = raw[j, i] = np.linalg.norm(table[np.ix_(*kept)])
    if apc:
        off = ~np.eye(n, dtype=bool)
        mean = raw.sum(axis=0) / (n - 1)
        total = raw[off].mean()
        raw = raw - np.outer(mean, mean) / (total if total else 1.0)
    return np.array([raw[i, j] for i, j in model.edges])


@st.composite
def alignments(draw):
    chosen = draw(st.lists(st.sampled_from(ALPHABETS), min_size=1, max_size=5))
    chosen.append(ALPHABETS[0])  # so that some variable has each state that is left out
    schema = Schema(Variable(f"site {i}", labels, "string") for i, labels in enumerate(chosen))
    pairs = list(itertools.combinations(range(len(chosen)), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True))
    sizes = schema.n_states.sum() + sum(len(chosen[i]) * len(chosen[j]) for i, j in edges)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return PairwiseMRF(schema, edges, 3 * rng.normal(size=int(sizes)))


@settings(deadline=None)
@given(alignments(), st.sampled_from([(), ("-",), ("A", "C")]), st.booleans())
def test_every_option_against_plain_numpy(model, without, apc):
    found = model.edge_strengths(without=without, correction="apc" if apc else None)
    np.testing.assert_allclose(found, twin(model, without, apc), rtol=1e-10, atol=1e-10)


@settings(deadline=None, max_examples=30)
@given(alignments())
def test_strengths_do_not_depend_on_the_gauge(model):
    for options in ({}, {"without": "-"}, {"correction": "apc"}):
        np.testing.assert_allclose(
            model.zero_sum().edge_strengths(**options),
            model.edge_strengths(**options),
            rtol=1e-10,
            atol=1e-10,
        )


def pair(first, second, table):
    return PairwiseMRF.from_potentials({"a": first, "b": second}, edges={("a", "b"): table})


def test_a_category_is_left_out_in_its_own_type():
    table = np.random.default_rng(0).normal(size=(3, 2))
    model = pair([0, 1, 2], [False, True], table)
    centred = table - table.mean(0) - table.mean(1)[:, None] + table.mean()
    without_zero = np.linalg.norm(centred[1:, :])
    np.testing.assert_allclose(model.edge_strengths(without=0), without_zero)
    np.testing.assert_allclose(model.edge_strengths(without=np.int64(0)), without_zero)
    np.testing.assert_allclose(model.edge_strengths(without=False), np.linalg.norm(centred[:, 1:]))
    np.testing.assert_allclose(
        model.edge_strengths(without={0, True}), np.linalg.norm(centred[1:, :1])
    )


def test_a_category_that_no_variable_has_is_refused():
    model = pair(["x", "y"], ["x", "z"], np.eye(2))
    with pytest.raises(ModelError, match="no variable has the category '~'"):
        model.edge_strengths(without=["x", "~"])
    with pytest.raises(ModelError, match=r"no variable has the category 0\b"):
        model.edge_strengths(without=0)


def test_unknown_corrections_are_refused():
    with pytest.raises(ValueError, match="correction must be None or 'apc', found 'average'"):
        pair([0, 1], [0, 1], np.eye(2)).edge_strengths(correction="average")


def test_forbidden_pairs_have_infinite_strength_and_no_correction():
    model = pair(["x", "y"], ["x", "y"], [[0.0, -np.inf], [1.0, 2.0]])
    assert model.edge_strengths().tolist() == [np.inf]
    with pytest.raises(ModelError, match=r"edge \('a', 'b'\) forbids a pair of states"):
        model.edge_strengths(correction="apc")


def test_models_without_edges_or_dependence_have_nothing_to_correct():
    empty = PairwiseMRF(Schema.from_states([2, 2]), [], np.zeros(4))
    assert empty.edge_strengths(correction="apc").shape == (0,)
    flat = pair([0, 1], [0, 1], np.zeros((2, 2)))
    assert flat.edge_strengths(correction="apc").tolist() == [0.0]
