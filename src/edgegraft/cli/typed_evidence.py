"""Evidence as people type it: ``smoker=yes``, ``age=37``, ``retired=true``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgegraft.cli.console import SCREEN
from edgegraft.cli.options import parse_names
from edgegraft.errors import ModelError, nearest, suggestion
from edgegraft.ingest.cells import read_text_as
from edgegraft.table import Schema, Variable


def parse_given(schema: Schema, texts: Sequence[str]) -> dict[str, Any]:
    """Return evidence as categories by name.

    A category is matched by its text, numbers also by value; a number given for a binned column
    is the bin that it falls into.

    >>> schema = Schema.from_categories({"smoker": ["no", "yes"], "dose": [0, 1, 2]})
    >>> parse_given(schema, ["smoker=yes", "dose=2"])
    {'smoker': 'yes', 'dose': 2}
    """
    given: dict[str, Any] = {}
    for text in texts:
        name, category = _parse(schema, text)
        if name in given:
            raise ModelError(f"--given names variable {name!r} twice")
        given[name] = category
    return given


def check_names(schema: Schema, names: Sequence[str], option: str) -> None:
    """Refuse names of variables that the model does not have."""
    for name in names:
        if name not in schema:
            hint = suggestion(name, schema.names)
            raise ModelError(f"{option}: the model has no variable {name!r}; {hint}")


def parse_variables(schema: Schema, texts: Sequence[str], option: str) -> list[str]:
    """Return names of variables, separated by commas or repeated.

    >>> schema = Schema.from_categories({"a": [0, 1], "b": [0, 1], "c, d": [0, 1]})
    >>> parse_variables(schema, ["a,b", "c, d"], "--of")
    ['a', 'b', 'c, d']
    """
    names: list[str] = []
    for text in texts:
        names += [text] if text in schema else parse_names([text])
    check_names(schema, names, option)
    return list(dict.fromkeys(names))


def parse_categories(schema: Schema, texts: Sequence[str], option: str) -> list[Any]:
    """Return the categories that have one of the texts, of whatever type and variable.

    >>> schema = Schema.from_categories({"a": [0, 1], "b": ["0", "-"]})
    >>> parse_categories(schema, ["0", "-"], "--without")
    [0, '0', '-']
    """
    labels = [label for variable in schema for label in variable.categories]
    found: dict[tuple[type, Any], Any] = {}  # by type, because 0 and False are equal
    for text in texts:
        known = {(type(label), label): label for label in labels if str(label) == text}
        if not known:
            near = nearest(text, [str(label) for label in labels])
            hint = "" if near is None else f"; did you mean {near!r}?"
            raise ModelError(f"{option}: no variable has the category {text!r}{hint}")
        found |= known
    return list(found.values())


def _parse(schema: Schema, text: str) -> tuple[str, Any]:
    """Return name and category; both may have equals signs in them, so what is known counts."""
    parts = text.split("=")
    ways = [("=".join(parts[:k]), "=".join(parts[k:])) for k in range(1, len(parts))]
    if not ways:
        raise ModelError(f"--given {text!r} is not NAME=CATEGORY")
    known = [(name, label) for name, label in ways if name in schema] or [
        (name.strip(), label.strip()) for name, label in ways if name.strip() in schema
    ]
    for name, label in known:
        category = _category(schema[name], label)
        if category is not None:
            return name, category
    if not known:
        check_names(schema, [ways[0][0]], "--given")
    name, label = known[0]
    categories = schema[name].categories
    near = nearest(label, [str(category) for category in categories])
    hint = (
        f"did you mean {near!r}?"
        if near is not None and len(categories) > SCREEN.names and not schema[name].binned
        else schema[name].expected(SCREEN.names)
    )
    several = " (repeat --given for each variable)" if "," in label and "=" in label else ""
    raise ModelError(f"--given: variable {name!r} has no category {label!r}; {hint}{several}")


def _category(variable: Variable, text: str) -> Any:
    """Return the category that a text means, read as the cells of a text file are, or None."""
    categories = variable.categories
    kind = float if variable.binned else type(categories[0])
    known = {str(category): category for category in categories}
    code = variable.state_of(known[text] if text in known else read_text_as(text, kind))
    return None if code is None else categories[code]
