"""Bit planes on disk, in blocks of rows: tables that need not fit in memory.

    magic | chunks, block after block | footer (JSON, arrays) | its place, length and checksum

A chunk is one column of one block: planes of provisional codes, as they came (see
:mod:`edgegraft.table.builder`). The footer has the schema, the final code of every provisional one,
and where each chunk lies, so the file is written once, from front to back, in one pass over the
rows; final codes are put in place when a block is read. Nothing is mapped: a block is read into
memory, and memory is that of the blocks in use.
"""

from __future__ import annotations

import io
import json
import os
import struct
import zlib
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.errors import FileFormatError
from edgegraft.kernels.counting.popcount import LANES
from edgegraft.table.builder import CHUNK_ROWS, PackedColumn
from edgegraft.table.packed import PackedTable
from edgegraft.table.schema import Schema
from edgegraft.table.spool import CODES, Spooled

MAGIC = b"EGPLANE2"
_TRAILER = struct.Struct("<QQI8s")
REMEDY = "remove it, and it is made again"

#: Cells of a block: codes of a byte each, and what is derived from them, are held per thread.
BLOCK_CELLS = 1 << 24
_UNIT = 64 * LANES  # rows of a whole vector of a plane


class Told(NamedTuple):
    """What a file says of its table."""

    schema: Schema
    rows: int  # of a block
    source: str  # what it was read from, for people
    notes: dict[str, Any]  # what was decided about columns that a user should know of


class Footer(NamedTuple):
    """What a file says of its table and its chunks.

    Attributes
    ----------
    told : Told
    n_rows : int
    place, height, missing : array of int, shape (n_blocks, n)
        Of the chunks.
    recode : list of array of uint16
        Final codes of each variable by provisional code.
    """

    told: Told
    n_rows: int
    place: NDArray[np.int64]
    height: NDArray[np.int64]
    missing: NDArray[np.int64]
    recode: list[NDArray[np.uint16]]


class PlaneStore:
    """A table on disk that is read block by block.

    Parameters
    ----------
    path : path
    keep : bool, default True
        False removes the file at once, or when it is closed where the system demands that; the
        table can be read as long as this object lives.
    """

    def __init__(self, path: str | os.PathLike[str], *, keep: bool = True) -> None:
        self.path = Path(path)
        self._lock = Lock()
        self._keep = keep
        self._file = self.path.open("rb")
        try:
            self._footer = _read_footer(self._file, self.path)
        except BaseException:
            self._file.close()
            raise
        self.starts = block_starts(self._footer.n_rows, self._footer.told.rows)
        if not keep:
            with suppress(OSError):  # Windows: only once it is closed
                self.path.unlink()

    @property
    def schema(self) -> Schema:
        """Names and categories of the variables."""
        return self._footer.told.schema

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._footer.n_rows

    @property
    def n_variables(self) -> int:
        """Number of columns."""
        return len(self.schema)

    @property
    def n_missing(self) -> NDArray[np.int64]:
        """Missing cells of every column."""
        return np.asarray(self._footer.missing.sum(axis=0))

    @property
    def source(self) -> str:
        """What the table was read from."""
        return self._footer.told.source

    @property
    def notes(self) -> dict[str, Any]:
        """What was decided about columns that a user should know of."""
        return self._footer.told.notes

    @property
    def nbytes(self) -> int:
        """Bytes of the chunks."""
        return int(_sizes(self._footer).sum())

    def block(self, k: int) -> PackedTable:
        """Return the rows ``starts[k]`` to ``starts[k + 1]``, in memory."""
        return self._assemble([k])

    def table(self) -> PackedTable:
        """Return all rows, in memory."""
        return self._assemble(list(range(len(self.starts) - 1)))

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
        if not self._keep:
            self.path.unlink(missing_ok=True)

    def __enter__(self) -> PlaneStore:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"PlaneStore({self.n_rows:,} rows x {self.n_variables:,} variables in "
            f"{len(self.starts) - 1:,} blocks, {self.nbytes:,} bytes, '{self.path}')"
        )

    def _assemble(self, numbers: list[int]) -> PackedTable:
        footer = self._footer
        parts = [self._chunks(k) for k in numbers]
        n_rows = int(self.starts[numbers[-1] + 1] - self.starts[numbers[0]])
        columns = [
            PackedColumn(
                [part[i] for part in parts],
                footer.recode[i],
                int(self.schema.n_states[i]),
                n_rows,
                int(footer.missing[numbers, i].sum()),
                footer.told.rows,
            )
            for i in range(self.n_variables)
        ]
        del parts  # a column lets go of its chunks once they are written
        return PackedTable.from_columns(self.schema, columns, n_rows)

    def _chunks(self, k: int) -> list[NDArray[Any]]:
        """Read the chunks of a block, in one piece where they lie together."""
        footer = self._footer
        n_rows = int(self.starts[k + 1] - self.starts[k])
        place, height = footer.place[k], footer.height[k]
        size = np.where(height == CODES, 2 * n_rows, 8 * height * -(-n_rows // 64))
        first, end = int(place.min()), int((place + size).max())
        together = end - first <= 2 * int(size.sum())
        whole = self._read(first, end - first) if together else None
        found: list[NDArray[Any]] = []
        for at, length, planes in zip(place.tolist(), size.tolist(), height.tolist(), strict=True):
            raw = self._read(at, length) if whole is None else whole[at - first :][:length]
            if planes == CODES:
                found.append(raw.view(np.uint16))
            else:
                found.append(raw.view(np.uint64).reshape(planes, -1))
        return found

    def _read(self, place: int, length: int) -> NDArray[np.uint8]:
        out = np.empty(length, np.uint8)
        with self._lock:
            self._file.seek(place)
            n_read = self._file.readinto(out.data)
        if n_read != length:
            raise FileFormatError(f"'{self.path}' has become shorter: {REMEDY}")
        return out


def block_rows(n_variables: int) -> int:
    """Return the rows of a block: the fewer the more columns, in whole vectors.

    Examples
    --------
    >>> block_rows(100), block_rows(1000), block_rows(100_000)
    (65536, 16384, 512)
    """
    wanted = BLOCK_CELLS // max(1, n_variables) // _UNIT * _UNIT
    return int(min(CHUNK_ROWS, max(_UNIT, wanted)))


def block_starts(n_rows: int, rows: int) -> NDArray[np.int64]:
    """Return the first row of every block of `rows` rows, and the number of rows at the end."""
    return np.append(np.arange(0, n_rows, rows, dtype=np.int64), n_rows)


def write_footer(file: BinaryIO, columns: list[PackedColumn], told: Told) -> None:
    """Close a file whose chunks have been spooled."""
    n_blocks = len(columns[0].chunks)
    chunks = np.array([[*column.chunks] for column in columns], np.int64)
    chunks = chunks.reshape(len(columns), n_blocks, len(Spooled._fields))
    place, height, missing = (np.ascontiguousarray(chunks[:, :, f].T) for f in range(3))
    recode = [np.ascontiguousarray(column.recode, np.uint16) for column in columns]
    head = json.dumps(
        {
            **told._asdict(),
            "schema": told.schema.to_json(),
            "n_rows": columns[0].n_rows,
            "recode": [len(codes) for codes in recode],
            "blocks": n_blocks,
        }
    ).encode()
    body = io.BytesIO()
    body.write(struct.pack("<Q", len(head)) + head)
    arrays: list[NDArray[Any]] = [place, height, missing, *recode]
    for array in arrays:
        body.write(array.tobytes())
    at = file.tell()
    file.write(body.getbuffer())
    checksum = zlib.crc32(body.getbuffer())
    file.write(_TRAILER.pack(at, body.tell(), checksum, MAGIC))


def _read_footer(file: BinaryIO, path: Path) -> Footer:
    size = file.seek(0, io.SEEK_END)
    if size < len(MAGIC) + _TRAILER.size:
        raise FileFormatError(f"'{path}' is no store of bit planes, or truncated: {REMEDY}")
    file.seek(size - _TRAILER.size)
    at, length, checksum, magic = _TRAILER.unpack(file.read(_TRAILER.size))
    if magic != MAGIC or at + length + _TRAILER.size != size:
        raise FileFormatError(f"'{path}' is no store of bit planes, or truncated: {REMEDY}")
    file.seek(at)
    body = file.read(length)
    if zlib.crc32(body) != checksum:
        raise FileFormatError(f"'{path}' is damaged, its checksum does not match: {REMEDY}")
    (n_head,) = struct.unpack_from("<Q", body)
    head = json.loads(body[8 : 8 + n_head])
    schema = Schema.from_json(head["schema"])
    n, n_blocks, position = len(schema), int(head["blocks"]), 8 + n_head
    arrays = []
    for _ in range(3):
        array = np.frombuffer(body, np.int64, n * n_blocks, position).reshape(n_blocks, n)
        arrays.append(array)
        position += array.nbytes
    recode = []
    for count in head["recode"]:
        recode.append(np.frombuffer(body, np.uint16, count, position).copy())
        position += 2 * count
    told = Told(schema, int(head["rows"]), head["source"], head["notes"])
    place, height, missing = arrays
    return Footer(told, int(head["n_rows"]), place, height, missing, recode)


def _sizes(footer: Footer) -> NDArray[np.int64]:
    """Return the bytes of every chunk."""
    n_rows = np.diff(block_starts(footer.n_rows, footer.told.rows))[:, None]
    planes = 8 * footer.height * -(-n_rows // 64)
    return np.where(footer.height == CODES, 2 * n_rows, planes)
