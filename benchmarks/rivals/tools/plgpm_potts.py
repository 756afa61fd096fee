"""plgpm with its defaults: elastic-net multinomial regressions by saga."""

from __future__ import annotations

import numpy as np
from plgpm import PLGPM
from plgpm.core import PLGPMConfig

from benchmarks.rivals.outcome import Codes, Outcome, pairs_of
from benchmarks.rivals.regressions import Regressions
from benchmarks.rivals.tools.nodewise import both_states


def fit(codes: Codes, states: Codes, seed: int, threads: int) -> list[Outcome]:
    settings = PLGPMConfig(n_jobs=threads, random_state=seed, verbose=False)
    model = PLGPM(states.tolist(), settings).fit(codes.astype(np.int64))
    strengths = model.coupling_matrix()
    found = Regressions(states, softmax=True)
    for i, (regression, _) in enumerate(model.models):
        found.put(i, both_states(regression.intercept_), both_states(regression.coef_))
    joint = found.joint(strengths > 0.0)
    edges = pairs_of(strengths > 0.0)
    return [Outcome(strengths, edges, joint, found.log_conditionals)]
