"""Where batches come from: tables in memory and one-shot streams.

A source can be read again, for some of its columns, because the bins of a numeric column need
the whole of it before its first cell can be encoded.
"""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from edgegraft.core.atomic import Closing, disk_full_named
from edgegraft.errors import (
    DataError,
    DataTypeError,
    FileFormatError,
    MemoryBudgetError,
    MissingExtraError,
    listing,
)
from edgegraft.ingest.cells import Place
from edgegraft.table.arrow import kind_of, plain_type

if TYPE_CHECKING:
    from edgegraft.ingest.findings import Findings
    from edgegraft.ingest.options import ReadOptions
    from edgegraft.table import PackedTable


@dataclass(frozen=True)
class _Pace:
    """How sources are read."""

    report: float = 0.25  # seconds between two reports of a pass
    columns: int = 64  # of an array that are read together: a cache line of bytes


class Source(Closing, ABC):
    """A table that is read in batches, as often as needed."""

    names: list[str]
    fields: pa.Schema  # types of the columns, at least of those that were selected
    where: str = "the table"  # what messages call it
    from_text: bool = False  # whether cells are text whose type is still to be found
    named: bool = True  # whether the columns have names; if not, a schema is matched by position

    def select(self, columns: Sequence[str]) -> None:
        """Learn which columns will be read; the others need not be encodable."""

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the given columns from the first row on, in that order of columns."""

    def read_all(self) -> pa.Table:
        """Return all columns as they are."""
        self.select(self.names)
        return pa.Table.from_batches(self.batches(self.names))

    def groups(self, columns: Sequence[str]) -> Iterator[list[str]]:
        """Yield the columns in groups that are best read one after another; here all at once."""
        yield list(columns)

    def place(self, first_row: int) -> Place:
        """Return what messages call the rows from `first_row` on, which are being read."""
        return lambda k: str(first_row + k)

    def packed(self, options: ReadOptions, findings: Findings) -> PackedTable | None:
        """Return the columns that the options choose, of a source that holds codes."""
        return None

    @property
    def share(self) -> float | None:
        """Share of the data that has been read in this pass; None if that is not known."""
        return None


class TableSource(Source):
    """A table in memory; `convert` returns the Arrow table of the columns that are wanted."""

    def __init__(
        self,
        names: Sequence[str],
        convert: Callable[[list[str]], pa.Table],
        batch_rows: int,
        named: bool = True,
    ) -> None:
        check_names(names)
        self.names = list(names)
        self.named = named
        self._convert = convert
        self._batch_rows = batch_rows
        self._table: pa.Table | None = None

    def select(self, columns: Sequence[str]) -> None:
        """Convert the given columns."""
        self._table = self._convert(list(columns))
        self.fields = self._table.schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the given columns."""
        if self._table is None:
            self.select(columns)
        chosen = cast(pa.Table, self._table).select(list(columns))
        yield from chosen.to_batches(max_chunksize=self._batch_rows)


class ArraySource(Source):
    """A two-dimensional array of numbers or booleans, read some columns at a time."""

    named = False

    def __init__(self, array: NDArray[Any], batch_rows: int) -> None:
        self.names = [f"x{i}" for i in range(array.shape[1])]
        check_names(self.names)
        array = array.astype(array.dtype.newbyteorder("="), copy=False)  # Arrow knows no other
        dtype = pa.from_numpy_dtype(array.dtype)
        self.fields = pa.schema([(name, dtype) for name in self.names])
        self._array = array
        self._position = {name: i for i, name in enumerate(self.names)}
        self._batch_rows = batch_rows

    def groups(self, columns: Sequence[str]) -> Iterator[list[str]]:
        """Yield groups of columns whose cells share cache lines."""
        for first in range(0, len(columns), _Pace.columns):
            yield list(columns[first : first + _Pace.columns])

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the given columns."""
        positions = [self._position[name] for name in columns]
        run = positions == list(range(positions[0], positions[0] + len(positions)))
        chosen = slice(positions[0], positions[-1] + 1) if run else positions
        for first in range(0, len(self._array), self._batch_rows):
            turned = np.ascontiguousarray(self._array[first : first + self._batch_rows, chosen].T)
            yield pa.record_batch([_arrow(each) for each in turned], names=list(columns))


def _arrow(column: NDArray[Any]) -> pa.Array:
    """Return a contiguous column as an Arrow array, NaN as null.

    Not by ``pa.array``, which imports pandas if it is installed.
    """
    known = None
    if column.dtype.kind == "f" and np.isnan(column).any():
        known = pa.py_buffer(np.packbits(~np.isnan(column), bitorder="little"))
    cells = np.packbits(column, bitorder="little") if column.dtype.kind == "b" else column
    dtype = pa.from_numpy_dtype(column.dtype)
    return pa.Array.from_buffers(dtype, len(column), [known, pa.py_buffer(cells)])


class StreamSource(Source):
    """A stream of batches that can be read only once.

    Its numeric columns are copied to a temporary file on the way through, because those are the
    ones that may be asked for again.
    """

    def __init__(self, reader: pa.RecordBatchReader, batch_rows: int) -> None:
        check_names(reader.schema.names)
        self.fields = reader.schema
        self.names = list(reader.schema.names)
        self._reader: pa.RecordBatchReader | None = reader
        self._batch_rows = batch_rows
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._copy = ""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the given columns; from the second time on, numeric ones only."""
        if self._reader is None:
            with pa.memory_map(self._copy) as file:
                kept = pa.ipc.open_file(file)
                for k in range(kept.num_record_batches):
                    yield kept.get_batch(k).select(list(columns))
            return
        reader, self._reader = self._reader, None
        parts = (
            batch.slice(first, self._batch_rows).select(list(columns))
            for batch in reader
            for first in range(0, batch.num_rows, self._batch_rows)
        )
        kinds = {name: kind_of(plain_type(self.fields.field(name).type)) for name in columns}
        numeric = [name for name, kind in kinds.items() if kind is not None and kind.numeric]
        if not numeric:
            yield from parts
            return
        self._folder = tempfile.TemporaryDirectory(prefix="edgegraft-")
        self._copy = f"{self._folder.name}/numeric.arrow"
        fields = pa.schema([self.fields.field(name) for name in numeric])
        # Most numbers are small: compressed, the copy is a fraction of the stream.
        packed = pa.ipc.IpcWriteOptions(compression="lz4")
        with (
            disk_full_named(self._copy),
            pa.OSFile(self._copy, "wb") as file,
            pa.ipc.new_file(file, fields, options=packed) as writer,
        ):
            for part in parts:
                writer.write_batch(part.select(numeric))
                yield part

    def close(self) -> None:
        """Remove the temporary file."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def check_names(names: Sequence[str], where: str = "the table") -> None:
    """Raise unless there are columns and their names are distinct."""
    if not names:
        raise DataError(f"{where} has no columns")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(
            f"{where} has more than one column named {listing(twice)}: rename them so that every "
            "name is distinct"
        )


@contextmanager
def explained(path: Path, format_name: str) -> Iterator[None]:
    """Turn the errors of another library's reader into one that names the file."""
    try:
        yield
    except (DataError, DataTypeError, MemoryBudgetError, MissingExtraError):
        raise
    except Exception as error:
        if isinstance(error, MemoryError) and not isinstance(error, pa.ArrowException):
            raise  # Arrow's is that of a damaged length
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise FileFormatError(
            f"'{path}' cannot be read as {format_name}: {reason}; the file is truncated, damaged "
            "or of another format"
        ) from error


class RowsRead(NamedTuple):
    """A report of a pass."""

    rows: int  # read so far
    seconds: float  # since the pass began
    share: float | None = None  # of the data that has been read; None if their size is not known

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Time to the end of the pass at this rate; None if it is not known."""
        if not self.share:
            return None
        return max(0.0, self.seconds * (1.0 / self.share - 1.0))


OnRows = Callable[[RowsRead], None]


def watched(
    source: Source, columns: Sequence[str], on_rows: OnRows | None
) -> Iterator[pa.RecordBatch]:
    """Read some columns of a source, and report the pass a few times a second."""
    begun, due, rows = perf_counter(), 0.0, 0
    for batch in source.batches(columns):
        yield batch
        rows += batch.num_rows
        seconds = perf_counter() - begun
        if on_rows is not None and seconds >= due:
            due = seconds + _Pace.report
            on_rows(RowsRead(rows, seconds, source.share))
