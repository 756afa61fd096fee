"""What the rows say of pairs that are not edges: how large an effect they exclude.

Every pair is tested as an addition to the network, in rounds of pairs that share no variable. Its
statistic is a chi-square with a noncentrality of about ``N atanh(r)^2``; the largest ``r`` under
which so small a statistic has a chance of 2.5 % is what the rows do not exclude.
"""

from __future__ import annotations

import numpy as np
from scipy.special import chndtrinc

from edgegraft.core.pairs import pair_ids
from edgegraft.core.types import Edges, Floats
from edgegraft.learn.edge_tests import make_tester
from edgegraft.model import PairwiseMRF
from edgegraft.study.group_fit import JointModel
from edgegraft.study.group_rows import GroupRows, features_of
from edgegraft.table import PackedTable
from edgegraft.table.blocks import TableRows

_CHANCE = 0.05


def excluded_effects(
    model: PairwiseMRF, table: PackedTable, weights: Floats | None, n_jobs: int
) -> tuple[Edges, Floats, Floats]:
    """Return the pairs that are not edges, their p-values, and the effects that are excluded."""
    n, base = model.n_variables, np.ones(table.n_rows) if weights is None else weights
    given = GroupRows(table, ("all",), np.zeros(table.n_rows, np.int64), base, False, None)
    features = features_of(given)
    fit = JointModel(given, features, model.edges, n_jobs).fit(np.ones(model.n_edges, bool))
    scored = features if table.schema.scored else None
    tester = make_tester(scored, TableRows(table, base), n_jobs)
    edges = pair_ids(model.edges, n)
    pairs, statistic, dof, p = [], [], [], []
    for batch in _rounds(n):
        new = batch[~np.isin(pair_ids(batch, n), edges)]
        if not len(new):
            continue
        layout = fit.layout.with_edges(np.concatenate((fit.layout.edges, new)))
        theta = layout.carry(fit.thetas[0], fit.layout)
        found = tester.test(layout, theta, fit.layout.n_edges + np.arange(len(new)))
        pairs.append(new)
        statistic.append(found.statistic)
        dof.append(found.dof)
        p.append(found.p_value)
    if not pairs:
        return np.empty((0, 2), np.int64), np.zeros(0), np.zeros(0)
    whole, t, d = np.concatenate(pairs), np.concatenate(statistic), np.concatenate(dof)
    known = table.codes() >= 0
    rows = np.array([base @ (known[:, i] & known[:, j]) for i, j in whole.tolist()])
    centre = np.array([_largest(x, k) for x, k in zip(t.tolist(), d.tolist(), strict=True)])
    bound = np.where(d > 0, np.tanh(np.sqrt(centre / np.maximum(rows, 1.0))), 1.0)
    order = np.lexsort((whole[:, 1], whole[:, 0]))
    return whole[order], np.concatenate(p)[order], np.asarray(bound)[order]


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
    size = n + n % 2
    ring = list(range(size))
    out = []
    for _ in range(size - 1):
        batch = [
            sorted((ring[k], ring[size - 1 - k]))
            for k in range(size // 2)
            if max(ring[k], ring[size - 1 - k]) < n
        ]
        out.append(np.array(batch, np.int64).reshape(-1, 2))
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return out
