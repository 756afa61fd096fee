"""The course of a run as a table, and an observer that measures more than the loop does.

The loop itself keeps time, objective, edges, activations, tests and tables. How well the model
predicts rows that it was not learned from, and how many true edges it has found, costs work of its
own and is measured only where a :class:`Monitor` asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.errors import DataError
from edgegraft.learn.events import Event
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.table import PackedTable

if TYPE_CHECKING:
    from edgegraft.learn.state import Growth

Columns = dict[str, NDArray[Any]]


def as_columns(events: Sequence[Event]) -> Columns:
    """Return events as columns of equal length, by the names of their fields.

    Examples
    --------
    >>> columns = as_columns([Event("start", 0.0, 2.5, 0, 0, 0, 0)])
    >>> columns["kind"].tolist(), columns["objective"].tolist()
    (['start'], [2.5])
    """
    kinds = {"str": np.str_, "float": np.float64, "int": np.int64}
    return {
        field.name: np.array(
            [getattr(event, field.name) for event in events], kinds[str(field.type)]
        )
        for field in fields(Event)
    }


class Monitor:
    """An observer that measures the model at every event.

    Parameters
    ----------
    held_out : PackedTable, optional
        Rows, of the schema that is learned from, for the mean negative log-pseudolikelihood.
    truth : array of int, shape (m, 2), optional
        True edges, for the recall.
    every : int, default 1
        Measure after every so many activations; always at the start and at the end.

    Examples
    --------
    >>> from edgegraft.datasets import make_chain
    >>> from edgegraft.learn.loop import grow
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
        self._held_out: list[float] = []
        self._recall: list[float] = []

    def on_event(self, event: Event, growth: Growth) -> None:
        """Measure the model as it is."""
        between = event.kind == "checkpoint" or event.n_activations % self.every
        if between and event.kind not in ("start", "end"):
            return
        self._events.append(event)
        if self._loss is not None:
            if self._loss.schema != growth.objective.schema:
                raise DataError("the rows held out have other columns or categories")
            state = self._loss.init(growth.graph.layout)
            self._held_out.append(self._loss.evaluate(growth.theta(), state).value)
        if self._truth is not None:
            found = growth.graph.contains(self._truth)
            self._recall.append(float(found.mean()) if len(found) else 1.0)

    def columns(self) -> Columns:
        """Return what was measured, one entry an event, beside the events' own columns."""
        out = as_columns(self._events)
        if self._loss is not None:
            out["held_out"] = np.array(self._held_out)
        if self._truth is not None:
            out["recall"] = np.array(self._recall)
        return out
