"""What the rows say of pairs that are not edges: how large an effect they exclude.

Every pair is tested as an addition to the network, in rounds of pairs that share no variable. Its
statistic is a chi-square with a noncentrality of about ``N atanh(r)^2``; the largest ``r`` under
which so small a statistic has a chance of 2.5 % is what the rows do not exclude. Rows of clusters
count by the variance of the pair's score over rows, as a share of that over clusters.
"""

from __future__ import annotations

import numpy as np
from scipy.special import chndtrinc

from edgegraft.conditional.survey_design import SurveyDesign
from edgegraft.core.pairs import pair_ids
from edgegraft.core.types import Edges, Floats, Integers
from edgegraft.study.group_fit import WholeFit

_CHANCE = 0.05
_TINY = float(np.finfo(float).tiny)


def excluded_effects(
    whole: WholeFit, n_jobs: int, clusters: Integers | None = None
) -> tuple[Edges, Floats, Floats]:
    """Return the pairs that are not edges, their p-values, and the effects that are excluded."""
    table, base, fit = whole.given.table, whole.given.weights, whole.fit
    n = len(table.schema)
    survey = SurveyDesign.of(table.n_rows, clusters=clusters)
    tester = whole.tester(n_jobs, survey)
    alone = None if survey is None else whole.tester(n_jobs)
    edges = pair_ids(fit.layout.edges, n)
    tests = []
    for batch in _rounds(n):
        new = batch[~np.isin(pair_ids(batch, n), edges)]
        if not len(new):
            continue
        layout = fit.layout.with_edges(np.concatenate((fit.layout.edges, new)))
        theta = layout.carry(fit.thetas[0], fit.layout)
        at = fit.layout.n_edges + np.arange(len(new))
        found = tester.test(layout, theta, at)
        share = np.ones(len(new))
        if alone is not None:
            single = np.maximum(alone.test(layout, theta, at).statistic, _TINY)
            share = np.clip(found.statistic / single, 0.0, 1.0)
        tests.append((new, found.statistic, found.dof, found.p_value, share))
    if not tests:
        return np.empty((0, 2), np.int64), np.zeros(0), np.zeros(0)
    new, statistic, dof, p, share = map(np.concatenate, zip(*tests, strict=True))
    known = table.codes() >= 0
    rows = np.array([base @ (known[:, i] & known[:, j]) for i, j in new.tolist()]) * share
    each = zip(statistic.tolist(), dof.tolist(), strict=True)
    centre = np.array([_largest(own, k) for own, k in each])
    bound = np.where(dof > 0, np.tanh(np.sqrt(centre / np.maximum(rows, 1.0))), 1.0)
    order = np.lexsort((new[:, 1], new[:, 0]))
    return new[order], p[order], np.asarray(bound)[order]


def _largest(statistic: float, dof: int) -> float:
    """Return the noncentrality under which a statistic is in the lowest 2.5 %.

    A statistic below its mean counts as the mean: that chance has made it small excludes nothing.
    """
    return float(chndtrinc(max(statistic, float(dof)), dof, _CHANCE / 2)) if dof else np.inf


def _rounds(n: int) -> list[Edges]:
    """Return all pairs in rounds in which every variable occurs once at most.

    Examples
    --------
    >>> sum(len(batch) for batch in _rounds(5)), len(_rounds(4))
    (10, 3)
    """
    pairs = np.column_stack(np.triu_indices(n, 1))
    n_rounds = n - 1 + n % 2  # odd, so that sums and doubles of variables are all different in it
    alone = pairs[:, 1] == n_rounds  # the last of an even number of variables
    number = np.where(alone, 2 * pairs[:, 0], pairs.sum(axis=1)) % n_rounds
    return [pairs[number == k] for k in range(n_rounds)]
