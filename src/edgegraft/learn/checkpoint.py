"""Checkpoint files, from which a search resumes as if it had never stopped.

Checkpoints are taken every ``checkpoint_every`` activations. At these points the loop discards
everything except its parameters (messages, curvature), whether or not a file is written. A resumed
search therefore has exactly the state of an uninterrupted one, and gives the same bits. Files are
containers of plain arrays with checksums, replaced atomically. They contain settings and numbers
but no code: a search with a custom penalty or policy is refused.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgegraft.config import Settings
from edgegraft.core.container import ContainerFormat, read_container, write_container
from edgegraft.errors import DataError, FileFormatError
from edgegraft.learn.events import Event, Observer
from edgegraft.learn.loop import run_search
from edgegraft.learn.policies import choose_policy
from edgegraft.learn.problem import Problem
from edgegraft.learn.state import Arrays, Header, SearchState
from edgegraft.objective.noise_weight import NoiseWeights
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalties import PENALTIES, NoisePenalty, make_penalty
from edgegraft.objective.penalty import Penalty

FORMAT = ContainerFormat(
    "edgegraft-checkpoint",
    5,
    "checkpoint",
    "give the file that was written with checkpoint=",
    "begin the search anew",
)
_SAME = 1e-9  # relative difference of objectives that a different order of sums can cause
_PENALTY = ("penalty", "ridge", "kind", "group_weight", "penalize_nodes")


Description = tuple[Header, Arrays]


class Checkpoints:
    """An observer that writes a checkpoint file.

    Parameters
    ----------
    path : path
        The file, replaced at every checkpoint.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def on_event(self, event: Event, state: SearchState) -> None:
        """Write the search at a checkpoint; refuse at the start what a file cannot store."""
        if event.kind == "start":
            _check(state.problem)
        if event.kind == "checkpoint":
            save(self.path, state)


def save(path: str | os.PathLike[str], state: SearchState) -> None:
    """Write a search that has just been restarted.

    Raises
    ------
    ValueError
        If a file cannot store the penalty or policy of the search.
    """
    write_container(path, FORMAT, *_describe(state))


def _describe(state: SearchState) -> Description:
    """Return a search and its problem, without the objective, as JSON values and arrays."""
    problem = state.problem
    _check(problem)
    header, arrays = state.state()
    header |= {
        "schema": problem.objective.schema.to_json(),
        "settings": problem.settings.as_dict(),
        "penalty": {name: getattr(problem.penalty, name) for name in _PENALTY},
    }
    noise = problem.penalty.noise if isinstance(problem.penalty, NoisePenalty) else None
    if noise is not None:
        header["z"] = float(noise.z)
        arrays |= {"noise.spread": noise.spread, "noise.dof": noise.dof}
    return header, arrays


def remember(state: SearchState) -> Description:
    """Return a finished search without its rows and candidates."""
    header, arrays = _describe(state)
    n = len(state.objective.schema)
    left_out = ["stream.", "reservoir."]
    if state.n_tables == n * (n - 1) // 2:
        left_out.append("tested")
    header["objective"] = float(state.solution.info.objective)
    return header, {name: v for name, v in arrays.items() if not name.startswith(tuple(left_out))}


def recall(description: Description, objective: Objective) -> SearchState:
    """Return the search that :func:`remember` described, over its rows.

    Raises
    ------
    DataError
        If the objective is of other rows.
    """
    header, arrays = description
    problem = Problem.of(objective, _penalty(header, arrays), Settings(**header["settings"]))
    state = SearchState.from_state(problem, header, arrays)
    empty = SearchState.begin(problem).solution.info.objective
    pairs = (
        (empty, Event(*header["events"][0]).objective),
        (
            state.solution.info.objective,
            header["objective"],
        ),
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
        foreign.append(f"policy {type(problem.policy).__name__} with parts of your own")
    if foreign:
        raise ValueError(
            f"a checkpoint cannot hold the {foreign[-1]}: files have the library's own parts "
            "alone, and a resumed search would continue without yours; run it without checkpoints"
        )


def load(path: str | os.PathLike[str], objective: Objective) -> SearchState:
    """Return the search of a checkpoint file, over the same data, ready for `run_search`.

    Raises
    ------
    FileFormatError
        If the file is not a checkpoint, is damaged, or is of other data.
    """
    header, arrays, version, _ = read_container(path, FORMAT)
    if version != FORMAT.version:
        raise FileFormatError(
            f"'{path}' has checkpoint version {version}, and this release reads {FORMAT.version}: "
            "begin the search anew"
        )
    if header["schema"] != objective.schema.to_json():
        raise FileFormatError(f"'{path}' is a checkpoint of other data: names or categories differ")
    problem = Problem.of(objective, _penalty(header, arrays), Settings(**header["settings"]))
    here = SearchState.begin(problem).solution.info.objective
    there = Event(*header["events"][0]).objective
    if here != there:
        raise FileFormatError(
            f"'{path}' is a checkpoint of other rows or another objective: the model without "
            f"edges has {here!r} here and {there!r} there"
        )
    return SearchState.from_state(problem, header, arrays)


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
    state = load(path, objective)
    state.problem = state.problem.within(max_time, max_edges)
    return run_search(state, observers)


def _penalty(header: Header, arrays: Arrays) -> Penalty:
    values: dict[str, Any] = header["penalty"]
    penalty = make_penalty(**values)
    if isinstance(penalty, NoisePenalty):
        noise = NoiseWeights(arrays["noise.spread"], arrays["noise.dof"], header["z"])
        return replace(penalty, noise=noise)
    return penalty
