"""What the rows say of pairs that are not edges: how large an effect they exclude.

Every pair is judged as an addition to the network. Its statistic is a chi-square with a
noncentrality of about ``N atanh(r)^2``; the largest ``r`` under which so small a statistic has a
chance of 2.5 % is what the rows do not exclude. Rows of clusters count by the variance of the
pair's score over rows, as a share of the variance over clusters.
"""

from __future__ import annotations

from copy import copy
from itertools import combinations

import numpy as np
from scipy.special import chndtrinc

from edgegraft.conditional.judge import Judge, Network, Verdicts
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.conditional.survey_design import SurveyDesign
from edgegraft.core.types import Edges, Floats, Integers

_CHANCE = 0.05
_TINY = float(np.finfo(float).tiny)


def excluded_effects(
    rows: ConditionalRows, edges: Edges, n_jobs: int, clusters: Integers | None = None
) -> tuple[Edges, Floats, Floats]:
    """Return the pairs that are not edges, their p-values, and the effects that are excluded."""
    n = len(rows.columns)
    network = Network(n, edges)
    new = [pair for pair in combinations(range(n), 2) if pair not in network.edges]
    if not new:
        return np.empty((0, 2), np.int64), np.zeros(0), np.zeros(0)
    tests = Verdicts.of(Judge(rows, n_jobs=n_jobs).ask(network, new))
    share = np.ones(len(new))
    if clusters is not None:
        clustered = copy(rows)
        clustered.survey = SurveyDesign.of(rows.n_rows, clusters=clusters)
        alone = np.maximum(tests.statistic, _TINY)
        tests = Verdicts.of(Judge(clustered, n_jobs=n_jobs).ask(network, new))
        share = np.clip(tests.statistic / alone, 0.0, 1.0)
    statistic, dof = tests.statistic, tests.dof
    weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
    known = (rows.codes < rows.states[:, None]).astype(float)
    both = (known * weights) @ known.T
    size = np.array([both[pair] for pair in new]) * share
    each = zip(statistic.tolist(), dof.tolist(), strict=True)
    centre = np.array([_largest(own, k) for own, k in each])
    bound = np.where(dof > 0, np.tanh(np.sqrt(centre / np.maximum(size, 1.0))), 1.0)
    return np.array(new), tests.p_value, np.asarray(bound)


def _largest(statistic: float, dof: int) -> float:
    """Return the noncentrality under which a statistic is in the lowest 2.5 %.

    A statistic below its mean counts as the mean: that chance has made it small excludes nothing.
    """
    return float(chndtrinc(max(statistic, float(dof)), dof, _CHANCE / 2)) if dof else np.inf
