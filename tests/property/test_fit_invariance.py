"""A fit does not depend on the order of variables, states or edges."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegraft.optimize import fit_parameters
from edgegraft.table import PackedTable, Schema


@st.composite
def problems(draw):
    states = draw(st.lists(st.integers(2, 4), min_size=3, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    hidden = rng.random(60)
    codes = np.stack(
        [((hidden + 0.5 * rng.random(60)) * s / 1.5).astype(int) for s in states], axis=1
    )
    order = draw(st.permutations(range(len(states))))
    relabel = [draw(st.permutations(range(s))) for s in states]
    objective = draw(st.sampled_from(["likelihood", "pseudolikelihood"]))
    return np.array(states), codes, np.array(order), relabel, objective


@settings(max_examples=25, deadline=None)
@given(problems())
def test_relabelling_changes_nothing(problem):
    states, codes, order, relabel, objective = problem
    moved = np.stack([np.array(relabel[i])[codes[:, i]] for i in order], axis=1)
    arguments = {"penalty": 0.02, "ridge": 0.01, "tol": 1e-7, "engine": "exact"}
    fits = [
        fit_parameters(
            PackedTable.from_codes(rows, Schema.from_states(s)), None, objective, **arguments
        )
        for rows, s in ((codes, states), (moved, states[order]))
    ]
    (model, info), (other, again) = fits
    assert abs(info.objective - again.objective) < 1e-9
    back = np.argsort(order)
    for k, (i, j) in enumerate(model.edges):
        table = model.layout.edge(model.theta, k)
        first, second = other.names[back[i]], other.names[back[j]]
        there = other.edge_potential(first, second)
        np.testing.assert_allclose(there[np.ix_(relabel[i], relabel[j])], table, atol=1e-4)
