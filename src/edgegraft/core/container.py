"""Files of arrays under a header: safetensors in which every byte is under a checksum.

    length of the JSON (8 bytes) | JSON: the tensors, and one entry of metadata | tensors

The entry of metadata is the seal of the file::

    {"format": "edgegraft-model", "version": 1, "sha256": checksum of the content,
     "content": {..., "tensors": {name: {"dtype", "shape", "sha256" or "crc32"}}, "written_by"}}

The checksum of the content covers those of the tensors, so no part of a file can change
unnoticed. Text is ASCII with escapes: any name that Python can hold comes back. Model files,
packed tables, stores and checkpoints are containers of different formats. Whole files are written
in the folder of their destination and renamed. This module imports neither pyarrow nor numba.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Literal, NamedTuple, Never, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from edgegraft import __version__
from edgegraft.core.atomic import Closing, replacing
from edgegraft.errors import FileFormatError

Json = dict[str, Any]
Arrays = Mapping[str, NDArray[Any]]
Value = TypeVar("Value")

KEY = "edgegraft"
MAX_HEADER = 100_000_000  # bytes; safetensors reads no more
_STEP = 1 << 24  # bytes moved at a time
_NAMES = {
    "F64": "float64", "F32": "float32", "BOOL": "bool",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8",
}  # fmt: skip
_DTYPES = {name: np.dtype(dtype) for name, dtype in _NAMES.items()}


@dataclass(frozen=True)
class ContainerFormat:
    """One kind of file, and what messages about it say."""

    name: str  # stands in the header, such as "edgegraft-model"
    version: int  # newest that this release reads, and the one that it writes
    noun: str  # what messages call a file, such as "model file"
    source: str  # how a proper file is made: "`edgegraft learn` writes one"
    remedy: str  # what to do about a damaged file
    error: type[FileFormatError] = FileFormatError
    # Of the tensors; the shorter one takes half the time, for files of gigabytes.
    checksum: Literal["sha256", "crc32"] = "sha256"

    def foreign(self, path: object, reason: str) -> FileFormatError:
        """Return the error for a file of another kind."""
        return self.error(f"'{path}' is not a {self.noun} of edgegraft: {reason}; {self.source}")

    def damaged(self, path: object, reason: str) -> FileFormatError:
        """Return the error for a file that is not what was written."""
        return self.error(f"'{path}' is a damaged {self.noun}: {reason}; {self.remedy}")


class Contents(NamedTuple):
    """What a file holds."""

    content: Json
    arrays: dict[str, NDArray[Any]]
    version: int
    written_by: str


def write_container(
    path: str | os.PathLike[str], kind: ContainerFormat, content: Json, arrays: Arrays
) -> None:
    """Write arrays and a header of JSON values, replacing the file in one step.

    The same arrays and content give the same bytes. A header too large for a file is a ValueError.
    """
    # The widest first, so that every array begins at a multiple of its item size.
    ordered = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    plain = {name: _little(arrays[name]) for name in ordered}
    tensors = {name: _describe(array, kind.checksum) for name, array in plain.items()}
    header = _header(kind, content, tensors)
    with replacing(path) as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for array in plain.values():
            file.write(array.data)


def read_container(path: str | os.PathLike[str], kind: ContainerFormat) -> Contents:
    """Return all that a file holds, every checksum verified; the arrays are read-only."""
    with ContainerReader(path, kind) as reader:
        arrays = {name: reader.read(name) for name in reader.names}
        return Contents(reader.content, arrays, reader.version, reader.written_by)


class ContainerReader(Closing):
    """An open file whose arrays are read when they are asked for.

    The checksum of an array is verified the first time that it is read, so that passes over a
    store do not pay for it again. Arrays are read into memory: mapped pages would count as
    resident. Several threads may read. `content` is what the file was written with, `names` are
    those of the arrays, and `written_by` is the release that wrote it.
    """

    def __init__(self, path: str | os.PathLike[str], kind: ContainerFormat) -> None:
        self.path = Path(path)
        self._kind = kind
        self._lock = Lock()
        self._file = self.path.open("rb")
        try:
            offsets = self._offsets()
            self.version, self.content = self._unseal()
            self._tensors = self.content.pop("tensors", None)
            self.written_by = str(self.content.pop("written_by", ""))
            if not isinstance(self._tensors, dict) or set(self._tensors) != set(offsets):
                raise self.damaged("its tensors are not those that its header lists")
        except BaseException:
            self._file.close()
            raise
        self.names = tuple(self._tensors)
        self._verified: set[str] = set()
        self._places = offsets

    def field(self, name: str, make: Callable[[Any], Value]) -> Value:
        """Return ``make(content[name])``; a file in which that is not possible is damaged."""
        try:
            return make(self.content[name])
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise self.damaged(f"its header has no proper {name!r} ({error!s:.80})") from None

    def nbytes(self, name: str) -> int:
        """Return the bytes of an array."""
        return self._place(name)[1]

    def read(self, name: str) -> NDArray[Any]:
        """Return an array, read-only; its checksum is verified the first time."""
        place, length, dtype, shape = self._place(name)
        raw = np.empty(length, np.uint8)
        with self._lock:
            self._file.seek(place)
            n_read = self._file.readinto(raw.data)
        if n_read != length:
            raise self.damaged("it has become shorter")
        return self._checked(name, raw.view(dtype).reshape(shape))

    def map(self, name: str) -> NDArray[Any]:
        """Return an array mapped from the file, after verifying its checksum once."""
        place, length, dtype, shape = self._place(name)
        if not length:
            return self.read(name)
        raw = np.memmap(self._file, np.uint8, "r", place, (length,))
        return self._checked(name, np.asarray(raw).view(dtype).reshape(shape))

    def damaged(self, reason: str) -> FileFormatError:
        """Return the error for this file not being what was written."""
        return self._kind.damaged(self.path, reason)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _place(self, name: str) -> tuple[int, int, np.dtype[Any], list[int]]:
        if name not in self._places:
            raise self.damaged(f"it has no tensor {name!r}")
        return self._places[name]

    def _checked(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        described = self._tensors[name]
        method = "crc32" if isinstance(described, dict) and "crc32" in described else "sha256"
        if name not in self._verified and _describe(array, method) != described:
            raise self.damaged(f"the type, shape or checksum of tensor {name!r} does not match")
        self._verified.add(name)
        array.flags.writeable = False
        return array

    def _offsets(self) -> dict[str, tuple[int, int, np.dtype[Any], list[int]]]:
        """Return place, bytes, type and shape of every tensor, which safetensors has checked."""
        try:
            with safe_open(self.path, "numpy") as file:
                self._seal = (file.metadata() or {}).get(KEY)
        except SafetensorError as error:
            reason = ascii(str(error))[1:-1][:200]
            raise self._kind.error(
                f"'{self.path}' ({self.path.stat().st_size:,} bytes) is not a {self._kind.noun} of "
                f"edgegraft, or is truncated or damaged ({reason}); {self._kind.source}"
            ) from None
        start = 8 + int.from_bytes(self._file.read(8), "little")
        header = json.loads(self._file.read(start - 8))
        header.pop("__metadata__", None)
        found = {}
        for name, tensor in header.items():
            if tensor["dtype"] not in _DTYPES:
                raise self.damaged(f"tensor {name!r} has the unknown type {tensor['dtype']}")
            first, end = tensor["data_offsets"]
            found[name] = start + first, end - first, _DTYPES[tensor["dtype"]], tensor["shape"]
        return found

    def _unseal(self) -> tuple[int, Json]:
        """Return version and content of the seal, having verified its checksum."""
        kind = self._kind
        if self._seal is None:
            raise kind.foreign(self.path, "it is a safetensors file of something else")
        try:
            document = json.loads(self._seal, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise self.damaged(f"its header is not JSON ({error})") from None
        if not isinstance(document, dict) or document.get("format") != kind.name:
            raise kind.foreign(self.path, f'its header has no "format": "{kind.name}"')
        version, content = document.get("version"), document.get("content")
        if type(version) is not int or version < 1:
            raise self.damaged(f"its header states the format version {version!r:.40}")
        if version > kind.version:
            raise kind.error(
                f"'{self.path}' has format version {version}: a newer release of edgegraft wrote "
                f"it, and this one reads versions up to {kind.version}; upgrade edgegraft, or "
                "write the file with this release"
            )
        if not isinstance(content, dict):
            raise self.damaged("its header has no content")
        try:
            sealed = _digest(content) == document.get("sha256")
        except (ValueError, RecursionError) as error:
            raise self.damaged(f"its header cannot be checked ({error})") from None
        if not sealed:
            raise self.damaged("the checksum of its header does not match")
        return version, content


class ContainerWriter:
    """A file that is written from front to back, whose header is known at the end only.

    `room` bytes for the header are left at the beginning of an empty file, open for writing and
    reading; if they turn out too few, the tensors are moved towards its end.
    """

    def __init__(self, file: BinaryIO, kind: ContainerFormat, room: int = 1 << 16) -> None:
        self._file = file
        self._kind = kind
        self._tensors: dict[str, Json] = {}
        self._room = -(-max(room, 16) // 8) * 8
        file.seek(self._room)
        self.nbytes = 0

    def add(self, name: str, array: NDArray[Any]) -> None:
        """Append an array."""
        plain = _little(array)
        self._tensors[name] = _describe(plain, self._kind.checksum)
        self._file.write(plain.data)
        self.nbytes += plain.nbytes

    def finish(self, content: Json) -> None:
        """Write the header."""
        header = _header(self._kind, content, self._tensors)
        if 8 + len(header) > self._room:
            self._move(8 + len(header) - self._room)
        else:
            header = header.ljust(self._room - 8)
        self._file.seek(0)
        self._file.write(len(header).to_bytes(8, "little") + header)

    def _move(self, by: int) -> None:
        for end in range(self._room + self.nbytes, self._room, -_STEP):
            first = max(self._room, end - _STEP)
            self._file.seek(first)
            moved = self._file.read(end - first)
            self._file.seek(first + by)
            self._file.write(moved)


def _header(kind: ContainerFormat, content: Json, tensors: dict[str, Json]) -> bytes:
    """Return the JSON of a file, padded to whole words."""
    content = {**content, "tensors": tensors, "written_by": f"edgegraft {__version__}"}
    seal = {"format": kind.name, "version": kind.version, "sha256": _digest(content)}
    document: Json = {"__metadata__": {KEY: _dump(seal | {"content": content})}}
    at = 0
    for name, tensor in tensors.items():
        dtype, shape = tensor["dtype"], tensor["shape"]
        end = at + int(np.prod(shape, dtype=np.int64)) * _DTYPES[dtype].itemsize
        document[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, end]}
        at = end
    header = _dump(document).encode()
    if len(header) > MAX_HEADER:
        raise ValueError(
            f"names, categories and details take {len(header):,} bytes, and a {kind.noun} has room "
            f"for {MAX_HEADER:,}: shorten the categories, or leave columns or details out"
        )
    return header.ljust(-(-len(header) // 8) * 8)


def _little(array: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(array, array.dtype.newbyteorder("<"), order="C")


def _describe(array: NDArray[Any], method: str) -> Json:
    name = next(name for name, dtype in _DTYPES.items() if dtype == array.dtype)
    data = array.reshape(-1).view(np.uint8).data
    if method == "crc32":
        checksum: Json = {"crc32": zlib.crc32(data)}
    else:
        checksum = {"sha256": hashlib.sha256(data).hexdigest()}
    return {"dtype": name, "shape": list(array.shape)} | checksum


def _digest(content: Json) -> str:
    # Of the content as values: how the text spells them, and the order of keys, are no part of it.
    return hashlib.sha256(json.dumps(content, sort_keys=True, allow_nan=False).encode()).hexdigest()


def _dump(value: Json) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def _no_constant(name: str) -> Never:
    raise ValueError(f"{name} is not a number of JSON")
