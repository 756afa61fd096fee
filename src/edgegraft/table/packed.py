"""The table as the counting kernels want it: bit planes, and codes for variables of many states.

A variable with ``s`` states and no missing cell has ``s - 1`` planes (its last state follows
from the margins); with missing cells it has ``s``, and a missing cell sets no bit, so counts
over the rows in which both cells of a pair are known come for free.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.errors import DataError, FileFormatError
from edgegraft.kernels.counting.bitplanes import unpack_codes
from edgegraft.kernels.counting.popcount import Planes
from edgegraft.table import packfile
from edgegraft.table.builder import (
    MISSING,
    ColumnBuilder,
    PackedColumn,
    n_planes,
    needs_codes,
    words_a_plane,
)
from edgegraft.table.schema import Schema


@dataclass(frozen=True, eq=False)
class PackedTable:
    """An immutable table of categorical columns, in memory or memory-mapped.

    Made by :func:`edgegraft.ingest.pack`, :meth:`from_codes` or :meth:`open`.

    Attributes
    ----------
    schema : Schema
        Names and categories of the variables.
    n_rows : int
    n_missing : array of int, shape (n,)
        Missing cells of each variable.
    planes : Planes
        What the popcount kernels read.
    codes_of : array of uint16, shape (coded variables, n_rows)
        Codes of the variables of many states; a missing cell holds the number of states.
    code_row : array of int, shape (n,)
        Row of a variable in `codes_of`, -1 where it has planes alone.

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

    schema: Schema
    n_rows: int
    n_missing: NDArray[np.int64]
    planes: Planes
    codes_of: NDArray[np.uint16]
    code_row: NDArray[np.int64]

    @classmethod
    def from_columns(
        cls, schema: Schema, columns: Sequence[PackedColumn], n_rows: int
    ) -> PackedTable:
        """Assemble finished columns; each is released as soon as it is written."""
        complete = np.array([column.complete for column in columns], bool)
        n_missing = np.array([column.n_missing for column in columns], np.int64)
        start, code_row = _arrange(schema.n_states, complete)
        words = np.zeros((int(start[-1]), words_a_plane(n_rows)), np.uint64)
        codes = np.empty((int(code_row.max(initial=-1)) + 1, n_rows), np.uint16)
        for i, column in enumerate(columns):
            if column.n_rows != n_rows:
                raise DataError(
                    f"column '{schema.names[i]}' has {column.n_rows} rows where the table "
                    f"has {n_rows}"
                )
            row = int(code_row[i])
            column.write(words[start[i] : start[i + 1]], codes[row] if row >= 0 else None)
        return cls._build(schema, n_rows, n_missing, words, codes)

    @classmethod
    def from_codes(cls, codes: ArrayLike, schema: Schema | None = None) -> PackedTable:
        """Pack an integer array of codes that count from 0, with -1 for a missing cell.

        Parameters
        ----------
        codes : array of int, shape (n_rows, n)
        schema : Schema, optional
            Its categories are the codes' meaning. Without one every variable gets the states
            0 to its largest code, and the names ``x0``, ``x1`` and so on.
        """
        cells = np.asarray(codes)
        if cells.ndim != 2 or cells.dtype.kind not in "iub":
            raise DataError(
                "codes must be a two-dimensional array of integers, found "
                f"{cells.ndim} dimension(s) of {cells.dtype}"
            )
        n_rows, n = cells.shape
        if n_rows == 0 or n == 0:
            raise DataError(f"codes have {n_rows} rows and {n} columns: nothing to count")
        largest = cells.max(axis=0).astype(np.int64)
        smallest = cells.min(axis=0).astype(np.int64)
        if schema is None:
            schema = Schema.from_states(np.maximum(largest, 0) + 1)
        _check_codes(schema, smallest, largest)
        columns = []
        for i in range(n):
            builder = ColumnBuilder()
            column = cells[:, i]
            builder.append(
                np.where(column < 0, MISSING, column).astype(np.uint16)
                if smallest[i] < 0
                else column.astype(np.uint16)
            )
            columns.append(builder.finish(None, int(schema.n_states[i])))
        return cls.from_columns(schema, columns, n_rows)

    @classmethod
    def from_planes(
        cls,
        schema: Schema,
        n_rows: int,
        words: NDArray[np.uint64],
        codes: NDArray[np.uint16],
        complete: NDArray[np.bool_],
    ) -> PackedTable:
        """Assemble planes that were cut from a longer table; the arrays are taken over.

        `complete` says which variables lack a plane for their last state. A variable that has
        missing cells elsewhere, but none in these rows, loses that plane.
        """
        start, code_row = _arrange(schema.n_states, complete)
        n_missing = np.zeros(len(schema), np.int64)
        kept = np.ones(len(words), bool)
        for i in np.flatnonzero(~complete):
            if start[i] == start[i + 1]:
                n_missing[i] = (codes[code_row[i]] == schema.n_states[i]).sum()
                continue
            known = int(np.bitwise_count(words[start[i] : start[i + 1]]).sum(dtype=np.int64))
            n_missing[i] = n_rows - known
            kept[start[i + 1] - 1] = n_missing[i] > 0
        return cls._build(schema, n_rows, n_missing, words if kept.all() else words[kept], codes)

    @classmethod
    def open(cls, path: str | PathLike[str]) -> PackedTable:
        """Map a file that :meth:`save` wrote; nothing is read until it is counted."""
        stored = packfile.read(path)
        try:
            schema = Schema.from_json(stored.schema)
            _check_stored(stored, schema)
        except FileFormatError as error:
            raise FileFormatError(f"'{path}': {error}; {packfile.REMEDY}") from error
        return cls._build(schema, stored.n_rows, stored.n_missing, stored.words, stored.codes)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the table to a file for :meth:`open`; complete or not at all."""
        packfile.write(
            path,
            packfile.Stored(
                schema=self.schema.to_json(),
                n_rows=self.n_rows,
                n_missing=self.n_missing,
                words=self.planes.words,
                codes=self.codes_of,
            ),
        )

    @classmethod
    def _build(
        cls,
        schema: Schema,
        n_rows: int,
        n_missing: NDArray[np.int64],
        words: NDArray[np.uint64],
        codes: NDArray[np.uint16],
    ) -> PackedTable:
        complete = n_missing == 0
        start, code_row = _arrange(schema.n_states, complete)
        # Kernels are compiled for read-only arrays: one version for memory and mapped files.
        for array in (words, codes, start, code_row, complete, n_missing):
            array.flags.writeable = False
        planes = Planes(words, start, schema.n_states, complete)
        return cls(schema, n_rows, n_missing, planes, codes, code_row)

    @property
    def n_variables(self) -> int:
        """Number of columns."""
        return len(self.schema)

    @property
    def nbytes(self) -> int:
        """Bytes of the planes and codes."""
        return int(self.planes.words.nbytes + self.codes_of.nbytes)

    def codes(self, columns: Iterable[int | str] | None = None) -> NDArray[np.int32]:
        """Return the codes of `columns` (all by default), -1 for a missing cell."""
        chosen = range(self.n_variables) if columns is None else list(columns)
        out = np.empty((self.n_rows, len(chosen)), np.int32, order="F")
        for k, column in enumerate(chosen):
            i = self.schema.index(column) if isinstance(column, str) else int(column)
            self._decode(i, out[:, k])
        return out

    def _decode(self, i: int, out: NDArray[np.int32]) -> None:
        states = int(self.schema.n_states[i])
        if self.code_row[i] >= 0:
            out[:] = self.codes_of[self.code_row[i]]
            out[out == states] = -1
        else:
            own = self.planes.words[self.planes.start[i] : self.planes.start[i + 1]]
            unpack_codes(own, 0, self.n_rows, states - 1 if self.n_missing[i] == 0 else -1, out)

    def __repr__(self) -> str:
        missing = int(self.n_missing.sum())
        return (
            f"PackedTable({self.n_rows:,} rows x {self.n_variables:,} variables, "
            f"{int(self.schema.n_states.sum()):,} states, {missing:,} missing "
            f"{'cell' if missing == 1 else 'cells'}, {self.nbytes:,} bytes)"
        )


def _arrange(
    n_states: NDArray[np.int64], complete: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each variable's planes start and which row of the codes it has."""
    counts = [n_planes(int(s), bool(c)) for s, c in zip(n_states, complete, strict=True)]
    coded = np.array([needs_codes(int(s)) for s in n_states], bool)
    start = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    return start, np.where(coded, np.cumsum(coded) - 1, -1).astype(np.int64)


def _check_stored(stored: packfile.Stored, schema: Schema) -> None:
    """Refuse a file whose arrays do not fit its own schema."""
    missing = stored.n_missing
    if missing.shape != (len(schema),) or (missing < 0).any() or (missing > stored.n_rows).any():
        raise FileFormatError("the missing cells stated do not fit the schema")
    start, code_row = _arrange(schema.n_states, missing == 0)
    words = (int(start[-1]), words_a_plane(stored.n_rows))
    codes = (int(code_row.max(initial=-1)) + 1, stored.n_rows)
    if stored.words.shape != words or stored.codes.shape != codes:
        raise FileFormatError("the arrays do not fit the schema")


def _check_codes(schema: Schema, smallest: NDArray[np.int64], largest: NDArray[np.int64]) -> None:
    if len(schema) != len(largest):
        raise DataError(f"codes have {len(largest)} columns where the schema has {len(schema)}")
    bad = (largest >= schema.n_states) | (smallest < -1)
    if bad.any():
        i = int(np.argmax(bad))
        found = int(largest[i]) if largest[i] >= schema.n_states[i] else int(smallest[i])
        raise DataError(
            f"column '{schema.names[i]}' holds the code {found}: its codes are 0 to "
            f"{int(schema.n_states[i]) - 1}, and -1 for a missing cell"
        )
