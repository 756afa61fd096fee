"""Our own: `GraftedMRF()` with nothing set."""

from __future__ import annotations

import numpy as np

from benchmarks.rivals.outcome import Codes, Outcome, Potentials
from edgegraft import GraftedMRF


def fit(codes: Codes, states: Codes, seed: int, threads: int) -> list[Outcome]:
    found = GraftedMRF(n_jobs=threads, random_state=seed).fit(codes.astype(np.int64))
    table, layout = found.edge_table_, found.model_.layout
    position = {name: i for i, name in enumerate(found.model_.names)}
    strengths = np.zeros((len(states), len(states)))
    for first, second, value in zip(
        table["first"], table["second"], table["strength"], strict=True
    ):
        i, j = position[first], position[second]
        strengths[i, j] = strengths[j, i] = value
    theta = found.model_.theta
    model = Potentials(
        [layout.node(theta, i) for i in range(len(states))],
        {(i, j): layout.edge(theta, k) for k, (i, j) in enumerate(layout.edges.tolist())},
    )
    return [Outcome(strengths, np.asarray(found.edges_), model)]
