"""Clusters of processes on this machine; skipped where dask is absent."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import edgegraft as eg
from edgegraft.core import all_pairs
from tests.cluster.machines import machines

WHY = "the cluster source needs dask: pip install 'edgegraft[dask]'"


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/cluster" in item.nodeid:
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session", autouse=True)
def _needs_dask():
    pytest.importorskip("dask", reason=WHY)
    pytest.importorskip("distributed", reason=WHY)


@pytest.fixture(scope="session")
def client(_needs_dask):
    """A client of two workers, which all tests share that kill none."""
    with machines(2) as (_, client):
        yield client


def make_frame(n_rows=3000, seed=0):
    """Columns of many kinds: whole numbers, text with holes, bins, categories, booleans."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({f"n{i}": rng.integers(0, 2 + i, n_rows) for i in range(6)})
    frame["text"] = rng.choice(["no", "yes", "perhaps"], n_rows)
    frame.loc[rng.random(n_rows) < 0.2, "text"] = None
    frame["level"] = pd.Categorical(rng.choice(["low", "high"], n_rows), ["low", "mid", "high"])
    frame["flag"] = rng.random(n_rows) < 0.3
    frame["many"] = rng.integers(0, 30, n_rows)
    return frame


@pytest.fixture
def frame():
    return make_frame()


def counts_of(client, partitions, **options):
    """Counts of rows on a cluster."""
    return eg.PairCounts(eg.ClusterRows(client, partitions, **options))


def cut(frame, n_parts):
    """Unequal runs of rows."""
    edges = np.linspace(0, 1, n_parts + 1) ** 1.5 * len(frame)
    bounds = edges.round().astype(int)
    return [frame.iloc[a:b] for a, b in pairwise(bounds)]


def assert_same_counts(found, expected):
    assert found.schema == expected.schema
    assert found.n_rows == expected.n_rows
    np.testing.assert_array_equal(found.margins().values, expected.margins().values)
    edges = all_pairs(len(expected.schema))
    for asked in (edges, edges[::-3, ::-1]):
        tables = found.pairs(asked)
        assert tables.values.dtype == np.int64
        np.testing.assert_array_equal(tables.values, expected.pairs(asked).values)
