"""The header of a model file: JSON with a format version, sealed by a checksum.

    {"format": "edgegraft-model", "version": 1, "sha256": seal, "content": {...}}

The seal is that of the content, which has the checksums of the tensors in turn, so no part of a
file can change unnoticed. Text is ASCII with escapes: any name that Python can hold comes back.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, Never

import numpy as np

from edgegraft.errors import ModelError

FORMAT = "edgegraft-model"
VERSION = 1
MAX_DEPTH = 32  # of what callers hand in; far below what any JSON reader refuses

Json = dict[str, Any]


class HeaderError(ValueError):
    """What a file with such a header is; the reader of the file adds its name."""


def foreign(reason: str) -> HeaderError:
    """Return the error of a file that is something else."""
    return HeaderError(f"is not a model file of edgegraft: {reason}; save a model with model.save")


def damaged(reason: str) -> HeaderError:
    """Return the error of a model file that is not what was written."""
    return HeaderError(f"is a damaged model file: {reason}; fetch it again or save the model again")


def seal(content: Json) -> str:
    """Return `content` as the text of a header."""
    document = {"format": FORMAT, "version": VERSION, "sha256": _digest(content)}
    return json.dumps(document | {"content": content}, allow_nan=False, separators=(",", ":"))


def unseal(text: str) -> Json:
    """Return the content of a header, having checked its format, version and seal."""
    try:
        document = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise damaged(f"its header is not JSON ({error})") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise foreign(f'its header has no "format": "{FORMAT}"')
    _check_version(document.get("version"))
    content = document.get("content")
    if not isinstance(content, dict):
        raise damaged("its header has no content")
    try:
        sealed = _digest(content) == document.get("sha256")
    except (ValueError, RecursionError) as error:
        raise damaged(f"its header cannot be checked ({error})") from None
    if not sealed:
        raise damaged("the checksum of its header does not match")
    return content


def _check_version(version: Any) -> None:
    if type(version) is not int or version < 1:
        raise damaged(f"its header states the format version {version!r:.40}")
    if version > VERSION:
        raise HeaderError(
            f"has format version {version}: a newer release of edgegraft wrote it, and this one "
            f"reads versions up to {VERSION}; upgrade edgegraft, or save the model with this one"
        )


def plain(value: Any, where: str, depth: int = 0) -> Any:
    """Return `value` in JSON's own types, refusing what they cannot hold.

    NumPy's numbers and arrays become Python's, tuples become lists. `where` names the value in
    messages.
    """
    if depth > MAX_DEPTH:
        raise ModelError(f"{where} is nested more than {MAX_DEPTH} deep")
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ModelError(
                f"{where} is {value}, which JSON cannot hold; leave it out or use None"
            )
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ModelError(f"{where} has the key {key!r}: keys must be strings")
        return {key: plain(item, f"{where}[{key!r}]", depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, f"{where}[{k}]", depth + 1) for k, item in enumerate(value)]
    raise ModelError(
        f"{where} is a {type(value).__name__}: use numbers, strings, None, and lists and dicts "
        "of them"
    )


def _digest(content: Json) -> str:
    # Of the content as values: how the text spells them, and the order of keys, are no part of it.
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _no_constant(name: str) -> Never:
    raise ValueError(f"{name} is not a number of JSON")
