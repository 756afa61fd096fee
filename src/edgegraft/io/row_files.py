"""Writing rows as delimited text or Parquet."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from edgegraft.core.atomic import replace_file
from edgegraft.errors import DataError
from edgegraft.ingest.output import write_parquet

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_BLOCK = 65536  # rows converted to Python values at a time


def check_format(path: Path | None) -> None:
    """Refuse a name without the suffix of a format for rows."""
    if path is not None and path.suffix.lower() != ".parquet":
        _delimiter(path)


def write_rows(path: Path | None, table: Any) -> None:
    """Write an Arrow table atomically to a file by its suffix, or to stdout as CSV."""
    if path is not None and path.suffix.lower() == ".parquet":
        write_parquet(path, {name: table.column(name) for name in table.column_names})
        return
    blocks = (table.slice(first, _BLOCK).to_pydict() for first in range(0, table.num_rows, _BLOCK))
    write_blocks(path, table.column_names, blocks)


def write_columns(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns of values to a file by its suffix."""
    if path.suffix.lower() == ".parquet":
        write_parquet(path, columns)
    else:
        write_blocks(path, list(columns), [columns])


def write_blocks(
    path: Path | None, names: Sequence[str], blocks: Iterable[Mapping[str, Sequence[Any]]]
) -> None:
    """Write blocks of named columns as delimited text, to a file or to stdout."""
    if path is None:
        _write(sys.stdout, ",", names, blocks)
        return
    out = io.StringIO()
    _write(out, _delimiter(path), names, blocks)
    replace_file(path, out.getvalue())


def _write(
    out: TextIO, delimiter: str, names: Sequence[str], blocks: Iterable[Mapping[str, Sequence[Any]]]
) -> None:
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(names)
    for block in blocks:
        columns = [[cell_text(value) for value in block[name]] for name in names]
        writer.writerows(zip(*columns, strict=True))


def cell_text(value: Any) -> str:
    """Return a value as text that `pack` reads back."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _delimiter(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    own = next(iter(suffixes[-2:-1] if suffixes[-1:] == [".gz"] else suffixes[-1:]), "")
    if own not in _DELIMITERS:
        raise DataError(
            f"'{path}' does not say in which format rows are to be written: use a name in .csv or "
            ".tsv (also with .gz), or in .parquet"
        )
    return _DELIMITERS[own]
