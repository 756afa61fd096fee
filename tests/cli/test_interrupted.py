"""Ctrl-C at the ends of a run: what was written is told, what was not leaves nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

import edgegraft as eg
from tests.cli.conftest import LEARN
from tests.cli.running import refused


def interrupt(*arguments, **options):
    raise KeyboardInterrupt


def test_before_the_command_has_begun(tmp_path):
    code = (
        "import builtins, sys\n"
        "real = builtins.__import__\n"
        "def stop(name, *rest):\n"
        "    if name == 'typer':\n"
        "        raise KeyboardInterrupt\n"
        "    return real(name, *rest)\n"
        "builtins.__import__ = stop\n"
        "from edgegraft.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    refused(done, "interrupted: nothing was written", code=1)


def test_while_pairs_are_ranked(inside, survey, tmp_path, monkeypatch):
    monkeypatch.setattr("edgegraft.grafting.loop.rank_pairs", interrupt)
    options = ("--checkpoint", tmp_path / "m.checkpoint", *LEARN)
    done = inside("learn", survey, "-o", tmp_path / "m.edgegraft", *options)
    refused(done, "interrupted: nothing was written", code=1)
    assert list(tmp_path.iterdir()) == []  # not even the request of the checkpoint


@pytest.mark.parametrize("place", ["decide", "last_fit"])
def test_after_the_search(inside, survey, tmp_path, monkeypatch, place):
    """The first Ctrl-C in the tests or the last fit lets them end: they are soon over."""
    import edgegraft.learn.discovery as discovery

    real = getattr(discovery, place)

    def pressed(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        return real(*arguments, **options)

    monkeypatch.setattr(discovery, place, pressed)
    path, checkpoint = tmp_path / "m.edgegraft", tmp_path / "m.checkpoint"
    done = inside("learn", survey, "-o", path, "--checkpoint", checkpoint, *LEARN)
    assert done.returncode == 1
    assert f"edgegraft resume {checkpoint} --force" in done.stderr
    assert eg.read_details(path).details["reason"] == "interrupted"
    assert eg.load(path).n_edges == 3


def test_in_the_bootstrap(inside, survey, tmp_path, monkeypatch):
    monkeypatch.setattr("edgegraft.learn.bootstrap.bootstrap", interrupt)
    path = tmp_path / "m.edgegraft"
    done = inside("learn", survey, "-o", path, "--bootstrap", 5, *LEARN)
    assert done.returncode == 0, done.stderr  # the model is whole
    assert "The bootstrap was interrupted: edges have no frequencies" in done.stderr
    assert "frequency" not in eg.read_details(path).edge_columns


def test_in_the_report(inside, survey, tmp_path, monkeypatch):
    pytest.importorskip("jinja2")
    monkeypatch.setattr("edgegraft.report.write_report", interrupt)
    path, page = tmp_path / "m.edgegraft", tmp_path / "m.html"
    done = inside("learn", survey, "-o", path, "--report", page, "--json", *LEARN)
    assert done.returncode == 1
    assert f"The model is in {path}" in done.stderr
    assert "The report was interrupted, and is not written" in done.stderr
    assert json.loads(done.stdout)["report"] is None
    assert eg.load(path).n_edges == 3
    assert list(tmp_path.iterdir()) == [path]
