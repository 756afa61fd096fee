"""Files of typed columns, read in batches: Parquet, Feather and Arrow IPC."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.sources import Source, check_names, explained

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
