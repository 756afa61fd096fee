"""What happens while a graph grows, why that ends, and who may watch.

Progress displays, traces and checkpoints are observers. An observer sees a snapshot after every
activation and may ask the loop to stop; it never changes what is learned.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from edgegraft.learn.state import Growth


class StopReason(StrEnum):
    """Why a search ended; the text is what users and files see.

    Examples
    --------
    >>> str(StopReason.MAX_EDGES), StopReason.MAX_EDGES.resumable, StopReason.OPTIMAL.resumable
    ('the edge budget is spent', True, False)
    """

    OPTIMAL = "no pair violates optimality"
    GIVEN_UP = "no pair violates optimality but those that the fit sets back to zero"
    MAX_EDGES = "the edge budget is spent"
    MAX_TIME = "the time budget is spent"
    MAX_TABLES = "the table budget is spent"
    SECOND_LOOK = "a second look had added as many edges as it may"
    OBSERVER = "stopped by an observer"
    INTERRUPTED = "interrupted"

    @property
    def requested(self) -> bool:
        """Whether somebody asked the search to end: what would follow it is left out."""
        return self in (StopReason.OBSERVER, StopReason.INTERRUPTED)

    @property
    def resumable(self) -> bool:
        """Whether a larger budget of time or edges would let the search continue."""
        return self in (StopReason.MAX_TIME, StopReason.MAX_EDGES)


@dataclass(frozen=True)
class Event:
    """One step of the loop.

    Attributes
    ----------
    kind : {"start", "activation", "checkpoint", "end"}
    seconds : float
        Since the run began, earlier parts of a resumed run included.
    objective : float
        Loss plus penalty.
    n_edges : int
        Active edges.
    n_activations : int
        Activation steps so far.
    n_tests : int
        Pairs scored so far, a pair scored again counted again.
    n_tables : int
        Different pairs scored so far.
    reason : str
        Why the run ended, with kind "end".
    n_trips : int
        Questions to a cluster so far, of this process; 0 while the rows are on this machine.
    """

    kind: str
    seconds: float
    objective: float
    n_edges: int
    n_activations: int
    n_tests: int
    n_tables: int
    reason: str = ""
    n_trips: int = 0


class Observer(Protocol):
    """Watches a run."""

    def on_event(self, event: Event, growth: Growth) -> bool | None:
        """Take notice of an event; True asks the loop to stop after this step."""
        ...
