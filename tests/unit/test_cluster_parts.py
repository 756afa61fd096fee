"""The parts of the cluster source that need no cluster, nor dask."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgegraft.contrib.dask import counts as cluster
from edgegraft.contrib.dask.packing import as_sources
from edgegraft.contrib.dask.placement import place
from edgegraft.errors import DataError, DataTypeError, MissingExtraError

NAMES = ["a", "b", "c", "d"]
HOLDERS = st.lists(st.lists(st.sampled_from([*NAMES, "gone"]), unique=True), max_size=20)
THREADS = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 4))


@given(HOLDERS, THREADS)
def test_every_partition_is_asked_of_exactly_one_worker(holders, threads):
    placed = place(holders, threads)
    assert sorted(k for found in placed.values() for k in found) == list(range(len(holders)))
    assert set(placed) <= (set(threads) or {""})
    assert all(placed.values())


@given(HOLDERS, THREADS)
def test_nobody_is_asked_for_more_than_its_share(holders, threads):
    total = sum(threads.values())
    for name, found in place(holders, threads).items():
        if name:
            assert len(found) <= -(-len(holders) * threads[name] // total)


@given(
    st.lists(st.sampled_from(NAMES[:2]), max_size=12).filter(
        lambda at: at.count("a") * 2 == len(at)
    )
)
def test_what_lies_evenly_stays_where_it_is(at):
    for name, found in place([[name] for name in at], {"a": 1, "b": 1}).items():
        assert all(at[k] == name for k in found)


def test_the_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"edgegraft\[dask\]"):
        cluster.ClusterCounts(None, [])


def test_dask_is_not_loaded_before_it_is_needed():
    script = (
        "import sys, edgegraft as eg\n"
        "eg.ClusterCounts, eg.GraftedMRF\n"
        "assert not {'dask', 'distributed'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_what_has_no_partitions_is_refused():
    for bad in (3, "rows.parquet", None):
        with pytest.raises(DataTypeError, match="cannot take partitions from"):
            as_sources(bad)
    with pytest.raises(DataError, match="there are no partitions"):
        as_sources(())
