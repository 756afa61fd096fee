"""What the explorer answers, through its web application and without a browser."""

from __future__ import annotations

import csv
import io
import json
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest

from edgegraft import GraftedMRF
from edgegraft.errors import ImpossibleEvidenceError, ModelError
from edgegraft.inference import BeliefPropagation
from edgegraft.model import PairwiseMRF
from edgegraft.report.explorer import MAX_CATEGORIES, Explorer
from tests.explorer_cases import (
    BIG,
    HOSTILE,
    ask,
    client_of,
    forbidding_model,
    get,
    grid_model,
    hostile_model,
)


@pytest.fixture(scope="module")
def explorer():
    return Explorer(grid_model(), title="grid")


@pytest.fixture(scope="module")
def client(explorer):
    return client_of(explorer)


def flat(model, found, given):
    """The marginals of all variables, category after category, as the model gives them."""
    parts = []
    for variable in model.schema:
        if variable.name in given:
            parts += [float(c == given[variable.name]) for c in variable.categories]
        else:
            parts += list(found[variable.name].values())
    return parts


def test_evidence_changes_the_bars_to_what_the_model_says(client, explorer):
    model = explorer.model
    given = {"v1": BIG, "v5": 1.0}
    found = ask(client, given=[[1, 2], [5, 1]]).get_json()
    assert found["probabilities"] == flat(model, model.marginals(given), given)
    assert (found["engine"], found["reliability"]) == ("exact", "exact")
    prior = flat(model, model.marginals(), {})
    shown = [
        p for variable in get(client, "model").get_json()["variables"] for p in variable["prior"]
    ]
    assert shown == prior
    gap = np.abs(np.array(found["probabilities"]) - prior).reshape(-1, 3).sum(axis=1) / 2
    np.testing.assert_allclose(found["change"], gap, atol=1e-15)


def test_every_variable_can_be_given(client, explorer):
    n = explorer.model.n_variables
    found = ask(client, given=[[i, i % 3] for i in range(n)]).get_json()
    assert np.array_equal(
        np.array(found["probabilities"]).reshape(n, 3).argmax(axis=1) % 3, np.arange(n) % 3
    )


def test_going_back_gives_the_earlier_numbers():
    """Undo asks for earlier evidence: neither memory nor what came between may show."""
    warm = Explorer(grid_model(), engine=BeliefPropagation())
    steps = [{}, {1: 2}, {1: 2, 5: 1}, {1: 0, 5: 1}, {1: 2}, {}]
    found = [warm.answer(given)["probabilities"] for given in steps]
    assert found[1] == found[4]
    assert found[0] == found[5]
    assert found[1] != found[2]
    cold = Explorer(grid_model(), engine=BeliefPropagation())
    assert cold.answer({1: 0, 5: 1})["probabilities"] == found[3]


def test_links_carry_the_evidence(client, explorer):
    first = ask(client, given=[[0, 1], [1, 2], [2, 0]]).get_json()
    assert json.loads(first["link"]) == {"v0": "mid", "v1": BIG, "v2": 0.5}
    second = ask(client, link=first["link"]).get_json()
    same = ("given", "probabilities", "link", "change")
    assert {key: first[key] for key in same} == {key: second[key] for key in same}


@pytest.mark.parametrize(
    ("link", "word"),
    [
        ('{"v0":"none"}', "no category 'none'"),
        ('{"nobody":1}', "no variable 'nobody'"),
        ("{", "cannot be read"),
        ("[1]", "no names"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_links_that_do_not_fit_say_why(client, link, word):
    found = ask(client, link=link)
    assert found.status_code == 422
    assert word in found.get_json()["error"]


@pytest.mark.parametrize(
    "given", [[[99, 0]], [[0, 3]], [[-1, 0]], [[0, -1]], [[0]], "x", [[0, True]], [["v0", 1]], None]
)
def test_evidence_that_does_not_fit_is_refused(client, given):
    found = ask(client, given=given)
    assert found.status_code == 422
    assert found.get_json()["error"]


@pytest.mark.parametrize("engine", [None, BeliefPropagation()])
@pytest.mark.parametrize("given", [[[0, 0], [1, 1]], [[0, 0], [2, 1]]])
def test_contradictory_evidence_is_a_message(engine, given):
    """Two that exclude each other directly, and two that only do so through a third."""
    client = client_of(Explorer(forbidding_model(), engine=engine))
    found = ask(client, given=given)
    assert found.status_code == 409
    assert "zero" in found.get_json()["error"]
    assert ask(client, given=[[0, 0]]).status_code == 200  # and life goes on


def test_a_run_that_did_not_converge_is_named():
    explorer = Explorer(grid_model(), engine=BeliefPropagation(max_iter=1))
    found = explorer.answer({0: 1})
    assert found["reliability"] == "not converged"
    assert "did not converge" in found["message"]


def test_a_converged_approximation_is_named():
    found = Explorer(grid_model(), engine=BeliefPropagation()).answer({0: 1})
    assert (found["engine"], found["reliability"]) == ("bp", "converged")


def test_neighbours_come_with_their_tables(client, explorer):
    model = explorer.model.zero_sum()
    found = get(client, "variable/5").get_json()["neighbours"]
    assert {row["variable"] for row in found} == {1, 4, 6, 9}
    strengths = [row["strength"] for row in found]
    assert strengths == sorted(strengths, reverse=True)
    for row in found:
        expected = model.edge_potential("v5", f"v{row['variable']}")
        np.testing.assert_array_equal(row["table"], expected)
        np.testing.assert_allclose(np.sum(row["table"], axis=0), 0.0, atol=1e-12)
        assert np.isclose(np.linalg.norm(row["table"]), row["strength"])


def test_unknown_variables_are_refused(client):
    assert get(client, "variable/99").status_code == 422
    assert get(client, "variable/-1").status_code == 404


def test_forbidden_pairs_are_none_and_lonely_variables_have_no_neighbours():
    client = client_of(Explorer(forbidding_model()))
    row = get(client, "variable/0").get_json()["neighbours"][0]
    assert (row["table"], row["strength"]) == ([[0.0, None], [None, 0.0]], None)
    assert get(client, "variable/3").get_json()["neighbours"] == []
    drawn = get(client, "model").get_json()["network"]["nodes"]
    assert {node["variable"] for node in drawn} == {0, 1, 2, 3}


def test_of_many_categories_those_with_the_largest_entries_are_shown():
    table = np.zeros((100, 2))
    table[70] = [3.0, -3.0]
    model = PairwiseMRF.from_potentials(
        {"many": list(range(100)), "two": [0, 1]}, edges={("many", "two"): table}
    )
    row = Explorer(model).variable(1)["neighbours"][0]
    assert len(row["columns"]) == MAX_CATEGORIES
    assert row["columns"] == sorted(row["columns"])
    assert row["table"][0][row["columns"].index(70)] == pytest.approx(2.97)


def test_a_model_without_edges_has_a_page():
    client = client_of(Explorer(PairwiseMRF.from_potentials({"a": [0, 1]}, {"a": [0.0, 1.0]})))
    assert get(client, "model").get_json()["network"] == {"nodes": [], "edges": []}
    assert ask(client, given=[[0, 1]]).get_json()["probabilities"] == [0.0, 1.0]


def test_exports_hold_evidence_marginals_and_their_source(client, explorer):
    answer = ask(client, given=[[1, 2]]).get_json()
    query = f"?given={quote(answer['link'])}"
    assert get(client, "marginals.csv" + query).headers["Content-Disposition"] == (
        'attachment; filename="marginals.csv"'
    )
    table = list(csv.DictReader(io.StringIO(get(client, "marginals.csv" + query).text)))
    assert [float(row["probability"]) for row in table] == answer["probabilities"]
    prior = explorer.prior.probabilities.tolist()
    assert [float(row["without_evidence"]) for row in table] == prior
    assert (table[0]["category"], table[0]["reliability"]) == ("low", "exact")
    assert {row["variable"] for row in table if row["observed"] == "1"} == {"v1"}


def test_exports_of_impossible_evidence_are_refused():
    client = client_of(Explorer(forbidding_model()))
    link = quote('{"a":"no","b":"yes"}')
    assert get(client, f"marginals.csv?given={link}").status_code == 409


def test_names_from_the_data_are_not_markup():
    explorer = Explorer(hostile_model(), title=HOSTILE)
    client = client_of(explorer)
    page = get(client, "")
    assert HOSTILE not in page.text
    assert "&lt;script&gt;alert" in page.text
    model = get(client, "model")
    assert model.headers["Content-Type"] == "application/json"
    assert model.headers["X-Content-Type-Options"] == "nosniff"
    assert model.get_json()["variables"][0]["name"] == HOSTILE
    answer = ask(client, given=[[0, 2], [1, 1], [2, 0]]).get_json()
    again = ask(client, link=answer["link"]).get_json()
    assert again["given"] == [[0, 2], [1, 1], [2, 0]]
    rows = csv.reader(io.StringIO(get(client, f"marginals.csv?given={quote(answer['link'])}").text))
    assert [row[:2] for row in rows][3:6] == [
        [HOSTILE, ""],
        ['a="b"&c#d', "x,y"],
        ['a="b"&c#d', '"q"'],
    ]


def test_memory_of_answers_is_bounded(explorer):
    for i in range(16):
        for code in range(3):
            explorer.ask({i: code, (i + 1) % 16: 0})
    assert explorer._cached.cache_info().currsize <= 64


def test_a_model_in_which_nothing_is_possible_is_refused_at_once():
    model = PairwiseMRF.from_potentials({"a": [0, 1]}, {"a": [-np.inf, -np.inf]})
    with pytest.raises(ModelError):
        Explorer(model)


def test_python_callers_get_the_library_s_errors():
    with pytest.raises(ImpossibleEvidenceError):
        Explorer(forbidding_model()).ask({0: 0, 1: 1})


def test_the_page_says_how_far_shares_are_from_the_data():
    text = "The shares differ by at most 0.0020."
    assert Explorer(forbidding_model(), shares=text).overview()["shares"] == text
    assert Explorer(forbidding_model()).overview()["shares"] == ""


def test_ordered_columns_have_numbers_and_edges_their_signs():
    rng = np.random.default_rng(0)
    first = rng.normal(size=800)
    frame = pd.DataFrame({"x": first, "y": -first + rng.normal(size=800)})
    frame["z"] = rng.choice(["a", "b", "c"], 800)
    explorer = Explorer(GraftedMRF(random_state=0).fit(frame).model_)
    x, y, z = explorer.overview()["variables"]
    assert (x["kind"], z["kind"], z["numbers"]) == ("numeric", "nominal", None)
    mean, low, median, high = x["numbers"]
    assert low < median < high
    assert abs(mean - first.mean()) < 0.05
    found = explorer.answer(explorer.read_link('{"x": 1.5}'))["numbers"]
    assert found[1] == pytest.approx(
        [
            explorer.model.marginals({"x": 1.5}).mean("y"),
            *explorer.model.marginals({"x": 1.5}).quantiles("y"),
        ]
    )
    assert found[1][0] < y["numbers"][0] - 0.5
    (neighbour,) = explorer.variable(0)["neighbours"]
    assert neighbour["sign"] == -1
    assert -0.8 < neighbour["effect_low"] < neighbour["effect_high"] < -0.5
