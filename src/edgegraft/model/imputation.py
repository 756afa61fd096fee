"""Joint completion of the missing cells of each row.

A missing cell none of whose neighbours are missing has a closed-form conditional. The others are
completed together, exactly by junction tree where that is affordable, otherwise by Gibbs
sampling (draws), or by Gibbs sampling that is cooled down and ends in a state that no single
change improves (likeliest): approximations.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgegraft.core import Layout
from edgegraft.core.types import Floats
from edgegraft.errors import ImpossibleEvidenceError, ModelError
from edgegraft.inference import ExactBudget, ExactEngine, affordable
from edgegraft.inference.affordability import ExactState
from edgegraft.kernels.conditionals.imputation import fill_alone, fill_by_gibbs
from edgegraft.kernels.conditionals.rows import Neighbours
from edgegraft.model.evidence import condition

ImputeMethod = Literal["map", "draw"]
Codes = NDArray[np.int64]

ROW_BUDGET = ExactBudget(seconds=0.02)  # rows are many
_SWEEPS = 200  # of the approximation


def impute_codes(
    layout: Layout,
    theta: Floats,
    neighbours: Neighbours,
    codes: Codes,
    method: ImputeMethod,
    rng: np.random.Generator,
) -> Codes:
    """Return `codes` without missing cells."""
    if method not in ("map", "draw"):
        raise ValueError(f"method must be 'map' or 'draw', found {method!r}")
    missing = codes < 0
    out = codes.copy()
    uniform = rng.random(codes.shape) if method == "draw" else np.empty((0, 0))
    fill_alone(theta, codes, missing, layout.states, layout.node_offset, neighbours, uniform, out)
    pending = np.flatnonzero((out < 0).any(axis=1))
    for r in pending:
        # What was filled in just now is independent of the rest given the known cells, so
        # conditioning on the known ones alone or on both is the same.
        row = out[r]
        try:
            part = condition(layout, theta, {int(i): int(row[i]) for i in np.flatnonzero(row >= 0)})
            state = affordable(part.layout, ROW_BUDGET)  # searched once per pattern of gaps
            if state is not None:
                row[part.free] = _complete(part.theta, state, method, rng)
        except ModelError as error:
            raise ImpossibleEvidenceError(f"row {r} is impossible: {error}") from error
        if state is None:
            _complete_by_gibbs(layout, theta, neighbours, row, method, rng)
    return out


def _complete(
    theta: Floats, state: ExactState, method: ImputeMethod, rng: np.random.Generator
) -> Codes:
    """Return the likeliest states of a row's missing cells, or states drawn at random."""
    if method == "map":
        return ExactEngine().map(theta, state).assignment
    return np.asarray(ExactEngine().sample(theta, state, 1, rng)[0])


def _complete_by_gibbs(
    layout: Layout,
    theta: Floats,
    neighbours: Neighbours,
    row: Codes,
    method: ImputeMethod,
    rng: np.random.Generator,
) -> None:
    cells = np.flatnonzero(row < 0)
    if method == "draw":
        cooling = np.ones(_SWEEPS)
    else:
        cooling = np.concatenate((np.linspace(1.0, 0.05, _SWEEPS), np.zeros(_SWEEPS)))
    uniform = rng.random((len(cooling), len(cells)))
    fill_by_gibbs(
        theta, row, cells, layout.states, layout.node_offset, neighbours, cooling, uniform
    )
