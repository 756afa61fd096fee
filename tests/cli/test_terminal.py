"""At a terminal: progress that comes and goes, and Ctrl-C that keeps what was found."""

from __future__ import annotations

import re

import pytest

import edgegraft as eg
from tests.cli.running import at_terminal, edgegraft

pytest.importorskip("pty", reason="needs pseudo-terminals")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Rows with more than a hundred edges, which first-hit finds one by one."""
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    done = edgegraft(
        "simulate", "scale-free", "-o", path, "--variables", 50, "--rows", 4000, "--quiet"
    )
    assert done.returncode == 0, done.stderr
    return path


def test_progress_comes_and_goes(rows, tmp_path):
    """First hit takes a step an edge, which no display is too slow to show."""
    path = tmp_path / "m.edgegraft"
    arguments = ("learn", rows, "-o", path, "--strategy", "first-hit", "--max-time", "500")
    code, shown = at_terminal(arguments)
    assert code == 0, shown
    # The table may be read before the display shows its name.
    assert re.search(rf"\[0:\d\d\]  reading  ({rows.name}|[\d,]+ rows)", shown)
    facts = r"\d+ edges, objective [\d.]+, [\d,]+ of [\d,]+ pairs"
    assert re.search(r"growing  8:\d\d left  " + facts, shown)
    assert "\x1b[?25h" in shown  # the cursor is back
    rest = shown[shown.rindex("\x1b[?25h") :]
    assert "growing" not in rest
    assert re.search(r"\d+ edges", rest)
    assert "m.edgegraft" in rest


def test_ctrl_c_writes_the_model_so_far_and_resume_goes_on(rows, tmp_path):
    path, checkpoint = tmp_path / "m.edgegraft", tmp_path / "m.checkpoint"
    learn = ("learn", rows, "-o", path, "--strategy", "first-hit", "--checkpoint", checkpoint)
    code, shown = at_terminal(learn, press=rb"growing  [1-9]\d* edges")
    assert code == 1, shown
    assert "Traceback" not in shown
    stored = eg.read_details(path)
    assert stored.details["reason"] == "interrupted"
    assert 1 <= len(stored.edges) < 80
    assert eg.load(path).n_edges == len(stored.edges)
    assert f"edgegraft resume {checkpoint} --force" in re.sub(r"\r\n", "", shown)
    done = edgegraft("resume", checkpoint)
    assert done.returncode == 2  # the model so far is not overwritten unasked
    done = edgegraft("resume", checkpoint, "--force", "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    after = eg.read_details(path)
    assert after.details["reason"] == "no pair violates optimality"
    assert len(after.edges) > len(stored.edges)
    before = {tuple(edge) for edge in stored.edges.tolist()}
    assert len(before - {tuple(edge) for edge in after.edges.tolist()}) <= 1


def test_ctrl_c_before_anything_is_learned_writes_nothing(rows, tmp_path):
    code, shown = at_terminal(("learn", rows, "-o", tmp_path / "m.edgegraft"), press=rb"reading")
    assert code == 1, shown
    assert "interrupted: nothing was written" in shown
    assert list(tmp_path.iterdir()) == []
