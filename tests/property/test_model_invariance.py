"""Invariance of answers to names of variables, order of states, and clamping."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegraft.inference import make_engine
from edgegraft.model import PairwiseMRF
from edgegraft.model.evidence import condition
from edgegraft.table import Schema


@st.composite
def models(draw):
    n = draw(st.integers(2, 6))
    states = draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=8))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    size = sum(states) + sum(states[i] * states[j] for i, j in edges)
    return PairwiseMRF(Schema.from_states(states), edges, rng.normal(size=size))


def rearranged(model, order, state_orders):
    """Return the distribution with variable ``order[k]`` at position ``k`` and states permuted."""
    states = model.schema.n_states[order]
    place = np.argsort(order)
    layout, edges, tables = model.layout, [], []
    for k, (i, j) in enumerate(layout.edges):
        table = layout.edge(model.theta, k)[np.ix_(state_orders[i], state_orders[j])]
        a, b = place[i], place[j]
        edges.append((min(a, b), max(a, b)))
        tables.append((table if a < b else table.T).ravel())
    nodes = [layout.node(model.theta, i)[state_orders[i]] for i in order]
    return PairwiseMRF(Schema.from_states(states), edges, np.concatenate([*nodes, *tables]))


@pytest.mark.parametrize("engine", ["exact", "bp", "trw"])
@settings(max_examples=25, deadline=None)
@given(model=models(), seed=st.integers(0, 100))
def test_relabelling_changes_nothing(engine, model, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(model.n_variables)
    state_orders = [rng.permutation(s) for s in model.schema.n_states]
    other = rearranged(model, order, state_orders)
    runs = []
    for one in (model, other):
        used = make_engine(engine)
        runs.append((one.layout, *used.run(one.theta, used.init(one.layout))))
    (layout, found, _, info), (new_layout, new_found, _, new_info) = runs
    if not (info.converged and new_info.converged):
        return
    # trw draws its forests by position, so only its bound is invariant.
    tolerance = {"exact": 1e-9, "bp": 1e-3, "trw": np.inf}[engine]
    for k, i in enumerate(order):
        before = layout.node(found.values, i)[state_orders[i]]
        assert np.abs(new_layout.node(new_found.values, k) - before).max() < tolerance
    if engine == "trw":
        exact = model.log_partition(engine="exact").value
        assert min(found.log_partition, new_found.log_partition) >= exact - 1e-9
    else:
        assert abs(found.log_partition - new_found.log_partition) < tolerance


@settings(max_examples=40, deadline=None)
@given(model=models(), seed=st.integers(0, 100))
def test_conditioning_is_clamping(model, seed):
    rng = np.random.default_rng(seed)
    observed = rng.choice(model.n_variables, rng.integers(1, model.n_variables), replace=False)
    evidence = {int(i): int(rng.integers(model.schema.n_states[i])) for i in observed}
    clamped = model.theta.copy()
    for i, code in evidence.items():
        node = model.layout.node(clamped, i)
        kept = node[code]
        node[:] = -np.inf
        node[code] = kept
    codes = np.full(model.n_variables, -1)
    codes[list(evidence)] = list(evidence.values())
    part = condition(model.layout, model.theta, codes)
    engine = make_engine("exact")
    small, _, _ = engine.run(part.theta, engine.init(part.layout))
    large, _, _ = engine.run(clamped, engine.init(model.layout))
    assert abs(part.constant + small.log_partition - large.log_partition) < 1e-9
    for k, i in enumerate(part.free):
        np.testing.assert_allclose(
            part.layout.node(small.values, k), model.layout.node(large.values, i), atol=1e-9
        )
