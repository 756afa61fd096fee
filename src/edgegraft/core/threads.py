"""Threads over kernels that hold no lock, Ctrl-C while they run, and the machine's memory."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, Generic, TypeVar

from edgegraft.errors import SettingError

_CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")

Item = TypeVar("Item")
Result = TypeVar("Result")


class lazy(Generic[Result]):
    """An attribute that is worked out when it is first asked for.

    `functools.cached_property` has one lock for all objects before Python 3.12, so that threads
    would wait for each other. Here an object is worked on by one thread.

    >>> class Square:
    ...     side = 3
    ...     area = lazy(lambda square: square.side**2)
    >>> Square().area
    9
    """

    def __init__(self, work: Callable[[Any], Result]) -> None:
        self._work, self.__doc__ = work, work.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Result:
        found = instance.__dict__[self._name] = self._work(instance)
        return found


def resolve_jobs(n_jobs: int | None) -> int:
    """Return the number of threads meant by `n_jobs`: None is 1, -1 all cores, -2 all but one.

    >>> resolve_jobs(None), resolve_jobs(3)
    (1, 3)
    """
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        expected = "must be a positive or negative integer or None"
        raise SettingError("n_jobs", f"{expected}, found {n_jobs!r}")
    if n_jobs > 0:
        return n_jobs
    return max(1, _cores() + 1 + n_jobs)


def _cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which matrix products use one thread.

    Libraries are looked for once: that takes milliseconds.
    """
    return _blas().limit(limits=1, user_api="blas")  # type: ignore[no-any-return]


def run(task: Callable[[Item], None], items: Iterable[Item], n_jobs: int) -> None:
    """Call `task` on every item, on up to `n_jobs` threads; the first error is raised."""
    items = list(items)
    if n_jobs == 1 or len(items) < 2:
        for item in items:
            task(item)
        return
    with ThreadPoolExecutor(min(n_jobs, len(items))) as pool:
        for _ in pool.map(task, items):
            pass


def run_in_order(
    task: Callable[[Item], Result], items: Iterable[Item], n_jobs: int
) -> Iterator[Result]:
    """Yield what `task` returns for every item, in order, at most `n_jobs` results ahead.

    >>> list(run_in_order(lambda k: k * k, range(5), n_jobs=2))
    [0, 1, 4, 9, 16]
    """
    if n_jobs == 1:
        yield from map(task, items)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(n_jobs) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(task, item))
                if len(waiting) > n_jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


@cache
def physical_memory() -> int | None:
    """Return the memory of the machine, or of its container, in bytes; None if it is not known."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
    try:
        return min(memory, int(_CONTAINER_LIMIT.read_text()))
    except (OSError, ValueError):  # no container, or one without a limit
        return memory


@dataclass
class Interruption:
    """Whether Ctrl-C was pressed, and whether there is something that a loop could keep."""

    asked: bool = False
    keeps: bool = False

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self.asked:
            raise KeyboardInterrupt

    def check_compiler(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed and there is nothing to keep."""
        if not self.keeps:
            self.check()


_listening: list[Interruption] = []  # that of the outermost block, if there is one


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Turn the first Ctrl-C inside of the block into a flag; a second one interrupts at once.

    Loops ask the flag between their steps, to end soon with what there is. Blocks nest: the
    outermost listens for all of them, so a wish that is expressed between two loops ends the second
    one. A kernel that would have to be compiled while there is nothing to keep is not begun. Python
    gives signals to the main thread: on any other nothing is ever asked.
    """
    if threading.current_thread() is not threading.main_thread():
        yield Interruption()
        return
    if _listening:
        yield _listening[0]
        return
    from edgegraft.kernels.compiler import COMPILATION, no_check  # loads numba

    found = Interruption()
    previous = signal.getsignal(signal.SIGINT) or signal.SIG_DFL

    def handle(number: int, frame: FrameType | None) -> None:
        found.asked = True
        signal.signal(signal.SIGINT, previous)

    signal.signal(signal.SIGINT, handle)
    _listening.append(found)
    COMPILATION.check = found.check_compiler
    try:
        yield found
    finally:
        _listening.clear()
        COMPILATION.check = no_check
        signal.signal(signal.SIGINT, previous)
