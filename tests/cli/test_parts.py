"""Parts of the command line that a run seldom shows: faults, odd names."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
import typer
from rich.console import Console

from edgegraft.cli.console import as_option, reported
from edgegraft.cli.options import parse_bins, parse_names
from edgegraft.cli.summary import show_variables
from edgegraft.cli.typed_evidence import parse_given
from edgegraft.errors import Argument, DataError
from edgegraft.table import Schema, Variable


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (ValueError("bad"), 2, "error: bad"),
        (OSError(28, "No space left on device"), 1, "No space left"),
        (MemoryError(), 1, "MemoryError"),
        (RuntimeError("[b]odd[/b]"), 1, "RuntimeError: [b]odd[/b]; this should not happen"),
        (KeyboardInterrupt(), 1, "nothing was written"),
    ],
)
def test_failures_are_one_line_and_a_code(capsys, error, code, words):
    with pytest.raises(typer.Exit) as ended, reported(quiet=True):
        raise error
    assert ended.value.exit_code == code
    assert words in capsys.readouterr().err


def test_evidence_is_matched_as_people_mean_it():
    schema = Schema(
        [
            Variable("a=b", ("x=y", "z"), "string"),
            Variable("a", (1.5, 2.0), "double"),
            Variable("on", (False, True), "bool"),
            Variable("age", ("[0, 10)", "[10, 20]"), "int64", True, (0.0, 10.0, 20.0)),
            Variable("code", ("01", "1"), "string"),
        ]
    )
    given = parse_given(schema, ["a=b=x=y", "on=TRUE", "age=10", "code=1"])
    assert given == {"a=b": "x=y", "on": True, "age": "[10, 20]", "code": "1"}
    assert parse_given(schema, ["a=2", "age=[0, 10)"]) == {"a": 2.0, "age": "[0, 10)"}
    assert parse_given(schema, ["age=999"]) == {"age": "[10, 20]"}  # outer bins are open-ended
    assert parse_given(schema, [" code = 1 "]) == {"code": "1"}
    for text in ("on=1", "a=nan", "age=nan", "code=001"):
        with pytest.raises(ValueError, match="has no category"):
            parse_given(schema, [text])


def test_what_was_meant_is_guessed():
    schema = Schema.from_categories({"City": [f"Place {k}" for k in range(12)], "b": ["x", "y"]})
    for texts, words in {
        ("CITY=Place 3",): "did you mean 'City'",
        ("City=place 3",): "did you mean 'Place 3'",
        ("City=Rome",): "'Place 5' and 6 more",
        ("b=x,City=Place 3",): r"'x', 'y' \(repeat --given for each variable\)",
    }.items():
        with pytest.raises(ValueError, match=words):
            parse_given(schema, texts)


def test_messages_are_in_the_words_of_the_command():
    assert as_option(Argument("drop", ["id", "it's"])) == "--drop 'id,it'\"'\"'s'"
    assert as_option(Argument("bins", {"a b": 5})) == "--bins 'a b=5'"
    assert as_option(Argument("bins", 5)) == "--bins 5"
    assert as_option(Argument("missing_values", ["?", "x"])) == "--missing '?' --missing x"
    assert as_option(Argument("delimiter", "\t")) == "--delimiter tab"
    assert as_option(Argument("n_jobs")) == "--jobs"


def test_lists_of_columns_and_bins():
    assert parse_names(["a, b", "c"]) == ["a", "b", "c"]
    assert parse_bins(["a=b=3"]) == {"a=b": 3}
    for texts in (["a,,b"], [""]):
        with pytest.raises(DataError, match="empty name"):
            parse_names(texts)
    for texts in (["5", "a=3"], ["a="], ["-1"]):
        with pytest.raises(DataError, match="NAME=NUMBER"):
            parse_bins(texts)


def test_reasons_of_kinds_are_shown_once_however_many_columns_share_them():
    text = Variable("a", ("x", "y"), "string", reason="text")
    variables = [replace(text, name=f"q{k}") for k in range(8)]
    own = [replace(text, name=f"r{k}", reason=f"its own reason {k}") for k in range(9)]
    shown = Console(file=io.StringIO(), width=200)
    kinds = {v.name: {"kind": v.kind, "reason": v.reason} for v in (*own, *variables)}
    found = {"categories": {name: ["x", "y"] for name in kinds}, "kinds": kinds, "edges": []}
    show_variables(shown, found)
    lines = shown.file.getvalue().splitlines()
    reasons = [line for line in lines if line.startswith("nominal (")]
    assert reasons[0] == "nominal (text): q0, q1, q2, q3, q4, q5 and 2 more"
    assert len(reasons) == 8
    assert lines[-1] == "... and 2 more reasons; --json has all."
