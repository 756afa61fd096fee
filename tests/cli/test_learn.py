"""`learn`, `resume` and `info`: from a file to a network, and what is said on the way."""

from __future__ import annotations

import csv
import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

import edgegraft as eg
from edgegraft.cli.learn_commands import SETTINGS, Request
from tests.cli.conftest import LEARN
from tests.cli.running import edgegraft, refused
from tests.unit.test_bootstrap import make_near_copies


def test_learn_finds_the_network_and_says_how(learned):
    _, path, summary = learned
    found = {frozenset((edge["first"], edge["second"])) for edge in summary["edges"]}
    assert found == {
        frozenset(("smoker", "cough")),
        frozenset(("cough", "tired")),
        frozenset(("smoker", "age")),
    }
    strengths = [edge["strength"] for edge in summary["edges"]]
    assert strengths == sorted(strengths, reverse=True)
    assert all(0 < edge["q_value"] <= summary["details"]["fdr"] for edge in summary["edges"])
    assert all(edge["frequency"] > 0.5 for edge in summary["edges"])
    assert [hub["edges"] for hub in summary["hubs"]] == [2, 2]
    details = summary["details"]
    assert details["source"] == {"file": "survey.csv", "rows": 800, "missing": [0, 41, 0, 0, 0]}
    assert details["certificate"]["n_violating"] == 0
    assert details["settings"]["bins"] == {"age": 3}
    assert details["settings"]["random_state"] == 0
    assert set(details["versions"]) >= {"edgegraft", "numpy", "python"}
    assert summary["model"] == str(path)
    assert summary["kinds"]["age"] == {"kind": "numeric", "reason": "72 different numbers"}


def test_learn_shows_columns_on_stderr_and_no_progress_without_a_terminal(learned):
    done, path, _ = learned
    assert "5 columns of 800 rows" in done.stderr
    assert "41 (5.1%)" in done.stderr  # missing cells of cough
    assert "3 bins" in done.stderr
    assert "Köln, west" in done.stderr
    assert "numeric (72 different numbers): age" in done.stderr
    assert str(path) in done.stderr
    assert "\x1b" not in done.stderr
    assert "reading" not in done.stderr
    assert "growing" not in done.stderr


def test_the_file_holds_what_the_summary_says(learned):
    _, path, summary = learned
    stored, model = eg.read_details(path), eg.load(path)
    assert stored.details == summary["details"]
    by_name = {(edge["first"], edge["second"]): edge for edge in summary["edges"]}
    for k, (i, j) in enumerate(model.edges):
        edge = by_name[model.names[i], model.names[j]]
        for name, values in stored.edge_columns.items():
            assert edge[name] == (None if np.isnan(values[k]) else values[k])
    np.testing.assert_array_equal(stored.edge_columns["strength"], model.edge_strengths())


def test_the_same_seed_gives_the_same_file_on_any_number_of_threads(survey, learned, tmp_path):
    path = tmp_path / "again.edgegraft"
    done = edgegraft("learn", survey, "-o", path, *LEARN, "--bootstrap", 20, "--jobs", 1, "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert path.read_bytes() == learned[1].read_bytes()


def test_a_model_has_the_name_of_its_table_by_default(inside, survey, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    quick = ("--columns", "smoker,age", "--max-edges", 1, "--quiet")
    assert inside("learn", survey, *quick).returncode == 0
    assert Path(f"{survey.stem}.edgegraft").exists()
    folder = tmp_path / "rows.2026"
    folder.mkdir()
    packed = folder / "part.csv.gz"
    packed.write_bytes(gzip.compress(survey.read_bytes()))
    assert inside("learn", folder, *quick).returncode == 0
    assert inside("learn", packed, *quick).returncode == 0
    assert Path("rows.2026.edgegraft").exists()
    assert Path("part.edgegraft").exists()
    refused(inside("learn", f"{folder}/*.gz", *quick), "--output")


def test_learn_takes_budgets_strategies_and_columns(inside, survey, tmp_path):
    path = tmp_path / "small.edgegraft"
    done = inside(
        "learn", survey, "-o", path, "--columns", "smoker,age", "--columns", "city", "--bins", 4,
        "--strategy", "exhaustive", "--objective", "likelihood", "--penalty", 0.01, "--fdr", "none",
        "--max-edges", 1, "--max-time", 30, "--seed", 3,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    stored = eg.read_details(path)
    assert stored.names == ("smoker", "age", "city")
    assert stored.n_states == (2, 4, 3)
    settings = stored.details["settings"]
    assert (settings["strategy"], settings["objective"]) == ("exhaustive", "likelihood")
    assert (settings["max_edges"], settings["max_time"]) == (1, 30)
    assert (settings["penalty"], stored.details["fdr"], settings["random_state"]) == (0.01, None, 3)
    assert len(stored.edges) == 1
    assert stored.details["reason"] == "the edge budget is spent"


def test_learn_writes_a_report(inside, survey, tmp_path):
    pytest.importorskip("jinja2")
    path, page = tmp_path / "m.edgegraft", tmp_path / "m.html"
    learn = ("learn", survey, "-o", path, "--report", page, "--drop", "id", "--top", 0)
    done = inside(*learn)
    assert done.returncode == 0, done.stderr
    assert f"The report is in {page}" in " ".join(done.stderr.split())
    text = page.read_text(encoding="utf-8")
    assert "The network of survey.csv" in text
    assert "left out by --drop" in text
    assert "inactive pairs violate optimality" in text
    again = tmp_path / "again.html"  # the model file has all but the trajectory
    assert inside("report", path, "-o", again).returncode == 0
    without = re.sub(r'<section id="trajectory">.*?</section>\n', "", text, flags=re.DOTALL)
    sections = re.compile(r"<section .*?</section>", re.DOTALL)
    assert sections.findall(again.read_text(encoding="utf-8")) == sections.findall(without)
    refused(inside("report", path), "m.html", "--force")
    path.unlink()
    refused(inside(*learn), "m.html", "--force")
    refused(inside("learn", survey, "-o", path, "--report", path), "named for something else")
    assert not path.exists()


def test_frequencies_are_shown_and_exported(inside, tmp_path):
    data, path, edges = (tmp_path / name for name in ("near.csv", "m.edgegraft", "edges.csv"))
    np.savetxt(data, make_near_copies(), "%d", ",", header="a,b,c,d", comments="")
    done = inside("learn", data, "-o", path, "--bootstrap", 10, "--json")
    found = {edge["first"] + edge["second"]: edge for edge in json.loads(done.stdout)["edges"]}
    assert found["ab"]["q_value"] < 0.005
    assert found["ab"]["frequency"] > 0.5
    inside("export", path, edges)
    with edges.open(newline="") as file:
        exported = {row["first"] + row["second"]: row for row in csv.DictReader(file)}
    assert float(exported["ab"]["frequency"]) == pytest.approx(found["ab"]["frequency"])


def test_dry_run_estimates_and_writes_nothing(inside, survey, tmp_path):
    path = tmp_path / "none.edgegraft"
    done = inside("learn", survey, "-o", path, *LEARN, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "10 pairs would be searched" in done.stdout
    assert "MiB" in done.stdout
    assert "Time: about 0:0" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_what_the_user_should_know_of_the_columns_is_said_in_options(inside, survey, tmp_path):
    drop = ("--drop", "id,smoker", "--nominal", "age")
    done = inside("learn", survey, "-o", tmp_path / "m", *drop, "--top", 0)
    assert done.returncode == 0, done.stderr
    assert "'age' (5 bins); choose with --bins 5 or --bins column=3" in done.stderr


def test_outputs_are_kept_safe_before_any_work(inside, survey, tmp_path):
    model, checkpoint = tmp_path / "m.edgegraft", tmp_path / "m.checkpoint"
    model.write_text("mine")
    refused(inside("learn", survey, "-o", model), "m.edgegraft", "--force")
    refused(inside("learn", survey, "-o", survey, "--force"), "named for something else")
    refused(inside("learn", survey, "-o", tmp_path), "is a folder")
    refused(inside("learn", survey, "-o", tmp_path / "no" / "m"), "there is no folder")
    (tmp_path / "m.checkpoint.json").write_text("mine")
    done = inside("learn", survey, "-o", tmp_path / "n", "--checkpoint", checkpoint)
    refused(done, "m.checkpoint.json", "--force")
    assert model.read_text() == "mine"


def test_info_tells_of_a_model_that_was_learned(inside, learned):
    _, path, summary = learned
    done = edgegraft("info", path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "5 variables, 3 edges" in done.stdout
    assert "Learned from 800 rows of 'survey.csv'" in done.stdout
    assert "inactive pairs violate optimality" in done.stdout
    assert "Bonn, Köln, west, Ulm" in done.stdout  # the categories of a variable
    told = json.loads(inside("info", path, "--json").stdout)
    assert told == {
        name: value for name, value in summary.items() if name not in ("seconds", "report")
    }


def test_info_tells_of_a_model_that_python_saved(inside, tmp_path):
    path = tmp_path / "[bold]hand.edgegraft"
    table = [[1.0, -1.0], [-1.0, 1.0]]
    eg.PairwiseMRF.from_potentials(
        {"[red]a[/]": [0, 1], "b": [0, 1]}, edges={("[red]a[/]", "b"): table}
    ).save(path)
    done = inside("info", path)
    assert done.returncode == 0, done.stderr
    assert "[red]a[/]" in done.stdout  # a name, not a colour
    assert "2.000" in done.stdout


def test_foreign_files_are_no_models(inside, survey, tmp_path):
    refused(edgegraft("info", survey), "survey.csv")
    refused(inside("info", tmp_path / "no.edgegraft"), "no.edgegraft")
    refused(inside("info", tmp_path), str(tmp_path))


def test_resume_needs_what_learn_wrote(inside, survey, tmp_path):
    checkpoint = tmp_path / "run.checkpoint"
    refused(inside("resume", checkpoint), "run.checkpoint", "--checkpoint")
    checkpoint.write_text("nonsense")
    (tmp_path / "run.checkpoint.json").write_text("[]")
    refused(inside("resume", checkpoint), "run.checkpoint.json", "is not what")
    settings = {declared.name: declared.default for declared in SETTINGS} | {"drop": ["id"]}
    request = Request(data=str(survey), output=str(tmp_path / "m"), settings=settings)
    request.write(checkpoint)
    refused(inside("resume", checkpoint), "is not a checkpoint of edgegraft")
    assert not (tmp_path / "m").exists()
