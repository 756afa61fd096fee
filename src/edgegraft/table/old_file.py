"""Packed tables as earlier releases wrote them: bit planes, and codes for many states.

    magic (8 bytes) | format version (u32) | header length (u32) | header (JSON) | planes | codes

The arrays begin at multiples of 4,096 bytes. They are read whole and turned into codes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.errors import FileFormatError
from edgegraft.kernels.counting.bitplanes import unpack_codes
from edgegraft.table.schema import Schema

MAGIC = b"EGPACK\r\n"
VERSION = 1
_ALIGNMENT = 4096
_VECTOR = 512  # rows of a whole vector of a plane
_MAX_PLANES = 64
_MIN_CODED = 16
_PREFIX = struct.Struct("<8sII")
_REMEDY = "pack the data again"

MakeCells = Callable[[Schema, int], NDArray[Any]]


def is_old(path: str | PathLike[str]) -> bool:
    """Return whether a file has the format of earlier releases."""
    with Path(path).open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read_old(path: str | PathLike[str], make_cells: MakeCells) -> tuple[Schema, NDArray[Any], int]:
    """Return schema, codes and number of rows of a file, having checked that it is whole."""
    content = Path(path).read_bytes()
    try:
        _, version, length = _PREFIX.unpack_from(content)
        if version != VERSION:
            raise FileFormatError(f"it has format version {version}, not {VERSION}")
        header = json.loads(content[_PREFIX.size : _PREFIX.size + length])
        schema, n_rows = Schema.from_json(header["schema"]), int(header["n_rows"])
        missing = np.array(header["n_missing"], np.int64)
        if missing.shape != (len(schema),) or not n_rows > 0 or (missing < 0).any():
            raise FileFormatError("the missing cells stated do not fit the schema")
        words, codes = _arrays(content, _PREFIX.size + length, header, schema, n_rows, missing)
    except FileFormatError as error:
        raise FileFormatError(f"'{path}': {error}; {_REMEDY}") from None
    except (struct.error, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise FileFormatError(
            f"'{path}' is a damaged packed table ({error!r:.80}); {_REMEDY}"
        ) from None
    cells = make_cells(schema, n_rows)
    _decode(cells, words, codes, schema.n_states, n_rows, missing == 0)
    return schema, cells, n_rows


def _counts(n_states: NDArray[np.int64], complete: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the number of planes of each variable."""
    return np.where(n_states > _MAX_PLANES, 0, n_states - complete)


def _arrays(
    content: bytes,
    start: int,
    header: dict[str, Any],
    schema: Schema,
    n_rows: int,
    missing: NDArray[np.int64],
) -> tuple[NDArray[np.uint64], NDArray[np.uint16]]:
    planes = (int(_counts(schema.n_states, missing == 0).sum()), 8 * -(-n_rows // _VECTOR))
    coded = (int((schema.n_states > _MIN_CODED).sum()), n_rows)
    if header["words"] != list(planes) or header["codes"] != list(coded):
        raise FileFormatError("the arrays do not fit the schema")
    at_words = -(-start // _ALIGNMENT) * _ALIGNMENT
    n_words, n_codes = planes[0] * planes[1], coded[0] * coded[1]
    at_codes = -(-(at_words + 8 * n_words) // _ALIGNMENT) * _ALIGNMENT
    if at_codes + 2 * n_codes != len(content):
        raise FileFormatError(
            f"it holds {len(content)} bytes where its header says {at_codes + 2 * n_codes}: the "
            "file is truncated or damaged"
        )
    words = np.frombuffer(content, np.uint64, n_words, at_words).reshape(planes)
    return words, np.frombuffer(content, np.uint16, n_codes, at_codes).reshape(coded)


def _decode(
    cells: NDArray[Any],
    words: NDArray[np.uint64],
    codes: NDArray[np.uint16],
    n_states: NDArray[np.int64],
    n_rows: int,
    complete: NDArray[np.bool_],
) -> None:
    row, first = 0, 0
    for i, count in enumerate(_counts(n_states, complete).tolist()):
        out, states = cells[i, :n_rows], int(n_states[i])
        if states > _MIN_CODED:
            out[:] = np.minimum(codes[row], states)
            row += 1
        else:
            plain = np.arange(states + 1, dtype=cells.dtype)
            without_bit = plain[states - bool(complete[i])]
            unpack_codes(words[first : first + count], plain, without_bit, out)
        first += count
