"""Spreadsheets whose cells are errors, formulas without values, or rows of different lengths."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.errors import EncodingWarning, MemoryBudgetError
from edgegraft.estimators import GraftedMRF
from edgegraft.ingest import pack
from edgegraft.table import PackedTable
from tests.hostile.chosen_files import sheet
from tests.hostile.writers import codes_of

openpyxl = pytest.importorskip("openpyxl")


def write_sheet(path, rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_errors_are_missing_and_said(tmp_path):
    rows = [["a", "b"], ["x", 1], ["#DIV/0!", 2], ["y", 1], ["x", "#N/A"]]
    with pytest.warns(EncodingWarning, match=r"table.xlsx'.* 2 cells with an error such as"):
        table = pack(write_sheet(tmp_path / "table.xlsx", rows))
    assert table.schema["a"].categories == ("x", "y")
    assert table.codes().tolist() == [[0, 0], [-1, 1], [1, 0], [0, -1]]


def test_formulas_without_values_are_said(tmp_path):
    rows = [["a", "b", "c"], ["x", "=1+1", 1], ["y", "=1+2", 2], ["y", None, 2]]
    with pytest.warns(EncodingWarning, match=r"table.xlsx'.* 2 cells with a formula without a"):
        table = pack(write_sheet(tmp_path / "table.xlsx", rows), drop=["b"])
    assert table.schema.names == ("a", "c")


def test_ragged_sheets_are_read(tmp_path):
    cells = [["A", "B", "C"], ["A", "B"], ["A", "B", "C"], ["A"]]
    rows = "".join(
        f"<row r='{k}'>" + "".join(f"<c r='{c}{k}'><v>{k // 2 % 2}</v></c>" for c in row) + "</row>"
        for k, row in enumerate(cells, 2)
    )
    head = "<row r='1'>" + "".join(
        f"<c r='{c}1' t='inlineStr'><is><t>{c}</t></is></c>" for c in "ABC"
    )
    table = pack(sheet(tmp_path / "table.xlsx", head + "</row>" + rows))
    assert table.codes().tolist() == [[1, 1, 1], [1, 1, -1], [0, 0, 0], [0, -1, -1]]


def test_a_limit_of_memory_holds_for_arrays_and_packed_tables():
    codes = codes_of()
    small = GraftedMRF(max_memory="100 MB")
    with pytest.raises(MemoryBudgetError, match=r"allow at least .*max_memory"):
        small.fit(codes)
    with pytest.raises(MemoryBudgetError, match=r"allow at least .*max_memory"):
        small.fit(PackedTable.from_codes(codes))
    within = GraftedMRF(max_memory="4 GiB", random_state=0).fit(codes)
    np.testing.assert_array_equal(within.edges_, GraftedMRF(random_state=0).fit(codes).edges_)
