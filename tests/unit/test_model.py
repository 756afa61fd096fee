"""The model object: building, potentials, gauge, strengths, energies, what it shows."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.errors import DataError, EdgeError, ModelError
from edgegraft.model import PairwiseMRF
from edgegraft.table import Schema
from tests.brute import Brute

CATEGORIES = {"smoker": ["no", "yes"], "age": ["young", "middle", "old"], "ill": [False, True]}


def example(seed=0):
    rng = np.random.default_rng(seed)
    return PairwiseMRF.from_potentials(
        CATEGORIES,
        nodes={"age": rng.normal(size=3)},
        edges={("ill", "smoker"): rng.normal(size=(2, 2)), ("age", "ill"): rng.normal(size=(3, 2))},
    )


def test_potentials_are_found_under_their_names_in_either_direction():
    rng = np.random.default_rng(0)
    node, first, second = rng.normal(size=3), rng.normal(size=(2, 2)), rng.normal(size=(3, 2))
    model = example()
    np.testing.assert_array_equal(model.node_potential("age"), node)
    np.testing.assert_array_equal(model.node_potential("smoker"), [0, 0])
    np.testing.assert_array_equal(model.edge_potential("ill", "smoker"), first)
    np.testing.assert_array_equal(model.edge_potential("smoker", "ill"), first.T)
    np.testing.assert_array_equal(model.edge_potential("ill", "age"), second.T)
    assert model.edges.tolist() == [[0, 2], [1, 2]]


def test_energy_is_the_sum_of_potentials():
    model = example()
    brute = Brute(model)
    np.testing.assert_allclose(model.energy(codes=brute.codes), brute.scores, rtol=1e-12)
    frame = {"smoker": ["yes"], "age": ["old"], "ill": [True]}
    np.testing.assert_allclose(model.energy(frame), model.energy(codes=[[1, 2, 1]]))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint64, float, object])
def test_cells_are_categories_whatever_the_type_of_the_array(dtype):
    grades = {"a": [1, 2, 3], "b": [1, 2, 3]}
    table = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]]
    model = PairwiseMRF.from_potentials(grades, {"b": [0.0, 1.0, 2.0]}, {("a", "b"): table})
    rows = np.array([[1, 1], [2, 1], [3, 2]], dtype)
    frame, codes = {"a": [1, 2, 3], "b": [1, 1, 2]}, np.array([[0, 0], [1, 0], [2, 1]], np.uint8)
    asked = (
        PairwiseMRF.energy,
        PairwiseMRF.pseudo_log_likelihood,
        lambda model, *rows, **codes: model.predict_proba(*rows, target="a", **codes),
        lambda model, *rows, **codes: model.log_likelihood(*rows, **codes).rows,
        lambda model, *rows, **codes: np.array(model.impute(*rows, **codes)),
    )
    for ask in asked:
        expected = ask(model, frame)
        np.testing.assert_array_equal(ask(model, rows), expected)
        np.testing.assert_array_equal(ask(model, codes=codes), expected)
    np.testing.assert_array_equal(model.encode(rows), codes)


def test_the_zero_sum_gauge_keeps_the_distribution():
    model = example()
    gauged = model.zero_sum()
    for k in range(model.n_edges):
        table = gauged.layout.edge(gauged.theta, k)
        np.testing.assert_allclose(table.sum(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(table.sum(axis=1), 0, atol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(table), model.edge_strengths()[k])
    np.testing.assert_allclose(Brute(gauged).p, Brute(model).p, rtol=1e-12)
    np.testing.assert_allclose(gauged.edge_strengths(), model.edge_strengths(), rtol=1e-12)


def test_tables_with_forbidden_pairs_keep_their_gauge_and_are_infinitely_strong():
    model = PairwiseMRF.from_potentials(
        {"a": [0, 1], "b": [0, 1]}, edges={("a", "b"): [[0.0, -np.inf], [1.0, 2.0]]}
    )
    assert model.edge_strengths()[0] == np.inf
    np.testing.assert_array_equal(model.zero_sum().theta[4:], model.theta[4:])


def test_models_compare_by_value_and_cannot_be_changed():
    assert example() == example()
    assert hash(example()) == hash(example())
    assert example() != example(1)
    assert example() != "a model"
    with pytest.raises(ValueError, match="read-only"):
        example().theta[0] = 1.0
    with pytest.raises(AttributeError):
        example().theta = np.zeros(3)


def test_what_a_model_shows():
    text = repr(example())
    assert text.startswith("PairwiseMRF(3 variables, 2 edges, 17 parameters; strongest: ")
    hostile = PairwiseMRF.from_potentials(
        {"<script>": [0, 1], "b": [0, 1]}, edges={("<script>", "b"): [[1, 0], [0, 1]]}
    )
    page = hostile._repr_html_()
    assert "&lt;script&gt;" in page
    assert "<script>" not in page
    assert repr(PairwiseMRF(Schema.from_states([2]), [], [0, 0])) == (
        "PairwiseMRF(1 variable, 0 edges, 2 parameters)"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nodes": {"age": [1.0]}}, r"variable 'age' has shape \(1,\): expected \(3,\)"),
        ({"nodes": {"agee": [1.0]}}, "no variable 'agee'; did you mean 'age'?"),
        ({"edges": {("age", "ill"): [[1.0]]}}, r"edge \('age', 'ill'\) has shape"),
        ({"edges": {("age", "age"): np.ones((3, 3))}}, "joins a variable to itself"),
        (
            {"edges": {("age", "ill"): np.ones((3, 2)), ("ill", "age"): np.ones((2, 3))}},
            r"\('ill', 'age'\) is given more than once",
        ),
        ({"nodes": {"age": [1.0, np.nan, 0]}}, "variable 'age' is nan"),
        (
            {"edges": {("age", "ill"): [[0, 0], [0, np.inf], [0, 0]]}},
            r"edge \('age', 'ill'\) is inf",
        ),
    ],
)
def test_bad_potentials_are_refused_by_name(arguments, message):
    with pytest.raises(ModelError, match=message):
        PairwiseMRF.from_potentials(CATEGORIES, **arguments)


def test_bad_vectors_edges_and_rows_are_refused():
    schema = Schema.from_states([2, 2])
    with pytest.raises(ModelError, match=r"theta has shape \(3,\): the layout has 4 parameters"):
        PairwiseMRF(schema, [], np.zeros(3))
    with pytest.raises(EdgeError, match=r"edge 0, \(0, 5\)"):
        PairwiseMRF(schema, [(0, 5)], np.zeros(8))
    model = example()
    with pytest.raises(DataError, match="row 1 has no value for 'age'"):
        model.energy(codes=[[0, 0, 0], [0, -1, 0]])
    with pytest.raises(DataError, match="row 0, column 'age' holds the code 3"):
        model.energy(codes=[[0, 3, 0]])
    with pytest.raises(DataError, match=r"codes have shape \(1, 2\): expected \(rows, 3\)"):
        model.energy(codes=[[0, 1]])
    with pytest.raises(DataError, match="codes have the type float64: expected integers"):
        model.energy(codes=[[0.0, 1.0, 0.0]])
    for rows in ((), ({"smoker": ["no"]}, [[0, 0, 0]])):
        with pytest.raises(TypeError, match="give the rows once"):
            model.energy(*rows[:1], codes=(rows[1] if rows else None))
    with pytest.raises(DataError, match="'ill'"):
        model.energy({"smoker": ["no"], "age": ["old"]})
    with pytest.raises(ModelError, match="no edge between 'smoker' and 'age'"):
        model.edge_potential("smoker", "age")
