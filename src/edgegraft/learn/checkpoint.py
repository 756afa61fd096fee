"""Checkpoint files, from which a search resumes as if it had never stopped.

A file is written when the pairs are ranked, after the first fit, when the search has ended, and in
between by time: after a fit, or within one, with the iterations that it has taken. If evaluations
remember those before (belief propagation), files are written only every ``checkpoint_every``
activations, and more often at first: there the loop discards everything except its parameters,
whether or not a file is written. Either way a resumed search has exactly the state of an
uninterrupted one, and gives the same bits. What follows the search is in the file's journal
(:mod:`~edgegraft.grafting.journal`). A search that a budget has changed is in the file twice, as
it is and as it was before: a larger budget continues from there, and gives what it would have
given from the beginning. Files are containers of plain arrays with checksums,
replaced atomically. They contain settings and numbers but no code: a search with a custom penalty
or policy is refused.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.config import Settings
from edgegraft.core.container import ContainerFormat, read_container, write_container
from edgegraft.errors import DataError, FileFormatError
from edgegraft.grafting.events import Event, Observer
from edgegraft.grafting.journal import Journal
from edgegraft.grafting.loop import run_search
from edgegraft.grafting.policies import choose_policy
from edgegraft.grafting.problem import Problem
from edgegraft.grafting.state import SearchState, Tree
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalties import PENALTIES, NoisePenalty, NoiseWeights, make_penalty
from edgegraft.optimize.progress import FitProgress
from edgegraft.table import Schema

FORMAT = ContainerFormat(
    "edgegraft-checkpoint",
    8,
    "checkpoint",
    "give the file that was written with checkpoint=",
    "begin the search anew",
)
SECONDS = 2.0  # between two files that are written by time
_SHARE = 20.0  # of the time, at most one part is spent on writing
_SAME = 1e-9  # relative difference of objectives that a different order of sums can cause
_PENALTY = ("penalty", "ridge", "group_weight", "penalize_nodes")
_NOISE = ("spread", "dof", "z", "scored", "z_rest")
_FORGED = (KeyError, TypeError, ValueError, IndexError, AttributeError)  # by no release


class Checkpoints:
    """An observer that writes a checkpoint file.

    Parameters
    ----------
    path : path
        The file, replaced at every checkpoint.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._last: Tree | None = None  # what the fits since then started from
        self._uncut: Tree | None = None  # the last one that no budget had changed
        self._fits: dict[str, FitProgress] = {}  # those fits
        self._next = self._next_description = 0.0  # when one is due
        self._had_ended = False
        self._journal = Journal(self, self._write_in_time)

    def on_event(self, event: Event, state: SearchState) -> None:
        """Write the search at a checkpoint; refuse at the start what a file cannot store."""
        if event.kind == "start":
            _check(state.problem)
            self._start(state)
        if event.kind == "checkpoint":
            self._keep(state, write=True)
        ended = state.reason is not None and state.reason.final and not self._had_ended
        if event.kind == "end" and ended and _remembers_nothing(state):
            self._keep(state, write=True)

    def _start(self, state: SearchState) -> None:
        resumed = state.seconds_before > 0.0 or state.n_activations > 0
        self._next = perf_counter() + SECONDS if resumed else 0.0
        if not resumed or _remembers_nothing(state) or state.restarted_from is not None:
            self._keep(state, write=not resumed)
        self._had_ended = state.reason is not None
        if state.problem.watch is not self:
            state.problem = replace(state.problem, watch=self, journal=self._journal)
            if resumed and self.path.exists():
                self._fits = read_fits(self.path, self._journal)
                if state.cut_short:
                    self._uncut = _read(self.path)[0]["uncut"]

    def on_fit(self, state: SearchState) -> None:
        """Write the search after a fit: the first, and by time."""
        now = perf_counter()
        write = state.n_activations == 1 or now >= self._next
        if (write or now >= self._next_description) and _remembers_nothing(state):
            self._keep(state, write)

    def note(self, make: Callable[[], FitProgress]) -> None:
        """Write the search with the fit that is running, by time."""
        if self._last is not None and perf_counter() >= self._next:
            fit = make()
            name, named, _ = fit.key.rpartition(":")
            if named:  # fits of one name follow each other
                self._fits = {k: v for k, v in self._fits.items() if k.rpartition(":")[0] != name}
            self._fits[fit.key] = fit
            self._write(self._last)

    def _write_in_time(self) -> None:
        if self._last is not None and perf_counter() >= self._next:
            self._write(self._last)

    def recall(self, key: str) -> FitProgress | None:
        """Return how far a fit had come when the file was written."""
        return self._fits.get(key)

    def _keep(self, state: SearchState, write: bool) -> None:
        if not state.cut_short:
            self._uncut = None
        elif self._last is not None and not self._last["cut_short"]:
            self._uncut = self._last
        self._last, self._fits = _describe(state), {}
        self._next_description = perf_counter() + SECONDS / 4
        if write:
            self._write(self._last)

    def _write(self, search: Tree) -> None:
        began, arrays = perf_counter(), dict[str, NDArray[Any]]()
        tree = search | {
            "fits": {key: dict(fit.arrays) for key, fit in self._fits.items()},
            "journal": self._journal.state(),
            "uncut": self._uncut,
        }
        header = _pack(tree, arrays)
        try:
            write_container(self.path, FORMAT, header, arrays)
        except OSError as error:
            if not self._next:
                raise  # at the start: the path is wrong
            warnings.warn(
                f"a checkpoint could not be written to '{self.path}' ({error.strerror}): the "
                "search continues, and the last file, if there is one, is kept",
                RuntimeWarning,
                stacklevel=2,
            )
        now = perf_counter()
        self._next = now + max(SECONDS, _SHARE * (now - began))


def _remembers_nothing(state: SearchState) -> bool:
    return state.solution.objective.memoryless(state.solution.state)


def _pack(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """Return a tree in JSON values, with its arrays put aside by their numbers."""
    if isinstance(value, np.ndarray):
        arrays[f"{len(arrays)}"] = value
        return {"array": f"{len(arrays) - 1}"}
    if isinstance(value, dict):
        return {name: _pack(part, arrays) for name, part in value.items()}
    return value


def _unpack(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    if not isinstance(value, dict):
        return value
    if set(value) == {"array"}:
        return arrays[value["array"]]
    return {name: _unpack(part, arrays) for name, part in value.items()}


def _read(path: str | os.PathLike[str]) -> tuple[Tree, int]:
    """Return what a file holds, and its version."""
    header, arrays, version, _ = read_container(path, FORMAT)
    try:
        return _unpack(header, arrays), version
    except _FORGED as error:
        raise FORMAT.damaged(path, f"it lacks an array ({error!s:.80})") from None


def read_fits(path: Path, journal: Journal) -> dict[str, FitProgress]:
    """Return the fits that had begun when a file was written, by their keys; fill the journal."""
    tree, _ = _read(path)
    try:
        journal.restore(tree["journal"])
        # A file's arrays are read-only, for which kernels would be compiled once more.
        return {key: FitProgress(key, deepcopy(arrays)) for key, arrays in tree["fits"].items()}
    except _FORGED as error:
        raise FORMAT.damaged(path, f"it has no proper fits ({error!s:.80})") from None


def _describe(state: SearchState) -> Tree:
    """Return a search and its problem, without the objective."""
    problem = state.problem
    _check(problem)
    tree = state.state() | {
        "schema": problem.objective.schema.to_json(),
        "settings": problem.settings.as_dict(),
        "penalty": {name: getattr(problem.penalty, name) for name in _PENALTY},
    }
    noise = problem.penalty.noise if isinstance(problem.penalty, NoisePenalty) else None
    return tree | {"noise": noise and {name: getattr(noise, name) for name in _NOISE}}


def remember(state: SearchState) -> Tree:
    """Return a finished search without its rows and candidates."""
    tree = _describe(state) | {"objective": float(state.solution.info.objective)}
    n = len(state.objective.schema)
    left_out = {"stream", "reservoir", "solution", "metric"}
    if state.n_tables == n * (n - 1) // 2:
        left_out.add("tested")
    return {name: part for name, part in tree.items() if name not in left_out}


def recall(tree: Tree, objective: Objective) -> SearchState:
    """Return the search that :func:`remember` described, over its rows and no others."""
    problem = _problem(tree, objective)
    state = SearchState.from_state(problem, tree)
    empty = SearchState.begin(problem).solution.info.objective
    pairs = (
        (empty, state.events[0].objective),
        (state.solution.info.objective, tree["objective"]),
    )
    if not all(abs(here - there) <= _SAME * max(1.0, abs(there)) for here, there in pairs):
        raise DataError(
            "these rows and weights do not give the model of the fit: pass the table, and the "
            "sample_weight, that were fitted"
        )
    return state


def _check(problem: Problem) -> None:
    """Refuse custom parts, which a file would restore as those of the library."""
    own = choose_policy(problem.settings, len(problem.objective.schema))
    foreign = []
    if type(problem.penalty) not in PENALTIES:
        foreign.append(f"penalty {type(problem.penalty).__name__}")
    if problem.policy != own:
        foreign.append("policy, which has parts of your own")
    if foreign:
        raise ValueError(
            f"a checkpoint cannot hold the {foreign[-1]}: files have the library's own parts "
            "alone, and a resumed search would continue without yours; run it without checkpoints"
        )


def load(
    path: str | os.PathLike[str],
    objective: Objective,
    max_time: float | None = None,
    max_edges: int | None = None,
) -> SearchState:
    """Return the search of a checkpoint file, over the same data, ready for `run_search`.

    With other budgets than those of the file, if they are given, it is the search as it was before
    a budget changed it.
    """
    budgets = {"max_time": max_time, "max_edges": max_edges}
    given: dict[str, Any] = {name: v for name, v in budgets.items() if v is not None}
    tree, version = _read(path)
    if version != FORMAT.version:
        raise FileFormatError(
            f"'{path}' has checkpoint version {version}, and this release reads {FORMAT.version}: "
            "begin the search anew"
        )
    try:
        if any(tree["settings"][name] != value for name, value in given.items()):
            tree = tree["uncut"] or tree
        state = _restored(path, objective, tree)
        state.problem = replace(state.problem, settings=replace(state.settings, **given))
        return state
    except _FORGED as error:
        if isinstance(error, FileFormatError):
            raise
        raise FORMAT.damaged(path, f"its parts do not fit each other ({error!s:.80})") from None


def _restored(path: str | os.PathLike[str], objective: Objective, tree: Tree) -> SearchState:
    if Schema.from_json(tree["schema"]) != objective.schema:
        raise FileFormatError(f"'{path}' is a checkpoint of other data: names or categories differ")
    problem = _problem(tree, objective)
    here = SearchState.begin(problem).solution.info.objective
    there = Event(*tree["events"][0]).objective
    if here != there:
        raise FileFormatError(
            f"'{path}' is a checkpoint of other rows or another objective: the model without "
            f"edges has {here!r} here and {there!r} there"
        )
    return SearchState.from_state(problem, tree)


def resume(
    path: str | os.PathLike[str],
    objective: Objective,
    observers: Sequence[Observer] = (),
    *,
    max_time: float | None = None,
    max_edges: int | None = None,
) -> SearchState:
    """Resume a search from a checkpoint file over the same data, to the end.

    Parameters
    ----------
    path : path
    objective : Objective
        The objective of the search, created again from the same rows.
    observers : sequence of Observer
        Give :class:`Checkpoints` again to keep writing them.
    max_time, max_edges : optional
        Budgets of the whole search, including what it has used so far, instead of those of the
        checkpoint.
    """
    return run_search(load(path, objective, max_time, max_edges), observers)


def _problem(tree: Tree, objective: Objective) -> Problem:
    penalty = make_penalty(**{name: tree["penalty"][name] for name in _PENALTY})
    if isinstance(penalty, NoisePenalty):
        penalty = replace(penalty, noise=NoiseWeights(**tree["noise"]))
    return Problem.of(objective, penalty, Settings(**tree["settings"]))
