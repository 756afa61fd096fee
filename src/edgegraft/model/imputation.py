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
from edgegraft.inference import ExactEngine
from edgegraft.kernels.conditionals.imputation import fill_alone, fill_by_gibbs
from edgegraft.kernels.conditionals.rows import Neighbours
from edgegraft.model.evidence import condition

ImputeMethod = Literal["map", "draw"]
Codes = NDArray[np.int64]

_MAX_BYTES = 1 << 22  # of a component's junction tree: rows are many
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
    structures: dict[bytes, bool] = {}
    for r in pending:
        # What was filled in just now is independent of the rest given the known cells, so
        # conditioning on the known ones alone or on both is the same.
        row = out[r]
        pattern = (row < 0).tobytes()
        if pattern not in structures:
            structures[pattern] = _affordable(layout, row)
        if not structures[pattern]:
            _complete_by_gibbs(layout, theta, neighbours, row, method, rng)
            continue
        try:
            _complete_exactly(layout, theta, row, method, rng)
        except ModelError as error:
            raise ImpossibleEvidenceError(f"row {r} is impossible: {error}") from error
    return out


def _affordable(layout: Layout, row: Codes) -> bool:
    free = np.flatnonzero(row < 0)
    rank = np.full(layout.n_variables, -1)
    rank[free] = np.arange(len(free))
    inner = (row[layout.edges] < 0).all(axis=1)
    part = Layout(layout.states[free], rank[layout.edges[inner]])
    cost = ExactEngine(_MAX_BYTES).estimate(part)
    return cost.complete and cost.nbytes <= _MAX_BYTES


def _complete_exactly(
    layout: Layout, theta: Floats, row: Codes, method: ImputeMethod, rng: np.random.Generator
) -> None:
    part = condition(layout, theta, {int(i): int(row[i]) for i in np.flatnonzero(row >= 0)})
    engine = ExactEngine()
    if method == "map":
        row[part.free] = engine.map(part.theta, part.layout).assignment
    else:
        _, state, _ = engine.run(part.theta, engine.init(part.layout))
        row[part.free] = engine.sample(part.theta, state, 1, rng)[0]


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
