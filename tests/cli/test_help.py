"""Help and start-up: every command has an example, and the light ones load nothing heavy."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from edgegraft.cli.learn_commands import SETTINGS
from tests.cli.running import edgegraft, separately

HEAVY = ("numba", "pyarrow", "sklearn", "scipy", "matplotlib", "pandas")


@pytest.fixture(scope="module")
def commands():
    from edgegraft.cli.app import app

    return [command.name for command in app.registered_commands]


def test_every_command_ends_its_help_with_an_example(inside, commands):
    assert {"learn", "resume", "query", "sample", "impute", "score", "export"} <= set(commands)
    assert {"plot", "report", "explore", "simulate", "info", "infer", "demo"} <= set(commands)
    for name in commands:
        done = inside(name, "--help")
        assert done.returncode == 0
        last = re.search(r"Example: (.*)$", " ".join(done.stdout.split()), re.DOTALL)
        assert last, name
        assert f"{last[1]} ".startswith(f"edgegraft {name} "), name
        assert len(last[1]) < 100, name


def test_the_help_of_every_command_fits_on_a_screen(commands, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for name in commands:
        lines = edgegraft(name, "--help").stdout.splitlines()
        assert len(lines) <= 40, name
        assert max(map(len, lines)) <= 80, name


def test_all_options_are_in_the_long_help(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    short, all_options = (edgegraft("learn", option).stdout for option in ("--help", "--help-all"))
    names = set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", short, re.MULTILINE))
    assert {"--drop", "--weights", "--fdr", "--rule", "--max-time", "--help-all"} <= names
    assert not names & {"--penalty", "--bins", "--strategy", "--seed"}
    for declared in SETTINGS:
        assert declared.flag.split()[0].partition("/")[0] in all_options
    assert "[default: best-choice]" in " ".join(all_options.split())
    assert "Ctrl-C" in all_options
    required = " ".join(edgegraft("compare", "--help").stdout.split())
    assert "--by The column that names the group of a row. [required]" in required


@pytest.mark.parametrize("command", ["--help", "info"])
def test_light_commands_load_nothing_heavy(model, command):
    arguments = [command] if command == "--help" else [command, str(model)]
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "edgegraft", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.split("|")[-1].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "typer" in loaded
    assert not loaded.intersection(HEAVY)
    if command == "--help":
        assert "numpy" not in loaded


def test_shells_complete_commands_and_options():
    asked = {
        "_EDGEGRAFT_COMPLETE": "complete_bash",
        "COMP_WORDS": "edgegraft ex",
        "COMP_CWORD": "1",
    }
    done = separately(env=os.environ | asked)
    assert done.stdout.split() == ["export", "explore"]
