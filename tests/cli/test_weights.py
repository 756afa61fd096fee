"""Row weights in a column, a ridge, and strengths worked out in other ways."""

from __future__ import annotations

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import edgegraft as eg
from tests.cli.conftest import NAMES, survey_rows
from tests.cli.running import refused

LEARN = ("--drop", "id", "--missing", "n/k", "--bins", "age=3", "--quiet")


def write(path, names, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    return path


@pytest.fixture(scope="module")
def times():
    return np.random.default_rng(3).integers(0, 4, 400)


@pytest.fixture(scope="module")
def weighed(times, tmp_path_factory):
    rows = [[*row, str(time)] for row, time in zip(survey_rows(400), times, strict=True)]
    return write(tmp_path_factory.mktemp("weighed") / "weighed.csv", [*NAMES, "times"], rows)


@pytest.fixture(scope="module")
def repeated(times, tmp_path_factory):
    rows = [row for row, time in zip(survey_rows(400), times, strict=True) for _ in range(time)]
    return write(tmp_path_factory.mktemp("repeated") / "repeated.csv", NAMES, rows)


def test_a_row_of_weight_two_is_two_rows(inside, weighed, repeated, times, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    # Bins are those of the rows as they stand, so without the numeric column.
    options = (*LEARN[:-3], "--quiet", "--drop", "age", "--bootstrap", 5)
    done = inside("learn", weighed, "-o", one, "--weights", "times", *options, "--json")
    assert done.returncode == 0, done.stderr
    assert inside("learn", repeated, "-o", other, *options).returncode == 0
    left, right = eg.load(one), eg.load(other)
    assert left.schema == right.schema
    np.testing.assert_array_equal(left.edges, right.edges)
    np.testing.assert_allclose(left.theta, right.theta, atol=2e-3)
    details = json.loads(done.stdout)["details"]
    assert details["source"]["weights"] == "times"
    assert details["source"]["weight"] == times.sum()
    assert "weighted by 'times'" in inside("info", one).stdout
    score = ("score", one, "--missing", "n/k", "--json")
    scored, again = (
        json.loads(inside(*score, *rest).stdout)
        for rest in ((weighed, "--weights", "times"), (repeated,))
    )
    for name in ("mean_log_pseudolikelihood", "standard_error"):
        assert scored[name] == pytest.approx(again[name])
    for name, values in scored["by_variable"].items():
        assert values == pytest.approx(again["by_variable"][name])


def test_weights_and_ridge_are_kept_for_resume(inside, weighed, tmp_path):
    whole, model, checkpoint = (tmp_path / name for name in ("whole", "model", "checkpoint"))
    learn = ("learn", weighed, *LEARN, "--weights", "times", "--ridge", 0.01)
    options = ("--max-edges", 1, "--checkpoint", checkpoint, "--bootstrap", 3)
    assert inside(*learn, "-o", whole).returncode == 0
    assert inside(*learn, "-o", model, *options).returncode == 0
    kept = json.loads((tmp_path / "checkpoint.json").read_text())
    assert (kept["weights"], kept["settings"]["ridge"]) == ("times", 0.01)
    done = inside("resume", checkpoint, "--force", "--max-edges", 99)
    assert done.returncode == 0, done.stderr
    assert "Rows are weighted by 'times'" in done.stderr
    found, expected = eg.load(model), eg.load(whole)
    assert set(map(tuple, found.edges.tolist())) == set(map(tuple, expected.edges.tolist()))
    stored = eg.read_details(model)
    assert (stored.details["ridge"], stored.details["source"]["weights"]) == (0.01, "times")
    assert "frequency" in stored.edge_columns


def test_weights_may_be_named_among_the_columns_and_come_from_parquet(inside, tmp_path):
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 300)
    b = np.where(rng.random(300) < 0.8, a, 1 - a)
    pq.write_table(pa.table({"a": a, "b": b, "w": rng.random(300)}), tmp_path / "t.parquet")
    learn = ("learn", tmp_path / "t.parquet", "-o", tmp_path / "m", "--weights", "w")
    assert inside(*learn, "--columns", "a,b,w").returncode == 0
    assert eg.load(tmp_path / "m").names == ("a", "b")


def test_files_without_header_have_weights_by_place(inside, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("".join(f"{k % 2},{k % 2},{1 + k % 3}\n" for k in range(60)))
    options = ("--no-header", "--weights", "x2")
    assert inside("learn", path, "-o", tmp_path / "m", *options).returncode == 0
    done = inside("score", tmp_path / "m", path, *options, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == 60


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["1", "", "2"], ("row 1 (counted from 0)", "missing")),
        (["1", "2", "?"], ("row 2", "missing")),
        (["1", "2", "-0.5"], ("row 2", "'-0.5'")),
        (["1", "many", "2"], ("row 1", "'many'")),
        (["inf", "1", "2"], ("row 0", "'inf'")),
        (["0", "0", "0"], ("every cell", "zero")),
        (["1", "0,619"], ["row 1", "'0,619'", "write numbers plainly, with a decimal point"]),
    ],
)
def test_bad_weights_are_refused_by_column_and_row(inside, tmp_path, cells, words):
    path = write(
        tmp_path / "t.csv", ["a", "b", "w"], [["x", "y", w] for w in cells] + [["u", "v", "0"]]
    )
    learn = ("learn", path, "-o", tmp_path / "m", "--missing", "?", "--weights")
    refused(inside(*learn, "w"), "column 'w'", *words)
    refused(inside(*learn, "ww"), "--weights names column 'ww'", "did you mean 'w'?")
    refused(inside(*learn, "a"), "column 'a', row 0", "'x'")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "options", [("--without", "Ulm", "--without", "0"), ("--correction", "apc")]
)
def test_strengths_may_be_worked_out_anew(inside, model, tmp_path, options):
    told = json.loads(inside("info", model, *options, "--json").stdout)
    plain = json.loads(inside("info", model, "--json").stdout)
    known = eg.load(model)
    changed = (
        known.edge_strengths(correction="apc")
        if "apc" in options
        else known.edge_strengths(without=["Ulm", 0])
    )
    assert [edge["strength"] for edge in told["edges"]] == sorted(changed, reverse=True)
    assert [edge["strength"] for edge in plain["edges"]] != sorted(changed, reverse=True)
    path = tmp_path / "edges.csv"
    assert inside("export", model, path, *options).returncode == 0
    with path.open(newline="") as file:
        found = [float(row["strength"]) for row in csv.DictReader(file)]
    assert found == sorted(changed, reverse=True)


def test_categories_that_no_variable_has_are_refused(inside, model):
    refused(inside("info", model, "--without", "ulm"), "--without", "did you mean 'Ulm'?")


def test_strata_and_clusters_are_columns_that_are_left_out(inside, tmp_path):
    rows = [[*row, f"s{k % 20}", f"r{k % 2}"] for k, row in enumerate(survey_rows(400))]
    data = write(tmp_path / "rows.csv", [*NAMES, "school", "region"], rows)
    model = tmp_path / "model.edgegraft"
    inside("learn", data, "-o", model, "--clusters", "school", "--strata", "region", *LEARN)
    assert not {"school", "region"} & set(eg.load(model).names)
    refused(inside("learn", data, "-o", model, "--force", "--clusters", "shool"), "'shool'")
