"""Tables in files: one by its extension; a folder, a pattern or several of them as one table.

Text is read by :mod:`edgegraft.ingest.csv_source`, Parquet and Arrow IPC here, others by plug-ins.
"""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from edgegraft import plugins
from edgegraft.core.atomic import suffix_of
from edgegraft.errors import Argument, DataError, DataTypeError, listing
from edgegraft.ingest.cells import Place
from edgegraft.ingest.csv_source import COMPRESSIONS, CsvSource, foreign_content
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.sources import Source, TableSource, check_names, explained
from edgegraft.table.arrow import kind_of, plain_type

_TEXT = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": None}
_PARQUET = (".parquet", ".pq")
_IPC = (".feather", ".arrow", ".ipc", ".arrows")
# In a folder, where .txt is seldom a table.
_KNOWN = (".csv", ".tsv", ".tab", *_PARQUET, *_IPC)
_HEADER = 1 << 16  # bytes that stand for the content, beside size and time


#: The types, the rows if they are known, and the reader of some columns.
Opened = tuple[pa.Schema, int | None, Callable[[list[str]], Iterator[pa.RecordBatch]]]


def find_files(data: str | PathLike[str]) -> list[Path]:
    """Return the files meant by a path, in the order of their names.

    It is that of a file; of a folder, whose files with a known extension are taken (hidden ones,
    and those that begin with an underscore, are not); or a pattern with ``*``, ``?``, ``[...]`` and
    ``**``.
    """
    path = Path(fspath(data))
    if path.is_dir():
        found = sorted(p for p in path.iterdir() if p.is_file() and p.name[0] not in "._")
        known = (*_KNOWN, *plugins.names("readers"))
        tables = [p for p in found if suffix_of(p, COMPRESSIONS) in known]
        if not tables:
            inside = f"; it holds {listing([p.name for p in found], 3)}" if found else ""
            raise DataError(
                f"the folder '{path}' has no file with a known extension "
                f"({', '.join(known)}){inside}; for files in folders below it give a pattern, "
                f"such as '{path}/**/*.parquet'"
            )
        return tables
    if not path.exists() and glob.has_magic(str(path)):
        matched = sorted(Path(path.anchor or ".").glob(str(path.relative_to(path.anchor))))
        tables = [p for p in matched if p.is_file()]
        if not tables:
            raise FileNotFoundError(f"no file matches the pattern '{path}'")
        return tables
    return [path]


def open_path(path: Path, options: ReadOptions) -> Source:
    """Return the source for a file, a folder of files or a pattern."""
    files = find_files(path)
    return _open_file(path, options) if files == [path] else FilesSource(files, options)


def _open_file(path: Path, options: ReadOptions) -> Source:
    """Return the source for a file, chosen by its extension."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file '{path}'")
    suffix, compressed = suffix_of(path, COMPRESSIONS), path.suffix.lower() in COMPRESSIONS
    if suffix in _TEXT:
        return CsvSource(path, options, _TEXT[suffix])
    if suffix in _PARQUET and not compressed:
        return ArrowSource(path, options, parquet_file)
    if suffix in _IPC and not compressed:
        return ArrowSource(path, options, ipc_file)
    read = plugins.find("readers", _reader_name(path))
    if read is not None:
        return _whole(path, read(path, options), options)
    if options.delimiter is not None:
        return CsvSource(path, options)
    content = foreign_content(path, utf8=True)
    raise DataError(
        f"'{path}' has the unknown extension '{''.join(path.suffixes[-2:]).lower()}'",
        *([" and is ", *content] if content else []),
        "; known are .csv, .tsv and .txt, also with .gz, .bz2 or .zst, any other text with ",
        Argument("delimiter"),
        f"; {', '.join((*_PARQUET, *_IPC, *plugins.names('readers')))}",
    )


def _reader_name(path: Path) -> str:
    """Return the name of a path's reader at the plug-in point: its suffix, as ``.vcf.gz``."""
    packed = path.suffix.lower() if path.suffix.lower() in COMPRESSIONS else ""
    return suffix_of(path, COMPRESSIONS) + packed


def has_reader(path: Path) -> bool:
    """Return whether a file is read by a plug-in, which returns all of it."""
    # The plug-ins of other distributions take a moment to find: not for a table of the core's own.
    name = _reader_name(path)
    return name not in (*_TEXT, *_PARQUET, *_IPC) and name in plugins.names("readers")


def _whole(path: Path, table: Source | pa.Table, options: ReadOptions) -> Source:
    """Return what a reader returned as a source."""
    if isinstance(table, Source):
        return table
    source = TableSource(table.column_names, table.select, options.batch_rows)
    source.where, source.fields = f"'{path}'", table.schema
    return source


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


class FileState(NamedTuple):
    """What tells whether a file is still the same."""

    path: str
    size: int
    modified: int  # nanoseconds
    header: str  # hash of the first bytes


def state_of(path: Path) -> FileState:
    """Return the state of a file."""
    stat = path.stat()
    with path.open("rb") as file:
        header = hashlib.sha256(file.read(_HEADER)).hexdigest()
    return FileState(str(path.resolve()), stat.st_size, stat.st_mtime_ns, header)


class FilesSource(Source):
    """Files of the same columns as one table.

    All headers are looked at before the first row is read. A file that changes while it is read
    is an error: half of it would be of another table.
    """

    def __init__(self, paths: Sequence[Path], options: ReadOptions) -> None:
        self._paths = list(paths)
        self._options = options
        self.where = f"'{paths[0]}'" if len(paths) == 1 else f"the {len(paths)} files"
        types: dict[str, tuple[pa.DataType, Path]] = {}
        for k, path in enumerate(self._paths):
            with _open_file(path, options) as source:
                if k == 0:
                    self.names, self.named = list(source.names), source.named
                    self.from_text = source.from_text
                self._compare(source, path, types)
        self.fields = pa.schema([(name, types[name][0]) for name in self.names])
        self.states = [state_of(path) for path in self._paths]
        self._before = 0  # bytes of the files that have been read
        self._current: Source | None = None
        self._path, self._first_row = self._paths[0], 0

    def _compare(
        self, source: Source, path: Path, types: dict[str, tuple[pa.DataType, Path]]
    ) -> None:
        """Refuse a file whose columns are not those of the files before it."""
        first = self._paths[0]
        if source.from_text != self.from_text:
            raise DataError(f"'{first}' and '{path}' have different formats: read them separately")
        absent = [name for name in self.names if name not in source.names]
        extra = [name for name in source.names if name not in self.names]
        if absent or extra:
            what = f"lacks {listing(absent)}" if absent else f"also has {listing(extra)}"
            raise DataError(f"'{path}' {what}: all files must have the columns of '{first}'")
        for name in self.names:
            dtype = source.fields.field(name).type
            known, where = types.setdefault(name, (dtype, path))
            if pt.is_null(known):
                types[name] = (dtype, path)
            elif not pt.is_null(dtype) and _kind(dtype) != _kind(known):
                raise DataTypeError(
                    f"column '{name}' is {known} in '{where}' and {dtype} in '{path}': write it "
                    "with one type in all files"
                )

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the given columns of all files."""
        self._before, self._first_row = 0, 0
        for path, state in zip(self._paths, self.states, strict=True):
            self._check(path, state)
            n_rows = 0
            with _open_file(path, self._options) as source:
                self._path, self._current = path, source
                for batch in source.batches(columns):
                    n_rows += batch.num_rows
                    yield batch
                self._current = None
            self._check(path, state)
            self._first_row += n_rows
            self._before += state.size

    def _check(self, path: Path, state: FileState) -> None:
        try:
            now = state_of(path)
        except OSError as error:
            raise DataError(f"'{path}' is gone while the table is being read") from error
        if now != state:
            raise DataError(
                f"'{path}' changed while the table was being read ({state.size:,} bytes before, "
                f"{now.size:,} now): start again when nothing writes to it"
            )

    def place(self, first_row: int) -> Place:
        """Return what messages call the rows from `first_row` on: by their number in the file."""
        path, before = self._path, self._first_row
        return lambda k: f"{first_row + k - before} of '{path}'"

    @property
    def share(self) -> float | None:
        """Share of the bytes of all files that has been read."""
        inside = self._current.share if self._current is not None else 0.0
        total = sum(state.size for state in self.states)
        if not total or (inside is None and len(self._paths) == 1):
            return None
        at = min(len(self.states) - 1, self._paths.index(self._path))
        return (self._before + (inside or 0.0) * self.states[at].size) / total


def _kind(dtype: pa.DataType) -> object:
    dtype = plain_type(dtype)
    return kind_of(dtype.value_type if pt.is_dictionary(dtype) else dtype)
