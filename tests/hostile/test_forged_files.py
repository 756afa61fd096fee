"""Schemas whose categories are not of their type, and requests that name other folders."""

from __future__ import annotations

import json

import pytest

from edgegraft.cli.learn_commands import Request, _check_within
from edgegraft.errors import DataError, FileFormatError
from edgegraft.table import Schema
from tests.hostile.writers import writers


@pytest.mark.parametrize(
    ("dtype", "categories"),
    [
        ("int64", ["a", "b"]),
        ("string", [1, 2]),
        ("bool", ["no", "yes"]),
        ("int8", [1, 1000]),
        ("double", ["a", "b"]),
        ("string", ["a", 1]),
        ("int64", [1, 10**30]),
        ("date32[day]", ["today", "x"]),
    ],
)
def test_categories_of_another_type_are_refused_when_a_schema_is_read(dtype, categories):
    variables = [{"name": "a", "dtype": dtype, "categories": categories}]
    text = json.dumps({"format": "edgegraft-schema", "version": 1, "variables": variables})
    with pytest.raises(FileFormatError, match="'a'"):
        Schema.from_json(text)


def test_a_request_may_name_its_own_folder_only(tmp_path):
    writers()["run.json"](tmp_path / "run.json")
    checkpoint = tmp_path / "run"
    checkpoint.touch()
    path = Request.path_for(checkpoint)
    content = json.loads(path.read_text())
    for changed in (
        {"output": str(tmp_path / ".." / "m")},
        {"output": str(tmp_path / "m"), "report": "../../m.html"},
        {"output": "/etc/m"},
    ):
        path.write_text(json.dumps(content | changed))
        with pytest.raises(DataError, match=r"run\.json' says to write to .* outside of its"):
            _check_within(checkpoint, Request.read(checkpoint), None)
    path.write_text(json.dumps(content | {"output": str(tmp_path / "m")}))
    _check_within(checkpoint, Request.read(checkpoint), None)
    path.write_text("[" * 100_000)
    with pytest.raises(FileFormatError, match="is not what `edgegraft learn --checkpoint` writes"):
        Request.read(checkpoint)
