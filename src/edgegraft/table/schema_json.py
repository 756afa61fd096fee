"""The text form of a schema: versioned JSON that round-trips every label exactly.

JSON already tells ``1``, ``1.0``, ``true`` and ``"1"`` apart and Python writes floats with the
digits that bring them back, so labels need no type tags.
"""

from __future__ import annotations

import json
from typing import Any

from pyarrow import ArrowException

from edgegraft.errors import DataError, FileFormatError
from edgegraft.table.arrow import decode_table, type_from_name
from edgegraft.table.schema import Schema, Variable

FORMAT = "edgegraft-schema"
VERSION = 1
_NEEDED = object()
#: Type and default of every field of a variable, in the order in which they are written.
_FIELDS: dict[str, tuple[Any, Any]] = {
    "name": (str, _NEEDED),
    "dtype": (str, _NEEDED),
    "categories": (list, _NEEDED),
    "ordered": (bool, False),
    "edges": (list, None),
    "means": (list, None),
    "kind": (str, "nominal"),
    "pooled": (list, ()),
    "reason": (str, ""),
}
_NUMBERS = ("edges", "means")


def dump_schema(schema: Schema) -> str:
    """Return the schema as one line of JSON; fields that have their default are left out."""
    variables = [
        {
            key: value
            for key, (_, default) in _FIELDS.items()
            if (value := getattr(variable, key)) != default
        }
        for variable in schema
    ]
    document = {"format": FORMAT, "version": VERSION, "variables": variables}
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def load_schema(text: str) -> Schema:
    """Read what `dump_schema` wrote, or say what is wrong with it."""
    try:
        document = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise FileFormatError(f"this is not a schema: it is not JSON ({error})") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise FileFormatError(f'this is not a schema: it has no "format": "{FORMAT}"')
    version = document.get("version")
    if version != VERSION:
        raise FileFormatError(
            f"the schema has version {version!r}; this release reads version {VERSION}: "
            "a newer release of edgegraft may have written it"
        )
    entries = document.get("variables")
    if not isinstance(entries, list):
        raise FileFormatError('the schema has no list "variables"')
    try:
        schema = Schema(_load_variable(i, entry) for i, entry in enumerate(entries))
        _check_labels(schema)
        return schema
    except FileFormatError:
        raise
    except DataError as error:
        raise FileFormatError(f"the schema is malformed: {error}") from error


def _check_labels(schema: Schema) -> None:
    """Refuse categories that are not of their type, which would fail when rows are written."""
    seen = set()
    for variable in schema:
        kind = (variable.dtype, variable.categories, tuple(map(type, variable.categories)))
        if kind in seen:
            continue
        seen.add(kind)
        try:
            decode_table(Schema([variable]), [[k] for k in range(variable.n_states)])
        except UnicodeEncodeError:
            continue  # a lone surrogate is text that a model was learned from and may be saved with
        except (ValueError, TypeError, OverflowError, ArrowException) as error:
            raise FileFormatError(
                f"variable '{variable.name}' of the schema has categories that are no "
                f"{variable.dtype}: {error!s:.80}"
            ) from error


def _load_variable(position: int, entry: Any) -> Variable:
    where = f"variable {position} of the schema"
    if not isinstance(entry, dict):
        raise FileFormatError(f"{where} is {type(entry).__name__}, not an object")
    found: dict[str, Any] = {}
    for key, (kind, default) in _FIELDS.items():
        value: Any = entry.get(key, default)
        found[key] = value
        if key not in entry and default is not _NEEDED:
            continue
        if not isinstance(value, kind):
            what = "nothing" if value is _NEEDED else type(value).__name__
            raise FileFormatError(f'{where}: "{key}" must be a {kind.__name__}, found {what}')
        if key == "name":
            where = f"variable '{value}' of the schema"
        if key == "dtype" and type_from_name(value) is None:
            raise FileFormatError(f'{where}: unknown "dtype" {value!r}')
        if key in _NUMBERS:
            if not all(type(number) in (int, float) for number in value):
                raise FileFormatError(f'{where}: "{key}" must be numbers, found {value!r}')
            found[key] = tuple(map(float, value))
        elif kind is list:
            for label in value:
                if isinstance(label, list | dict) or label is None:
                    raise FileFormatError(f"{where}: {label!r} cannot be a category")
            found[key] = tuple(value)
    return Variable(**found)
