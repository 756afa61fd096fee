"""Tables in: what scikit-learn's users pass, as codes under a schema.

Frames, files and packed tables go to :func:`edgegraft.ingest.pack` as they are; lists and anything
else that can be made an array is one first, with scikit-learn's own checks and messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from tempfile import gettempdir
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.contrib.dask.counts import counts_of, is_on_cluster
from edgegraft.contrib.dask.shards import ClusterShards
from edgegraft.core.checks import check_weights
from edgegraft.errors import DataError, UnseenCategoryError
from edgegraft.estimators.labels import labels
from edgegraft.estimators.memory import (
    Budget,
    check_limit,
    physical_memory,
    read_size,
    share_out,
)
from edgegraft.ingest import pack
from edgegraft.ingest.cache import CACHE_SIZE, open_store
from edgegraft.ingest.files import KNOWN
from edgegraft.ingest.many_files import find_files
from edgegraft.ingest.options import PackOptions
from edgegraft.ingest.pack import pack_as
from edgegraft.learn.stages import SAMPLE_ROWS
from edgegraft.objective.local_shards import LocalShards
from edgegraft.objective.sharded import Shards
from edgegraft.table import PackedTable, Schema
from edgegraft.table.store import PlaneStore

_LARGE = 1 / 8  # of the machine's memory: larger files go through a store on disk unasked
_USED = 1 / 2  # of the machine's memory, where no limit was given

_LIBRARIES = ("pandas", "polars", "pyarrow")


def library_of(X: Any) -> str:
    """Return the package that a table's type comes from."""
    return type(X).__module__.partition(".")[0]


def as_table(X: Any, estimator: str) -> Any:
    """Return `X` as something that `pack` takes; arrays are checked as scikit-learn does.

    Parameters
    ----------
    X : table
    estimator : str
        What messages call the estimator.
    """
    if isinstance(X, PackedTable | str | PathLike | Mapping) or is_on_cluster(X):
        return X
    if library_of(X) in _LIBRARIES or hasattr(X, "__arrow_c_stream__"):
        return X
    if hasattr(X, "__arrow_c_array__") or isinstance(X, np.ma.MaskedArray):
        return X
    if isinstance(X, np.ndarray) and X.dtype.names:
        return X
    if isinstance(X, list | tuple):
        # As objects: numbers beside text stay numbers, and every column finds its own type.
        _check_lengths(X)
        X = np.array(X, dtype=object)
    from sklearn.utils.validation import check_array  # slow to load, and files do without

    return check_array(X, dtype=None, ensure_all_finite=False, estimator=estimator, input_name="X")


def _check_lengths(rows: Sequence[Any]) -> None:
    lengths = [len(row) if isinstance(row, list | tuple) else None for row in rows]
    for k, length in enumerate(lengths):
        if length is not None and lengths[0] is not None and length != lengths[0]:
            raise DataError(f"row {k} has {length} cells where row 0 has {lengths[0]}")


def column_labels(X: Any) -> list[Any] | None:
    """Return the labels of a table's columns; None where they are positions.

    Of files and one-shot streams, which are read only once, None as well.
    """
    if isinstance(X, PackedTable):
        return list(X.schema.names)
    if isinstance(X, Mapping):
        return list(X)
    if isinstance(X, np.ndarray):
        return list(X.dtype.names) if X.dtype.names else None
    if library_of(X) == "pyarrow":
        return list(X.schema.names)
    return list(X.columns) if hasattr(X, "columns") else None


def has_positions(X: Any) -> bool:
    """Tell whether the columns of `X` have no names of their own."""
    return isinstance(X, np.ndarray) and not X.dtype.names


def read(X: Any, schema: Schema | None = None, n_jobs: int = 1) -> PackedTable:
    """Return a table packed, under `schema` where there is one."""
    if not isinstance(X, PackedTable):
        return pack(X, schema=schema, n_jobs=n_jobs)
    if schema is None or X.schema == schema:
        return X
    for name in schema.names:
        if name in X.schema and (X.schema[name].binned or schema[name].binned):
            if X.schema[name] == schema[name]:
                continue
            raise DataError(
                f"column '{name}' was binned differently when this table was packed: pack it "
                "with schema=estimator.schema_"
            )
    return pack(labels(X.schema, X.codes()), schema=schema)


def read_codes(X: Any, schema: Schema) -> NDArray[np.int64]:
    """Return a table's codes under a schema, -1 for a missing cell."""
    try:
        table = read(X, schema)
    except UnseenCategoryError as error:
        error.add_note(
            "With an estimator: pass pack(X, schema=estimator.schema_, unseen='missing'); or fit "
            "with schema= of all the categories there may be."
        )
        raise
    return np.ascontiguousarray(table.codes(), np.int64)


class Reading(NamedTuple):
    """How much memory reading and learning may take, and where bit planes may lie.

    Attributes
    ----------
    max_memory : int, str or None
    cache_dir : path or None
    cache_size : int, str or None
    sample_rows : int or None
        Of a fit that is gone on with, which must have the same again: the rows of its sample, 0
        where it had all rows in memory.
    """

    max_memory: int | str | None = None
    cache_dir: str | PathLike[str] | None = None
    cache_size: int | str | None = None
    sample_rows: int | None = None


class RowsToFit(NamedTuple):
    """Rows as `discover` takes them, and where they come from."""

    rows: PackedTable | Shards
    weights: NDArray[np.float64] | None  # of a table; shards have their own
    sample_rows: int
    store: PlaneStore | None = None  # which they were read through
    budget: Budget | None = None  # where there is a limit


@contextmanager
def rows_to_fit(
    X: Any,
    schema: Schema | None,
    options: PackOptions,
    reading: Reading,
    weights: ArrayLike | None = None,
) -> Iterator[RowsToFit]:
    """Read a table, into memory where it fits the limit, otherwise into a store on disk.

    What lies on a cluster stays there.

    Parameters
    ----------
    X : table
        As :func:`as_table` returns it.
    schema : Schema or None
    options : PackOptions
        How `X` is read, with its threads.
    reading : Reading
    weights : array of float, optional
    """
    if is_on_cluster(X):
        if weights is not None:
            raise DataError("rows on a cluster have no sample_weight: repeat rows instead")
        yield RowsToFit(ClusterShards(counts_of(X, schema)), None, SAMPLE_ROWS)
        return
    limit = _limit(X, reading.max_memory)
    if limit is None:
        packed = isinstance(X, PackedTable)
        table = read(X, schema) if packed else pack_as(X, schema, options)
        checked = None if weights is None else check_weights(weights, table.n_rows)
        yield RowsToFit(table, checked, SAMPLE_ROWS)
        return
    n_jobs = options.n_jobs
    check_limit(limit)
    with _open(X, schema, options, reading) as store:
        budget = _same(share_out(limit, store.n_rows, store.n_variables, n_jobs), reading)
        checked = None if weights is None else check_weights(weights, store.n_rows)
        if budget.whole:
            yield RowsToFit(store.table(), checked, SAMPLE_ROWS, store, budget)
            return
        shards = LocalShards(
            store, n_jobs=budget.n_jobs, weights=checked, max_bytes=budget.kept_bytes
        )
        yield RowsToFit(shards, None, budget.sample_rows, store, budget)


def _open(X: Any, schema: Schema | None, options: PackOptions, reading: Reading) -> PlaneStore:
    size = CACHE_SIZE if reading.cache_size is None else read_size(reading.cache_size)
    folder = reading.cache_dir
    if folder is None and _is_stream(X):
        folder = gettempdir()  # its planes are not kept
    return open_store(
        X,
        schema=schema,
        folder=folder,
        max_bytes=size,
        on_rows=options.on_rows,
        options=options,
    )


def _same(budget: Budget, reading: Reading) -> Budget:
    """Return a budget with the sample of the fit that is gone on with, if it is one."""
    rows = reading.sample_rows
    return budget if rows is None else budget._replace(whole=rows == 0, sample_rows=rows)


def _is_stream(X: Any) -> bool:
    """Tell whether rows come in batches, once, and may be more than fit in memory."""
    in_memory = type(X).__name__ in ("Table", "RecordBatch", "DataFrame", "Series")
    return hasattr(X, "__arrow_c_stream__") and not in_memory


def _limit(X: Any, max_memory: int | str | None) -> int | None:
    """Return the bytes that a fit may take; None where the rows are in memory or small."""
    is_path = isinstance(X, str | PathLike)
    if not is_path and not _is_stream(X):
        return None
    if max_memory is not None:
        return read_size(max_memory)
    memory = physical_memory()
    if memory is None:
        return None
    if not is_path:
        return int(_USED * memory)
    large = sum(p.stat().st_size for p in find_files(X, KNOWN) if p.exists()) > _LARGE * memory
    return int(_USED * memory) if large else None
