"""What happens while a graph grows, and who may watch.

Progress displays, traces and checkpoints are observers. An observer sees a snapshot after every
activation and may ask the loop to stop; it never changes what is learned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from edgegraft.learn.state import Growth


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
