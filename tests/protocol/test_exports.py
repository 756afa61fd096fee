"""Protocol of exports: what other programs read of a file is what the model has."""

from __future__ import annotations

import csv
import gzip
import json
import sys

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgegraft.errors import MissingExtraError, ModelError
from edgegraft.io import FORMATS, edge_table, export, model_from_uai, to_networkx
from edgegraft.model import PairwiseMRF
from edgegraft.table import Schema, Variable

NAMES = ["<script>alert('x')</script>", 'say "hi" & bye', "two\nlines\r\nand\ttab ", "ключ 🗝, 名"]
CATEGORIES = [("<a>", '"', "\n", "é"), (-1, 0, 10**15), (0.1, 2.5), (False, True)]
EDGES = [(1, 2), (0, 1), (0, 3)]
COLUMNS = {
    "q_value": np.array([0.1 + 0.2, 1e-300, np.nan]),
    "<b>,\"'\n\r;é": np.array([1.5, -2.0, np.inf]),
    "count": np.array([3, -(2**60), 0]),
    "kept": np.array([True, False, True]),
}


def example(names=NAMES):
    rng = np.random.default_rng(5)
    dtypes = ("string", "int64", "double", "bool")
    schema = Schema(Variable(*parts) for parts in zip(names, CATEGORIES, dtypes, strict=True))
    return PairwiseMRF(schema, EDGES, rng.normal(size=4 + 3 + 2 + 2 + 6 + 12 + 8))


def by_ends(model, columns):
    """Every edge under the names of its ends, with what it should have."""
    values = {"strength": model.edge_strengths(), **columns}
    return {
        frozenset((model.names[i], model.names[j])): {
            name: column[k] for name, column in values.items()
        }
        for k, (i, j) in enumerate(model.edges)
    }


def assert_same_edges(found, expected):
    assert found.keys() == expected.keys()
    for ends, values in expected.items():
        assert list(found[ends]) == list(values)
        for name, value in values.items():
            np.testing.assert_equal(found[ends][name], value, err_msg=f"{ends} {name}")


def graph_edges(graph):
    return {frozenset((a, b)): data for a, b, data in graph.edges(data=True)}


def test_networkx_graph():
    model = example()
    graph = to_networkx(model, COLUMNS)
    assert list(graph) == NAMES
    assert graph.nodes[NAMES[1]] == {
        "n_states": 3,
        "categories": [-1, 0, 10**15],
        "kind": "nominal",
    }
    assert_same_edges(graph_edges(graph), by_ends(model, COLUMNS))
    types = {name: type(value) for name, value in graph.edges[NAMES[0], NAMES[1]].items()}
    assert types["q_value"] is float
    assert types["count"] is int
    assert types["kept"] is bool


def test_a_column_may_take_the_place_of_the_strength():
    graph = to_networkx(example(), {"strength": [3.0, 2.0, 1.0]})
    assert graph.edges[NAMES[1], NAMES[2]] == {"strength": 3.0}


def as_labels(text):
    labels = json.loads(text)
    return tuple(labels), [type(label) for label in labels]


def test_graphml(tmp_path):
    model = example()
    export(model, tmp_path / "m.graphml", edge_columns=COLUMNS)
    graph = nx.read_graphml(tmp_path / "m.graphml")
    assert not graph.is_directed()
    nodes = graph.nodes(data=True)
    assert [data["name"] for _, data in nodes] == NAMES
    assert [data["n_states"] for _, data in nodes] == [4, 3, 2, 2]
    assert {data["kind"] for _, data in nodes} == {"nominal"}
    for (_, data), labels in zip(nodes, CATEGORIES, strict=True):
        assert as_labels(data["categories"]) == (labels, [type(label) for label in labels])
    named = nx.relabel_nodes(graph, {node: data["name"] for node, data in nodes})
    assert_same_edges(graph_edges(named), by_ends(model, COLUMNS))


def test_gexf(tmp_path):
    model = example()
    export(model, tmp_path / "m.gexf", edge_columns=COLUMNS)
    graph = nx.read_gexf(tmp_path / "m.gexf", relabel=True)
    assert not graph.is_directed()
    assert list(graph) == NAMES
    for name, labels in zip(NAMES, CATEGORIES, strict=True):
        assert graph.nodes[name]["n_states"] == len(labels)
        assert graph.nodes[name]["kind"] == "nominal"
        found = as_labels(graph.nodes[name]["categories"])
        assert found == (labels, [type(label) for label in labels])
    for _, _, data in graph.edges(data=True):
        assert data.pop("weight") == data["strength"]
        del data["id"]
    assert_same_edges(graph_edges(graph), by_ends(model, COLUMNS))


def rows_by_ends(rows):
    return {frozenset((row.pop("first"), row.pop("second"))): row for row in rows}


def test_csv_edges(tmp_path):
    model = example()
    export(model, tmp_path / "m.csv", edge_columns=COLUMNS)
    with (tmp_path / "m.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    read = {"true": True, "false": False, "": np.nan}
    found = [
        {k: v if k in ("first", "second") else read.get(v) if v in read else float(v)
         for k, v in row.items()}
        for row in rows
    ]  # fmt: skip
    strengths = [row["strength"] for row in found]
    assert strengths == sorted(model.edge_strengths(), reverse=True)
    assert_same_edges(rows_by_ends(found), by_ends(model, COLUMNS))
    frame = pd.read_csv(tmp_path / "m.csv")
    assert frame["kept"].dtype == bool
    assert frame["count"].dtype == np.int64
    np.testing.assert_allclose(np.sort(frame["q_value"]), np.sort(COLUMNS["q_value"]), rtol=1e-14)


def test_parquet_edges(tmp_path):
    model = example()
    export(model, tmp_path / "m.parquet", edge_columns=COLUMNS)
    table = pq.read_table(tmp_path / "m.parquet")
    assert [str(t) for t in table.schema.types] == [
        "string", "string", "double", "double", "double", "int64", "bool",
    ]  # fmt: skip
    assert_same_edges(rows_by_ends(table.to_pylist()), by_ends(model, COLUMNS))


def test_uai_keeps_the_potentials(tmp_path):
    model = example()
    export(model, tmp_path / "m.uai", edge_columns=COLUMNS)
    found = model_from_uai(tmp_path / "m.uai")
    np.testing.assert_allclose(found.theta, model.theta, rtol=1e-13)


def test_forbidden_pairs_are_infinitely_strong_in_every_format(tmp_path):
    model = PairwiseMRF.from_potentials(
        {"a": [0, 1], "b": [0, 1]}, edges={("a", "b"): [[0, -np.inf], [0, 0]]}
    )
    for name in FORMATS:
        export(model, tmp_path / f"m.{name}")
    assert nx.read_graphml(tmp_path / "m.graphml").edges["n0", "n1"]["strength"] == np.inf
    edge = nx.read_gexf(tmp_path / "m.gexf").edges["0", "1"]
    assert edge["strength"] == np.inf
    assert "weight" not in edge
    assert pd.read_csv(tmp_path / "m.csv")["strength"].tolist() == [np.inf]


def test_models_without_edges_or_variables(tmp_path):
    for states in ([2, 3], []):
        model = PairwiseMRF(Schema.from_states(states), [], np.zeros(sum(states)))
        for name in FORMATS:
            export(model, tmp_path / f"m.{name}", edge_columns={"q": []})
        assert len(nx.read_graphml(tmp_path / "m.graphml")) == len(states)
        assert len(nx.read_gexf(tmp_path / "m.gexf")) == len(states)
        assert pq.read_table(tmp_path / "m.parquet").column_names[:2] == ["first", "second"]
        assert (tmp_path / "m.csv").read_text() == "first,second,strength,q\n"


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "parquet"])
def test_text_is_compressed_by_its_name_and_the_same_each_time(tmp_path, name):
    model = example()
    export(model, tmp_path / f"m.{name}", edge_columns=COLUMNS)
    export(model, tmp_path / f"M.{name.upper()}.gz", edge_columns=COLUMNS)
    plain = (tmp_path / f"m.{name}").read_bytes()
    packed = (tmp_path / f"M.{name.upper()}.gz").read_bytes()
    assert gzip.decompress(packed) == plain
    export(model, tmp_path / f"again.{name}.gz", edge_columns=COLUMNS)
    assert (tmp_path / f"again.{name}.gz").read_bytes() == packed


def test_the_format_is_that_of_the_suffix_or_the_one_given(tmp_path):
    model = example()
    export(model, tmp_path / "edges.txt", "csv")
    assert (tmp_path / "edges.txt").read_text().startswith("first,second,strength\n")
    known = "csv, gexf, graphml, parquet, uai"
    for name in ("m.xlsx", "m", "m.gz", ".csv"):
        with pytest.raises(ValueError, match=rf"'.*{name}' does not end in .* \({known}\)"):
            export(model, tmp_path / name)
    with pytest.raises(ValueError, match=f"no export format 'xlsx'; choose one of {known}"):
        export(model, tmp_path / "m.csv", "xlsx")
    with pytest.raises(ValueError, match=r"leave out \.gz"):
        export(model, tmp_path / "m.parquet.gz")
    assert [path.name for path in tmp_path.iterdir()] == ["edges.txt"]


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "uai"])
def test_columns_that_do_not_fit_leave_no_file(tmp_path, name):
    with pytest.raises(ModelError, match=r"edge column 'q' has shape \(2,\)"):
        export(example(), tmp_path / f"m.{name}", edge_columns={"q": [1, 2]})
    assert list(tmp_path.iterdir()) == []


def test_an_edge_list_has_its_own_names_for_the_ends():
    with pytest.raises(ModelError, match="cannot be called 'second'"):
        edge_table(example(), {"second": [1, 2, 3]})


@pytest.mark.parametrize("name", ["graphml", "gexf"])
@pytest.mark.parametrize(
    ("character", "code"), [("\0", "0000"), ("\x1b", "001B"), ("\ud800", "D800")]
)
def test_characters_that_xml_cannot_hold_are_refused_by_name(tmp_path, name, character, code):
    model = example(["a", f"b{character}", "c", "d"])
    with pytest.raises(ModelError, match=rf"variable 'b.*' has the character U\+{code}"):
        export(model, tmp_path / f"m.{name}")
    if code != "D800":
        with pytest.raises(ModelError, match=rf"edge column 'q.*' has the character U\+{code}"):
            export(example(), tmp_path / f"m.{name}", edge_columns={f"q{character}": [1, 2, 3]})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["csv", "parquet"])
def test_names_that_are_no_text_are_refused(tmp_path, name):
    with pytest.raises(ModelError, match="half of a surrogate pair"):
        export(example(["a", "b\ud800", "c", "d"]), tmp_path / f"m.{name}")
    assert list(tmp_path.iterdir()) == []


def test_categories_that_xml_cannot_hold_are_escaped(tmp_path):
    labels = ("\0", "\ud800", "\uffff", "é")
    model = PairwiseMRF(Schema([Variable("a", labels, "string")]), [], np.zeros(4))
    export(model, tmp_path / "m.graphml")
    export(model, tmp_path / "m.gexf")
    found = nx.read_graphml(tmp_path / "m.graphml").nodes["n0"]["categories"]
    assert tuple(json.loads(found)) == labels
    assert nx.read_gexf(tmp_path / "m.gexf").nodes["0"]["categories"] == found


names = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])
    | st.sampled_from("<>&\"'\n\r\t,;"),
    min_size=1,
).filter(lambda text: not {"\ufffe", "\uffff"} & set(text))


@settings(
    deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(names, min_size=2, max_size=2, unique=True), names.filter(lambda n: n != "strength")
)
def test_any_name_survives_every_text_format(tmp_path, pair, column):
    model = PairwiseMRF.from_potentials(
        {name: [0, 1] for name in pair}, edges={tuple(pair): np.eye(2)}
    )
    columns = {column: [0.25]}
    for name in ("graphml", "gexf"):
        export(model, tmp_path / f"m.{name}", edge_columns=columns)
    graphml, gexf = nx.read_graphml(tmp_path / "m.graphml"), nx.read_gexf(tmp_path / "m.gexf")
    assert [name for _, name in graphml.nodes(data="name")] == pair
    assert [label for _, label in gexf.nodes(data="label")] == pair
    assert graphml.edges["n0", "n1"][column] == gexf.edges["0", "1"][column] == 0.25
    if column in ("first", "second"):
        return
    export(model, tmp_path / "m.csv", edge_columns=columns)
    with (tmp_path / "m.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [
            ["first", "second", "strength", column],
            [*pair, "1.0", "0.25"],
        ]


def test_a_missing_networkx_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'edgegraft\[networkx\]'"):
        to_networkx(example())
