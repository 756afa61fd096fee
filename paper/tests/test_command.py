"""``python -m paper``: every experiment at small size, resuming, and refusal of bad requests."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.cli.running import refused

from paper import EXPERIMENTS
from paper.__main__ import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def inside(monkeypatch, capsys):
    """Run the command in this process, which has everything loaded."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["paper", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        return subprocess.CompletedProcess("paper", ended.value.code or 0, shown.out, shown.err)

    return run


def outside(*arguments, cwd):
    """Run the command in a separate process."""
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-m", "paper", *arguments],
        env=os.environ | {"PYTHONPATH": paths},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Tables with the shape of the public ones, whose columns depend on each other."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    ratings = np.clip(rng.integers(0, 5, (800, 1)) + rng.integers(-1, 2, (800, 100)), 0, 4)
    ratings[300:][rng.random((500, 100)) < 0.3] = 255
    np.savez(folder / "jester5.npz", X=ratings.astype(np.uint8))
    kind = rng.random((1000, 1)) < 0.5
    recipes = rng.random((1000, 40)) < np.where(kind, 0.4, 0.1)
    np.savez(folder / "yummly489.npz", X=recipes.astype(np.uint8))
    return folder


def test_list_names_every_experiment(inside):
    done = inside("--list")
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(EXPERIMENTS)


def test_run_and_resumed(tmp_path):
    done = outside("reservoir", "--quick", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "reservoir: 2 runs" in done.stderr
    folder = tmp_path / "reproduction-quick"
    with (folder / "reservoir.csv").open() as file:
        assert {row["version"] for row in csv.DictReader(file)} == {"paper", "ours"}
    assert (folder / "reservoir.png").read_bytes().startswith(b"\x89PNG")
    assert "reservoir" in json.loads((folder / "machine.json").read_text())
    before = (folder / "reservoir.csv").read_bytes()
    done = outside("reservoir", "--quick", cwd=tmp_path)
    assert "0 runs" in done.stderr
    assert "2 loaded" in done.stderr
    assert (folder / "reservoir.csv").read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name not in ("nlpl", "recall")])
def test_every_experiment_at_small_size(inside, tmp_path, data, name):
    """Every experiment writes its figure, table and section within a fraction of its limit."""
    names = ["objective", "nlpl", "recall"] if name == "objective" else [name]
    page = tmp_path / "paper.md"
    page.write_text("".join(f"<!-- begin {k} -->\n<!-- end {k} -->\n" for k in names))
    done = inside(
        *(*names, "--quick", "--max-time", 0.15, "--page", page),
        *("--output", tmp_path / "results", "--data", data, "--jobs", 1),
    )
    assert done.returncode == 0, done.stderr
    for k in names:
        assert (tmp_path / "results" / f"{k}.png").is_file()
        assert f"images/paper/{k}.png" in page.read_text()
        with (tmp_path / "results" / f"{k}.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert {"paper", "ours"} <= {row["version"] for row in rows}
    runs = {EXPERIMENTS[k].runs for k in names}
    assert {path.name for path in (tmp_path / "results" / "cells").iterdir()} == runs


def test_bad_requests_are_refused_before_any_work(inside, tmp_path, data):
    results = tmp_path / "results"

    def run(*arguments):
        return inside(*arguments, "--quick", "--output", results)

    refused(run("nothing"), "no experiment 'nothing'", "reservoir", "all")
    refused(run(), "no experiment was named")
    refused(run("jester", "--data", tmp_path), "jester5.npz", "--data")
    refused(run("jester", "--data", tmp_path / "x"), "there is no folder")
    refused(run("reservoir", "--page", tmp_path / "page.md"), "there is no file")
    (tmp_path / "page.md").write_text("no section\n")
    refused(run("reservoir", "--page", tmp_path / "page.md"), "<!-- begin reservoir -->")
    assert not results.exists()
