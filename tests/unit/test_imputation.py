"""Missing cells filled in: exact completions and approximations against brute force."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.errors import ImpossibleEvidenceError
from edgegraft.inference import ExactBudget
from edgegraft.model import PairwiseMRF, evidence
from edgegraft.table import Schema
from tests.brute import Brute


@pytest.fixture(scope="module")
def model():
    edges = [(0, 1), (1, 2), (0, 2), (2, 3)]
    schema = Schema.from_states([2, 3, 2, 3])
    rng = np.random.default_rng(5)
    return PairwiseMRF(schema, edges, 1.5 * rng.normal(size=10 + 6 + 6 + 4 + 6))


def impute(model, codes, method="map", seed=0):
    return model.impute_codes(codes, method=method, random_state=seed)


def best_completion(model, row):
    brute = Brute(model)
    fits = ((row < 0) | (brute.codes == row)).all(axis=1)
    return brute.codes[fits][int(np.argmax(brute.scores[fits]))]


@pytest.mark.parametrize("gibbs", [False, True])
def test_the_likeliest_completion_is_found(model, monkeypatch, gibbs):
    if gibbs:
        monkeypatch.setattr(evidence, "ROW_BUDGET", ExactBudget(seconds=0.0))
    rng = np.random.default_rng(0)
    rows = Brute(model).codes[rng.choice(36, 60)]
    rows[rng.random(rows.shape) < 0.5] = -1
    truth = np.array([best_completion(model, row) for row in rows])
    found = model.complete(rows)
    np.testing.assert_array_equal(found.codes, truth)
    assert (found.approximation is not None) == gibbs
    assert not gibbs or found.approximation.startswith("Gibbs sampling in ")


@pytest.mark.parametrize("gibbs", [False, True])
def test_draws_follow_the_conditional(model, monkeypatch, gibbs):
    if gibbs:
        monkeypatch.setattr(evidence, "ROW_BUDGET", ExactBudget(seconds=0.0))
    row = np.array([-1, -1, 1, -1])
    drawn = impute(model, np.tile(row, (4000, 1)), "draw")
    truth = Brute(model, {"x2": 1})
    for i in (0, 1, 3):
        freq = np.bincount(drawn[:, i], minlength=model.schema.n_states[i]) / 4000
        assert np.abs(freq - truth.marginal(i)).max() < 0.04
    joint = np.bincount(drawn[:, 0] * 3 + drawn[:, 1], minlength=6) / 4000
    assert np.abs(joint - truth.pair(0, 1).ravel()).max() < 0.04


def test_known_cells_stay_and_names_come_back(model):
    table = model.impute({"x0": [1, None], "x1": [None, 2], "x2": [0, 0], "x3": [2, 1]})
    assert table["x0"].to_pylist()[0] == 1
    assert table["x1"].to_pylist()[1] == 2
    assert table["x2"].to_pylist() == [0, 0]
    assert table.column("x1").null_count == 0


def test_a_row_that_is_impossible_is_named():
    hard = PairwiseMRF.from_potentials(
        {"a": [0, 1], "b": [0, 1], "c": [0, 1], "d": [0, 1]},
        edges={("a", "b"): [[0, -np.inf], [-np.inf, 0]], ("c", "d"): [[0, 1], [1, 0]]},
    )
    rows = np.array([[0, 0, -1, -1], [0, 1, -1, -1]])
    with pytest.raises(ImpossibleEvidenceError, match="row 1 is impossible"):
        impute(hard, rows)
