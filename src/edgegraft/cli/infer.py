"""The three tasks of the UAI inference competitions on one file."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from edgegraft.cli.tasks import Task
from edgegraft.errors import ModelError
from edgegraft.io import format_map, format_mar, format_pr
from edgegraft.model import PairwiseMRF


def answer(model: PairwiseMRF, task: Task, evidence: Mapping[int, int], engine: str) -> str:
    """Return the answer in the competition's format."""
    given = _named(model, evidence)
    if task is Task.PR:
        return format_pr(float(model.log_partition(given, engine=engine)))
    if task is Task.MAP:
        return format_map(model.map(given, engine=engine).codes)
    found = model.marginals(given, engine=engine)
    tables = []
    for i, variable in enumerate(model.schema):
        if i in evidence:
            tables.append(np.eye(variable.n_states)[evidence[i]])
        else:
            tables.append(found.array(variable.name))
    return format_mar(tables)


def _named(model: PairwiseMRF, evidence: Mapping[int, int]) -> dict[str, int]:
    given = {}
    for i, code in evidence.items():
        if not 0 <= i < model.n_variables:
            raise ModelError(
                f"the evidence names variable {i}: the model has 0 to {model.n_variables - 1}"
            )
        states = int(model.layout.states[i])
        if not 0 <= code < states:
            raise ModelError(
                f"the evidence sets variable {i} to {code}: its states are 0 to {states - 1}"
            )
        given[model.names[i]] = code
    return given
