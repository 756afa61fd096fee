"""The page: whole, alone, and safe whatever the data are called."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from edgegraft.errors import DataError, ModelError
from edgegraft.model import PairwiseMRF
from edgegraft.report import data_quality, write_report
from edgegraft.report.style import LIMITS
from edgegraft.table import PackedTable, Schema, Variable

VOID = {"meta", "link", "input", "br"}
HOSTILE = [
    "<script>alert(1)</script>",
    """'"><img src=x onerror=alert(1)>""",
    "</script><b>&amp;\u2028\u2029",
    "{{ title }} {% raw %} \ud800 \x00",
]


class Page(HTMLParser):
    """Elements, text and scripts of a page; refuses elements that are not closed in order."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.scripts, self.words, self._open = [], [], [], []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] == "script":
            attrs, text = self.scripts[-1]
            self.scripts[-1] = (attrs, text + data)
        elif "style" not in self._open:
            self.words.append(data)

    @property
    def text(self):
        return "".join(self.words)

    def sections(self):
        return [attrs["id"] for tag, attrs in self.elements if tag == "section"]

    def data(self, name):
        return next(json.loads(t) for attrs, t in self.scripts if attrs.get("id") == name)


def example(names=("smoker", "cancer", "age", "alone")):
    schema = Schema(
        [
            Variable(names[0], ("no", "yes"), "string"),
            Variable(names[1], (names[1], names[2]), "string"),
            Variable(names[2], (0.5, 1.5, 2.5), "double"),
            Variable(names[3], (False, True), "bool"),
        ]
    )
    rng = np.random.default_rng(3)
    return PairwiseMRF(schema, [(0, 1), (1, 2)], rng.normal(size=2 + 2 + 3 + 2 + 4 + 6))


def written(tmp_path, model, **given):
    path = tmp_path / "page.html"
    write_report(path, model, **given)
    text = path.read_text(encoding="utf-8")
    return Page(text), text


def everything(model, word="plain"):
    return {
        "details": {
            "source": {"file": word, "rows": 70},
            "settings": {word: word, "penalty": 0.1234567890123, "drop": [], "columns": None},
            "certificate": {"text": f"checked {word}", "n_pairs": 4},
            "reason": word,
            "versions": {"edgegraft": word},
        },
        "edge_columns": {"q_value": [0.25, 1e-9], word.replace("\ud800", ""): [1, 2]},
        "trace": {
            "seconds": [0, 1],
            "objective": [3.0, 2.0],
            "n_edges": [0, 2],
            "kind": ["a", "b"],
        },
        "data_quality": {
            "n_rows": 70,
            "missing": {model.names[0]: 7},
            "rare": [{"variable": model.names[1], "category": word, "count": 1}],
            "dropped": {word: word},
            "notes": [word],
        },
        "title": word,
    }


def test_everything_is_there(tmp_path):
    model = example()
    page, _ = written(tmp_path, model, **everything(model))
    assert page.sections() == [
        "summary",
        "network",
        "edges",
        "variables",
        "trajectory",
        "certificate",
        "quality",
        "settings",
    ]
    for said in ("70", "smoker \u2013 cancer", "0.25", "1e-09", "checked plain", "0.1234567890123"):
        assert said in page.text
    assert "7 cells are missing (2.50%)" in page.text
    assert "10.0%" in page.text  # of the cells of one variable
    links = [attrs["href"] for tag, attrs in page.elements if tag == "a"]
    assert links == [f"#{name}" for name in page.sections()]
    charts = page.data("chart-data")
    assert charts["trace"]["left"]["lines"][0]["values"] == [3.0, 2.0]


def test_parts_without_data_are_left_out(tmp_path):
    page, _ = written(tmp_path, example())
    assert page.sections() == ["summary", "network", "edges", "variables", "settings"]
    assert page.data("chart-data") == {}
    assert "numpy" in page.text


def test_details_may_carry_the_data_quality(tmp_path):
    found = {"n_rows": 3, "missing": {}, "rare": []}
    page, _ = written(tmp_path, example(), details={"data_quality": found})
    assert "quality" in page.sections()
    assert "No cell is missing" in page.text


def test_network_data_are_the_models(tmp_path):
    model = example()
    page, _ = written(tmp_path, model)
    data = page.data("network-data")
    names = [node["name"] for node in data["nodes"]]
    assert names == ["smoker", "cancer", "age", "alone"]
    order = np.argsort(model.edge_strengths(), kind="stable")
    ends = [{names[v] for v in edge["ends"]} for edge in data["edges"]]
    assert ends == [{model.names[v] for v in model.edges[k]} for k in order]
    assert [edge["weight"] for edge in data["edges"]][-1] == 1
    zero_sum, marginals = model.zero_sum(), model.marginals()
    for edge in data["edges"]:
        first, second = (names[v] for v in edge["ends"])
        np.testing.assert_allclose(
            edge["table"]["values"], zero_sum.edge_potential(first, second), rtol=6e-3
        )
    shares = dict(data["nodes"][0]["marginals"])
    assert shares["yes"] == pytest.approx(marginals["smoker"]["yes"], rel=1e-3)
    assert all(np.isfinite([node["x"], node["y"], node["size"]]).all() for node in data["nodes"])


def test_nothing_is_fetched_and_only_our_scripts_may_run(tmp_path):
    model = example()
    page, text = written(tmp_path, model, **everything(model))
    for tag, attrs in page.elements:
        for name in ("src", "href", "action", "data", "srcset", "poster"):
            value = attrs.get(name, "#") or "#"
            assert value.startswith(("#", "data:")), (tag, name, value)
        assert not any(name.startswith("on") for name in attrs), (tag, attrs)
    found = set(re.findall(r"https?://[^\s\"'<>]*", text))
    assert found == {"http://www.w3.org/2000/svg"}  # the name of a namespace: never fetched
    assert "@import" not in text
    assert "url(" not in text
    policy = next(
        attrs["content"]
        for tag, attrs in page.elements
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    script = re.search(r"script-src ([^;]*);", policy)[1].split()
    ours = [t for attrs, t in page.scripts if attrs.get("type") != "application/json"]
    sums = [base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in ours]
    assert script == [f"'sha256-{checksum}'" for checksum in sums]


def test_names_from_the_data_stay_text(tmp_path):
    plain, _ = written(tmp_path, example(), **everything(example()))
    tags = [tag for tag, _ in plain.elements]
    model = example(HOSTILE)
    for word in HOSTILE:
        page, _ = written(tmp_path, model, **everything(model, word))
        assert [tag for tag, _ in page.elements] == tags
        assert not any("onerror" in attrs for _, attrs in page.elements)
        shown = word.encode("utf-8", "backslashreplace").decode().replace("\x00", "\ufffd")
        assert shown in page.text.replace("\x00", "\ufffd")
        names = [node["name"] for node in page.data("network-data")["nodes"]]
        assert names == list(model.names)
        ours = [t for attrs, t in page.scripts if attrs.get("type") != "application/json"]
        assert not any(name in script for name in HOSTILE for script in ours)


def test_forbidden_pairs_and_large_tables(tmp_path):
    table = np.zeros((2, 60))
    table[0, 3] = -np.inf
    states = {"a": ["no", "yes"], "b": list(range(60))}
    model = PairwiseMRF.from_potentials(states, edges={("a", "b"): table})
    page, _ = written(tmp_path, model)
    assert "never" in page.text
    assert "∞" in page.text
    assert "of 2 by 60" in page.text
    (edge,) = page.data("network-data")["edges"]
    assert edge["table"]["columns"][3] == "3"
    assert edge["table"]["values"][0][3] is None
    assert edge["facts"] == [["strength", "∞"]]


def test_a_model_without_edges(tmp_path):
    model = PairwiseMRF.from_potentials({"a": ["no", "yes"]})
    page, _ = written(tmp_path, model)
    assert page.sections() == ["summary", "network", "variables", "settings"]
    assert "independent" in page.text
    assert page.data("network-data") == {"nodes": [], "edges": []}


def test_a_model_that_allows_nothing(tmp_path):
    never = [[-np.inf, -np.inf], [-np.inf, -np.inf]]
    model = PairwiseMRF.from_potentials({"a": [0, 1], "b": [0, 1]}, edges={("a", "b"): never})
    page, _ = written(tmp_path, model)
    assert "no marginals" in page.text


def test_large_networks_are_cut_and_say_so(tmp_path):
    n = 90
    edges = np.stack(np.triu_indices(n, 1), axis=1)
    schema = Schema.from_states([2] * n)
    theta = np.random.default_rng(0).normal(scale=0.01, size=2 * n + 4 * len(edges))
    page, text = written(tmp_path, PairwiseMRF(schema, edges, theta))
    assert len(page.data("network-data")["edges"]) == LIMITS.drawn
    assert f"{LIMITS.drawn:,} strongest of {len(edges):,} edges" in page.text
    assert len(text) < 2_000_000


def test_the_same_arguments_give_the_same_bytes(tmp_path):
    model = example()
    first = written(tmp_path, model, **everything(model))[1]
    assert first == written(tmp_path, model, **everything(model))[1]


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"edge_columns": {"q": [1.0]}}, ModelError, "edge column 'q'"),
        ({"details": [1]}, DataError, "details must be a dict, found list"),
        ({"data_quality": "good"}, DataError, "data_quality must be a dict"),
        ({"trace": {"seconds": [1.0]}}, DataError, "no column 'objective'"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(tmp_path, wrong, error, message):
    path = tmp_path / "page.html"
    path.write_text("before")
    with pytest.raises(error, match=message):
        write_report(path, example(), **wrong)
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
    assert path.read_text() == "before"


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_report(tmp_path / "nowhere" / "page.html", example())


def test_data_quality_counts_what_is_missing_and_rare():
    rng = np.random.default_rng(1)
    codes = np.column_stack([rng.integers(0, 2, 50), np.zeros(50, int)])
    codes[:3, 1], codes[3:5, 0] = 1, -1
    found = data_quality(
        PackedTable.from_codes(codes), dropped={"id": "all different"}, notes=["binned"]
    )
    assert found["missing"] == {"x0": 2}
    assert found["rare"] == [{"variable": "x1", "category": "1", "count": 3}]
    assert found["n_rows"] == 50
    assert json.loads(json.dumps(found)) == found
