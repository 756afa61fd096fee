"""A table of categorical columns in memory: codes, and bit planes when counts ask for them.

A code is the number of a state; a missing cell holds the number of states. Codes take a byte each,
or two if some variable has more than 255 states. Bit planes are made from them once: a variable
with ``s`` states and no missing cell has ``s - 1`` planes (its last state follows from the
margins); with missing cells it has ``s``, and a missing cell sets no bit, so counts over the rows
in which both cells of a pair are known come for free.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.core.checks import check_codes
from edgegraft.core.container import ContainerFormat, ContainerReader, write_container
from edgegraft.errors import DataError
from edgegraft.kernels.conditionals.lanes import LANES as ROW_LANES
from edgegraft.kernels.counting import LANES, Planes, pack_columns
from edgegraft.table.schema import Schema

Cells = NDArray[np.unsignedinteger[Any]]

MAX_PLANES = 64  # states above which a variable has no planes: they would be larger than its codes

FORMAT = ContainerFormat(
    "edgegraft-table",
    1,
    "packed table",
    "save one with table.save",
    "pack the data again",
    checksum="crc32",
)


class PackedTable:
    """An immutable table of categorical columns, in memory or memory-mapped.

    Made by :func:`edgegraft.ingest.pack`, :meth:`from_codes` or :meth:`open`.

    Parameters
    ----------
    schema : Schema
        Names and categories of the variables.
    cells : array of uint8 or uint16, shape (n, n_rows or more)
        Codes by variable; what follows the last row is not read. The array is taken over.
    n_rows : int

    Attributes
    ----------
    schema, cells, n_rows, n_variables
    n_missing : array of int, shape (n,)
        Missing cells of each variable.

    Examples
    --------
    >>> import numpy as np
    >>> from edgegraft.table import PackedTable
    >>> table = PackedTable.from_codes([[0, 2], [1, 1], [1, -1]])
    >>> table
    PackedTable(3 rows x 2 variables, 5 states, 1 missing cell, ...)
    >>> table.codes()
    array([[ 0,  2],
           [ 1,  1],
           [ 1, -1]], dtype=int32)
    """

    def __init__(self, schema: Schema, cells: Cells, n_rows: int) -> None:
        self.schema = schema
        self.cells = cells
        self.n_rows, self.n_variables = n_rows, len(schema)
        self.n_missing = np.zeros(len(schema), np.int64)
        for i in np.flatnonzero(cells[:, :n_rows].max(axis=1) == schema.n_states):
            self.n_missing[i] = np.count_nonzero(cells[i, :n_rows] == schema.n_states[i])
        # Kernels are compiled for read-only arrays: one version for memory and mapped files.
        for array in (self.cells, self.n_missing):
            array.flags.writeable = False
        self._planes: Planes | None = None
        self._lock = Lock()

    @classmethod
    def from_codes(cls, codes: ArrayLike, schema: Schema | None = None) -> PackedTable:
        """Pack an array of codes, shape (n_rows, n), that count from 0, with -1 for a missing cell.

        The categories of `schema` are the codes' meaning. Without one every variable gets the
        states 0 to its largest code, and the names ``x0``, ``x1`` and so on.
        """
        given = np.asarray(codes)
        if given.ndim != 2 or not given.size:
            raise DataError(f"codes have shape {given.shape}: expected rows and columns to count")
        if schema is None:
            whole = given.dtype.kind in "iub"  # others are refused below
            largest = given.max(axis=0, initial=0) if whole else np.zeros(given.shape[1])
            schema = Schema.from_states(largest.astype(np.int64) + 1)
        check_codes(given, schema.names, schema.n_states)
        n_rows = len(given)
        cells = empty_cells(schema, n_rows)
        for i, column in enumerate(given.T):
            cells[i, :n_rows] = column
            cells[i, :n_rows][column < 0] = schema.n_states[i]
        return cls(schema, cells, n_rows)

    @classmethod
    def from_columns(cls, schema: Schema, columns: Iterable[Cells], n_rows: int) -> PackedTable:
        """Assemble columns of codes, in which a missing cell holds the number of states."""
        cells = empty_cells(schema, n_rows)
        for i, column in enumerate(columns):
            if len(column) != n_rows:
                raise DataError(
                    f"column '{schema.names[i]}' has {len(column)} rows where the table has "
                    f"{n_rows}"
                )
            cells[i, :n_rows] = column
        return cls(schema, cells, n_rows)

    @classmethod
    def open(cls, path: str | PathLike[str]) -> PackedTable:
        """Map a file that :meth:`save` wrote, after verifying its checksum."""
        with ContainerReader(path, FORMAT) as reader:
            schema = reader.field("schema", Schema.from_json)
            n_rows = reader.field("n_rows", int)
            cells = reader.map("cells")
            shape, dtype = _room(schema, n_rows)
            if n_rows < 1 or cells.shape != shape:
                raise reader.damaged("the table does not fit its schema")
            if cells.dtype != dtype or (cells > schema.n_states[:, None]).any():
                raise reader.damaged("a code is not one of its column's states")
        return cls(schema, cells, n_rows)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the table to a file for :meth:`open`; complete or not at all."""
        content = {"schema": self.schema.to_json(), "n_rows": self.n_rows}
        write_container(path, FORMAT, content, {"cells": self.cells})

    @property
    def nbytes(self) -> int:
        """Bytes of the codes, and of the planes if they have been asked for."""
        return int(self.cells.nbytes + (0 if self._planes is None else self._planes.words.nbytes))

    @property
    def planes(self) -> Planes:
        """What the popcount kernels read; built when first asked for, by one thread."""
        if self._planes is None:
            with self._lock:
                if self._planes is None:
                    self._planes = self._build_planes()
        return self._planes

    def codes(self, columns: Iterable[int | str] | None = None) -> NDArray[np.int32]:
        """Return the codes of `columns` (all by default), -1 for a missing cell."""
        chosen = range(self.n_variables) if columns is None else list(columns)
        out = np.empty((self.n_rows, len(chosen)), np.int32, order="F")
        for k, column in enumerate(chosen):
            i = self.schema.index(column) if isinstance(column, str) else int(column)
            out[:, k] = self.cells[i, : self.n_rows]
            if self.n_missing[i]:
                out[:, k][out[:, k] == self.schema.n_states[i]] = -1
        return out

    def with_schema(self, schema: Schema) -> PackedTable:
        """Return the same codes under a schema of as many states; nothing is copied."""
        if not np.array_equal(schema.n_states, self.schema.n_states):
            raise DataError("the other schema has other numbers of states")
        return PackedTable(schema, self.cells, self.n_rows)

    def take(self, rows: ArrayLike) -> PackedTable:
        """Return the given rows, by number or as a mask, as a table of their own.

        Examples
        --------
        >>> PackedTable.from_codes([[0], [1], [-1]]).take([2, 1]).codes().ravel()
        array([-1,  1], dtype=int32)
        """
        chosen = np.asarray(rows)
        if chosen.dtype == bool:
            chosen = np.flatnonzero(chosen)
        cells = empty_cells(self.schema, len(chosen))
        np.take(self.cells[:, : self.n_rows], chosen, axis=1, out=cells[:, : len(chosen)])
        return PackedTable(self.schema, cells, len(chosen))

    def _build_planes(self) -> Planes:
        states, complete = self.schema.n_states, self.n_missing == 0
        counts = np.where(states > MAX_PLANES, 0, states - complete)
        start = np.concatenate(([0], np.cumsum(counts)))
        shape = int(start[-1]), -(-self.n_rows // (64 * LANES)) * LANES
        room = np.zeros(shape[0] * shape[1] + LANES, np.uint64)
        shift = -room.ctypes.data % (8 * LANES) // 8  # to where a vector lies in one cache line
        words = room[shift : shift + shape[0] * shape[1]].reshape(shape)
        pack_columns(self.cells, self.n_rows, start, words)
        for array in (words, start, complete):
            array.flags.writeable = False
        return Planes(words, start, states, complete)

    def __reduce__(self) -> tuple[Any, ...]:
        return PackedTable, (self.schema, self.cells, self.n_rows)

    def __repr__(self) -> str:
        missing = int(self.n_missing.sum())
        return (
            f"PackedTable({self.n_rows:,} rows x {self.n_variables:,} variables, "
            f"{int(self.schema.n_states.sum()):,} states, {missing:,} missing "
            f"{'cell' if missing == 1 else 'cells'}, {self.nbytes:,} bytes)"
        )


def empty_cells(schema: Schema, n_rows: int) -> Cells:
    """Return room for the codes of a table, padded with zeros to whole vectors of rows."""
    cells = np.empty(*_room(schema, n_rows))
    cells[:, n_rows:] = 0
    return cells


def _room(schema: Schema, n_rows: int) -> tuple[tuple[int, int], Any]:
    """Return shape and type of the codes of a table."""
    largest = schema.n_states.max(initial=1)
    dtype = np.uint8 if largest <= np.iinfo(np.uint8).max else np.uint16
    return (len(schema), -(-n_rows // ROW_LANES) * ROW_LANES), dtype
