"""Counts of a table in memory: weights, threads, blocks, the choice of a kernel."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.core.threads import resolve_jobs
from edgegraft.counts import PairCounts, pair_counts
from edgegraft.counts.pair_counts import _by_codes, all_pair_blocks
from edgegraft.errors import DataError, MemoryBudgetError
from edgegraft.table import PackedTable, Schema
from tests.conftest import count_pair, random_codes

STATES = [2, 5, 21, 70, 3, 50]
EDGES = np.array([(i, j) for i in range(6) for j in range(6) if i < j])


def table_of(codes, states=STATES):
    return PackedTable.from_codes(codes, Schema.from_states(states))


@pytest.mark.parametrize("n_rows", [3, 1000, 66_001])
def test_weighted_tables_are_sums_of_weights(n_rows):
    codes = random_codes(STATES, n_rows, 0.2)
    weights = np.random.default_rng(1).random(n_rows)
    counts = PairCounts(table_of(codes), weights=weights)
    for (i, j), table in zip(EDGES, counts.pairs(EDGES), strict=True):
        np.testing.assert_allclose(table, count_pair(codes, STATES, i, j, weights), rtol=1e-12)
    for i, margin in enumerate(counts.margins()):
        known = codes[:, i] >= 0
        truth = np.bincount(codes[known, i], weights[known], STATES[i])
        np.testing.assert_allclose(margin, truth, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_threads_change_nothing(weighted):
    codes = random_codes(STATES * 12, 3000, 0.1)
    weights = np.random.default_rng(1).random(3000) if weighted else None
    table = table_of(codes, STATES * 12)
    edges = np.stack(np.triu_indices(len(STATES) * 12, 1), axis=1)
    single, many = (PairCounts(table, k, weights).pairs(edges) for k in (1, 4))
    assert single.values.tobytes() == many.values.tobytes()


@pytest.mark.parametrize("row_in_words", [0.0, 1e9], ids=["histogram", "popcount"])
def test_both_ways_of_counting_agree(monkeypatch, row_in_words):
    monkeypatch.setattr(pair_counts._Cost, "row_in_words", row_in_words)
    states = [17, 21, 64, 40]
    codes = random_codes(states, 2000, 0.1)
    counts = PairCounts(table_of(codes, states))
    edges = np.array([(0, 1), (1, 2), (0, 2), (3, 1), (2, 3)])
    assert _by_codes(counts.rows, edges).all() == (row_in_words == 0)
    for (i, j), table in zip(edges, counts.pairs(edges), strict=True):
        np.testing.assert_array_equal(table, count_pair(codes, states, i, j))


def test_blocks_cover_all_pairs_once_in_order_within_memory():
    codes = random_codes(STATES, 200, 0.1)
    counts = PairCounts(table_of(codes))
    limit = 70 * 50 * 8
    blocks = list(counts.blocks(max_bytes=limit))
    assert len(blocks) > 2
    assert max(block.nbytes for block in blocks) <= limit
    np.testing.assert_array_equal(np.concatenate([b.edges for b in blocks]), EDGES)
    for block in blocks:
        for (i, j), table in zip(block.edges, block, strict=True):
            np.testing.assert_array_equal(table, count_pair(codes, STATES, i, j))


def test_blocks_refuse_a_single_table_over_the_limit():
    with pytest.raises(MemoryBudgetError, match="28,000 bytes"):
        list(all_pair_blocks(np.array([70, 50]), max_bytes=1000))


def test_one_variable_has_no_pairs():
    assert list(PairCounts(table_of(random_codes([3], 5), [3])).blocks()) == []


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], r"weights have shape \(2,\), but the table has 3 rows"),
        ([1.0, np.nan, 1.0], "the weight of row 1 is nan"),
        ([1.0, 1.0, -2.0], "the weight of row 2 is -2.0"),
        ([np.inf, 1.0, 1.0], "the weight of row 0 is inf"),
        ([0.0, 0.0, 0.0], "all weights are zero"),
    ],
)
def test_bad_weights_are_refused(weights, message):
    with pytest.raises(DataError, match=message):
        PairCounts(table_of(random_codes([2, 2], 3), [2, 2]), weights=weights)


def test_weights_are_copied():
    weights = np.ones(3)
    counts = PairCounts(table_of(random_codes([2, 2], 3), [2, 2]), weights=weights)
    weights[:] = 5
    assert counts.pairs([(0, 1)]).values.sum() == 3


@pytest.mark.parametrize("n_jobs", [0, True, 1.5, "2"])
def test_bad_n_jobs_are_refused(n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be"):
        resolve_jobs(n_jobs)


def test_negative_n_jobs_count_down_from_all_cores():
    assert resolve_jobs(-1) >= 1
    assert resolve_jobs(-1000) == 1
