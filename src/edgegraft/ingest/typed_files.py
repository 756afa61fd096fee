"""Files of typed columns: Parquet, Feather and Arrow IPC in batches; spreadsheets and SPSS files.

The last two go through the libraries that read them (the extra ``files``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from edgegraft.errors import DataError, import_extra
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.sources import Source, TableSource, check_names, explained

#: The types, the rows if they are known, and the reader of some columns.
Opened = tuple[pa.Schema, int | None, Callable[[list[str]], Iterator[pa.RecordBatch]]]


class ArrowSource(Source):
    """A file of typed columns; `open_file` is :func:`parquet_file` or :func:`ipc_file`."""

    def __init__(
        self,
        path: Path,
        options: ReadOptions,
        open_file: Callable[[Path, ReadOptions], AbstractContextManager[Opened]],
    ) -> None:
        self.where = f"'{path}'"
        self._open = partial(open_file, path, options)
        self._batch_rows = options.batch_rows
        self._n_read = 0
        with self._open() as (self.fields, self._n_rows, _):
            self.names = list(self.fields.names)
        check_names(self.names, self.where)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the given columns."""
        self._n_read = 0
        with self._open() as (_, _, read):
            for batch in read(list(columns)):
                chosen = batch.select(list(columns))
                self._n_read += chosen.num_rows
                for first in range(0, chosen.num_rows, self._batch_rows):
                    part = chosen.slice(first, self._batch_rows)
                    # Offsets, indices and text of a damaged file would crash the process.
                    part.validate(full=True)
                    yield part

    @property
    def share(self) -> float | None:
        """Share of the rows that has been read."""
        return self._n_read / self._n_rows if self._n_rows else None


@contextmanager
def parquet_file(path: Path, options: ReadOptions) -> Iterator[Opened]:
    """Open a Parquet file."""
    # Buffered pages, because a row group can be as large as the file.
    with (
        explained(path, "Parquet"),
        pq.ParquetFile(path, buffer_size=1 << 16, pre_buffer=False) as file,
    ):

        def read(columns: list[str]) -> Iterator[pa.RecordBatch]:
            yield from file.iter_batches(
                options.batch_rows, columns=columns, use_threads=options.use_threads
            )

        yield file.schema_arrow, file.metadata.num_rows, read


@contextmanager
def ipc_file(path: Path, options: ReadOptions) -> Iterator[Opened]:
    """Open an Arrow IPC file (Feather is one), or an IPC stream kept in a file."""
    with path.open("rb") as start:
        random_access = start.read(6) == b"ARROW1"
    with explained(path, "Arrow IPC"), pa.memory_map(str(path)) as file:
        reader = pa.ipc.open_file(file) if random_access else pa.ipc.open_stream(file)
        whole = map(reader.get_batch, range(reader.num_record_batches)) if random_access else reader
        yield reader.schema, None, lambda columns: iter(whole)


def read_sheet(path: Path, options: ReadOptions) -> TableSource:
    """Return the source of an ``.xlsx`` file (its first sheet) or of an SPSS ``.sav`` file."""
    suffix = path.suffix.lower()
    with explained(path, suffix):
        columns = _read_xlsx(path) if suffix == ".xlsx" else _read_sav(path)
    table = pa.table(columns)
    source = TableSource(list(columns), table.select, options.batch_rows)
    source.where, source.fields = f"'{path}'", table.schema
    return source


def _read_xlsx(path: Path) -> dict[str, Any]:
    openpyxl = import_extra("openpyxl", "files", "reading .xlsx")
    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        grid = np.array(list(book.worksheets[0].iter_rows(values_only=True)), object)
    finally:
        book.close()
    blank = np.vectorize(lambda cell: cell is None or cell == "", otypes=[bool])
    grid = grid[~blank(grid).all(axis=1)] if grid.size else grid
    if not grid.size:
        raise DataError(f"the first sheet of '{path}' is empty")
    columns = [k for k in range(grid.shape[1]) if not blank(grid[:, k]).all()]
    names = [str("" if grid[0, k] is None else grid[0, k]).strip() for k in columns]
    names = [name or f"column_{k + 1}" for name, k in zip(names, columns, strict=True)]
    check_names(names, f"the header of '{path}'")
    return {
        name: _typed([None if cell == "" else cell for cell in grid[1:, k]])
        for name, k in zip(names, columns, strict=True)
    }


def _typed(cells: list[Any]) -> Any:
    """Return cells as one type: numbers, booleans or dates if all are, otherwise text."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds and kinds <= {int, float}:
        return _numbers(np.array([np.nan if cell is None else cell for cell in cells], np.float64))
    if len(kinds) > 1:
        cells = [None if cell is None else str(cell) for cell in cells]
    return pa.array(cells)


def _numbers(values: Any) -> Any:
    """Return numbers as integers if all are whole; NaN is missing."""
    gaps = np.isnan(values)
    if (gaps | (values == np.round(values))).all() and (np.abs(values[~gaps]) < 2**53).all():
        values = np.where(gaps, 0, values).astype(np.int64)
    return pa.array(values, mask=gaps)


def _read_sav(path: Path) -> dict[str, Any]:
    pyreadstat = import_extra("pyreadstat", "files", "reading .sav")
    # What the author declared missing comes as it is, with the ranges that say so.
    cells, about = pyreadstat.read_sav(str(path), output_format="dict", user_missing=True)
    columns = {}
    for name, values in cells.items():
        gaps, labels = about.missing_ranges.get(name, ()), about.variable_value_labels.get(name, {})
        known = [None if _within(value, gaps) else value for value in list(values)]
        labels = {value: text for value, text in labels.items() if not _within(value, gaps)}
        columns[name] = _labelled(known, labels, about.variable_measure.get(name) == "ordinal")
    return columns


def _within(value: Any, gaps: Sequence[Mapping[str, Any]]) -> bool:
    return value is not None and any(gap["lo"] <= value <= gap["hi"] for gap in gaps)


def _labelled(values: Any, labels: Mapping[Any, str], ordered: bool) -> Any:
    """Return a column under its value labels, in the order of the values, if all have one."""
    cells = np.asarray(values, object).tolist()
    if not all(cell is None or isinstance(cell, int | float) for cell in cells):
        return pa.array([cell if cell != "" else None for cell in cells])
    array = np.array([np.nan if cell is None else cell for cell in cells], np.float64)
    gaps = np.isnan(array)
    known = sorted(labels)
    texts = [labels[value] for value in known]
    if not set(array[~gaps].tolist()) <= set(known) or len(set(texts)) < len(texts):
        return _numbers(array)
    codes = np.searchsorted(np.array(known, np.float64), np.where(gaps, 0.0, array))
    indices = pa.array(codes.astype(np.int32), mask=gaps)
    return pa.DictionaryArray.from_arrays(indices, pa.array(texts), ordered=ordered)
