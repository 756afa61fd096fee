"""Partitions held by the workers of a cluster, and how they are asked.

A question goes out as one task a worker, over all partitions that the worker holds; where they
lie is looked up before every question. A partition that is lost with its worker is made again
from its source by the scheduler, which knows how; a task names the partitions that it speaks of,
and an answer is taken once for each, so what is lost is neither missing nor counted twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edgegraft.contrib.dask import worker as worker
from edgegraft.contrib.dask.placement import place
from edgegraft.contrib.dask.watch import KILLED, Watch, died, lost

if TYPE_CHECKING:
    from distributed import Future

_LATE = 4.0  # times the median of the others


class Traffic(NamedTuple):
    """What went over the network so far.

    Attributes
    ----------
    round_trips : int
        Questions: tasks out to the workers, answers back.
    tasks : int
        Tasks of these questions.
    bytes_sent, bytes_received : int
        Arrays of arguments and answers, without the scheduler's own messages.
    recovered : int
        Tasks that were given out again because the scheduler had given them up.
    late : int
        Partitions that were packed again elsewhere because their worker was too slow.
    """

    round_trips: int = 0
    tasks: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    recovered: int = 0
    late: int = 0


class Answer(NamedTuple):
    """What some partitions answered: one value each, or one of all together."""

    partitions: tuple[int, ...]
    values: list[Any]


@dataclass(frozen=True)
class _Task:
    partitions: tuple[int, ...]
    address: str
    started: float = field(default_factory=monotonic)


class _Refused(Exception):
    """A question whose own error is to be raised."""


class HeldPartitions:
    """Partitions in the memory of workers.

    Parameters
    ----------
    watch : Watch
        Of the client.
    futures : sequence of Future
        Of each partition's :class:`~edgegraft.contrib.dask.worker.Held`.
    again : callable
        Packs a partition again from its source, on the workers given or any:
        ``again(k, workers)``.
    """

    def __init__(
        self,
        watch: Watch,
        futures: Sequence[Future],
        again: Callable[[int, list[str] | None], Future],
    ) -> None:
        self.watch = watch
        self.client = watch.client
        self.futures = list(futures)
        self.traffic = Traffic()
        self._again = again
        self._slow: set[str] = set()

    def __len__(self) -> int:
        return len(self.futures)

    def settle(self) -> None:
        """Wait until all partitions are held."""
        self.watch.done(self.futures, lambda k: self._again(k, None))

    def keep(self, chosen: Iterable[int]) -> None:
        """Let go of all partitions but these."""
        kept, again = list(chosen), self._again
        self.futures = [self.futures[k] for k in kept]
        self._again = lambda k, workers: again(kept[k], workers)

    def ask(
        self, question: worker.Question, *arguments: Any, together: bool = False
    ) -> list[Answer]:
        """Return the answers of all partitions, each exactly once, in no particular order.

        Parameters
        ----------
        question : callable
            Of a `Held`, an `At` and `arguments`; importable on the workers.
        together : bool
            Whether answers are integers: those of one worker are added there.
        """
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError, FuturesCancelledError
        from distributed.comm import CommClosedError

        if self.client.status != "running":
            raise lost(self.client)
        try:
            return self._ask(_Question(self, question, arguments, together))
        except _Refused as refused:
            raise refused.args[0] from None
        except KilledWorker as error:  # over an answer that was there, and lost on its way
            raise died("the same answer", error) from error
        except (CommClosedError, FutureCancelledError, FuturesCancelledError, OSError) as error:
            raise lost(self.client) from error

    def each(self, question: worker.Question, *arguments: Any) -> list[Any]:
        """Return the answer of every partition, in their order."""
        answers: list[Any] = [None] * len(self)
        for answer in self.ask(question, *arguments):
            for k, value in zip(answer.partitions, answer.values, strict=True):
                answers[k] = value
        return answers

    def total(self, question: worker.Question, *arguments: Any) -> Any:
        """Return the sum of answers that are integers: exact in any order."""
        answers = self.ask(question, *arguments, together=True)
        total = np.zeros(np.shape(answers[0].values[0]), np.int64)
        for answer in answers:
            total += answer.values[0]
        return total if total.ndim else int(total)

    def _ask(self, asked: _Question) -> list[Answer]:
        asked.give_out(range(len(self)))
        self.count(round_trips=1)
        answers: list[Answer] = []
        while asked.waiting:
            done = {
                future: asked.waiting.pop(future) for future in self.watch.finished(asked.waiting)
            }
            for future, task in list(done.items()):
                if asked.is_given_out_again(future, task):
                    del done[future]
            found = self.client.gather(list(done))
            self.count(bytes_received=_nbytes(found))
            answers += [Answer(t.partitions, v) for t, v in zip(done.values(), found, strict=True)]
            self._replace_slow(asked)
        return answers

    def groups(self, partitions: Sequence[int]) -> dict[str, list[int]]:
        """Return which worker to ask for which of the partitions."""
        threads = self.client.nthreads()
        usable = {name: n for name, n in threads.items() if name not in self._slow} or threads
        chosen = [self.futures[k] for k in partitions]
        holders = self.client.who_has(chosen)
        placed = place([list(holders.get(future.key, ())) for future in chosen], usable)
        return {name: [partitions[k] for k in found] for name, found in placed.items()}

    def renew(self, partitions: Sequence[int]) -> None:
        """Pack those partitions again that no worker holds."""
        holders = self.client.who_has([self.futures[k] for k in partitions])
        gone = [k for k in partitions if not holders.get(self.futures[k].key)]
        # All are let go of before one is packed: the scheduler must forget what it gave up.
        for k in gone:
            self.futures[k].release()
        for k in gone:
            self.futures[k] = self._again(k, None)

    def _replace_slow(self, asked: _Question) -> None:
        """Give what a worker is too slow with to the others, packed again from the source."""
        for future, task in asked.slow():
            others = [name for name in self.client.nthreads() if name != task.address]
            if not others:
                continue
            self._slow.add(task.address)
            del asked.waiting[future]
            future.release()
            for k in task.partitions:
                self.futures[k] = self._again(k, others)
            self.count(late=len(task.partitions))
            asked.give_out(task.partitions)

    def count(self, **more: int) -> None:
        """Add to the traffic."""
        self.traffic = self.traffic._replace(
            **{name: getattr(self.traffic, name) + by for name, by in more.items()}
        )


class _Question:
    """One question on its way."""

    def __init__(
        self,
        held: HeldPartitions,
        question: worker.Question,
        arguments: Sequence[Any],
        together: bool,
    ) -> None:
        self.waiting: dict[Future, _Task] = {}
        self._held = held
        self._task = (question, tuple(arguments), together)
        self._size = _nbytes(arguments)
        self._took: list[float] = []
        self._n_killed = 0

    def give_out(self, partitions: Sequence[int]) -> None:
        """Submit one task a worker."""
        held = self._held
        for address, chosen in held.groups(partitions).items():
            future = held.client.submit(
                worker.answer,
                *self._task,
                tuple(chosen),
                *(held.futures[k] for k in chosen),
                workers=[address] if address else None,
                allow_other_workers=bool(address),
                pure=False,
            )
            self.waiting[future] = _Task(tuple(chosen), address)
            held.count(tasks=1, bytes_sent=self._size)

    def is_given_out_again(self, future: Future, task: _Task) -> bool:
        """Tell whether a task that is done has to be done again: its workers died over it."""
        from distributed import KilledWorker

        held, error = self._held, future.exception()
        if isinstance(error, KilledWorker):
            self._n_killed += 1
            if self._n_killed > KILLED:
                raise died(f"partitions {list(task.partitions)}", error)
            future.release()
            held.renew(task.partitions)
            held.count(recovered=1)
            self.give_out(task.partitions)
            return True
        if error is not None:
            raise _Refused(error)
        self._took.append(monotonic() - task.started)
        return False

    def slow(self) -> list[tuple[Future, _Task]]:
        """Return the tasks that have taken far longer than those that are done."""
        if not self._took or len(self._took) < len(self.waiting):
            return []
        limit = max(self._held.watch.patience.straggler, _LATE * median(self._took))
        now = monotonic()
        return [(f, task) for f, task in self.waiting.items() if now - task.started > limit]


def _nbytes(values: Any) -> int:
    """Return the bytes of arrays, in tuples and lists or not; 8 for anything else."""
    if isinstance(values, tuple | list):
        return sum(map(_nbytes, values))
    return int(getattr(values, "nbytes", 8))
