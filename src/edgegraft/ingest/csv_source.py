"""Delimited text, read in blocks with every cell as text.

Types are not inferred here: a column's type follows from all its distinct values, known
only at the end of the file.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv

from edgegraft.errors import Argument, DataError, FileFormatError
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.sources import Source, check_names


@dataclass(frozen=True)
class _Block:
    """What is read of a text file at a time."""

    least: int = 1 << 16  # bytes
    most: int = 1 << 22  # bytes: larger blocks leave the cache and are slower
    sniffed: int = 20  # rows whose lengths show the delimiter, see `pack`
    line: int = 64  # bytes that a line counts as at least: many short ones take time, too
    row: int = 1 << 25  # bytes of a row, or of a cell, before the file is taken for something else


COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
DELIMITERS = (",", ";", "\t", "|")


class CsvSource(Source):
    """A file of delimited text, compressed or not.

    `usual` is the delimiter that its extension stands for, used unless the first rows show another.
    """

    from_text = True

    def __init__(self, path: Path, options: ReadOptions, usual: str | None = None) -> None:
        self._path = path
        self.where = f"'{path}'"
        self._compression = COMPRESSIONS.get(path.suffix.lower())
        self._stream: pa.NativeFile | None = None
        self._options = options
        self._is_utf8 = options.encoding.lower().replace("-", "").replace("_", "") == "utf8"
        content = [] if self._compression else foreign_content(path, self._is_utf8)
        if content:
            raise FileFormatError(f"'{path}' is not text but ", *content)
        self._delimiter = options.delimiter or self._find_delimiter(usual)
        # The first row that is not blank, with the number of blank ones before it, and the next.
        rows = [*self._rows(self._delimiter, 2), (0, []), (0, [])]
        (self._n_before, first), (_, second) = rows[:2]
        if not first:
            raise DataError(f"'{path}' is empty: it has neither a header nor rows")
        longest = max(sum(len(cell) + 3 for cell in row) for row in (first, second))
        self.named = options.header
        # A name that is empty, as that of the index in a file of pandas, cannot be asked for.
        self._renamed = options.header and not all(name.strip() for name in first)
        self.names = (
            [name if name.strip() else f"column_{k}" for k, name in enumerate(first, 1)]
            if options.header
            else [f"x{i}" for i in range(len(first))]
        )
        check_names(self.names, f"the header of '{path}'")
        # Spreadsheets often write semicolons: one column whose name looks like several.
        other = next((c for c in ";\t|," if c != self._delimiter and c in self.names[0]), None)
        if options.delimiter is None and len(self.names) == 1 and other is not None:
            raise FileFormatError(
                f"'{path}' seems to have one column, called {self.names[0]!r}: if its columns are "
                f"separated by {other!r}, say ",
                Argument("delimiter", other),
                "; if not, ",
                Argument("delimiter", self._delimiter),
            )
        self.fields = pa.schema([(name, pa.string()) for name in self.names])
        wanted = longest * options.batch_rows
        self._block = max(_Block.least, 16 * longest, min(wanted, _Block.most))

    def _rows(self, delimiter: str, n_rows: int) -> list[tuple[int, list[str]]]:
        """Return the first rows that are not blank, with their places in the file."""
        encoding = "utf-8-sig" if self._is_utf8 else self._options.encoding
        limit = csv.field_size_limit(_Block.row)
        try:
            stream = pa.input_stream(str(self._path), compression=self._compression)
            with io.TextIOWrapper(stream, encoding=encoding, newline="") as file:
                rows = enumerate(csv.reader(self._lines(file), delimiter=delimiter))
                return list(islice(((k, row) for k, row in rows if row), n_rows))
        except UnicodeDecodeError as error:
            raise self._not_decodable("the first rows", error) from error
        except (EOFError, csv.Error, OSError) as error:
            raise FileFormatError(f"'{self._path}' cannot be read: {error}") from error
        finally:
            csv.field_size_limit(limit)

    def _lines(self, file: io.TextIOWrapper) -> Iterator[str]:
        """Yield the first lines, fewer if they are long."""
        left = _Block.row
        while left > 0 and (line := file.readline(left)):
            left -= max(len(line), _Block.line)
            if left <= 0 and (line.isspace() or line[-1] not in "\r\n"):
                raise self._no_rows()
            yield line

    def _no_rows(self) -> FileFormatError:
        return FileFormatError(
            f"'{self._path}' has a row, or empty lines, of more than {_Block.row:,} bytes: it is "
            "no table, or a quote is not closed"
        )

    def _find_delimiter(self, usual: str | None) -> str:
        """Return the usual delimiter, unless only another one gives rows of equal length."""
        found = {}
        for delimiter in DELIMITERS:
            widths = {len(row) for _, row in self._rows(delimiter, _Block.sniffed)}
            if len(widths) == 1:
                found[delimiter] = widths.pop()
        if usual is not None and (found.get(usual, 1) > 1 or max(found.values(), default=1) == 1):
            return usual
        if max(found.values(), default=1) == 1:
            raise DataError(
                f"'{self._path}': name what separates its columns with ", Argument("delimiter")
            )
        return max(found, key=lambda delimiter: found[delimiter])

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the given columns."""
        block, threads, done = self._block, self._options.use_threads, 0
        while True:
            skip = done
            try:
                for batch in self._read(columns, block, threads):
                    if skip:
                        fresh = batch.slice(min(skip, batch.num_rows))
                        skip -= batch.num_rows - fresh.num_rows
                        batch = fresh
                    if batch.num_rows:
                        done += batch.num_rows
                        yield batch
                return
            except pa.ArrowInvalid as error:
                # Start again past what was read: with larger blocks if a row is longer than one, or
                # on one thread, on which alone the reader knows the row of an error.
                if "straddling" in str(error):
                    if block >= _Block.row:
                        raise self._no_rows() from error
                    block = min(16 * block, _Block.row)
                elif threads:
                    threads = False
                else:
                    raise self._explain(error) from error
            except pa.ArrowKeyError as error:  # the header is another one to Arrow's parser
                raise self._no_rows() from error
            except OSError as error:
                raise FileFormatError(
                    f"'{self._path}' cannot be read: {error}; the file is truncated or damaged"
                ) from error

    @property
    def share(self) -> float | None:
        """Share of the bytes that has been taken from the file; None of a compressed one."""
        if self._compression or self._stream is None or self._stream.closed:
            return None
        return min(1.0, float(self._stream.tell()) / max(1, self._path.stat().st_size))

    def _read(
        self, columns: Sequence[str], block: int, use_threads: bool
    ) -> Iterator[pa.RecordBatch]:
        self._stream = pa.input_stream(str(self._path), compression=self._compression)
        reader = pa_csv.open_csv(
            self._stream,
            read_options=pa_csv.ReadOptions(
                use_threads=use_threads,
                block_size=block,
                column_names=self.names if self._renamed or not self._options.header else None,
                skip_rows_after_names=self._n_before + 1 if self._renamed else 0,
                encoding=self._options.encoding,
            ),
            parse_options=pa_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()),
                include_columns=list(columns),
                strings_can_be_null=False,
            ),
        )
        yield from reader

    def _explain(self, error: pa.ArrowInvalid) -> Exception:
        """Return an error that names the file, the row or column, and the remedy."""
        text = str(error)
        ragged = re.search(r"Expected (\d+) columns, got (\d+)", text)
        if ragged:
            row = re.search(r"Row #(\d+)", text)
            at = f"row {row[1]} of the file" if row else "a row"
            return FileFormatError(
                f"'{self._path}': {at} has {ragged[2]} cells where the first row has {ragged[1]}; "
                "is the delimiter right (",
                Argument("delimiter"),
                "), or a cell with a delimiter not quoted?",
            )
        if "invalid UTF8" in text:
            column = re.search(r"CSV column #(\d+)", text)
            name = f"column '{self.names[int(column[1])]}'" if column else "a cell"
            return self._not_decodable(name, error)
        if "Empty CSV file" in text:
            return DataError(f"'{self._path}' has no rows")
        return FileFormatError(f"'{self._path}' cannot be read as text: {text}")

    def _not_decodable(self, what: str, error: Exception) -> FileFormatError:
        return FileFormatError(
            f"'{self._path}': {what} cannot be decoded as {self._options.encoding} ({error}); say "
            "what the file is written in, such as ",
            Argument("encoding", "latin-1"),
        )


_CONTENTS = {
    b"\x1f\x8b": "gzipped: let its name end in .gz",
    b"PK\x03\x04": "a zip archive or a spreadsheet: unpack it, or let its name end in .xlsx",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet: save the sheet as .csv",
    b"\x28\xb5\x2f\xfd": "compressed with zstd: let its name end in .zst",
    b"BZh": "compressed with bzip2: let its name end in .bz2",
    b"\xfd7zXZ": "compressed with xz: unpack it first",
    b"PAR1": "a Parquet file: let its name end in .parquet",
    b"ARROW1": "an Arrow file: let its name end in .arrow",
    b"SQLite format": "a database: write the table to a .csv or .parquet file first",
}
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def foreign_content(path: Path, utf8: bool) -> list[str | Argument]:
    """Return what a file is that cannot be delimited text, and the remedy; nothing if it can be.

    A file that is to be read as UTF-8 does not begin as one in UTF-16.
    """
    with path.open("rb") as file:
        start = file.read(16)
    if utf8 and start.startswith(_UTF16):
        return ["written in UTF-16: say ", Argument("encoding", "utf-16")]
    return [text for magic, text in _CONTENTS.items() if start.startswith(magic)]
