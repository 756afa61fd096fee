"""The file of a packed table: a header and two arrays that can be mapped where they lie.

    magic (8 bytes) | format version (u32) | header length (u32) | header (JSON) | arrays

Arrays begin at multiples of ALIGNMENT bytes. The header states the size of the whole file, so
a truncated file is recognised before anything of it is used.
"""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.atomic import replacing
from edgegraft.errors import FileFormatError

MAGIC = b"EGPACK\r\n"  # a transfer that changes line ends breaks the magic, not the counts
VERSION = 1
ALIGNMENT = 4096
_PREFIX = struct.Struct("<8sII")
REMEDY = "pack the data again"


class Stored(NamedTuple):
    """What a file holds."""

    schema: str
    n_rows: int
    n_missing: NDArray[np.int64]
    words: NDArray[np.uint64]
    codes: NDArray[np.uint16]


def write(path: str | os.PathLike[str], stored: Stored) -> None:
    """Write `stored` to `path`, replacing the file in one step."""
    header = json.dumps(
        {
            "schema": stored.schema,
            "n_rows": stored.n_rows,
            "n_missing": stored.n_missing.tolist(),
            "words": stored.words.shape,
            "codes": stored.codes.shape,
        }
    ).encode()
    places = _places(len(header), stored.words.shape, stored.codes.shape)
    with replacing(path) as file:
        file.write(_PREFIX.pack(MAGIC, VERSION, len(header)) + header)
        for place, array in ((places.words, stored.words), (places.codes, stored.codes)):
            file.seek(place)
            array.tofile(file)
        file.truncate(places.end)


def read(path: str | os.PathLike[str]) -> Stored:
    """Map the file at `path`, having checked that it is whole and of a known version."""
    source = Path(path)
    size = source.stat().st_size
    with source.open("rb") as file:
        length = _header_length(source, file.read(_PREFIX.size))
        try:
            header = json.loads(file.read(length))
            words, codes = _shape(header["words"]), _shape(header["codes"])
            places = _places(length, words, codes)
            schema, n_rows = str(header["schema"]), int(header["n_rows"])
            n_missing = np.array(header["n_missing"], np.int64)
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise FileFormatError(f"'{source}': the header is damaged; {REMEDY}") from error
    if places.end != size:
        raise FileFormatError(
            f"'{source}' holds {size} bytes where its header says {places.end}: the file is "
            f"truncated or damaged; {REMEDY}"
        )
    return Stored(
        schema,
        n_rows,
        n_missing,
        _map(source, np.uint64, places.words, words),
        _map(source, np.uint16, places.codes, codes),
    )


class _Places(NamedTuple):
    """The byte at which each array begins, and the size of the file."""

    words: int
    codes: int
    end: int


def _places(header: int, words: tuple[int, ...], codes: tuple[int, ...]) -> _Places:
    at_words = _align(_PREFIX.size + header)
    at_codes = _align(at_words + 8 * words[0] * words[1])
    return _Places(at_words, at_codes, at_codes + 2 * codes[0] * codes[1])


def _align(position: int) -> int:
    return -(-position // ALIGNMENT) * ALIGNMENT


def _shape(stated: Any) -> tuple[int, int]:
    rows, columns = (int(length) for length in stated)
    if rows < 0 or columns < 0:
        raise ValueError("negative length")
    return rows, columns


def _header_length(source: Path, prefix: bytes) -> int:
    if len(prefix) < _PREFIX.size or prefix[: len(MAGIC)] != MAGIC:
        raise FileFormatError(f"'{source}' is not a packed table of edgegraft")
    _, version, length = _PREFIX.unpack(prefix)
    if version != VERSION:
        raise FileFormatError(
            f"'{source}' has format version {version}; this edgegraft reads version {VERSION}; "
            f"{REMEDY}"
        )
    return int(length)


def _map(source: Path, dtype: type, place: int, shape: tuple[int, int]) -> NDArray[Any]:
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.asarray(np.memmap(source, dtype, "r", place, shape))
