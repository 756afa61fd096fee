"""Ctrl-C during a search: a wish to end soon, with what there is.

The loop of :mod:`edgegraft.learn.loop` takes the first Ctrl-C that arrives while it runs and puts
back the handler that it found, which is the one of this module. Between its runs (while weights
are worked out again, edges tested, the model refitted) Ctrl-C comes here. A second one, and one
before the search, when there is nothing to save, end at once. That one is remembered as well:
libraries that load others from C swallow what a handler raises.
"""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgegraft.learn import Event, Growth


class Interrupts:
    """An observer that ends a search on Ctrl-C; a context in which it is listening."""

    def __init__(self) -> None:
        self._asked = False
        self._started = False
        self._inside = False
        self._before: Any = None

    @property
    def asked(self) -> bool:
        """Whether Ctrl-C was pressed."""
        taken = self._inside and signal.getsignal(signal.SIGINT) == self._handle
        return self._asked or taken

    def check(self) -> None:
        """End at once where Ctrl-C was pressed before the search."""
        if self._asked and not self._started:
            raise KeyboardInterrupt

    def on_event(self, event: Event, growth: Growth) -> bool:
        """Note where the search is; ask it to stop after Ctrl-C."""
        self.check()
        if event.kind == "end":
            self._inside = False
            self._asked = self._asked or growth.interrupted
        stop = self._asked
        if event.kind == "start":
            self._started = self._inside = True
        return stop

    def _handle(self, number: int, frame: FrameType | None) -> None:
        at_once = self.asked or not self._started
        self._asked = True
        if at_once:
            raise KeyboardInterrupt

    def __enter__(self) -> Interrupts:
        self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        signal.signal(signal.SIGINT, self._before)
