"""The progress of a run, for a person at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.text import Text

from edgegraft.cli.console import clock
from edgegraft.core.threads import Interruption

if TYPE_CHECKING:
    from edgegraft.ingest.sources import RowsRead
    from edgegraft.learn import Event, SearchState

_SIGNS = "|/-\\"
_TURNS = 8  # of the sign, per second


class Progress:
    """An observer that shows one line, which disappears when the run is over.

    Nothing is shown if the console is not a terminal. `max_time` is counted down.
    """

    def __init__(self, console: Console, max_time: float | None = None) -> None:
        self.interruption = Interruption()
        self._console = console
        self._max_time = max_time
        self._begun = perf_counter()
        self._stage, self._facts = "", ""
        self._end: float | None = None  # of the search, by its budget of time
        self._all_rows: float | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the line while the block runs."""
        if not self._console.is_terminal or self._console.is_dumb_terminal or self._console.quiet:
            yield
            return
        try:
            with Live(self, console=self._console, transient=True, refresh_per_second=_TURNS):
                yield
        finally:
            self._console.show_cursor()  # Ctrl-C may come before the display can clean up

    def stage(self, name: str, facts: str = "") -> None:
        """Set what is being done."""
        self._stage, self._facts, self._end = name, facts, None

    def on_rows(self, read: RowsRead) -> None:
        """Show how far a pass over the files has come; end it after Ctrl-C."""
        self.interruption.check()
        facts = [f"{read.rows:,} rows", f"{read.rate:,.0f} rows per second"]
        if read.seconds_left is not None:
            facts.append(f"{clock(read.seconds_left)} left")
        self.stage(self._stage, ", ".join(facts))

    def over(self, all_rows: float) -> None:
        """Set the weight of all rows, if the search begins on a sample of them."""
        self._all_rows = all_rows

    def on_event(self, event: Event, growth: SearchState) -> None:
        """Show a step of the search."""
        n = len(growth.objective.schema)
        facts = [
            f"{event.n_edges:,} edges",
            f"objective {event.objective:.4f}",
            f"{event.n_tables:,} of {n * (n - 1) // 2:,} pairs tested",
        ]
        some = self._all_rows is not None and growth.objective.n_rows < self._all_rows
        if some:
            facts.append(f"over a sample of {growth.objective.n_rows:,.0f} rows")
        elif self._all_rows is not None:
            facts.append("over all rows")
        self.stage("growing", ", ".join(facts))
        if event.kind == "end":
            more = some and not self.interruption.asked
            self._stage = "continuing with more rows" if more else "testing edges"
        elif self._max_time is not None:
            self._end = perf_counter() - event.seconds + self._max_time

    def on_pairs(self, done: int, n: int) -> None:
        """Show the pairs that the bootstrap has tested."""
        self.stage("bootstrap", f"{done:,} of {n:,} pairs")

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return perf_counter() - self._begun

    def __rich__(self) -> Text:
        sign = _SIGNS[int(_TURNS * self.seconds) % len(_SIGNS)]
        parts = [f"{sign} [{clock(self.seconds)}]", self._stage]
        if "edgegraft.kernels.compiler" in sys.modules:
            from edgegraft.kernels.compiler import COMPILATION

            COMPILATION.shown = True
            parts.append(COMPILATION.line)
        if self.interruption.asked:
            parts.append("stopping, Ctrl-C again gives up")
        if self._end is not None:
            parts.append(f"{clock(max(0.0, self._end - perf_counter()))} left")
        parts.append(self._facts)
        text = "  ".join(part for part in parts if part)
        return Text(text, no_wrap=True, overflow="ellipsis")
