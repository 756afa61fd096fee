"""Ctrl-C while learning: a wish to end soon, with what there is.

The first Ctrl-C inside of :func:`interruptible` sets a flag that loops ask between their steps; a
second one interrupts at once. Blocks nest: the outermost listens for all of them, so a wish that is
expressed between two loops ends the second one.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class Interruption:
    """Whether Ctrl-C was pressed."""

    asked: bool = False

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self.asked:
            raise KeyboardInterrupt


_listening: list[Interruption] = []  # that of the outermost block, if there is one


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Turn the first Ctrl-C inside of the block into a flag; a second one interrupts at once.

    Python gives signals to the main thread: on any other nothing is ever asked.

    Examples
    --------
    >>> with interruptible() as interruption:
    ...     signal.raise_signal(signal.SIGINT)
    ...     interruption.asked
    True
    """
    if threading.current_thread() is not threading.main_thread():
        yield Interruption()
        return
    if _listening:
        yield _listening[0]
        return
    found = Interruption()
    previous = signal.getsignal(signal.SIGINT) or signal.SIG_DFL

    def handle(number: int, frame: FrameType | None) -> None:
        found.asked = True
        signal.signal(signal.SIGINT, previous)

    signal.signal(signal.SIGINT, handle)
    _listening.append(found)
    try:
        yield found
    finally:
        _listening.clear()
        signal.signal(signal.SIGINT, previous)
