"""Counts of a cluster are those of one machine, whatever the partitions come as."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import edgegraft as eg
from edgegraft.contrib.dask.counts import Rates
from edgegraft.contrib.dask.shards import ClusterShards
from edgegraft.core import Layout
from edgegraft.errors import DataError, DataTypeError, EdgeError, UnseenCategoryError
from edgegraft.ingest import pack
from edgegraft.objective.local_shards import LocalShards
from edgegraft.table import PackedTable, Schema
from tests.cluster.conftest import all_pairs, assert_same_counts, cut
from tests.cluster.machines import machines


def as_frame(frame, tmp_path, client):
    import dask.dataframe as dd

    return dd.from_pandas(frame, npartitions=5)


def as_tables(frame, tmp_path, client):
    return cut(frame, 4)


def as_tables_with_empty_ones(frame, tmp_path, client):
    return [frame.iloc[:0], *cut(frame, 3), frame.iloc[:0]]


def as_paths(frame, tmp_path, client):
    paths = [tmp_path / f"{k}.parquet" for k in range(3)]
    for path, part in zip(paths, cut(frame, 3), strict=True):
        part.to_parquet(path)
    return paths


def as_delayed(frame, tmp_path, client):
    from dask import delayed

    return [delayed(part) for part in cut(frame, 3)]


def as_futures(frame, tmp_path, client):
    return client.scatter(cut(frame, 3))


KINDS = [as_frame, as_tables, as_tables_with_empty_ones, as_paths, as_delayed, as_futures]


@pytest.mark.parametrize("make", KINDS, ids=lambda kind: kind.__name__)
def test_counts_are_those_of_one_machine(client, frame, tmp_path, make):
    counts = eg.ClusterCounts(client, make(frame, tmp_path, client))
    assert_same_counts(counts, eg.PairCounts(pack(frame)))


def test_counts_of_arrays_are_those_of_one_machine(client):
    import dask.array as da

    codes = np.random.default_rng(0).integers(0, 4, (1000, 7))
    counts = eg.ClusterCounts(client, da.from_array(codes, chunks=(300, -1)))
    assert_same_counts(counts, eg.PairCounts(pack(codes)))
    with pytest.raises(DataError, match="rechunk"):
        eg.ClusterCounts(client, da.from_array(codes, chunks=(300, 4)))


def test_counts_do_not_depend_on_the_number_of_workers(frame):
    expected = eg.PairCounts(pack(frame))
    with machines(1) as (cluster, client):
        for n_workers in (1, 2, 4):
            while len(cluster.workers()) < n_workers:
                cluster.add_worker()
            client.wait_for_workers(n_workers, timeout=60)
            counts = eg.ClusterCounts(client, cut(frame, 6))
            assert_same_counts(counts, expected)
            assert counts.traffic.tasks <= n_workers * counts.traffic.round_trips


def test_all_pairs_come_in_blocks(client, frame):
    counts = eg.ClusterCounts(client, cut(frame, 3))
    local = eg.PairCounts(pack(frame))
    blocks, expected = list(counts.blocks(4000)), list(local.blocks(4000))
    assert len(blocks) == len(expected) > 1
    for block, other in zip(blocks, expected, strict=True):
        np.testing.assert_array_equal(block.values, other.values)


def test_a_schema_replaces_the_first_reading(client, frame):
    schema = pack(frame).schema
    counts = eg.ClusterCounts(client, cut(frame, 3)[::-1], schema=schema)
    assert_same_counts(counts, eg.PairCounts(pack(frame)))
    frame.loc[len(frame) - 1, "text"] = "never"
    with pytest.raises(UnseenCategoryError, match="'never'"):
        eg.ClusterCounts(client, cut(frame, 3), schema=schema)


def test_options_of_packing_apply_to_every_partition(client, frame):
    options = {"drop": ["n0"], "missing_values": ["perhaps"], "bins": {"many": 3}}
    counts = eg.ClusterCounts(client, cut(frame, 3), **options)
    assert_same_counts(counts, eg.PairCounts(pack(frame, **options)))


def test_a_batch_is_one_round_trip(client, frame):
    counts = eg.ClusterCounts(client, cut(frame, 5))
    before = counts.traffic
    edges = all_pairs(10)
    tables = counts.pairs(edges)
    after = counts.traffic
    assert after.round_trips == before.round_trips + 1
    assert after.tasks - before.tasks == 2  # workers, not partitions
    assert (
        after.bytes_received - before.bytes_received == 2 * tables.nbytes // 4
    )  # two bytes a count
    assert after.bytes_sent - before.bytes_sent == 2 * edges.nbytes
    counts.pairs(np.empty((0, 2), int))
    assert counts.traffic == after


def test_a_batch_size_is_advised_from_what_is_measured(client, frame):
    counts = eg.ClusterCounts(client, cut(frame, 2))
    rates = counts.measure()
    assert rates.round_trip > 0
    assert rates.pair > 0
    assert counts.advise_max_tests(Rates(1.0, 1e-6)) == 45  # all pairs there are
    assert counts.advise_max_tests(Rates(0.0, 1e-6)) == 32


def test_bad_input_is_named(client, frame):
    with pytest.raises(DataTypeError, match="Dask frame"):
        eg.ClusterCounts(client, 3)
    with pytest.raises(DataError, match="no partitions"):
        eg.ClusterCounts(client, [])
    with pytest.raises(DataError, match="no rows"):
        eg.ClusterCounts(client, [frame.iloc[:0]])
    with pytest.raises(EdgeError, match="itself"):
        eg.ClusterCounts(client, [frame]).pairs([(1, 1)])
    other = frame.rename(columns={"n0": "m0"})
    with pytest.raises(DataError, match="'m0', 'n0'"):
        eg.ClusterCounts(client, [frame, other])
    with pytest.raises(DataError, match=r"column 'n1' has different types.*'int64', 'string'"):
        eg.ClusterCounts(client, [frame, frame.assign(n1="a")])
    with pytest.raises(FileNotFoundError, match=r"absent\.parquet"):
        eg.ClusterCounts(client, ["/absent.parquet"])


def test_a_bad_partition_is_numbered(client, frame):
    bad = frame.astype({"n1": object})
    bad["n1"] = [{"nested": 1}] * len(bad)
    with pytest.raises(DataTypeError) as caught:
        eg.ClusterCounts(client, [frame, bad], schema=pack(frame).schema)
    assert caught.value.__notes__ == ["This is partition 1 of 2, counted from 0."]


class Parts:
    """Tables as the blocks of a larger one."""

    def __init__(self, tables):
        self.tables = tables
        self.schema = tables[0].schema
        self.starts = np.concatenate(([0], np.cumsum([table.n_rows for table in tables])))
        self.n_rows = int(self.starts[-1])

    def block(self, k):
        return self.tables[k]


@pytest.mark.parametrize("precision", ["single", "double"])
def test_sums_of_rows_are_those_of_one_machine_to_the_last_bit(client, frame, precision):
    schema, parts = pack(frame).schema, cut(frame, 4)
    shards = ClusterShards(eg.ClusterCounts(client, parts))
    local = LocalShards(Parts([pack(part, schema=schema) for part in parts]))
    assert shards.schema == local.schema
    layout = Layout(schema.n_states, [(0, 1), (2, 5), (6, 7)])
    theta = np.random.default_rng(1).normal(size=layout.n_parameters)
    found, expected = (one.evaluate(theta, layout, precision) for one in (shards, local))
    np.testing.assert_array_equal(found.losses, expected.losses)
    np.testing.assert_array_equal(found.gradient, expected.gradient)
    edges = all_pairs(len(schema))[::2]
    np.testing.assert_array_equal(
        shards.edge_sums(theta, layout, edges, precision),
        local.edge_sums(theta, layout, edges, precision),
    )
    drawn, other = (one.sample(500, np.random.default_rng(2)) for one in (shards, local))
    np.testing.assert_array_equal(drawn.table.codes(), other.table.codes())


def test_variables_of_very_many_states_are_counted(client):
    states = [2, 70, 300, 3]
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, s, 2000) for s in states])
    codes[rng.random(codes.shape) < 0.1] = -1
    schema = Schema.from_states(states)
    table = PackedTable.from_codes(codes, schema)
    parts = [pd.DataFrame(part, columns=schema.names) for part in np.array_split(codes, 3)]
    counts = eg.ClusterCounts(client, parts, schema=schema, missing_values=[-1])
    assert_same_counts(counts, eg.PairCounts(table))
