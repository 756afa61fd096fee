"""Tables in files, read in batches: CSV and TSV, Parquet, Feather and Arrow IPC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from edgegraft.errors import Argument, DataError, FileFormatError
from edgegraft.ingest.csv_source import CsvSource, foreign_content
from edgegraft.ingest.many_files import FilesSource, find_files
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.sources import Source, check_names

__all__ = ["KNOWN", "IpcSource", "ParquetSource", "open_file", "open_path"]

_TEXT = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": None}
_PARQUET = (".parquet", ".pq")
_IPC = (".feather", ".arrow", ".ipc", ".arrows")
KNOWN = (".csv", ".tsv", ".tab", *_PARQUET, *_IPC)  # in a folder, where .txt is seldom a table


def open_path(path: Path, options: ReadOptions) -> Source:
    """Return the source for a file, a folder of files or a pattern."""
    files = find_files(path, KNOWN)
    if files == [path]:
        return open_file(path, options)
    return FilesSource(files, open_file, options)


def open_file(path: Path, options: ReadOptions) -> Source:
    """Return the source for a file, chosen by its extension."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file '{path}'")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    gzipped = suffixes[-1:] == [".gz"]
    suffix = next(iter(suffixes[-2:-1] if gzipped else suffixes[-1:]), "")
    if suffix in _TEXT:
        delimiter = options.delimiter or _TEXT[suffix]
        if delimiter is None:
            raise DataError(
                f"'{path}': say what separates the columns of a {suffix} with ",
                Argument("delimiter"),
            )
        source = CsvSource(path, delimiter, gzipped, options)
        if options.delimiter is None:
            _doubt_delimiter(path, source.names, delimiter)
        return source
    if suffix in _PARQUET and not gzipped:
        return ParquetSource(path, options)
    if suffix in _IPC and not gzipped:
        return IpcSource(path, options)
    if options.delimiter is not None:
        return CsvSource(path, options.delimiter, gzipped, options)
    content = foreign_content(path, utf8=True)
    raise DataError(
        f"'{path}' has the unknown extension '{''.join(suffixes[-2:])}'",
        *([" and is ", *content] if content else []),
        "; known are .csv, .tsv and these with .gz, any other text with ",
        Argument("delimiter"),
        "; .parquet, .pq; .feather, .arrow, .ipc, .arrows",
    )


@contextmanager
def _explained(path: Path, format_name: str) -> Iterator[None]:
    """Turn a reader's errors into one that names the file."""
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        raise FileFormatError(
            f"'{path}' cannot be read as {format_name}: {_first_line(error)}; the file is "
            "truncated, damaged or of another format"
        ) from error


def _validated(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Check offsets, indices and text: those of a damaged file would crash the process."""
    batch.validate(full=True)
    return batch


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0].rstrip(".")


class ParquetSource(Source):
    """A Parquet file."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self._path = path
        self.where = f"'{path}'"
        self._options = options
        self._n_read = 0
        with _explained(path, "Parquet"):
            # Buffered pages, because a row group can be as large as the file.
            self._file = pq.ParquetFile(path, buffer_size=1 << 16, pre_buffer=False)
            self.fields = self._file.schema_arrow
            self.names = list(self.fields.names)
        check_names(self.names, self.where)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the given columns."""
        self._n_read = 0
        with _explained(self._path, "Parquet"):
            for batch in self._file.iter_batches(
                batch_size=self._options.batch_rows,
                columns=list(columns),
                use_threads=self._options.use_threads,
            ):
                self._n_read += batch.num_rows
                yield _validated(batch.select(list(columns)))

    @property
    def share(self) -> float | None:
        """Share of the rows that has been read."""
        n_rows = self._file.metadata.num_rows
        return self._n_read / n_rows if n_rows else None

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class IpcSource(Source):
    """An Arrow IPC file (Feather is one), or an IPC stream kept in a file."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self._path = path
        self.where = f"'{path}'"
        self._batch_rows = options.batch_rows
        with path.open("rb") as file:
            self._random_access = file.read(6) == b"ARROW1"
        with _explained(path, "Arrow IPC"), pa.memory_map(str(path)) as file:
            self.fields = self._open(file).schema
            self.names = list(self.fields.names)
        check_names(self.names, self.where)

    def _open(self, file: pa.NativeFile) -> pa.RecordBatchFileReader | pa.RecordBatchStreamReader:
        return pa.ipc.open_file(file) if self._random_access else pa.ipc.open_stream(file)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the given columns."""
        with _explained(self._path, "Arrow IPC"), pa.memory_map(str(self._path)) as file:
            reader = self._open(file)
            stored = (
                (reader.get_batch(k) for k in range(reader.num_record_batches))
                if self._random_access
                else iter(reader)
            )
            for batch in stored:
                chosen = batch.select(list(columns))
                for first in range(0, chosen.num_rows, self._batch_rows):
                    yield _validated(chosen.slice(first, self._batch_rows))


def _doubt_delimiter(path: Path, names: list[str], delimiter: str) -> None:
    """Refuse one column whose name looks like several: spreadsheets often write semicolons."""
    if len(names) != 1:
        return
    for other in (";", "\t", "|", ","):
        if other != delimiter and other in names[0]:
            raise FileFormatError(
                f"'{path}' seems to have one column, called {names[0]!r}: if its columns are "
                f"separated by {other!r}, say ",
                Argument("delimiter", other),
                "; if not, ",
                Argument("delimiter", delimiter),
            )
