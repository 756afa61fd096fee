"""Rows on the workers of a Dask cluster.

Every partition is packed once, on the worker that reads it, and held there. What learning needs is
asked of all partitions as one function, and the answers are added in the order of the partitions;
so results are the same to the last bit for any number of workers, and whichever of them are lost
on the way: Dask reads and packs lost partitions again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pickle import loads
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.errors import ClusterError, DataError, MissingExtraError
from edgegraft.ingest.findings import Findings
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.rows import OpenRows
from edgegraft.scale import partitions as parts
from edgegraft.table import Schema
from edgegraft.table.blocks import Rows, TableRows

if TYPE_CHECKING:
    from distributed import Client, Future

Result = TypeVar("Result")


_POLL = 1.0  # seconds between two looks at a cluster that does not answer
_RESUME = (
    "What was learned until the last checkpoint is complete: make ClusterRows again from the same "
    "partitions on a running cluster, and pass them with the file of checkpoint= to "
    "edgegraft.learn.resume_discovery"
)


class ClusterRows(Rows):
    """Rows in partitions that workers of a cluster hold; one partition is one block.

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
    wait_for_workers : float, default 60
        Seconds to wait when the cluster has no worker, before giving up.
    **options
        ``columns``, ``drop``, ``bins``, ``missing_values`` and the others of
        :func:`edgegraft.ingest.pack` that concern what cells mean.

    Attributes
    ----------
    schema : Schema
    n_rows : int
    n_blocks : int
        Partitions that have rows.
    round_trips : int
        Calls of all partitions so far.

    Examples
    --------
    >>> from distributed import Client  # doctest: +SKIP
    >>> client = Client("tcp://scheduler:8786")  # doctest: +SKIP
    >>> rows = ClusterRows(client, ["a.parquet", "b.parquet"])  # doctest: +SKIP
    >>> edgegraft.PairCounts(rows).pairs([(0, 1)])[0]  # doctest: +SKIP
    """

    def __init__(
        self,
        client: Client,
        partitions: Any,
        *,
        schema: Schema | None = None,
        wait_for_workers: float = 60.0,
        **options: Any,
    ) -> None:
        _need_dask()
        self.client = client
        self.wait_for_workers = wait_for_workers
        chosen, given = ReadOptions.of(ClusterRows, options), parts.as_sources(partitions)
        with _cluster_errors(client):
            sources = parts.computed(client, given)
            if schema is None:
                opened = parts.on_each(client, parts.open_part, sources, chosen)
                self._results(opened, fetch=False)
                findings = Findings()
                survey = self._results([parts.survey_of(client, opened)])[0]
                schema = parts.settle(survey, chosen, findings)
                for warning in findings.warnings():
                    warnings.warn(warning, stacklevel=2)
                held = parts.on_each(client, parts.OpenPart.close, opened, schema.to_json(), chosen)
            else:
                held = parts.on_each(client, parts.pack_part, sources, schema.to_json(), chosen)
            self._results(held, fetch=False)
        self.schema = schema
        self._held = held
        rows = list(self.map(_count_rows))
        self._held = [part for part, n in zip(held, rows, strict=True) if n]
        self.n_rows, self.n_blocks = sum(rows), len(self._held)
        if not self.n_rows:
            raise DataError("the partitions have no rows")

    def map(self, work: Callable[..., Result], *each: Sequence[Any]) -> Iterator[Result]:
        """Yield ``work(block, *values)`` for every partition, in their order; one round trip."""
        from distributed.protocol.pickle import dumps

        self.round_trips += 1
        with _cluster_errors(self.client):
            # A task of its own: sent once, computed again if it is lost with a worker. As bytes:
            # arrays that Dask sends are read-only, and kernels would be compiled once more.
            shared = self.client.submit(bytes, dumps(work), pure=False)
            asked = [
                self.client.submit(_ask, shared, part, *values, pure=False)
                for part, *values in zip(self._held, *each, strict=True)
            ]
            return iter(self._results(asked))

    def _results(self, futures: Sequence[Future], fetch: bool = True) -> list[Any]:
        """Wait for futures, and return their results unless they stay on the workers."""
        from distributed import wait

        alone_since = None
        while True:
            try:
                wait(list(futures), timeout=_POLL)
                break
            except TimeoutError:
                if self.client.status != "running":
                    raise _lost(self.client) from None
            alone_since = None if self.client.nthreads() else alone_since or monotonic()
            if alone_since is not None and monotonic() - alone_since > self.wait_for_workers:
                raise ClusterError(
                    f"the cluster has had no worker for {self.wait_for_workers:.0f} seconds. "
                    f"{_RESUME}"
                )
        for k, future in enumerate(futures):
            if future.status == "error":
                raise _error_of(future, k, len(futures))
        found = self.client.gather(list(futures)) if fetch else []
        counts = [isinstance(each, np.ndarray) and each.dtype.kind in "iu" for each in found]
        return [each.astype(np.int64) if n else each for each, n in zip(found, counts, strict=True)]


def open_rows(
    X: Any, schema: Schema | None, options: ReadOptions, weights: ArrayLike | None
) -> OpenRows:
    """Return the rows of a Dask frame on the current client's cluster; the plug-in of Dask rows."""
    if weights is not None:
        raise DataError("rows on a cluster have no weights: repeat rows instead")
    return OpenRows(ClusterRows(_current_client(), X, schema=schema, **options.of_cells()))


def _current_client() -> Client:
    _need_dask()
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        raise DataError(
            "a Dask frame is learned from on a cluster, and there is no client of one: make it "
            "first, client = distributed.Client('tcp://scheduler:8786'), or distributed.Client() "
            "for processes on this machine"
        ) from None


def _ask(work: bytes, block: TableRows | None, *values: Any) -> Any:
    """Return what `work` gives of a partition; counts in as few bytes as hold them."""
    result = loads(work)(block, *values)
    if not isinstance(result, np.ndarray) or result.dtype != np.int64 or not result.size:
        return result
    fitting = (t for t in (np.uint16, np.uint32) if result.max() <= np.iinfo(t).max)
    return result.astype(next(fitting, np.int64), copy=False)


def _count_rows(block: TableRows | None) -> int:
    return 0 if block is None else block.n_rows


@contextmanager
def _cluster_errors(client: Client) -> Iterator[None]:
    """Raise what a lost cluster makes Dask raise as an error that says how to resume."""
    from distributed.client import FutureCancelledError, FuturesCancelledError
    from distributed.comm import CommClosedError

    if client.status != "running":
        raise _lost(client)
    try:
        yield
    except (CommClosedError, FutureCancelledError, FuturesCancelledError) as error:
        raise _lost(client) from error


def _error_of(future: Future, k: int, n: int) -> BaseException:
    from distributed import KilledWorker

    error: BaseException = future.exception()
    if isinstance(error, KilledWorker):
        return ClusterError(
            f"workers died again and again over partition {k} of {n}, counted from 0 ({error}): it "
            "may need more memory than a worker has; use smaller partitions or larger workers. "
            f"{_RESUME}"
        )
    if n > 1:
        error.add_note(f"This is partition {k} of {n}, counted from 0.")
    return error


def _lost(client: Client) -> ClusterError:
    """Return the error for a cluster that forgot its work."""
    what = (
        "the cluster dropped the partitions that it held (was it restarted?)"
        if client.status == "running"
        else f"the connection to the scheduler was lost (the client is {client.status})"
    )
    return ClusterError(f"{what}. {_RESUME}")


def _need_dask() -> None:
    for package in ("dask", "distributed"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "dask", "learning on a cluster")
