"""The parts of rows on a cluster that need neither a cluster nor dask."""

from __future__ import annotations

import pytest

from edgegraft.errors import DataError, DataTypeError, MissingExtraError
from edgegraft.scale import cluster
from edgegraft.scale.partitions import as_sources


def test_the_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"edgegraft\[dask\]"):
        cluster.ClusterRows(None, [])


def test_what_has_no_partitions_is_refused():
    for bad in (3, "rows.parquet", None):
        with pytest.raises(DataTypeError, match="cannot take partitions from"):
            as_sources(bad)
    with pytest.raises(DataError, match="there are no partitions"):
        as_sources(())
