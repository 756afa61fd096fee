"""Events of a search, the reasons for its end, and its observers.

An observer, such as a progress display, receives a snapshot after every activation and may stop the
loop; it never changes what is learned. A :class:`Monitor` measures the held-out loss and the
recall.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.errors import DataError
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.table import PackedTable

if TYPE_CHECKING:
    from edgegraft.grafting.state import SearchState

Columns = dict[str, NDArray[Any]]


class StopReason(StrEnum):
    """Why a search ended; the text is shown to users and stored in files.

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
    TOO_FEW_ROWS = "so few rows cannot show an edge"
    OBSERVER = "stopped by an observer"
    INTERRUPTED = "interrupted"

    @property
    def requested(self) -> bool:
        """Whether a user or an observer ended the search, so that later steps are skipped."""
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
    kind : {"start", "activation", "end"}
    seconds : float
        Time since the search began, including earlier parts of a resumed search.
    objective : float
        Loss plus penalty.
    n_edges : int
        Active edges.
    n_activations : int
        Activation steps so far.
    n_tests : int
        Pairs scored so far, counting repeated scores.
    n_tables : int
        Different pairs scored so far.
    reason : str
        Why the search ended, with kind "end".
    n_trips : int
        Round trips of this process to a cluster so far; 0 while the rows are on this machine.
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
    """Receives the events of a search."""

    def on_event(self, event: Event, state: SearchState) -> bool | None:
        """Process an event; return True to stop the loop after this step."""
        ...


def as_columns(events: Sequence[Event]) -> Columns:
    """Return events as columns of equal length, by the names of their fields.

    >>> columns = as_columns([Event("start", 0.0, 2.5, 0, 0, 0, 0)])
    >>> columns["kind"].tolist(), columns["objective"].tolist()
    (['start'], [2.5])
    """
    names = [field.name for field in fields(Event)]
    return {name: np.array([getattr(event, name) for event in events]) for name in names}


class Monitor:
    """An observer that measures the model at every event.

    Parameters
    ----------
    held_out : PackedTable, optional
        Rows with the same schema, for the mean negative log-pseudolikelihood.
    truth : array of int, shape (m, 2), optional
        True edges, for the recall.
    every : int, default 1
        Activations between two measurements; the start and the end are always measured.

    Examples
    --------
    >>> from edgegraft.datasets import make_chain
    >>> from edgegraft.learn import grow
    >>> from edgegraft.objective.penalty import Penalty
    >>> data = make_chain(5, n_rows=2000, couplings="ising", random_state=0)
    >>> table = PackedTable.from_codes(data.X.astype(int))
    >>> monitor = Monitor(held_out=table, truth=data.edges)
    >>> _ = grow(Pseudolikelihood(table), Penalty(0.02), observers=[monitor])
    >>> monitor.columns()["recall"][-1].item()
    1.0
    """

    def __init__(
        self,
        held_out: PackedTable | None = None,
        truth: ArrayLike | None = None,
        *,
        every: int = 1,
    ) -> None:
        if every < 1:
            raise ValueError(f"every must be at least 1, found {every}")
        self.every = every
        self._loss = None if held_out is None else Pseudolikelihood(held_out)
        self._truth = None if truth is None else np.asarray(truth, np.int64).reshape(-1, 2)
        self._events: list[Event] = []
        self._measured: dict[str, list[float]] = {}

    def on_event(self, event: Event, state: SearchState) -> None:
        """Measure the current model."""
        if event.kind == "activation" and event.n_activations % self.every:
            return
        self._events.append(event)
        if self._loss is not None:
            if self._loss.schema != state.objective.schema:
                raise DataError("the rows held out have other columns or categories")
            cold = self._loss.init(state.graph.layout)
            value = self._loss.evaluate(state.theta(), cold).value
            self._measured.setdefault("held_out", []).append(value)
        if self._truth is not None:
            found = state.graph.contains(self._truth)
            recall = float(found.mean()) if len(found) else 1.0
            self._measured.setdefault("recall", []).append(recall)

    def columns(self) -> Columns:
        """Return the measurements with the columns of the events, one entry per event."""
        measured = {name: np.array(values) for name, values in self._measured.items()}
        return as_columns(self._events) | measured
