"""Pairs tested on many samples of the same rows at once: the score bootstrap.

With white scores ``u_r`` of rows at the fit without a pair, ``U`` their sum and ``r`` their
variance over the rows (at least 1), a replicate has the sum ``U* = sum of w*_r u_r`` of its row
weights (Kline and Santos 2012). ``U`` holds the noise of the sample, to which a replicate adds as
much again. So

    T* = | sqrt(T - dof) U / |U| + (U* - U) / sqrt(r) |^2,

with ``T`` the statistic of the judge, is distributed as the statistic of another sample of as many
rows. Edges that a replicate adds are not taken into account for the others.
"""

from __future__ import annotations

import numpy as np
from scipy.special import chdtrc

from edgegraft.conditional.conditional import Conditional
from edgegraft.conditional.judge import (
    Judge,
    Network,
    Pair,
    design_effects,
    ratios,
    shares,
    spans,
    testable,
    white_scores,
)
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.core.types import Edges, Floats

_TINY = float(np.finfo(float).tiny)


class Replicated:
    """Pairs beside the edges of a network, tested on replicates of its rows."""

    def __init__(self, rows: ConditionalRows, edges: Edges, n_jobs: int = 1) -> None:
        self._judge = Judge(rows, n_jobs=n_jobs)
        self._network = Network(len(rows.columns), edges)

    def p_values(self, pairs: Edges, weights: Floats) -> Floats:
        """Return the p-value of every pair on every replicate; NaN if it is untestable.

        `weights` of rows have one row per replicate.
        """

        def test(given: Conditional, other: int) -> Floats:
            return _replicate(given, other, weights)

        asked: list[Pair] = [(i, j) for i, j in pairs.tolist()]
        found = self._judge.answer(self._network, asked, test)
        return np.stack(found, axis=1) if found else np.empty((len(weights), 0))


def _replicate(given: Conditional, other: int, weights: Floats) -> Floats:
    """Return the p-values of one pair."""
    out = np.full(len(weights), np.nan)
    if not testable(given, other):
        return out
    cells, nested = given.cells_of(other), spans(given, other)
    own = np.ones(given.rows.n_rows) if given.rows.weights is None else given.rows.weights
    parts = ratios(given, cells, nested)
    for part, share in zip(parts, shares(len(parts)), strict=True):
        white = white_scores(given, part)
        if not white.shape[2]:
            continue
        scores, effects = given.by_row(white), design_effects(given, white)
        score = own @ scores
        length = np.sqrt(max(part.ratio / effects.mean - part.dof, 0.0))
        centre = length * score / max(float(np.linalg.norm(score)), _TINY)
        noise = (weights @ scores - score) / np.sqrt(max(1.0, float(effects.along.mean())))
        p = chdtrc(part.dof, np.square(centre + noise).sum(axis=1)) / share
        out = np.fmin(out, np.clip(p, _TINY, 1.0))
    return out
