"""Commands that ask a model or put a table beside it."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

import edgegraft as eg
from tests.cli.conftest import NAMES, survey_rows, write_table
from tests.cli.running import edgegraft, refused


def read_table(text):
    return list(csv.reader(io.StringIO(text)))


def test_query_answers_programs_as_the_model_does(model):
    done = edgegraft("query", model, "--given", "smoker=yes", "--of", "cough", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    known = eg.load(model)
    states = found["probabilities"]["cough"]
    assert list(found["probabilities"]) == ["cough"]
    assert [state["category"] for state in states] == [0, 1]
    now = known.marginals({"smoker": "yes"})["cough"]
    before = known.marginals()["cough"]
    for state in states:
        np.testing.assert_allclose(state["probability"], now[state["category"]])
        np.testing.assert_allclose(state["without_evidence"], before[state["category"]])
    assert found["exact"]
    assert found["given"] == {"smoker": "yes"}
    assert found["numbers"] == {}
    assert found["shares"]["columns"] < 0.001
    done = edgegraft("query", model, "--given", "smoker=yes", "--of", "age", "--json")
    age = json.loads(done.stdout)["numbers"]["age"]
    assert age["mean"] == pytest.approx(known.marginals({"smoker": "yes"}).mean("age"))
    assert 30 < age["quantile_05"] < age["median"] < age["quantile_95"] < 90
    assert age["mean_without_evidence"] < age["mean"]


def test_query_answers_people_on_stdout(inside, model):
    done = inside("query", model, "-g", "age=77", "-g", "tired=TRUE")
    assert (done.returncode, done.stderr) == (0, "")
    assert "smoker" in done.stdout
    assert "without evidence" in done.stdout
    assert "tired = True" in done.stdout
    assert "age = [" in done.stdout  # the bin that 77 falls into
    assert "'exact': exact" in done.stdout
    assert "The shares of the network's model differ from the data's" in done.stdout
    done = inside("query", model, "--of", "smoker")
    assert "without evidence" not in done.stdout
    assert "median" not in done.stdout
    assert "median" in inside("query", model, "--of", "age").stdout


def test_query_names_its_approximation(inside, model):
    done = inside("query", model, "--of", "smoker", "--engine", "bp", "--json")
    found = json.loads(done.stdout)
    assert not found["exact"]
    assert found["approximation"] in done.stderr
    done = inside("query", model, "--of", "smoker", "--likeliest", "--engine", "bp")
    assert "an approximation (max-product belief propagation" in done.stdout
    done = inside("query", model, "--json")
    assert (json.loads(done.stdout)["approximation"], done.stderr) == (None, "")


def test_query_finds_the_likeliest_state(inside, model):
    done = inside("query", model, "-g", "cough=1", "--likeliest", "--json")
    found = json.loads(done.stdout)
    state = eg.load(model).map({"cough": 1})
    assert found["state"] == {name: state[name] for name in ("smoker", "tired", "age", "city")}
    shown = inside("query", model, "-g", "cough=1.0", "--likeliest", "--of", "age")
    assert state["age"] in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--given", "smokr=yes"), ("'smokr'", "did you mean 'smoker'")),
        (("--given", "smoker=maybe"), ("'maybe'", "'no', 'yes'")),
        (("--given", "age=old"), ("'old'", "'[18, ")),
        (("--given", "smoker"), ("is not NAME=CATEGORY",)),
        (("--given", "smoker=no", "--given", "smoker=yes"), ("'smoker' twice",)),
        (("--of", "weight"), ("--of", "'weight'", "there are 'smoker'")),
        (("--likeliest", "--engine", "gibbs"), ("does not maximise",)),
    ],
)
def test_query_refuses_what_the_model_does_not_know(inside, model, arguments, words):
    refused(inside("query", model, *arguments), *words)


def test_every_command_refuses_foreign_and_missing_models(inside, survey, tmp_path):
    foreign = tmp_path / "foreign.edgegraft"
    foreign.write_bytes(b"\x08\0\0\0\0\0\0\0{}      ")
    rest = {"query": (), "sample": (), "impute": (survey,), "score": (survey,), "info": ()}
    for command, more in (rest | {"export": (tmp_path / "e.csv",)}).items():
        refused(inside(command, foreign, *more), "foreign.edgegraft")
        refused(inside(command, tmp_path / "no.edgegraft", *more), "there is no file")
    assert not (tmp_path / "e.csv").exists()


def test_sample_writes_rows_that_can_be_scored(inside, model, tmp_path):
    done = edgegraft("sample", model, "-n", 40, "--given", "smoker=yes", "--seed", 3)
    assert done.returncode == 0, done.stderr
    rows = read_table(done.stdout)
    assert rows[0] == ["smoker", "cough", "tired", "age", "city"]
    assert len(rows) == 41
    assert {row[0] for row in rows[1:]} == {"yes"}
    assert {row[2] for row in rows[1:]} <= {"true", "false"}
    for name in ("rows.csv", "rows.tsv.gz", "rows.parquet"):
        path = tmp_path / name
        done = inside("sample", model, "-n", 40, "-g", "smoker=yes", "--seed", 3, "-o", path)
        assert done.returncode == 0, done.stderr
        done = inside("score", model, path, "--json")
        assert json.loads(done.stdout)["rows"] == 40, done.stderr
    again = (tmp_path / "rows.csv").read_text()
    assert (
        again
        == "\n".join(",".join(row) for row in rows).replace("Köln, west", '"Köln, west"') + "\n"
    )
    done = inside("sample", model, "--engine", "gibbs")
    assert done.stderr == "The answer is an approximation: Gibbs sampling.\n"
    refused(inside("sample", model, "-o", tmp_path / "rows.csv"), "rows.csv", "--force")
    refused(inside("sample", model, "-o", tmp_path / "rows.xlsx"), "rows.xlsx", ".parquet")
    refused(inside("sample", model, "-o", model, "--force"), "named for something else")


def test_impute_fills_missing_cells_and_leaves_all_others(model, tmp_path, inside):
    rows = survey_rows(60, seed=5)
    holes = [list(row) for row in rows]
    rng = np.random.default_rng(1)
    hidden = [(k, int(rng.integers(1, 6))) for k in range(0, 60, 2)]
    for k, column in hidden:
        holes[k][column] = "n/k"
    data, out = tmp_path / "holes.csv", tmp_path / "full.csv"
    write_table(data, holes)
    done = edgegraft("impute", model, data, "--missing", "n/k", "-o", out)
    assert done.returncode == 0, done.stderr
    full = read_table(out.read_text())
    assert full[0] == NAMES
    n_filled = 0
    schema = eg.load(model).schema
    for row, before in zip(full[1:], holes, strict=True):
        for name, cell, was in zip(NAMES, row, before, strict=True):
            if was != "n/k":
                assert cell == was
            else:
                n_filled += 1
                eg.ingest.encode({name: [_typed(name, cell)]}, schema.select([name]))
    assert f"{n_filled} missing cells filled" in done.stderr
    drawn = inside("impute", model, data, "--missing", "n/k", "--method", "draw", "--seed", 1)
    assert len(read_table(drawn.stdout)) == 61
    refused(inside("impute", model, data), "'smoker', row 8", "'n/k'", "--unseen missing")
    refused(inside("impute", model, data, "-o", data, "--force"), "named for something else")


def _typed(name, cell):
    if name == "tired":
        return {"true": True, "false": False}[cell]
    return int(cell) if name in ("cough", "age") else cell


def test_score_says_how_likely_rows_are(model, survey, tmp_path, inside):
    rows = tmp_path / "scores.csv"
    done = edgegraft("score", model, survey, "--missing", "n/k", "--json", "-o", rows)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    known = eg.load(model)
    table = eg.pack(survey, schema=known.schema, columns=known.names, missing_values=["n/k"])
    expected = known.pseudo_log_likelihood(codes=table.codes())
    np.testing.assert_allclose(found["mean_log_pseudolikelihood"], expected.mean())
    np.testing.assert_allclose(
        found["standard_error"], expected.std(ddof=1) / np.sqrt(len(expected))
    )
    written = [float(row[0]) for row in read_table(rows.read_text())[1:]]
    np.testing.assert_allclose(written, expected)
    own = table.codes()[:, 0]
    share = np.bincount(own) / len(own)
    likeliest = known.predict_proba(target="smoker", codes=table.codes()).argmax(axis=1)
    smoker = found["by_variable"]["smoker"]
    assert smoker["baseline_log_probability"] == pytest.approx(share @ np.log(share))
    assert smoker["baseline_accuracy"] == pytest.approx(share.max())
    assert smoker["accuracy"] == pytest.approx((likeliest == own).mean())
    assert 0.1 < smoker["r2"] < 1
    assert smoker["explained"] > 0.1 > abs(found["by_variable"]["city"]["explained"])
    assert found["baseline"] == pytest.approx(
        sum(v["baseline_log_probability"] * n for v, n in zip(
            found["by_variable"].values(), (table.codes() >= 0).mean(axis=0), strict=True))
    )  # fmt: skip
    done = inside("score", model, survey, "--missing", "n/k")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.index("smoker") < done.stdout.index("city")  # which nothing predicts
    refused(inside("score", model, survey), "n/k")
    assert inside("score", model, survey, "--unseen", "missing", "--json").returncode == 0


@pytest.mark.parametrize("name", ["edges.csv", "edges.parquet", "net.graphml", "net.gexf", "m.uai"])
def test_export_writes_every_format(inside, model, tmp_path, name):
    path = tmp_path / name
    done = inside("export", model, path)
    assert done.returncode == 0, done.stderr
    assert path.stat().st_size > 0
    assert name in done.stderr
    if name == "edges.csv":
        table = read_table(path.read_text())
        assert table[0][:3] == ["first", "second", "strength"]
        assert {"q_value", "frequency"} <= set(table[0])
        assert len(table) == 4
    refused(inside("export", model, path), "--force")
    assert inside("export", model, path, "--force", "--quiet").stderr == ""


def test_export_refuses_unknown_formats(inside, model, tmp_path):
    refused(edgegraft("export", model, tmp_path / "net.docx"), "net.docx", "graphml")
    refused(inside("export", model, tmp_path / "net.csv", "--format", "dot"), "'dot'")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("graph", ["scale-free", "chain", "star", "grid", "random", "regular"])
def test_simulate_draws_from_every_graph(inside, tmp_path, graph):
    rows, truth = tmp_path / "rows.csv", tmp_path / "truth.edgegraft"
    done = inside(
        "simulate", graph, "-o", rows, "--truth", truth, "--variables", 12, "--rows", 50,
        "--degree", 3, "--seed", 1,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    table = read_table(rows.read_text())
    assert (len(table), len(table[0])) == (51, 12)
    edges = {"scale-free": 20, "chain": 11, "star": 11, "grid": 17, "random": 18, "regular": 18}
    assert len(eg.load(truth).edges) == edges[graph]


def test_simulate_is_repeatable_and_careful(inside, tmp_path):
    rows = tmp_path / "rows.csv"
    done = edgegraft("simulate", "chain", "-o", rows, "--variables", 4, "--rows", 20)
    assert done.returncode == 0, done.stderr
    before = rows.read_text()
    refused(inside("simulate", "chain", "-o", rows), "--force")
    done = inside(
        "simulate", "chain", "-o", rows, "--variables", 4, "--rows", 20, "--force", "--jobs", 1
    )
    assert done.returncode == 0, done.stderr
    assert rows.read_text() == before
    refused(edgegraft("simulate", "chain", "-o", tmp_path / "rows.json"), "rows.json")
    done = inside("simulate", "regular", "-o", tmp_path / "x.csv", "--variables", 5, "--degree", 3)
    refused(done, "degree")
    assert not (tmp_path / "x.csv").exists()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("network.png", ("--top", 2)),
        ("around.svg", ("--around", "cough", "--min-strength", 0.1)),
        ("edge.pdf", ("--edge", "smoker", "cough")),
        ("marginals.png", ("--of", "cough", "--given", "smoker=yes")),
    ],
)
def test_plot_draws(inside, model, tmp_path, name, arguments):
    pytest.importorskip("matplotlib")
    path = tmp_path / name
    done = inside("plot", model, "-o", path, *arguments)
    assert done.returncode == 0, done.stderr
    starts = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    assert path.read_bytes().startswith(starts[path.suffix])
    refused(inside("plot", model, "-o", path), "--force")


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("x.bmp", (), ("x.bmp", ".svg")),
        ("x.png", ("--around", "smokr"), ("--around", "did you mean 'smoker'")),
        ("x.png", ("--edge", "smoker", "city"), ("'smoker'", "'city'")),
        ("x.png", ("--edge", "smoker", "cough", "--top", 3), ("choose one",)),
        ("x.png", ("--given", "smoker=si"), ("'si'",)),
    ],
)
def test_plot_refuses_what_cannot_be_drawn(inside, model, tmp_path, name, arguments, words):
    pytest.importorskip("matplotlib")
    refused(inside("plot", model, "-o", tmp_path / name, *arguments), *words)
    assert list(tmp_path.iterdir()) == []
