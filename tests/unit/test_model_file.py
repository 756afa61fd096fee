"""Model files: everything that was saved comes back, and the same model gives the same bytes."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file

import edgegraft
from edgegraft.errors import ModelError
from edgegraft.ingest import pack
from edgegraft.model import PairwiseMRF
from edgegraft.table import Schema, Variable
from tests.zoo import ZOO

DAY = datetime.date(2024, 2, 29)
HOSTILE_NAMES = ["<script>", 'say "hi"', "two\nlines\r\n", "ключ 🗝", "", " ", "a\x00b", "\ud800"]


def every_kind():
    """A schema with every kind of column that `pack` makes."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "text": ["b", "a", None, "ü c"] * 25,
            "whole": pd.array([3, -7, None, 2**53 + 1] * 25, dtype="Int64"),
            "real": [0.1, -0.0, np.nan, 1e-300] * 25,
            "flag": pd.array([True, False, None, True] * 25, dtype="boolean"),
            "day": [DAY, datetime.date(1969, 1, 1), None, DAY] * 25,
            "time": pd.to_datetime(
                ["2024-02-29 12:00:00.123456", "1969-01-01 00:00:00.5"] * 50
            ).tz_localize("UTC"),
            "measure": rng.normal(size=100),
            "size": pd.Categorical(["S", "L"] * 50, ["S", "M", "L"], ordered=True),
            "grade": pd.Categorical([2, 1] * 50, [2, 1, 5]),
        }
    )
    return pack(frame, bins={"measure": 4}).schema


def random_model(schema, seed=0):
    rng = np.random.default_rng(seed)
    n = len(schema)
    edges = np.array([(i, j) for i in range(n) for j in range(i + 1, n) if (i + j) % 3])
    edges = rng.permutation(edges)  # a model keeps the order in which its edges came
    states = schema.n_states
    size = states.sum() + (states[edges[:, 0]] * states[edges[:, 1]]).sum()
    return PairwiseMRF(schema, edges, rng.normal(size=int(size)))


def assert_same(found, model):
    assert found == model
    assert found.schema.variables == model.schema.variables
    assert [[*map(type, v.categories)] for v in found.schema] == [
        [*map(type, v.categories)] for v in model.schema
    ]
    assert found.schema.to_json() == model.schema.to_json()
    assert found.edges.dtype == np.int64
    assert found.edges.tolist() == model.edges.tolist()
    assert found.theta.dtype == np.float64
    assert found.theta.tobytes() == model.theta.tobytes()
    assert not found.theta.flags.writeable


def test_every_kind_of_category_comes_back(tmp_path):
    model = random_model(every_kind())
    assert {v.dtype for v in model.schema} >= {"int64", "double", "bool", "date32[day]"}
    model.save(tmp_path / "m.edgegraft")
    assert_same(edgegraft.load(tmp_path / "m.edgegraft"), model)


@pytest.mark.parametrize("name", ZOO)
def test_every_shape_of_model_comes_back(tmp_path, name):
    animal = ZOO[name]
    model = PairwiseMRF(Schema.from_states(animal.states), animal.edges, animal.theta)
    model.save(tmp_path / "m.edgegraft")
    assert_same(edgegraft.load(str(tmp_path / "m.edgegraft")), model)


def test_every_bit_of_the_potentials_comes_back(tmp_path):
    theta = np.array([-0.0, 5e-324, 1.7976931348623157e308, -np.inf, 0.1 + 0.2])
    model = PairwiseMRF(Schema.from_states([5]), [], theta)
    model.save(tmp_path / "m.edgegraft")
    assert edgegraft.load(tmp_path / "m.edgegraft").theta.tobytes() == theta.tobytes()


def test_hostile_names_and_categories_come_back(tmp_path):
    schema = Schema(Variable(name, tuple(HOSTILE_NAMES), "string") for name in HOSTILE_NAMES)
    model = random_model(schema)
    model.save(tmp_path / "m.edgegraft")
    assert_same(edgegraft.load(tmp_path / "m.edgegraft"), model)
    assert edgegraft.read_details(tmp_path / "m.edgegraft").names == tuple(HOSTILE_NAMES)


def test_details_and_columns_come_back(tmp_path):
    model = random_model(Schema.from_states([2, 3, 2, 4]))
    m = model.n_edges
    columns = {
        "q_value": np.linspace(0, 1, m),
        "count": np.arange(m, dtype=np.uint8),
        "kept": np.arange(m) % 2 == 0,
        "unknown": np.full(m, np.nan),
        "single": np.linspace(0, 1, m, dtype=np.float32),
        '<b>\n"é': [7] * m,
    }
    details = {
        "settings": {"penalty": np.float64(0.1), "max_edges": None, "states": np.arange(3)},
        "provenance": {"rows": np.int64(12), "file": "ключ\n", "checks": (True, "x", [1.5])},
    }
    model.save(tmp_path / "m.edgegraft", details=details, edge_columns=columns)
    found = edgegraft.read_details(tmp_path / "m.edgegraft")
    assert found.details == {
        "settings": {"penalty": 0.1, "max_edges": None, "states": [0, 1, 2]},
        "provenance": {"rows": 12, "file": "ключ\n", "checks": [True, "x", [1.5]]},
    }
    assert list(found.details) == ["settings", "provenance"]
    assert list(found.edge_columns) == list(columns)
    for name, values in columns.items():
        np.testing.assert_array_equal(found.edge_columns[name], values)
    assert [v.dtype.name for v in found.edge_columns.values()] == [
        "float64", "int64", "bool", "float64", "float64", "int64",
    ]  # fmt: skip
    assert found.n_states == (2, 3, 2, 4)
    assert found.edges.tolist() == model.edges.tolist()
    assert found.theta.tobytes() == model.theta.tobytes()
    assert found.written_by == f"edgegraft {edgegraft.__version__}"
    assert edgegraft.load(tmp_path / "m.edgegraft") == model


@pytest.mark.parametrize(
    ("details", "message"),
    [
        ({"a": {"b": [1, np.inf]}}, r"details\['a'\]\['b'\]\[1\] is inf, which JSON cannot hold"),
        ({"a": np.array([np.nan])}, r"details\['a'\]\[0\] is nan"),
        ({"a": {1: 2}}, r"details\['a'\] has the key 1: keys must be strings"),
        ({"when": DAY}, r"details\['when'\] is a date: use numbers, strings"),
        ({"code": print}, r"details\['code'\] is a builtin_function_or_method"),
    ],
)
def test_details_that_json_cannot_hold_are_refused_by_place(tmp_path, details, message):
    model = random_model(Schema.from_states([2, 2]))
    with pytest.raises(ModelError, match=message):
        model.save(tmp_path / "m.edgegraft", details=details)
    assert list(tmp_path.iterdir()) == []


def test_details_nested_without_end_are_refused(tmp_path):
    loop: dict = {}
    loop["again"] = loop
    with pytest.raises(ModelError, match="nested more than 32 deep"):
        random_model(Schema.from_states([2, 2])).save(tmp_path / "m", details=loop)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"q": [0.1, 0.2]}, r"edge column 'q' has shape \(2,\): one value for each of the 1 edges"),
        ({"q": 0.1}, r"edge column 'q' has shape \(\)"),
        ({"q": ["a"]}, "edge column 'q' has the type .* numbers or booleans"),
        ({"q": [None]}, "edge column 'q' has the type object"),
        ({"q": [1j]}, "edge column 'q' has the type complex128"),
        ({"q": np.array([2**64 - 1], np.uint64)}, "holds 18446744073709551615, beyond 64-bit"),
        ({3: [1.0]}, "needs a name in text, found 3"),
        ({"": [1.0]}, "needs a name in text, found ''"),
        ({"\ud800": [1.0]}, "needs a name in text"),
    ],
)
def test_columns_that_do_not_fit_the_edges_are_refused_by_name(tmp_path, columns, message):
    model = random_model(Schema.from_states([2, 2]))
    with pytest.raises(ModelError, match=message):
        model.save(tmp_path / "m.edgegraft", edge_columns=columns)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "m.edgegraft"
    random_model(Schema.from_states([2, 2])).save(path)
    before = path.read_bytes()
    with pytest.raises(ModelError):
        random_model(Schema.from_states([2, 3])).save(path, details={"x": np.inf})
    assert path.read_bytes() == before
    random_model(Schema.from_states([2, 3])).save(path)
    assert edgegraft.load(path).schema.n_states.tolist() == [2, 3]
    assert list(tmp_path.iterdir()) == [path]


def test_a_header_that_no_reader_would_take_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("edgegraft.core.container.MAX_HEADER", 500)
    with pytest.raises(ModelError, match=r"names, categories and details take [\d,]+ bytes"):
        random_model(Schema.from_states([2, 2])).save(tmp_path / "m.edgegraft")
    assert list(tmp_path.iterdir()) == []


def test_other_programs_can_read_the_tensors(tmp_path):
    model = random_model(Schema.from_states([2, 3]))
    model.save(tmp_path / "m.edgegraft", edge_columns={"q_value": [0.5]})
    tensors = load_file(tmp_path / "m.edgegraft")
    assert sorted(tensors) == ["column.q_value", "edges", "theta"]
    np.testing.assert_array_equal(tensors["theta"], model.theta)


def test_the_same_model_gives_the_same_bytes(tmp_path):
    model, path = random_model(Schema.from_states([2, 2])), tmp_path / "m.edgegraft"
    found = set()
    for _ in range(20):  # a hash table with several entries would order them anew each time
        model.save(path, details={"b": 1, "a": {"z": 0, "y": 0}}, edge_columns={"q": [1], "p": [2]})
        found.add(path.read_bytes())
    assert len(found) == 1


def test_a_file_that_users_hold_loads():
    """The file is of today's format and is never written again."""
    states = {"rain": 2, "wind": 3, "mood": 3, "walk": 2, "bus": 3, "tea": 2}
    ends = ("rain wind", "rain mood", "wind mood", "mood walk", "walk bus", "wind bus", "bus tea")
    pairs = [tuple(pair.split()) for pair in ends]
    rng = np.random.default_rng(12)
    nodes = {name: rng.normal(0, 0.5, n) for name, n in states.items()}
    edges = {(a, b): rng.normal(0, 0.8, (states[a], states[b])) for a, b in pairs}
    path = Path(__file__).parent / "files" / "model.edgegraft"
    model, stored = edgegraft.load(path), edgegraft.read_details(path)
    categories = {variable.name: list(variable.categories) for variable in model.schema}
    assert categories["wind"] == ["calm", "breeze", "storm"]
    assert model == PairwiseMRF.from_potentials(categories, nodes, edges)
    assert stored.details["rows"] == 700
    np.testing.assert_array_equal(stored.edge_columns["q_value"], np.linspace(0.0, 0.003, 7))


def test_the_edges_of_a_file_are_a_frame_with_all_that_is_known_of_them(tmp_path):
    model = PairwiseMRF.from_potentials(
        {name: [0, 1] for name in "abc"},
        edges={("a", "c"): np.eye(2), ("a", "b"): 2 * np.eye(2)},
    )
    model.save(tmp_path / "m", edge_columns={"q_value": [0.25, 0.5]})
    found = edgegraft.load(tmp_path / "m").edges_frame()
    assert found.to_dict("list") == {
        "first": ["a", "a"],
        "second": ["b", "c"],
        "strength": [2.0, 1.0],
        "q_value": [0.5, 0.25],
    }
    assert PairwiseMRF.from_potentials({"a": [0, 1]}).edges_frame().shape == (0, 3)
