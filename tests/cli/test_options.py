"""Options that are derived from declared settings: a new setting needs no edit of a command."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

import pytest
import typer
from typer.testing import CliRunner

from edgegraft.cli.learn_commands import SETTINGS, Request
from edgegraft.cli.options import flagged, key_of, settings_from, with_options
from edgegraft.config import Plan, TableOptions, setting
from edgegraft.errors import SettingError


@dataclass
class Made:
    """Settings of every kind."""

    depth: int = setting(3, "How deep.", flag="--depth -d", minimum=1)
    width: float | Literal["auto"] = setting("auto", "How wide.", flag="--width")
    rate: float | None = setting(0.5, "How often.", flag="--rate")
    shade: Literal["light", "dark"] = setting("light", "Which.", flag="--shade")
    exact: bool = setting(False, "Whether.", flag="--exact")
    limit: float | None = setting(None, "At most.", flag="--limit", minimum=0)
    hidden: int = setting(0, "Not offered.")


@pytest.fixture
def run():
    app, found = typer.Typer(), {}

    @app.command()
    @with_options(flagged(Made))
    def command(name: str, **options: Any) -> None:
        found["name"] = name
        found.update(settings_from(flagged(Made), options))

    def call(*arguments):
        done = CliRunner().invoke(app, ["x", *arguments])
        return done, dict(found)

    return call


def test_every_kind_of_setting_has_an_option(run):
    _, found = run()
    defaults = {"depth": 3, "width": "auto", "rate": 0.5, "shade": "light", "exact": False}
    assert found == {"name": "x", **defaults, "limit": None}
    arguments = ("-d", "5", "--width", "2", "--rate", "None", "--shade", "dark", "--exact")
    _, found = run(*arguments, "--limit", "7.5")
    expected = {"depth": 5, "width": 2.0, "rate": None, "shade": "dark", "exact": True}
    assert found == {"name": "x", **expected, "limit": 7.5}


def test_help_and_refusals_come_from_the_declaration(run):
    done, _ = run("--help")
    for word in ("--depth", "-d", "How deep.", "light|dark", "auto", "0.5"):
        assert word in done.output
    assert "Not offered" not in done.output
    for arguments in (("--shade", "red"), ("--hidden", "1")):
        assert run(*arguments)[0].exit_code == 2
    for arguments, message in {
        ("--width", "wide"): "width must be a number or 'auto', found 'wide'",
        ("--depth", "0"): "depth must be an integer of at least 1, found '0'",
        ("--limit", "-1"): "limit must be a number of at least 0 or None, found '-1'",
    }.items():
        done, _ = run(*arguments)
        assert isinstance(done.exception, SettingError)
        assert str(done.exception) == message


def test_no_two_settings_have_the_same_option():
    keys = [key_of(declared) for declared in SETTINGS]
    assert len(set(keys)) == len(keys)
    assert {"columns", "missing", "jobs", "seed", "fdr", "max_edges", "header"} <= set(keys)


def test_requests_are_read_back(tmp_path):
    checkpoint = tmp_path / "c"
    checkpoint.touch()
    settings = {declared.name: declared.default for declared in SETTINGS}
    settings |= {"drop": ["id"], "bins": {"age": 3}, "missing_values": ["?"]}
    request = Request(
        data="d",
        output="o",
        settings=settings | {"fdr": None, "n_jobs": 2, "penalty": 0.1},
        bootstrap=5,
    )
    request.write(checkpoint)
    assert json.loads((tmp_path / "c.json").read_text())["settings"]["fdr"] is None
    assert Request.read(checkpoint) == request
    assert request.plan() == Plan(fdr=None, n_jobs=2, penalty=0.1)
    assert isinstance(request.read_options(), TableOptions)
