"""Packed tables as earlier versions wrote them: bit planes, and codes for many states.

    magic (8 bytes) | format version (u32) | header length (u32) | header (JSON) | planes | codes

The arrays begin at multiples of 4,096 bytes. They are read whole and turned into codes. A column
of more than 16 states has codes; one of up to 64 has planes, the last of which is left out if no
cell is missing.
"""

from __future__ import annotations

import json
import struct
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.errors import FileFormatError
from edgegraft.table.schema import Schema

MAGIC = b"EGPACK\r\n"
VERSION = 1
_ALIGNMENT = 4096
_VECTOR = 512  # rows of a whole vector of a plane
_MAX_PLANES = 64
_MIN_CODED = 16
_PREFIX = struct.Struct("<8sII")


def read_old(path: str | PathLike[str]) -> tuple[NDArray[np.int64], Schema] | None:
    """Return codes and schema of a file, having checked that it is whole; None of other files."""
    with Path(path).open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            return None
        content = MAGIC + file.read()
    try:
        return _decode(content)
    except (struct.error, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise FileFormatError(
            f"'{path}' is a damaged packed table ({error!s:.120}); pack the data again"
        ) from None


def _decode(content: bytes) -> tuple[NDArray[np.int64], Schema]:
    _, version, length = _PREFIX.unpack_from(content)
    if version != VERSION:
        raise ValueError(f"it has format version {version}, not {VERSION}")
    end = _PREFIX.size + length
    header = json.loads(content[_PREFIX.size : end])
    schema, n_rows = Schema.from_json(header["schema"]), int(header["n_rows"])
    states, missing = schema.n_states, np.array(header["n_missing"], np.int64)
    if missing.shape != (len(schema),) or not n_rows > 0 or (missing < 0).any():
        raise ValueError("the missing cells stated do not fit the schema")
    counts = np.where(states > _MAX_PLANES, 0, states - (missing == 0)).tolist()
    arrays: list[NDArray[Any]] = []
    for name, dtype, shape in (
        ("words", np.dtype("<u8"), [sum(counts), 8 * -(-n_rows // _VECTOR)]),
        ("codes", np.dtype("<u2"), [int((states > _MIN_CODED).sum()), n_rows]),
    ):
        if header[name] != shape:
            raise ValueError("the arrays do not fit the schema")
        start = -(-end // _ALIGNMENT) * _ALIGNMENT
        end = start + shape[0] * shape[1] * dtype.itemsize
        arrays.append(np.frombuffer(content[start:end], dtype).reshape(shape))
    if end != len(content):
        raise ValueError(f"it holds {len(content)} bytes where its header says {end}")
    planes, coded = iter(arrays[0]), iter(arrays[1])
    out = np.empty((n_rows, len(schema)), np.int64)
    for i, count in enumerate(counts):
        # A cell without a bit has the state whose plane is left out, or is missing.
        codes = np.full(n_rows, states[i] - 1 if missing[i] == 0 else -1)
        for state in range(count):
            bits = np.unpackbits(next(planes).view(np.uint8), bitorder="little")
            codes[bits[:n_rows] == 1] = state
        if states[i] > _MIN_CODED:
            codes = next(coded).astype(np.int64)
            codes[codes >= states[i]] = -1
        out[:, i] = codes
    return out, schema
