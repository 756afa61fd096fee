"""Waiting for a cluster without waiting for ever: workers that die, or that nobody starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from edgegraft.errors import ClusterError

if TYPE_CHECKING:
    from distributed import Client, Future

_POLL = 1.0  # seconds between two looks at a cluster that says nothing
KILLED = 3  # times that the scheduler may give up one piece of work before we do

RESUME = (
    "make ClusterCounts again from the same partitions on a running cluster, and give "
    "ClusterShards(counts) with the file of checkpoint= to edgegraft.learn.resume_discovery"
)


@dataclass(frozen=True)
class Patience:
    """How long silence is borne.

    Parameters
    ----------
    straggler : float
        Seconds after which a worker may count as too slow: it does once half of the workers have
        answered and it has taken four times as long as their median.
    workers : float
        Seconds to wait for a worker where there is none.
    """

    straggler: float = 30.0
    workers: float = 60.0


class Watch:
    """A client whose work is waited for.

    Parameters
    ----------
    client : distributed.Client
    patience : Patience
    """

    def __init__(self, client: Client, patience: Patience) -> None:
        self.client = client
        self.patience = patience
        self._alone_since: float | None = None

    def finished(self, futures: Iterable[Future]) -> list[Future]:
        """Wait until some of the futures are done; return these, or none after a while.

        Raises
        ------
        ClusterError
            Where the scheduler is lost, or no worker came for too long.
        """
        from distributed import wait

        pending = list(futures)
        try:
            done = wait(pending, timeout=_POLL, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            done = set()
        if self.client.status != "running":
            raise lost(self.client)
        if not done:
            self._expect_workers()
        return [future for future in pending if future in done]

    def done(self, futures: list[Future], again: Callable[[int], Future]) -> None:
        """Wait until all futures are done, whatever workers die over them.

        Parameters
        ----------
        futures : list of Future
            Those over which the scheduler gives up are replaced.
        again : callable
            Starts one of them anew: ``again(k)``.

        Raises
        ------
        ClusterError
            Where the scheduler is lost, or workers die over the same piece again and again.
        Exception
            The error of the work itself, with a note of which piece it was.
        """
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError, FuturesCancelledError
        from distributed.comm import CommClosedError

        killed = [0] * len(futures)
        waiting = dict(zip(futures, range(len(futures)), strict=True))
        try:
            while waiting:
                for future in self.finished(waiting):
                    k = waiting.pop(future)
                    error = future.exception()
                    if isinstance(error, KilledWorker):
                        killed[k] += 1
                        if killed[k] > KILLED:
                            raise died(f"packing partition {k}", error)
                        future.release()
                        futures[k] = again(k)
                        waiting[futures[k]] = k
                    elif error is not None:
                        raise _Refused(k, error)
        except _Refused as refused:
            k, error = refused.args
            error.add_note(f"This is partition {k} of {len(futures)}, counted from 0.")
            raise error from None
        except (CommClosedError, FutureCancelledError, FuturesCancelledError) as gone:
            raise lost(self.client) from gone

    def _expect_workers(self) -> None:
        """Raise where there has been no worker for too long."""
        if self.client.nthreads():
            self._alone_since = None
            return
        now = monotonic()
        self._alone_since = self._alone_since or now
        if now - self._alone_since > self.patience.workers:
            raise ClusterError(
                f"the cluster has had no worker for {self.patience.workers:.0f} seconds. What was "
                f"learned until the last checkpoint is whole: {RESUME}"
            )


class _Refused(Exception):
    """The error of the work itself, with its place."""


def lost(client: Client) -> ClusterError:
    """Return the error for a cluster that forgot its work."""
    what = (
        "the cluster dropped the partitions that it held (was it restarted?)"
        if client.status == "running"
        else f"the connection to the scheduler was lost (the client is {client.status})"
    )
    return ClusterError(f"{what}. What was learned until the last checkpoint is whole: {RESUME}")


def died(over: str, error: BaseException) -> ClusterError:
    """Return the error for work over which workers die again and again."""
    return ClusterError(
        f"workers died again and again over {over} ({error}): it may need more memory than a "
        f"worker has; use smaller partitions or larger workers, then {RESUME}"
    )
