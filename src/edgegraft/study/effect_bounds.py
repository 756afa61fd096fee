"""Upper bounds of the effects of pairs that are not edges.

Every pair is judged as an addition to the network. Its statistic is a chi-square with a
noncentrality of about ``N atanh(r)^2``; the bound is the ``r`` under which so small a statistic has
a chance of 2.5 %, the lower end of an interval of 95 %. Rows of clusters count by the variance of
the pair's score over rows, as a share of the variance over clusters.
"""

from __future__ import annotations

from copy import copy
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chndtrinc

from edgegraft.conditional.judge import Judge, Network, Verdicts
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.conditional.survey_design import SurveyDesign
from edgegraft.core.types import Integers
from edgegraft.model import PairwiseMRF

_MAX_PAIRS = 5000  # a budget: more take minutes, and nobody reads them
_TINY = float(np.finfo(float).tiny)


def effect_upper_bounds(
    model: PairwiseMRF, rows: ConditionalRows, n_jobs: int, clusters: Integers | None = None
) -> dict[str, NDArray[Any]]:
    """Return the pairs that are not edges with their p-values and bounds; nothing if too many."""
    n, names = model.n_variables, np.array(model.names, object)
    if n * (n - 1) // 2 > _MAX_PAIRS:
        return {}
    network = Network(n, model.edges)
    pairs = [pair for pair in combinations(range(n), 2) if pair not in network.edges]
    tests = Verdicts.of(Judge(rows, n_jobs=n_jobs).ask(network, pairs))
    share = np.ones(len(pairs))
    if clusters is not None:
        clustered = copy(rows)
        clustered.survey = SurveyDesign.of(rows.n_rows, clusters=clusters)
        unclustered = np.maximum(tests.statistic, _TINY)
        tests = Verdicts.of(Judge(clustered, n_jobs=n_jobs).ask(network, pairs))
        share = np.clip(tests.statistic / unclustered, 0.0, 1.0)
    weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
    known = (rows.codes < rows.states[:, None]).astype(float)
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    size = ((known * weights) @ known.T)[ends[:, 0], ends[:, 1]] * share
    # A statistic below its mean counts as the mean: chance that makes it small excludes nothing.
    dof = np.maximum(tests.dof, 1)
    centre = np.asarray(chndtrinc(np.maximum(tests.statistic, dof), dof, 0.025))
    bound = np.where(tests.dof > 0, np.tanh(np.sqrt(centre / np.maximum(size, 1.0))), 1.0)
    return {
        "first": names[ends[:, 0]],
        "second": names[ends[:, 1]],
        "p_value": tests.p_value,
        "effect_upper_bound": bound,
    }
