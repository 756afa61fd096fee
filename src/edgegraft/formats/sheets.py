"""Readers of spreadsheets and SPSS files, by the libraries of the extra ``files``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from edgegraft.errors import DataError, import_extra
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.sources import check_names, explained


def read_xlsx(path: Path, options: ReadOptions) -> pa.Table:
    """Return the first sheet of a spreadsheet."""
    openpyxl = import_extra("openpyxl", "files", "reading .xlsx")
    with explained(path, ".xlsx"):
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
    typed = [_typed([None if cell == "" else cell for cell in grid[1:, k]]) for k in columns]
    return pa.table(typed, names=names)


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
