"""What is worked out after a search, kept with its checkpoint: a resumed run repeats none of it.

The search determines all that follows: tests of edges, fits between them, scores, replicates. So
the k-th step of a resumed run is the k-th step of the one that was cut short, and its result is
taken from the file. Fits are made when a step first needs them; of each network the parameters of
the last one are kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.types import Floats
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import Penalty
from edgegraft.optimize.progress import FitProgress, FitWatch
from edgegraft.optimize.solver import Solution, Stopping, minimize

Result = TypeVar("Result")


class Journal:
    """Results of steps, by their numbers or by names; without `watch` nothing is kept.

    A result is an array, or a dictionary of arrays and JSON values.

    `watch` keeps the progress of the fits in between; `changed` is called when there is one more
    result.
    """

    def __init__(
        self, watch: FitWatch | None = None, changed: Callable[[], None] = lambda: None
    ) -> None:
        self.watch, self._changed, self._part = watch, changed, ""
        self._key, self._number, self._chains = "", 0, 0
        self._results: dict[str, Any] = {}

    @property
    def keeps(self) -> bool:
        """Whether anything is kept."""
        return self.watch is not None

    def begin(self, *identity: object) -> None:
        """Start with the first step; forget steps of anything else than `identity`."""
        found = hashlib.sha256()
        for part in identity:
            found.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
        if found.hexdigest() != self._key:
            self._key = found.hexdigest()
            self._results.clear()
        self._number = self._chains = 0

    def step(self, make: Callable[[], Result]) -> Result:
        """Return the result of the next step, made or known."""
        self._number += 1
        return self.keep(str(self._number - 1), make)

    def find(self, name: str) -> Any:
        """Return the result of a step by its name, None if it is not known."""
        return self._results.get(self._part + name)

    def put(self, name: str, result: Any) -> None:
        """Keep the result of a step."""
        self.put_all({name: result})

    def put_all(self, results: Mapping[str, Any]) -> None:
        """Keep results that are of no use without each other."""
        if self.keeps:
            self._results.update((self._part + name, found) for name, found in results.items())
            self._changed()

    def keep(self, name: str, make: Callable[[], Result]) -> Result:
        """Return the result of a step by its name, made or known."""
        known: Result | None = self.find(name)
        if known is None:
            known = make()
            self.put(name, known)
        return known

    def watch_one(self, name: str) -> FitWatch | None:
        """Return what keeps the progress of one fit at a time."""
        return None if self.watch is None else _OneFit(self.watch, self._part + name)

    def within(self, part: str) -> Journal:
        """Return the journal of a part, whose names are its own."""
        found = Journal(self.watch, self._changed)
        found._results, found._part = self._results, f"{self._part}{part}."
        return found

    def chain(self) -> FitChain:
        """Return room for the fits of one more network."""
        self._chains += 1
        return FitChain(self, f"fit.{self._chains}" if self.keeps else "")

    def state(self) -> dict[str, Any]:
        """Return all results, for :meth:`restore`."""
        return {"key": self._key, "results": dict(self._results)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what :meth:`state` described."""
        self._key = str(state["key"])
        self._results.clear()  # which other parts of the journal have too
        self._results |= deepcopy(state["results"])  # arrays of a file are read-only


class _OneFit(NamedTuple):
    """Keeps the progress of fits under a name, the last in place of those before it."""

    watch: FitWatch
    name: str

    def note(self, make: Callable[[], FitProgress]) -> None:
        def named() -> FitProgress:
            made = make()
            return made._replace(key=f"{self.name}:{made.key}")

        self.watch.note(named)

    def recall(self, key: str) -> FitProgress | None:
        return self.watch.recall(f"{self.name}:{key}")


class FitChain:
    """The fits of one network, each from the parameters of the one before."""

    def __init__(self, journal: Journal, name: str) -> None:
        self._journal, self._name, self._number = journal, name, 0

    def fit(
        self,
        objective: Objective,
        penalty: Penalty,
        layout: Layout,
        start: Callable[[], Floats],
        stopping: Stopping,
    ) -> PendingFit:
        """Return the next fit."""
        journal, name, number = self._journal, self._name, self._number
        self._number += 1

        def make() -> Solution:
            last = journal.find(name)
            if last is not None and last[0] == number:
                # If evaluations remember others, only what led here gives the same bits.
                as_known = stopping._replace(max_iter=0)
                known = minimize(objective, penalty, layout, last[1:], as_known, quiet=True)
                if objective.memoryless(known.state):
                    return known
            watch = journal.watch
            found = minimize(objective, penalty, layout, start(), stopping, quiet=True, watch=watch)
            if name:
                journal.put(name, np.concatenate(([float(number)], found.theta)))
            return found

        return PendingFit(layout, make)


class PendingFit:
    """A fit that is made when it is first asked for."""

    def __init__(self, layout: Layout, make: Callable[[], Solution]) -> None:
        self.layout = layout
        self._make: Callable[[], Solution] | None = make

    @cached_property
    def solution(self) -> Solution:
        """The fitted parameters, with their state."""
        assert self._make is not None
        found, self._make = self._make(), None  # which holds the fit before
        return found
