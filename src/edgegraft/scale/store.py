"""Rows on disk, in blocks: tables that need not fit in memory.

A store is a container (:mod:`edgegraft.core.container`) with one array per block of rows, under a
checksum of its own that is verified when an open store first reads the block. A block holds its
columns one after another, under provisional codes, as they came: a byte each, or two if there are
more than 255 of them. The header, written last, has the schema and the final code of every
provisional one; a block is put under final codes when it is read. Nothing is mapped: memory is that
of the blocks in use. Columns that had to be read twice stand in blocks of their own.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from edgegraft.core.container import ContainerFormat, ContainerReader, ContainerWriter
from edgegraft.errors import Argument, MemoryBudgetError
from edgegraft.ingest.columns import (
    BYTE,
    BytesOrCodes,
    ClosedColumn,
    Codes,
    OpenColumn,
    final_codes,
)
from edgegraft.ingest.encoder import Reading
from edgegraft.ingest.findings import Findings
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.sources import Source
from edgegraft.kernels.counting import LANES
from edgegraft.table.blocks import RowStore
from edgegraft.table.packed import Cells, PackedTable, empty_cells
from edgegraft.table.schema import MISSING, Schema

_SKIPPED = -1  # the place of a column that stands in a later part


@dataclass(frozen=True)
class _Block:
    """The size of a block."""

    cells: int = 1 << 24  # 16 MB of codes, and what is derived from them, per thread
    unit: int = 64 * LANES  # rows of a whole vector of a plane
    rows: int = 1 << 16  # of tables of few columns


FORMAT = ContainerFormat(
    "edgegraft-store",
    2,
    "store of rows",
    "delete it, and it is made again",
    "delete it, and it is made again",
    checksum="crc32",
)


class StoreWriter:
    """A store that is written block by block, from front to back, to an empty binary file.

    A block has `rows` rows; a store of more than `max_bytes` is refused.
    """

    def __init__(self, file: BinaryIO, rows: int, max_bytes: int | None = None) -> None:
        self.rows = rows
        self._max_bytes = max_bytes
        self._container = ContainerWriter(file, FORMAT)
        self._parts: list[list[str]] = []
        self._widths: list[list[list[int]]] = []
        self._n_missing: dict[str, int] = {}

    def begin(self, names: Sequence[str]) -> None:
        """Begin the blocks of some columns, which all have the same rows."""
        self._parts.append(list(names))
        self._widths.append([])
        self._n_missing |= dict.fromkeys(names, 0)

    def add(self, columns: Sequence[BytesOrCodes]) -> None:
        """Append a block of the columns that were begun."""
        widths = self._widths[-1]
        block = np.concatenate([codes.view(np.uint8) for codes in columns])
        if self._max_bytes is not None and self._container.nbytes + block.nbytes > self._max_bytes:
            raise MemoryBudgetError(
                f"the rows of the table take more than the {self._max_bytes:,} bytes allowed for "
                "them on disk: allow more (",
                Argument("cache_size"),
                "), or leave columns out",
            )
        for name, codes in zip(self._parts[-1], columns, strict=True):
            missing = BYTE if codes.itemsize == 1 else MISSING
            self._n_missing[name] += int(np.count_nonzero(codes == missing))
        self._container.add(f"{len(self._parts) - 1}.{len(widths)}", block)
        widths.append([codes.itemsize for codes in columns])

    def finish(
        self, schema: Schema, n_rows: int, recodes: dict[str, Codes], **content: Any
    ) -> None:
        """Write the header, with further JSON values.

        `recodes` has the final code of every provisional one, or `MISSING`, of each column by its
        name in the blocks, in the order of the schema.
        """
        last = {name: p for p, part in enumerate(self._parts) for name in part}
        at = {name: place for place, name in enumerate(recodes)}
        places = [
            [at[name] if last[name] == p else _SKIPPED for name in part]
            for p, part in enumerate(self._parts)
        ]
        for p, widths in enumerate(self._widths):
            self._container.add(f"widths.{p}", np.array(widths, np.uint8))
        n_missing = [self._n_missing[name] for name in recodes]
        self._container.add("n_missing", np.array(n_missing, np.int64))
        self._container.add("recode", np.concatenate(list(recodes.values())))
        self._container.finish(
            {
                "schema": schema.to_json(),
                "n_rows": n_rows,
                "rows": self.rows,
                "parts": places,
                "recode": [len(recode) for recode in recodes.values()],
                **content,
            }
        )


class _StoreReading(Reading):
    """A reading whose blocks go to a store as they come."""

    in_groups = False

    def __init__(
        self, source: Source, options: ReadOptions, findings: Findings, writer: StoreWriter
    ) -> None:
        super().__init__(source, options, findings)
        self._writer = writer

    def begin(self, names: Sequence[str]) -> None:
        """Begin the blocks of some columns."""
        self._writer.begin(names)
        self._n_written = 0

    def receive(
        self, columns: Sequence[OpenColumn | ClosedColumn], n_rows: int, last: bool
    ) -> None:
        """Write the blocks that are full, in the end all."""
        while (waiting := n_rows - self._n_written) >= self._writer.rows or (last and waiting):
            n = min(waiting, self._writer.rows)
            self._writer.add([column.take(n) for column in columns])
            self._n_written += n


def write_store(
    source: Source,
    schema: Schema | None,
    options: ReadOptions,
    findings: Findings,
    writer: StoreWriter,
) -> None:
    """Write the rows of a source to a store."""
    reading = _StoreReading(source, options, findings, writer)
    schema, names = reading.encode(schema)
    recodes = {}
    for name in names:
        column = reading.encoded[name]
        plain = np.arange(column.variable.n_states, dtype=np.uint16)
        recodes[name] = plain if column.recode is None else column.recode
    notes = asdict(findings)
    writer.finish(schema, reading.n_rows, recodes, source=source.where, notes=notes)


class DiskStore(RowStore):
    """A table on disk that is read block by block.

    Without `keep` the file is removed at once, or when it is closed if the system demands that; the
    table can be read as long as this object lives. `starts` has the first row of every block, and
    the number of rows at the end; `n_missing` the missing cells of each variable.
    """

    def __init__(self, path: str | os.PathLike[str], *, keep: bool = True) -> None:
        self.path = Path(path)
        self._keep = keep
        self._file = ContainerReader(path, FORMAT)
        try:
            self._read_header()
        except BaseException:
            self._file.close()
            raise
        if not keep:
            with suppress(OSError):  # Windows: only once it is closed
                self.path.unlink()

    def _read_header(self) -> None:
        field, read = self._file.field, self._file.read
        self.schema = field("schema", Schema.from_json)
        self.n_variables = len(self.schema)
        self.source, self.notes = field("source", str), field("notes", dict)
        self.n_rows, rows = field("n_rows", int), field("rows", int)
        self.n_missing = read("n_missing")
        self._parts = field("parts", lambda parts: [[int(i) for i in part] for part in parts])
        self._widths = [read(f"widths.{p}").tolist() for p in range(len(self._parts))]
        n_blocks = -(-self.n_rows // max(1, rows))
        if rows < 1 or n_blocks < 1 or {len(widths) for widths in self._widths} != {n_blocks}:
            raise self._file.damaged("its blocks do not match its number of rows")
        self.starts = np.append(np.arange(0, self.n_rows, rows, dtype=np.int64), self.n_rows)
        order = sorted(i for part in self._parts for i in part if i != _SKIPPED)
        bounds = field("recode", lambda sizes: np.append(0, np.cumsum([int(n) for n in sizes])))
        recode = read("recode")
        whole = order == list(range(len(self.schema))) and bounds[-1] == len(recode)
        if not whole or self.n_missing.shape != (len(self.schema),):
            raise self._file.damaged("its columns do not match its schema")
        self._recode: list[Codes] = []
        for i, states in enumerate(self.schema.n_states.tolist()):
            own = recode[bounds[i] : bounds[i + 1]]
            if ((own >= states) & (own != MISSING)).any():
                raise self._file.damaged(f"column '{self.schema.names[i]}' has an unknown code")
            self._recode.append(own)

    @property
    def nbytes(self) -> int:
        """Bytes of the blocks."""
        return sum(self._file.nbytes(name) for name in self._file.names)

    def block(self, k: int) -> PackedTable:
        """Return the rows ``starts[k]`` to ``starts[k + 1]``, in memory."""
        return self._assemble(k, k + 1)

    def table(self) -> PackedTable:
        """Return all rows, in memory."""
        return self._assemble(0, len(self.starts) - 1)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        if not self._keep:
            self.path.unlink(missing_ok=True)

    def __repr__(self) -> str:
        return (
            f"DiskStore({self.n_rows:,} rows x {self.n_variables:,} variables in "
            f"{len(self.starts) - 1:,} blocks, {self.nbytes:,} bytes, '{self.path}')"
        )

    def _assemble(self, first: int, end: int) -> PackedTable:
        starts = self.starts - self.starts[first]
        cells = empty_cells(self.schema, int(starts[end]))
        for k in range(first, end):
            for p in range(len(self._parts)):
                self._unpack(p, k, cells[:, starts[k] : starts[k + 1]])
        return PackedTable(self.schema, cells, int(starts[end]))

    def _unpack(self, p: int, k: int, cells: Cells) -> None:
        """Write the columns of one array of the file to the rows of a block."""
        raw, at, n_rows = self._file.read(f"{p}.{k}"), 0, cells.shape[1]
        for i, width in zip(self._parts[p], self._widths[p][k], strict=True):
            codes = raw[at : at + width * n_rows].view(np.uint8 if width == 1 else np.uint16)
            at += width * n_rows
            if len(codes) < n_rows:
                raise self._file.damaged("a block does not fit its columns")
            if i != _SKIPPED:
                cells[i] = final_codes(codes, self._recode[i], self.schema[i].n_states)


def block_rows(n_variables: int) -> int:
    """Return the rows per block: the fewer the more columns, in whole vectors.

    >>> block_rows(100), block_rows(1000), block_rows(100_000)
    (65536, 16384, 512)
    """
    wanted = _Block.cells // max(1, n_variables) // _Block.unit * _Block.unit
    return int(min(_Block.rows, max(_Block.unit, wanted)))
