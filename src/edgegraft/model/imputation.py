"""Joint completion of the missing cells of each row.

A missing cell none of whose neighbours are missing has a closed-form conditional. The others are
completed together, exactly by junction tree if that is affordable, otherwise by Gibbs sampling
(draws), or by Gibbs sampling that is cooled down and ends in a state that no single change
improves (likeliest): approximations.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.types import Floats, Integers
from edgegraft.errors import ImpossibleEvidenceError, ModelError
from edgegraft.inference import ExactBudget, ExactEngine, affordable
from edgegraft.kernels.conditionals.completion import fill_alone, fill_by_gibbs
from edgegraft.kernels.conditionals.row_conditionals import Neighbours
from edgegraft.model.evidence import condition

ImputeMethod = Literal["map", "draw"]

ROW_BUDGET = ExactBudget(seconds=0.02)  # rows are many
_SWEEPS = 200  # of the approximation


def complete_rows(
    layout: Layout,
    theta: Floats,
    neighbours: Neighbours,
    codes: Integers,
    method: ImputeMethod,
    rng: np.random.Generator,
) -> tuple[Integers, int]:
    """Return `codes` without missing cells, and the number of rows that are approximations."""
    if method not in ("map", "draw"):
        raise ValueError(f"method must be 'map' or 'draw', found {method!r}")
    out, exact, cooling = codes.copy(), ExactEngine(), np.ones(_SWEEPS)
    n_approximate = 0
    uniform = rng.random(codes.shape) if method == "draw" else np.empty((0, 0))
    if method == "map":
        cooling = np.concatenate((np.linspace(1.0, 0.05, _SWEEPS), np.zeros(_SWEEPS)))
    fill_alone(theta, codes, codes < 0, layout.states, layout.node_offset, neighbours, uniform, out)
    for r in np.flatnonzero((out < 0).any(axis=1)):
        row = out[r]
        try:
            # What was filled in just now is independent of the rest given the known cells, so
            # conditioning on the known ones alone or on both is the same.
            part = condition(layout, theta, row)
            state = affordable(part.layout, ROW_BUDGET)  # searched once per pattern of gaps
            if state is not None and method == "map":
                row[part.free] = exact.map(part.theta, state).assignment
            elif state is not None:
                row[part.free] = exact.sample(part.theta, state, 1, rng)[0]
        except ModelError as error:
            raise ImpossibleEvidenceError(f"row {r} is impossible: {error}") from error
        if state is None:
            uniform = rng.random((len(cooling), len(part.free)))
            fill_by_gibbs(
                theta, row, part.free, layout.states, layout.node_offset, neighbours, cooling,
                uniform,
            )  # fmt: skip
            n_approximate += 1
    return out, n_approximate
