"""Readers of tables of other programs: spreadsheets and SPSS files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pyarrow as pa

from edgegraft.errors import DataError, EncodingWarning, FileFormatError, counted, import_extra
from edgegraft.ingest.encoder import memory_for, not_in_memory
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.sources import check_names, explained


@dataclass(frozen=True)
class _Sheet:
    """Limits of a sheet."""

    rows: int = 1 << 20  # as the format has them
    columns: int = 1 << 14
    cell: int = 8  # bytes of an empty cell of a list


#: What a cell holds if its formula has failed.
_ERRORS = {"#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A"}


def read_xlsx(path: Path, options: ReadOptions) -> pa.Table:
    """Return the first sheet of a spreadsheet."""
    rows, gaps, n_errors = list[list[Any]](), False, 0
    with explained(path, ".xlsx"):
        for row in _rows_of(path, options, values=True):
            failed = [isinstance(cell, str) and cell in _ERRORS for cell in row]
            n_errors += sum(failed)
            gaps |= None in row
            cells = [None if lost else cell for cell, lost in zip(row, failed, strict=True)]
            while cells and (cells[-1] is None or cells[-1] == ""):
                del cells[-1]
            if cells:
                rows.append(cells)
        n_formulas = _count_open_formulas(path, options) if gaps else 0
    for n, what in (
        (n_errors, "an error such as #DIV/0!"),
        (n_formulas, "a formula without a value: open and save it in a spreadsheet program"),
    ):
        if n:
            message = f"'{path}': taken as missing: {counted(n, 'cell')} with {what}"
            warnings.warn(message, EncodingWarning, stacklevel=2)
    if not rows:
        raise DataError(f"the first sheet of '{path}' is empty")
    grid = np.full((len(rows), max(map(len, rows))), None, object)
    for place, cells in zip(grid, rows, strict=True):
        place[: len(cells)] = cells
    blank = np.vectorize(lambda cell: cell is None or cell == "", otypes=[bool])
    columns = [k for k in range(grid.shape[1]) if not blank(grid[:, k]).all()]
    names = [str("" if grid[0, k] is None else grid[0, k]).strip() for k in columns]
    names = [name or f"column_{k + 1}" for name, k in zip(names, columns, strict=True)]
    check_names(names, f"the header of '{path}'")
    typed = [_typed([None if cell == "" else cell for cell in grid[1:, k]]) for k in columns]
    return pa.table(typed, names=names)


def _rows_of(path: Path, options: ReadOptions, values: bool) -> Iterator[Sequence[Any]]:
    """Yield the rows of the first sheet, each to its last cell; `values` or formulas.

    What a sheet says of its size is not believed, and its rows and cells must fit in memory.
    """
    openpyxl = import_extra("openpyxl", "files", "reading .xlsx")
    left = memory_for(options)
    with ZipFile(path) as parts:
        if sum(part.file_size for part in parts.infolist()) > left:
            raise not_in_memory(f"'{path}'")
    book = openpyxl.load_workbook(path, read_only=True, data_only=values)
    try:
        sheet = book.worksheets[0]
        sheet.reset_dimensions()
        whole = sheet._get_row  # the one place at which a row is not yet as wide as it says

        def checked(row: Any, *given: Any, **named: Any) -> Any:
            if any(cell["column"] > _Sheet.columns for cell in row):
                raise FileFormatError(f"'{path}' has a column beyond {_Sheet.columns:,}")
            return whole(row, *given, **named)

        sheet._get_row = checked
        for number, row in enumerate(sheet.iter_rows(values_only=True)):
            left -= _Sheet.cell * len(row)
            if left < 0:
                raise not_in_memory(f"the first sheet of '{path}'")
            if number >= _Sheet.rows:
                raise FileFormatError(f"'{path}' has a row beyond {_Sheet.rows:,}")
            yield row
    finally:
        book.close()


def _count_open_formulas(path: Path, options: ReadOptions) -> int:
    """Return how many formulas the program that wrote a sheet has not worked out."""
    both = (_rows_of(path, options, values) for values in (True, False))
    pairs = (pair for rows in zip(*both, strict=False) for pair in zip(*rows, strict=False))
    return sum(value is None and formula is not None for value, formula in pairs)


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


def read_sav(path: Path, options: ReadOptions) -> pa.Table:
    """Return a file of SPSS, its value labels as categories."""
    pyreadstat = import_extra("pyreadstat", "files", "reading .sav")
    with explained(path, ".sav"):
        # What the author declared missing comes as it is, with the ranges that say so.
        cells, about = pyreadstat.read_sav(str(path), output_format="dict", user_missing=True)
    columns = {}
    for name, values in cells.items():
        gaps, labels = about.missing_ranges.get(name, ()), about.variable_value_labels.get(name, {})
        known = [None if _within(value, gaps) else value for value in list(values)]
        labels = {value: text for value, text in labels.items() if not _within(value, gaps)}
        columns[name] = _labelled(known, labels, about.variable_measure.get(name) == "ordinal")
    return pa.table(columns)


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
