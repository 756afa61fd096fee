"""Rows as delimited text or Parquet."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from edgegraft.core.atomic import replace_file, suffix_of
from edgegraft.errors import DataError
from edgegraft.ingest.output import write_parquet

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_BLOCK = 65536  # rows converted to Python values at a time


def check_format(path: Path | None) -> None:
    """Refuse a name without the suffix of a format for rows."""
    if path is not None and not _is_parquet(path) and suffix_of(path) not in _DELIMITERS:
        raise DataError(
            f"'{path}' does not say in which format rows are to be written: use a name in .csv or "
            ".tsv (also with .gz), or in .parquet"
        )


def write_rows(path: Path | None, table: Any) -> None:
    """Write an Arrow table atomically to a file by its suffix, or to stdout as CSV."""
    if path is not None and _is_parquet(path):
        write_parquet(path, {name: table.column(name) for name in table.column_names})
        return
    blocks = (table.slice(first, _BLOCK).to_pydict() for first in range(0, table.num_rows, _BLOCK))
    write_blocks(path, table.column_names, blocks)


def write_columns(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns of values to a file by its suffix."""
    if _is_parquet(path):
        write_parquet(path, columns)
    else:
        write_blocks(path, list(columns), [columns])


def write_blocks(
    path: Path | None, names: Sequence[str], blocks: Iterable[Mapping[str, Sequence[Any]]]
) -> None:
    """Write blocks of named columns as delimited text, to a file or to stdout."""
    if path is None:
        write_text(sys.stdout, names, blocks)
        return
    check_format(path)
    out = io.StringIO()
    write_text(out, names, blocks, _DELIMITERS[suffix_of(path)])
    replace_file(path, out.getvalue())


def write_text(
    out: TextIO,
    names: Sequence[str],
    blocks: Iterable[Mapping[str, Sequence[Any]]],
    delimiter: str = ",",
    line_end: str = "\n",
) -> None:
    """Write blocks of named columns as text that `pack` reads back; None is an empty cell."""
    writer = csv.writer(out, delimiter=delimiter, lineterminator=line_end)
    writer.writerow(names)
    for block in blocks:
        columns = [[_cell(value) for value in block[name]] for name in names]
        writer.writerows(zip(*columns, strict=True))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"
