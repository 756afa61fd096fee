"""The text form of a schema: versioned JSON that round-trips every label exactly.

JSON already tells ``1``, ``1.0``, ``true`` and ``"1"`` apart and Python writes floats with the
digits that bring them back, so labels need no type tags.
"""

from __future__ import annotations

import json
from typing import Any

from edgegraft.errors import DataError, FileFormatError
from edgegraft.table.arrow import type_from_name
from edgegraft.table.schema import Schema, Variable

FORMAT = "edgegraft-schema"
VERSION = 1


def dump_schema(schema: Schema) -> str:
    """Return the schema as one line of JSON."""
    variables = []
    for variable in schema:
        entry = {"name": variable.name, "dtype": variable.dtype, "categories": variable.categories}
        further = {
            "ordered": variable.ordered,
            "edges": variable.edges,
            "means": variable.means,
            "kind": None if variable.kind == "nominal" else variable.kind,
            "pooled": variable.pooled,
            "reason": variable.reason,
        }
        variables.append(entry | {key: value for key, value in further.items() if value})
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
        return Schema(_load_variable(i, entry) for i, entry in enumerate(entries))
    except FileFormatError:
        raise
    except DataError as error:
        raise FileFormatError(f"the schema is malformed: {error}") from error


def _load_variable(position: int, entry: Any) -> Variable:
    where = f"variable {position} of the schema"
    if not isinstance(entry, dict):
        raise FileFormatError(f"{where} is {type(entry).__name__}, not an object")
    name = _field(where, entry, "name", str)
    where = f"variable '{name}' of the schema"
    edges, means = _numbers(where, entry, "edges"), _numbers(where, entry, "means")
    dtype = _field(where, entry, "dtype", str)
    if type_from_name(dtype) is None:
        raise FileFormatError(f'{where}: unknown "dtype" {dtype!r}')
    return Variable(
        name=name,
        categories=tuple(_hashable(where, _field(where, entry, "categories", list))),
        dtype=dtype,
        ordered=_field(where, entry, "ordered", bool, False),
        edges=edges,
        kind=_field(where, entry, "kind", str, "nominal"),
        reason=_field(where, entry, "reason", str, ""),
        pooled=tuple(_hashable(where, _field(where, entry, "pooled", list, []))),
        means=means,
    )


def _numbers(where: str, entry: dict[str, Any], key: str) -> tuple[float, ...] | None:
    found = _field(where, entry, key, list, None)
    if found is not None and not all(type(value) in (int, float) for value in found):
        raise FileFormatError(f'{where}: "{key}" must be numbers, found {found!r}')
    return None if found is None else tuple(float(value) for value in found)


def _hashable(where: str, labels: list[Any]) -> list[Any]:
    for label in labels:
        if isinstance(label, list | dict) or label is None:
            raise FileFormatError(f"{where}: {label!r} cannot be a category")
    return labels


_REQUIRED = object()


def _field(
    where: str, entry: dict[str, Any], key: str, kind: type, default: Any = _REQUIRED
) -> Any:
    if key not in entry and default is not _REQUIRED:
        return default
    value = entry.get(key)
    if not isinstance(value, kind):
        raise FileFormatError(
            f'{where}: "{key}" must be a {kind.__name__}, found {type(value).__name__}'
        )
    return value
