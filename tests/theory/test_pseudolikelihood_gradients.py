"""Value and gradient of the pseudolikelihood, compared with a NumPy twin and with theory."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.objective import Pseudolikelihood
from tests.pseudolikelihood_twin import evaluate, make_case

CASES = {
    "binary": [2] * 20,
    "three states": [3] * 7,
    "five states": [5] * 9,
    "nine states": [9] * 4,
    "mixed": [2, 3, 5, 1, 9, 10, 70, 4, 2, 2, 6, 17, 33],
    "many states": [70, 300, 2],
}
TOLERANCE = {"single": 3e-7, "double": 1e-13}


@pytest.mark.parametrize("states", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize(("n_rows", "missing"), [(1, 0.0), (37, 0.2), (1300, 0.1)])
def test_both_implementations_agree_with_the_twin(states, precision, lanes, n_rows, missing):
    codes, table, layout, theta = make_case(states, n_rows, missing)
    weights = np.random.default_rng(1).integers(0, 4, n_rows) * 0.75 + 0.25
    for given in (None, weights):
        value, gradient = evaluate(codes, layout, theta, given)
        objective = Pseudolikelihood(table, weights=given, precision=precision)
        found = objective.evaluate(theta, objective.init(layout, lanes=lanes))
        assert found.trusted
        assert found.value == pytest.approx(value, rel=TOLERANCE[precision])
        np.testing.assert_allclose(found.gradient, gradient, rtol=0, atol=TOLERANCE[precision])
        assert found.state.losses.sum() == pytest.approx(found.value, rel=1e-12)


@pytest.mark.parametrize("max_bytes", [0, 20_000, 1 << 28])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_pairs_outside_the_model_have_the_gradient_of_zeros_inside(max_bytes, missing):
    states = [2, 3, 5, 1, 9, 10, 2, 2, 33]
    _, table, layout, theta = make_case(states, 700, missing, density=0.3)
    pairs = np.stack(np.triu_indices(len(states), 1), axis=1)
    inside = {tuple(edge) for edge in layout.edges}
    new = [pair for pair in pairs if tuple(pair) not in inside]
    grown = layout.grow(new)
    objective = Pseudolikelihood(table, precision="double", max_bytes=max_bytes)
    expected = objective.evaluate(grown.carry(theta, layout), objective.init(grown)).gradient
    state = objective.evaluate(theta, objective.init(layout)).state
    for batch in (grown.edges[:5], grown.edges, grown.edges[::-1], grown.edges[:, ::-1]):
        tables = objective.edge_gradients(theta, state, batch)
        for (i, j), found in zip(batch, tables, strict=True):
            same = (grown.edges == sorted((i, j))).all(axis=1)
            table_ = grown.edge(expected, int(np.argmax(same)))
            np.testing.assert_allclose(found, table_ if i < j else table_.T, rtol=0, atol=1e-14)


def test_curvature_is_the_hessian_of_the_independent_model():
    _, table, layout, _ = make_case([2, 3, 4], 300, density=1.0)
    objective = Pseudolikelihood(table, precision="double")
    state, theta = objective.init(layout), objective.start(layout)
    for k, expected in enumerate(objective.curvature(layout)):
        step = np.zeros_like(theta)
        step[k] = 1e-4
        ends = (objective.evaluate(theta + d, state).gradient[k] for d in (step, -step))
        assert np.subtract(*ends) / 2e-4 == pytest.approx(expected, rel=1e-5)
