"""Protocol of sources of rows: their counts, compared with `np.bincount`."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.counts import PairCounts
from edgegraft.errors import EdgeError, MemoryBudgetError
from edgegraft.table import PackedTable, Schema, StoredRows
from tests.conftest import CutTable, count_pair, random_codes

STATES = [2, 3, 1, 5, 4, 21, 70, 17, 300, 9, 64, 65]
ALL = [(i, j) for i in range(len(STATES)) for j in range(len(STATES)) if i != j]


def in_memory(table, tmp_path):
    return PairCounts(table)


def threaded(table, tmp_path):
    return PairCounts(table, n_jobs=3)


def mapped(table, tmp_path):
    table.save(tmp_path / "table.pack")
    return PairCounts(PackedTable.open(tmp_path / "table.pack"))


def in_blocks(table, tmp_path):
    return PairCounts(StoredRows(CutTable(table), n_jobs=2))


def in_blocks_read_again(table, tmp_path):
    return PairCounts(StoredRows(CutTable(table, rows=1000), max_bytes=0))


SOURCES = [in_memory, threaded, mapped, in_blocks, in_blocks_read_again]


@pytest.fixture(params=SOURCES, ids=lambda source: source.__name__)
def make_source(request, tmp_path):
    return lambda codes, states: request.param(
        PackedTable.from_codes(codes, Schema.from_states(states)), tmp_path
    )


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("n_rows", [1, 64, 65, 513, 33_000, 66_000])
def test_pairs_equal_bincount(make_source, n_rows, missing):
    states = STATES if n_rows < 60_000 else [2, 5, 21, 70]
    edges = [(i, j) for i, j in ALL if max(i, j) < len(states)]
    codes = random_codes(states, n_rows, missing)
    source = make_source(codes, states)
    tables = source.pairs(edges)
    assert tables.values.dtype == np.int64
    for (i, j), table in zip(edges, tables, strict=True):
        np.testing.assert_array_equal(table, count_pair(codes, states, i, j), err_msg=f"{i}, {j}")


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_margins_equal_bincount(make_source, missing):
    codes = random_codes(STATES, 1000, missing)
    margins = make_source(codes, STATES).margins()
    assert len(margins) == len(STATES)
    for i, margin in enumerate(margins):
        known = codes[codes[:, i] >= 0, i]
        np.testing.assert_array_equal(margin, np.bincount(known, minlength=STATES[i]))


def test_a_batch_may_repeat_edges_in_any_order_and_orientation(make_source):
    codes = random_codes(STATES, 500, 0.1)
    edges = [(3, 1), (1, 3), (5, 0), (3, 1), (8, 6)]
    for table, (i, j) in zip(make_source(codes, STATES).pairs(edges), edges, strict=True):
        np.testing.assert_array_equal(table, count_pair(codes, STATES, i, j))


def test_an_empty_batch_has_no_tables(make_source):
    tables = make_source(random_codes([2, 2], 10), [2, 2]).pairs(np.empty((0, 2), int))
    assert len(tables) == 0
    assert tables.values.size == 0


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(0, 1), (0, 2)], r"edge 1, \(0, 2\), names a variable outside 0..1"),
        ([(-1, 1)], r"edge 0, \(-1, 1\), names a variable outside 0..1"),
        ([(1, 1)], r"edge 0, \(1, 1\), joins a variable to itself"),
        ([0, 1], r"shape \(2,\)"),
        ([(0.0, 1.0)], "integer array .* float64"),
    ],
)
def test_edges_that_are_not_pairs_are_refused(make_source, edges, message):
    source = make_source(random_codes([2, 2], 10), [2, 2])
    with pytest.raises(EdgeError, match=message):
        source.pairs(edges)


def test_tables_that_do_not_fit_memory_are_refused_before_they_are_allocated(make_source):
    codes = np.array([[0, 0], [59_999, 59_999]])
    source = make_source(codes, [60_000, 60_000])
    with pytest.raises(MemoryBudgetError, match="28,800,000,000 bytes"):
        source.pairs([(0, 1)])
