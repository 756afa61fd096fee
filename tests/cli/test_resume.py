"""`resume`: a search that was stopped continues, with other budgets if they are given."""

from __future__ import annotations

import json

import pytest

import edgegraft as eg
from tests.cli.running import edgegraft, refused


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    done = edgegraft(
        "simulate", "scale-free", "-o", path, "--variables", 20, "--rows", 2000, "--quiet"
    )
    assert done.returncode == 0, done.stderr
    return path


def edges(path):
    return {tuple(edge) for edge in eg.read_details(path).edges.tolist()}


def test_a_spent_budget_can_be_enlarged(inside, rows, tmp_path):
    whole, model, checkpoint = (tmp_path / name for name in ("whole", "model", "checkpoint"))
    assert inside("learn", rows, "-o", whole, "--quiet").returncode == 0
    learn = ("learn", rows, "-o", model, "--max-edges", 6, "--checkpoint", checkpoint, "--top", 0)
    done = inside(*learn)
    assert done.returncode == 0, done.stderr
    assert eg.read_details(model).details["reason"] == "the edge budget is spent"
    command = f"edgegraft resume {checkpoint} --force --max-edges 12"
    assert command in done.stderr
    done = inside(*command.split()[1:], "--top", 0)
    assert done.returncode == 0, done.stderr
    assert eg.read_details(model).details["search"]["edges"] == 12
    assert "--max-edges 24" in done.stderr
    twelve = eg.load(model)
    done = inside("resume", checkpoint, "--force", "--quiet")  # the last budget, which is spent
    assert eg.load(model) == twelve
    done = inside("resume", checkpoint, "--force", "--max-edges", 999, "--max-time", 500)
    assert done.returncode == 0, done.stderr
    assert "larger budget" not in done.stderr
    stored = eg.read_details(model)
    assert stored.details["reason"] == "no pair violates optimality"
    assert stored.details["settings"]["max_edges"] == 999
    assert stored.details["settings"]["max_time"] == 500
    assert len(edges(model) ^ edges(whole)) <= 1


def test_time_before_counts(inside, rows, tmp_path):
    model, checkpoint = tmp_path / "model", tmp_path / "checkpoint"
    learn = ("learn", rows, "-o", model, "--max-time", 0, "--checkpoint", checkpoint)
    assert f"resume {checkpoint} --force --max-time 2" in inside(*learn).stderr
    inside("resume", checkpoint, "--force", "--max-time", 0)
    assert eg.read_details(model).details["reason"] == "the time budget is spent"
    assert inside("resume", checkpoint, "--force", "--max-time", 500).returncode == 0
    assert eg.read_details(model).details["reason"] == "no pair violates optimality"


def test_other_data_leave_the_request_as_it_was(inside, rows, survey, tmp_path):
    model, checkpoint = tmp_path / "model", tmp_path / "checkpoint"
    learn = ("learn", rows, "-o", model, "--max-edges", 2, "--checkpoint", checkpoint, "--quiet")
    assert inside(*learn).returncode == 0
    request = tmp_path / "checkpoint.json"
    before = request.read_bytes()
    other = tmp_path / "other.csv"
    other.write_text(rows.read_text()[:20_000].rsplit("\n", 1)[0])
    done = inside("resume", checkpoint, "--force", "--data", other, "--max-edges", 4)
    refused(done, "checkpoint", "other rows")
    assert request.read_bytes() == before
    moved, elsewhere = tmp_path / "moved.csv", tmp_path / "elsewhere"
    moved.write_bytes(rows.read_bytes())
    options = ("--data", moved, "-o", elsewhere, "--max-edges", 4, "--quiet")
    assert inside("resume", checkpoint, *options).returncode == 0
    kept = json.loads(request.read_text())
    assert (kept["data"], kept["output"], kept["settings"]["max_edges"]) == (
        str(moved),
        str(elsewhere),
        4,
    )
    assert len(edges(elsewhere)) == 4
    assert len(edges(model)) == 2
