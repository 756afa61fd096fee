"""A run in a file, from which it goes on as if it had never stopped.

Checkpoints are taken every ``checkpoint_every`` activations, at which the loop itself forgets all
but its parameters (messages, curvature), whether a file is written or not. A resumed run therefore
has exactly what the uninterrupted one has, and gives the same bits. Files are plain arrays (no
pickles) behind a checksum, written beside their destination and renamed. They hold settings and
numbers, no code: a run with a penalty or an activation rule of the caller's own is refused.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.config import Settings
from edgegraft.core import ActiveGraph
from edgegraft.core.atomic import replacing
from edgegraft.core.pair_set import PairSet
from edgegraft.errors import FileFormatError
from edgegraft.learn import steps
from edgegraft.learn.events import Event, Observer
from edgegraft.learn.loop import go_on
from edgegraft.learn.parts import Parts, choose_parts
from edgegraft.learn.returns import Returns
from edgegraft.learn.state import Growth
from edgegraft.objective.noise_weight import NoiseWeights
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalties import PENALTIES, NoisePenalty, allowing, make_penalty
from edgegraft.objective.penalty import Penalty
from edgegraft.search import CandidateStream, Reservoir

VERSION = 4
_MAGIC = b"edgegraft checkpoint\n"
_DIGEST = hashlib.sha256().digest_size
Arrays = dict[str, NDArray[Any]]


class Checkpoints:
    """An observer that writes a checkpoint file.

    Parameters
    ----------
    path : path
        The file, replaced at every checkpoint.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def on_event(self, event: Event, growth: Growth) -> None:
        """Write the run as it is at a checkpoint; refuse at the start what a file cannot hold."""
        if event.kind == "start":
            _check(growth)
        if event.kind == "checkpoint":
            save(self.path, growth)


def save(path: str | os.PathLike[str], growth: Growth) -> None:
    """Write a run that has just passed a checkpoint.

    Raises
    ------
    ValueError
        Where the file could not hold the run's penalty or rule.
    """
    _check(growth)
    meta = {
        "version": VERSION,
        "schema": growth.objective.schema.to_json(),
        "first_objective": _first_objective(growth),
        "settings": growth.settings.as_dict(),
        "penalty": _penalty_dict(growth.penalty),
        "rng": growth.rng.bit_generator.state,
        "n_tests": growth.n_tests,
        "n_activations": growth.n_activations,
        "filled": growth.filled,
        "ranked": growth.ranked,
        "n_sure": growth.n_sure,
        "sharpened": growth.sharpened,
        "n_closed": growth.n_closed,
        "fell_back": growth.solution.objective is not growth.objective,
        "seconds": growth.seconds,
        "events": [list(vars(event).values()) for event in growth.events],
    }
    theta = growth.theta() if growth.restarted_from is None else growth.restarted_from
    arrays: Arrays = {
        "meta": np.frombuffer(json.dumps(meta).encode(), np.uint8),
        "edges": growth.graph.layout.edges,
        # As `restart` was given them, so that it can be given them again.
        "theta": theta,
        "allowed": growth.allowed,
        "tested": growth.tested.ids(),
    }
    if isinstance(growth.penalty, NoisePenalty):
        arrays |= {f"noise.{name}": np.array(v) for name, v in vars(growth.penalty.noise).items()}
    arrays |= {f"stream.{name}": value for name, value in growth.stream.state().items()}
    arrays |= {f"reservoir.{name}": value for name, value in growth.reservoir.state().items()}
    arrays |= {f"returned.{name}": value for name, value in growth.returned.state().items()}
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    with replacing(path) as file:
        file.write(_MAGIC + hashlib.sha256(content.getbuffer()).digest())
        file.write(content.getbuffer())


def _check(growth: Growth) -> None:
    """Refuse parts that would come back from a file as the library's own."""
    own = choose_parts(growth.settings, len(growth.objective.schema))
    foreign = [f"'{name}' of the search" for name in own._fields if not _same(own, growth, name)]
    if type(growth.penalty) not in PENALTIES:
        foreign.append(f"penalty {type(growth.penalty).__name__}")
    if foreign:
        raise ValueError(
            f"a checkpoint cannot hold the {foreign[-1]}: files have the library's own parts "
            "alone, and a resumed run would go on without yours; run it without checkpoints"
        )


def _same(own: Parts, growth: Growth, name: str) -> bool:
    return bool(getattr(own, name) == getattr(growth.parts, name))


def load(path: str | os.PathLike[str], objective: Objective) -> Growth:
    """Return the run of a checkpoint file, over the same data, ready for `go_on`.

    Raises
    ------
    FileFormatError
        Where the file is no checkpoint, is damaged, or is of other data.
    """
    arrays = _read(path)
    meta = json.loads(arrays["meta"].tobytes())
    if meta["version"] != VERSION:
        raise FileFormatError(f"'{path}' has checkpoint version {meta['version']}, not {VERSION}")
    if meta["schema"] != objective.schema.to_json():
        raise FileFormatError(f"'{path}' is a checkpoint of other data: names or categories differ")
    settings, noise = Settings(**meta["settings"]), _part(arrays, "noise.")
    penalty = make_penalty(**meta["penalty"])
    if isinstance(penalty, NoisePenalty):
        penalty = replace(penalty, noise=_noise(noise))
    growth = Growth.begin(objective, penalty, settings)
    if growth.solution.info.objective != meta["first_objective"]:
        raise FileFormatError(
            f"'{path}' is a checkpoint of other rows or another objective: the model without "
            f"edges has {growth.solution.info.objective!r} here and {meta['first_objective']!r} "
            "there"
        )
    return _restore(growth, arrays, meta)


def resume(
    path: str | os.PathLike[str],
    objective: Objective,
    observers: Sequence[Observer] = (),
    *,
    max_time: float | None = None,
    max_edges: int | None = None,
) -> Growth:
    """Go on from a checkpoint file over the same data, to the end.

    Parameters
    ----------
    path : path
    objective : Objective
        The one that the run was started with, made again from the same rows.
    observers : sequence of Observer
        Give :class:`Checkpoints` again to go on writing them.
    max_time, max_edges : optional
        Other budgets than those of the checkpoint, of the whole run: what it took before counts.
    """
    return go_on(allow(load(path, objective), max_time, max_edges), observers)


def allow(growth: Growth, max_time: float | None, max_edges: int | None) -> Growth:
    """Give a run other budgets where there are any, and return it."""
    asked = {"max_time": max_time, "max_edges": max_edges}
    budgets: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    growth.settings = replace(growth.settings, **budgets)
    return growth


def _read(path: str | os.PathLike[str]) -> Arrays:
    """Return the arrays of a file, once its checksum has been found right."""
    content = Path(path).read_bytes()
    start = len(_MAGIC) + _DIGEST
    if not content.startswith(_MAGIC):
        raise FileFormatError(f"'{path}' is no checkpoint of edgegraft")
    if hashlib.sha256(content[start:]).digest() != content[len(_MAGIC) : start]:
        raise FileFormatError(f"'{path}' is a damaged checkpoint: its checksum does not match")
    with np.load(io.BytesIO(content[start:]), allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def _restore(growth: Growth, arrays: Arrays, meta: dict[str, Any]) -> Growth:
    growth.graph = ActiveGraph(growth.objective.schema.n_states, arrays["edges"])
    growth.allowed = arrays["allowed"]
    if growth.parts.single_features:
        growth.penalty = allowing(growth.penalty, growth.allowed)
    growth.solution = growth.solution._replace(
        layout=growth.graph.layout,
        theta=arrays["theta"],
        objective=(meta["fell_back"] and growth.objective.fallback) or growth.objective,
    )
    growth.stream = CandidateStream.from_state(_part(arrays, "stream."))
    growth.reservoir = Reservoir.from_state(_part(arrays, "reservoir."))
    growth.rng.bit_generator.state = meta["rng"]
    growth.tested = PairSet.from_ids(arrays["tested"], len(growth.objective.schema))
    growth.n_tests, growth.n_activations = meta["n_tests"], meta["n_activations"]
    growth.filled, growth.ranked, growth.n_sure = meta["filled"], meta["ranked"], meta["n_sure"]
    growth.returned = Returns.from_state(_part(arrays, "returned."))
    growth.sharpened, growth.n_closed = meta["sharpened"], meta["n_closed"]
    growth.seconds_before = meta["seconds"]
    growth.events = [Event(*values) for values in meta["events"]]
    steps.restart(growth)
    return growth


def _noise(arrays: Arrays) -> NoiseWeights:
    return NoiseWeights(arrays["spread"], arrays["dof"], float(arrays["z"]))


def _first_objective(growth: Growth) -> float:
    """Return the objective of the model without edges: other data have another."""
    return growth.events[0].objective


def _part(arrays: Arrays, prefix: str) -> Arrays:
    return {name[len(prefix) :]: v for name, v in arrays.items() if name.startswith(prefix)}


def _penalty_dict(penalty: Penalty) -> dict[str, Any]:
    names = ("penalty", "ridge", "kind", "group_weight", "penalize_nodes")
    return {name: getattr(penalty, name) for name in names}
