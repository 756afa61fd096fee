"""One function over many tasks, in as many processes as there are cores, one thread each."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def each(
    function: Callable[[Task], Result], tasks: Sequence[Task]
) -> Iterator[tuple[Task, Result]]:
    """Yield every task with its result, in the order in which they are done.

    Function and tasks are pickled: names and numbers, not closures.
    """
    os.environ.update(dict.fromkeys(_LIMITS, "1"))  # inherited by the processes
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = {pool.submit(function, task): task for task in tasks}
        for done in as_completed(waiting):
            yield waiting[done], done.result()
