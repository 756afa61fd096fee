"""Writing a model and reading it back preserves energies."""

import itertools
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegraft.core import Layout
from edgegraft.io import (
    format_mar,
    read_evidence,
    read_uai,
    write_evidence,
    write_uai,
)
from tests import uai_results

moderate = st.floats(-20, 20)
extreme = st.floats(-1e6, 1e6)
zero = st.just(-np.inf)


@st.composite
def models(draw, logs):
    states = draw(st.lists(st.integers(1, 6), max_size=5))
    pairs = list(itertools.combinations(range(len(states)), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    layout = Layout(states, edges)
    size = layout.n_parameters
    return layout, np.array(draw(st.lists(logs, min_size=size, max_size=size)))


def round_trip(layout, theta, constant, suffix=".uai"):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model" + suffix)
        write_uai(path, layout, theta, log_constant=constant)
        return read_uai(path)


def energy(layout, theta, row):
    value = sum(layout.node(theta, i)[x] for i, x in enumerate(row))
    return value + sum(
        layout.edge(theta, k)[row[i], row[j]] for k, (i, j) in enumerate(layout.edges)
    )


@settings(deadline=None, max_examples=60)
@given(models(moderate | zero), st.sampled_from([".uai", ".uai.gz"]))
def test_moderate_potentials_are_the_same(model, suffix):
    layout, theta = model
    found = round_trip(layout, theta, 0.0, suffix)
    assert found.layout.states.tolist() == layout.states.tolist()
    assert found.layout.edges.tolist() == layout.edges.tolist()
    np.testing.assert_allclose(found.theta, theta, rtol=1e-14, atol=1e-14)
    assert found.log_constant == 0


@settings(deadline=None, max_examples=60)
@given(models(moderate | extreme | zero), st.floats(-1e4, 1e4) | zero, st.randoms())
def test_any_potentials_give_the_same_energies(model, constant, random):
    layout, theta = model
    found = round_trip(layout, theta, constant)
    assert found.layout.edges.tolist() == layout.edges.tolist()
    for _ in range(10):
        row = [random.randrange(s) for s in layout.states]
        np.testing.assert_allclose(
            energy(found.layout, found.theta, row) + found.log_constant,
            energy(layout, theta, row) + constant,
            rtol=1e-12,
            atol=1e-7,
        )


@settings(deadline=None)
@given(st.dictionaries(st.integers(0, 10**9), st.integers(0, 65534)))
def test_evidence(evidence):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "evidence")
        write_evidence(path, evidence)
        assert read_evidence(path) == evidence


@settings(deadline=None)
@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=5)))
def test_results(marginals):
    found = uai_results.mar(format_mar(marginals))
    assert [m.tolist() for m in found] == marginals
