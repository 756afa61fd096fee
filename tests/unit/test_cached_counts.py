"""The cache: what it holds, what it forgets, what it says of itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegraft.counts import CachedCounts, LocalCounts
from edgegraft.table import PackedTable, Schema
from tests.conftest import random_codes

STATES = [2, 3, 4, 5, 2, 30, 3, 2]
SOURCE = LocalCounts(
    PackedTable.from_codes(random_codes(STATES, 300, 0.1), Schema.from_states(STATES))
)
PAIRS = st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda pair: pair[0] != pair[1])


@settings(max_examples=60, deadline=None)
@given(
    batches=st.lists(st.lists(PAIRS, max_size=12), max_size=12),
    max_bytes=st.sampled_from([0, 300, 1000, 4000, 20_000, 1 << 20]),
)
def test_the_cache_is_never_wrong_nor_over_its_budget(batches, max_bytes):
    cache = CachedCounts(SOURCE, max_bytes)
    asked = 0
    for batch in batches:
        edges = np.array(batch, np.int64).reshape(-1, 2)
        found, truth = cache.pairs(edges), SOURCE.pairs(edges)
        np.testing.assert_array_equal(found.values, truth.values)
        np.testing.assert_array_equal(found.offsets, truth.offsets)
        asked += len(edges)
        assert cache.info.nbytes <= max_bytes
        assert cache.info.hits + cache.info.computed == asked


def test_what_fits_is_computed_once():
    cache = CachedCounts(SOURCE)
    edges = np.stack(np.triu_indices(8, 1), axis=1)
    cache.pairs(edges)
    cache.pairs(edges[::-1])
    cache.pairs(edges[:, ::-1])
    assert cache.info.computed == len(edges)
    assert cache.info.hits == 2 * len(edges)


def test_recently_used_tables_outlive_the_others():
    cache = CachedCounts(SOURCE, max_bytes=2000)
    often = np.array([(0, 1)])
    rest = np.array([(i, j) for i in range(8) for j in range(i) if 5 not in (i, j)])
    cache.pairs(often)
    for edge in rest:
        cache.pairs(edge[None])
        before = cache.info.computed
        cache.pairs(often)
        assert cache.info.computed == before


def test_one_batch_that_repeats_an_edge_computes_it_once():
    cache = CachedCounts(SOURCE)
    cache.pairs([(0, 1), (1, 0), (0, 1)])
    assert (cache.info.computed, cache.info.hits) == (1, 2)


def test_a_negative_budget_is_refused():
    with pytest.raises(ValueError, match="must not be negative"):
        CachedCounts(SOURCE, max_bytes=-1)
