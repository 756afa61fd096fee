"""Tests that an edge is the same in all groups.

The score of an edge in a group, ``U_g``, has the sensitivity ``J_g`` to its weights. If the weights
are the same in all groups, what a common value explains is removed from every score:

    D_g = U_g - J_g (sum J)^-1 sum U,        Var D = A Var(U) A',   A_gh = 1[g = h] - J_g (sum J)^-1

The last group follows from the others and is left out. The variance is the larger of that of the
model and that over the rows, or that over the clusters, whose rows are added first. A direction in
which a group has no rows, such as a category that it lacks, has no variance and is not tested.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgegraft.conditional.judge import Verdict
from edgegraft.core.types import Floats, Mask
from edgegraft.study.group_rows import GroupRows
from edgegraft.study.group_scores import EdgeScores
from edgegraft.study.score_tests import judge_score


class Estimate(NamedTuple):
    """The weights of an edge in one group, free of the ridge, with their variances.

    That over the rows is too small if a cell happens to be empty: the larger error counts.
    """

    weights: Floats
    by_model: Floats
    by_rows: Floats

    def error(self, slope: Floats) -> float:
        """Return the standard error of what has this slope in the weights."""
        spreads = (float(slope @ spread @ slope) for spread in (self.by_model, self.by_rows))
        return float(np.sqrt(max(0.0, *spreads)))


class EdgeEquality(NamedTuple):
    """What is known of one edge."""

    verdict: Verdict  # the test that its weights are equal
    estimates: list[Estimate | None]  # per group; None if it cannot be estimated there
    difference: Estimate | None  # of the second of two groups from the first
    centred: list[Floats]  # per group, scores of rows of mean zero if the weights were equal
    pooled: float  # the p-value of the edge in all groups together
    common: Floats  # the weights that all groups have if they are equal


def judge_equality(given: GroupRows, scores: list[EdgeScores | None], linear: Mask) -> EdgeEquality:
    """Test one edge, from its scores in every group."""
    size = len(linear)
    known = [_or_nothing(own, size, len(given.of(g))) for g, own in enumerate(scores)]
    score, step, slopes, by_model, by_rows = (
        np.sum([getattr(own, name) for own in known], axis=0)
        for name in ("score", "step", "sensitivity", "by_model", "by_rows")
    )
    pooled = judge_score(score, by_model, by_rows, linear, slopes).p_value
    total = np.linalg.pinv(slopes)
    common, steps = total @ score, total @ step
    apart = np.concatenate([own.score - own.sensitivity @ common for own in known[:-1]])
    loadings = [(_loading(known, total, h), own) for h, own in enumerate(known)]
    if given.clusters is None:
        by_model = np.sum([a @ own.by_model @ a.T for a, own in loadings], axis=0)
        by_rows = np.sum([a @ own.by_rows @ a.T for a, own in loadings], axis=0)
    else:  # which may have rows of all groups
        sums = [_cluster_sums(given, g, own) @ a.T for g, (a, own) in enumerate(loadings)]
        by_model = by_rows = _spread(np.sum(sums, axis=0))
    verdict = judge_score(apart, by_model, by_rows, np.tile(linear, len(known) - 1))
    centred = []
    for g, own in enumerate(known):
        weights = given.weights[given.of(g)]
        moved = own.step - own.sensitivity @ steps
        centred.append(own.rows + np.outer(weights / weights.sum(), moved))
    estimates = [own and estimate(given, g, own) for g, own in enumerate(scores)]
    difference = _difference(given, scores, estimates)
    return EdgeEquality(verdict, estimates, difference, centred, pooled, common)


def _or_nothing(own: EdgeScores | None, size: int, n_rows: int) -> EdgeScores:
    if own is not None:
        return own
    nothing = np.zeros((size, size))
    return EdgeScores(np.zeros((n_rows, size)), np.zeros(size), nothing, nothing, nothing)


def _loading(known: list[EdgeScores], total: Floats, h: int) -> Floats:
    """Return how the score of a group enters the differences."""
    size = len(total)
    blocks = [(g == h) * np.eye(size) - own.sensitivity @ total for g, own in enumerate(known[:-1])]
    return np.concatenate(blocks)


def _cluster_sums(given: GroupRows, g: int, own: EdgeScores) -> Floats:
    """Return the sums of the centred scores of a group over the rows of each cluster."""
    assert given.clusters is not None
    weights = given.weights[given.of(g)]
    rows = own.rows - np.outer(weights / weights.sum(), own.rows.sum(axis=0))
    sums = np.zeros((int(given.clusters.max()) + 1, rows.shape[1]))
    np.add.at(sums, given.clusters[given.of(g)], rows)
    return sums


def _spread(sums: Floats) -> Floats:
    n = len(sums)
    return np.asarray(sums.T @ sums * (n / max(n - 1, 1)))


def estimate(given: GroupRows, g: int, own: EdgeScores) -> Estimate:
    """Return the weights of an edge in a group, one step from the fit."""
    spreads = own.by_model, own.by_rows
    if given.clusters is not None:
        spreads = (_spread(_cluster_sums(given, g, own)),) * 2
    inverse = np.linalg.pinv(own.sensitivity)
    return Estimate(inverse @ own.score, *(inverse @ spread @ inverse.T for spread in spreads))


def _difference(
    given: GroupRows, scores: list[EdgeScores | None], estimates: list[Estimate | None]
) -> Estimate | None:
    """Return the difference of two groups, whose rows may be of the same clusters."""
    known = [(own, found) for own, found in zip(scores, estimates, strict=True) if own and found]
    if len(scores) != 2 or len(known) != 2:
        return None
    (first, before), (second, after) = known
    spreads = before.by_model + after.by_model, before.by_rows + after.by_rows
    if given.clusters is not None:
        moved = [
            _cluster_sums(given, g, own) @ np.linalg.pinv(own.sensitivity).T
            for g, own in enumerate((first, second))
        ]
        spreads = (_spread(moved[1] - moved[0]),) * 2
    return Estimate(after.weights - before.weights, *spreads)
