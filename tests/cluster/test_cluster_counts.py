"""Counts of a cluster are those of one machine, whatever the partitions come as."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest

import edgegraft as eg
from edgegraft.core import Layout, all_pairs
from edgegraft.errors import DataError, DataTypeError, EdgeError, UnseenCategoryError
from edgegraft.ingest import pack
from edgegraft.objective import Pseudolikelihood
from edgegraft.scale.cluster import _ask
from edgegraft.table import PackedTable, Schema, StoredRows
from edgegraft.table.blocks import sample_rows
from tests.cluster.conftest import assert_same_counts, counts_of, cut
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
    counts = counts_of(client, make(frame, tmp_path, client))
    assert_same_counts(counts, eg.PairCounts(pack(frame)))


def test_counts_of_arrays_are_those_of_one_machine(client):
    import dask.array as da

    codes = np.random.default_rng(0).integers(0, 4, (1000, 7))
    counts = counts_of(client, da.from_array(codes, chunks=(300, -1)))
    assert_same_counts(counts, eg.PairCounts(pack(codes)))
    with pytest.raises(DataError, match="rechunk"):
        counts_of(client, da.from_array(codes, chunks=(300, 4)))


def test_counts_do_not_depend_on_the_number_of_workers(frame):
    expected = eg.PairCounts(pack(frame))
    with machines(1) as (cluster, client):
        for n_workers in (1, 2, 4):
            while len(cluster.workers()) < n_workers:
                cluster.add_worker()
            client.wait_for_workers(n_workers, timeout=60)
            counts = counts_of(client, cut(frame, 6))
            assert_same_counts(counts, expected)


def test_all_pairs_come_in_blocks(client, frame):
    counts = counts_of(client, cut(frame, 3))
    local = eg.PairCounts(pack(frame))
    blocks, expected = list(counts.blocks(4000)), list(local.blocks(4000))
    assert len(blocks) == len(expected) > 1
    for block, other in zip(blocks, expected, strict=True):
        np.testing.assert_array_equal(block.values, other.values)


def test_a_schema_replaces_the_first_reading(client, frame):
    schema = pack(frame).schema
    counts = counts_of(client, cut(frame, 3)[::-1], schema=schema)
    assert_same_counts(counts, eg.PairCounts(pack(frame)))
    frame.loc[len(frame) - 1, "text"] = "never"
    with pytest.raises(UnseenCategoryError, match="'never'"):
        counts_of(client, cut(frame, 3), schema=schema)


def test_options_of_packing_apply_to_every_partition(client, frame):
    options = {"drop": ["n0"], "missing_values": ["perhaps"], "bins": {"many": 3}}
    counts = counts_of(client, cut(frame, 3), **options)
    assert_same_counts(counts, eg.PairCounts(pack(frame, **options)))


def test_a_batch_is_one_round_trip(client, frame):
    counts = counts_of(client, cut(frame, 5))
    before = counts.rows.round_trips
    counts.pairs(all_pairs(10))
    assert counts.rows.round_trips == before + 1
    counts.pairs(np.empty((0, 2), int))
    assert counts.rows.round_trips == before + 1


def test_counts_travel_in_few_bytes():
    for values, dtype in (([3, 65_535], np.uint16), ([3, 65_536], np.uint32), ([0.5], float)):
        work = pickle.dumps(partial(np.take, np.array(values)))
        assert _ask(work, range(len(values))).dtype == dtype


def test_bad_input_is_named(client, frame):
    with pytest.raises(DataTypeError, match="Dask frame"):
        counts_of(client, 3)
    with pytest.raises(DataError, match="no partitions"):
        counts_of(client, [])
    with pytest.raises(DataError, match="no rows"):
        counts_of(client, [frame.iloc[:0]])
    with pytest.raises(EdgeError, match="itself"):
        counts_of(client, [frame]).pairs([(1, 1)])
    other = frame.rename(columns={"n0": "m0"})
    with pytest.raises(DataError, match="'m0', 'n0'"):
        counts_of(client, [frame, other])
    with pytest.raises(DataError, match=r"column 'n1' has different types.*'int64', 'string'"):
        counts_of(client, [frame, frame.assign(n1="a")])
    with pytest.raises(FileNotFoundError, match=r"absent\.parquet"):
        counts_of(client, ["/absent.parquet"])


def test_a_bad_partition_is_numbered(client, frame):
    bad = frame.astype({"n1": object})
    bad["n1"] = [{"nested": 1}] * len(bad)
    with pytest.raises(DataTypeError) as caught:
        counts_of(client, [frame, bad], schema=pack(frame).schema)
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
    rows = eg.ClusterRows(client, parts)
    local = StoredRows(Parts([pack(part, schema=schema) for part in parts]))
    assert rows.schema == local.schema
    layout = Layout(schema.n_states, [(0, 1), (2, 5), (6, 7)])
    theta = np.random.default_rng(1).normal(size=layout.n_parameters)
    losses = [Pseudolikelihood(one, precision=precision) for one in (rows, local)]
    found, expected = (one.evaluate(theta, one.init(layout)) for one in losses)
    np.testing.assert_array_equal(found.state.losses, expected.state.losses)
    np.testing.assert_array_equal(found.gradient, expected.gradient)
    for edges in (all_pairs(len(schema))[:3], all_pairs(len(schema))[::2]):
        tables = (
            one.edge_gradients(theta, at.state, edges).values
            for one, at in zip(losses, (found, expected), strict=True)
        )
        np.testing.assert_array_equal(*tables)
    drawn, other = (sample_rows(one, 500, np.random.default_rng(2)) for one in (rows, local))
    np.testing.assert_array_equal(drawn.table.codes(), other.table.codes())


def test_variables_of_very_many_states_are_counted(client):
    states = [2, 70, 300, 3]
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, s, 2000) for s in states])
    codes[rng.random(codes.shape) < 0.1] = -1
    schema = Schema.from_states(states)
    table = PackedTable.from_codes(codes, schema)
    parts = [pd.DataFrame(part, columns=schema.names) for part in np.array_split(codes, 3)]
    counts = counts_of(client, parts, schema=schema, missing_values=[-1])
    assert_same_counts(counts, eg.PairCounts(table))
