"""How a pass over the rows is getting on."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from edgegraft.ingest.sources import Source

_EVERY = 0.25  # seconds between two reports


class RowsRead(NamedTuple):
    """A report of a pass.

    Attributes
    ----------
    rows : int
        Rows read so far.
    seconds : float
        Since the pass began.
    share : float or None
        Share of the data that has been read; None where their size is not known.

    Examples
    --------
    >>> report = RowsRead(rows=3000, seconds=2.0, share=0.25)
    >>> report.rate, report.seconds_left
    (1500.0, 6.0)
    """

    rows: int
    seconds: float
    share: float | None = None

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Time to the end of the pass at this rate; None where it is not known."""
        if not self.share:
            return None
        return max(0.0, self.seconds * (1.0 / self.share - 1.0))


OnRows = Callable[[RowsRead], None]


class PassWatch:
    """Reports a pass over a source, a few times a second."""

    def __init__(self, source: Source, on_rows: OnRows | None) -> None:
        self._source = source
        self._on_rows = on_rows
        self._begun = perf_counter()
        self._next = 0.0

    def report(self, rows: int) -> None:
        """Report how many rows have been read, if it is time for it."""
        if self._on_rows is None:
            return
        seconds = perf_counter() - self._begun
        if seconds >= self._next:
            self._next = seconds + _EVERY
            self._on_rows(RowsRead(rows, seconds, self._source.share))
