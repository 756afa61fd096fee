"""Counts from partitions on the workers of a Dask cluster.

Pair counts add up over rows. Every worker packs its partitions once, keeps them as bit planes, and
answers a batch of edges with one task; what travels is the batch and its tables, never the rows.
Integers add exactly in any order, so the counts are those of
:class:`~edgegraft.counts.PairCounts` whatever the number of workers, and whichever of them are
lost on the way.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.contrib.dask import worker as worker
from edgegraft.contrib.dask.packing import Packing, as_sources
from edgegraft.contrib.dask.partitions import HeldPartitions, Traffic
from edgegraft.contrib.dask.watch import Patience, Watch
from edgegraft.core.checks import check_edges
from edgegraft.core.tables import FlatTables, PairTables, table_offsets
from edgegraft.counts.pair_counts import PairCounts, all_pair_blocks, check_size
from edgegraft.errors import DataError, MissingExtraError
from edgegraft.ingest.options import ReadOptions
from edgegraft.table import Schema

if TYPE_CHECKING:
    from distributed import Client

_PROBES = 3
_PROBE_PAIRS = 256
_LEAST_TESTS = 32


class Rates(NamedTuple):
    """What a cluster was measured to take."""

    round_trip: float  # seconds for a question without work
    pair: float  # seconds for one more pair in a batch


class ClusterCounts(PairCounts):
    """Exact pair counts of partitions that workers of a cluster hold.

    Parameters
    ----------
    client : distributed.Client
        The caller's own; its security settings apply to all that is sent.
    partitions : Dask frame, Dask array, or sequence
        The rows. A sequence has futures, delayed values, tables, or paths that the workers can
        read; each is one partition. A partition must fit in a worker's memory, packed and, while
        it is packed, as it comes.
    schema : Schema, optional
        Columns and categories, instead of those that one reading of all partitions finds.
    straggler_after : float, default 30
        Seconds after which a worker may count as too slow (it also must take four times as long
        as the median of the others). Its partitions are then packed again elsewhere.
    wait_for_workers : float, default 60
        Seconds to wait where the cluster has no worker, before giving up.
    **options
        ``columns``, ``drop``, ``bins``, ``missing_values`` and the others of
        :func:`edgegraft.ingest.pack` that concern what cells mean.

    Attributes
    ----------
    schema : Schema
    n_rows : int
    n_partitions : int
        Those that have rows.
    traffic : Traffic
        Round trips, tasks and bytes so far, and what had to be done again.

    Examples
    --------
    >>> from distributed import Client  # doctest: +SKIP
    >>> client = Client("tcp://scheduler:8786")  # doctest: +SKIP
    >>> counts = ClusterCounts(client, ["a.parquet", "b.parquet"])  # doctest: +SKIP
    >>> counts.pairs([(0, 1)])[0]  # doctest: +SKIP
    """

    def __init__(
        self,
        client: Client,
        partitions: Any,
        *,
        schema: Schema | None = None,
        straggler_after: float = 30.0,
        wait_for_workers: float = 60.0,
        **options: Any,
    ) -> None:
        _need_dask()
        packing = Packing(
            Watch(client, Patience(straggler_after, wait_for_workers)),
            as_sources(partitions),
            ReadOptions(**options),
        )
        learned = schema is None
        if schema is None:
            schema, findings, futures = packing.learn()
            for warning in findings.warnings():
                warnings.warn(warning, stacklevel=2)
        else:
            futures = packing.apply(schema)
        self._schema = schema
        again = partial(packing.again, schema=schema, learned=learned)
        self.partitions = HeldPartitions(packing.watch, futures, lambda k, on: again(k, workers=on))
        self.partitions.settle()
        rows = self.partitions.each(worker.rows)
        self.partitions.keep(k for k, n in enumerate(rows) if n)
        self._rows = [n for n in rows if n]
        if not self._rows:
            raise DataError("the partitions have no rows")
        self._margins: FlatTables | None = None

    @property
    def schema(self) -> Schema:
        """Names and categories of the variables."""
        return self._schema

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(self._rows)

    @property
    def n_partitions(self) -> int:
        """Number of partitions that have rows."""
        return len(self.partitions)

    @property
    def traffic(self) -> Traffic:
        """What went over the network so far."""
        return self.partitions.traffic

    def margins(self) -> FlatTables:
        """Return the counts of every state of every variable (computed once)."""
        if self._margins is None:
            values = self.partitions.total(worker.margins)
            values.flags.writeable = False
            offsets = np.concatenate(([0], np.cumsum(self.schema.n_states)))
            self._margins = FlatTables(values, offsets)
        return self._margins

    def pairs(self, edges: ArrayLike) -> PairTables:
        """Return the tables of a batch of edges, in the order and orientation asked for.

        One round trip, whatever the size of the batch.
        """
        edges = check_edges(edges, len(self.schema))
        shapes = np.take(self.schema.n_states, edges)
        offsets = table_offsets(shapes)
        check_size(int(offsets[-1]))
        if not len(edges):
            return PairTables(edges, shapes, np.empty(0, np.int64), offsets)
        return PairTables(edges, shapes, self.partitions.total(worker.pairs, edges), offsets)

    def blocks(self, max_bytes: int = 1 << 26) -> Iterator[PairTables]:
        """Yield the tables of all pairs ``i < j`` in blocks of at most `max_bytes`."""
        for edges in all_pair_blocks(self.schema.n_states, max_bytes):
            yield self.pairs(edges)

    def measure(self, random_state: int = 0) -> Rates:
        """Return what a round trip and a pair cost now: the least of three tries."""
        n = len(self.schema)
        if n < 2:
            raise DataError("one column has no pairs to measure")
        rng = np.random.default_rng(random_state)
        first = rng.integers(0, n, _PROBE_PAIRS)
        second = (first + rng.integers(1, n, _PROBE_PAIRS)) % n
        edges = np.column_stack((first, second))
        self.pairs(edges)  # compiled code is loaded once
        trip = _least(lambda: self.partitions.total(worker.nothing))
        batch = _least(lambda: self.pairs(edges))
        return Rates(trip, max(batch - trip, 1e-9) / _PROBE_PAIRS)

    def advise_max_tests(self, rates: Rates | None = None, share: float = 0.1) -> int:
        """Return a batch size that spends at most `share` of its time on the round trip.

        For `max_tests=` of a run, which is part of its settings: runs of the same settings have
        the same edges, on a cluster or not. It is advised once and not adapted under way, for a
        batch whose size followed the clock would give other edges every time. Sizes are powers of
        two, so that measurements that differ little advise the same.
        """
        return batch_size(rates or self.measure(), len(self.schema), share)


def counts_of(
    X: Any, schema: Schema | None = None, options: ReadOptions | None = None
) -> ClusterCounts:
    """Return the counts of a Dask frame on the cluster of the current client."""
    if isinstance(X, ClusterCounts):
        if schema is not None and schema != X.schema:
            raise DataError(
                "schema= differs from that of the counts: give it where ClusterCounts is made"
            )
        return X
    _need_dask()
    from distributed import get_client

    try:
        client = get_client()
    except ValueError:
        raise DataError(
            "a Dask frame is counted on a cluster, and there is no client of one: make it first, "
            "client = distributed.Client('tcp://scheduler:8786'), or distributed.Client() for "
            "processes on this machine"
        ) from None
    chosen = {} if options is None else options.of_cells()
    return ClusterCounts(client, X, schema=schema, **chosen)


def batch_size(rates: Rates, n_variables: int, share: float = 0.1) -> int:
    """Return the pairs of a batch that spends at most `share` of its time on the round trip.

    Never fewer than a search of so many variables tests by default, nor more than there are.

    Examples
    --------
    >>> [batch_size(Rates(seconds, 1e-5), 1000) for seconds in (0.0, 0.002, 0.05)]
    [256, 2048, 65536]
    """
    wanted = max(rates.round_trip / (share * rates.pair), _LEAST_TESTS, n_variables / 4)
    n_pairs = max(1, n_variables * (n_variables - 1) // 2)
    return int(min(2 ** np.ceil(np.log2(wanted)), n_pairs))


def _least(task: Callable[[], Any]) -> float:
    taken = []
    for _ in range(_PROBES):
        started = perf_counter()
        task()
        taken.append(perf_counter() - started)
    return min(taken)


def _need_dask() -> None:
    for package in ("dask", "distributed"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "dask", "counting on a cluster")
