"""Tests of edges on bootstrap replicates, to first order from the fit; intervals of strengths.

The effective score of a pair is a sum over rows (:mod:`~edgegraft.learn.edge_tests`). On a
replicate it is the same sum with other weights, with the parameters of the other edges kept:

    U* = sum over rows of w*_r u_r + J w,        T* = (U* - s U)' V^-1 (U* - s U)

``U`` has the noise of the sample, to which a replicate adds as much again; ``s U`` is what chance
has added (:meth:`~edgegraft.learn.effective_score.Directions.again`), so that ``T*`` is distributed
as the statistic of another sample of as many rows. That is an approximation (the score bootstrap of
Kline and Santos 2012): edges that a replicate adds are not taken into account for the others, and
the variance ``V`` is the fit's. In return, testing a pair on a thousand replicates is one product
of matrices. Pairs that the fit lacks are tested with their table added to it, at zero.

*Intervals.* The norm of a table is biased upwards, ``E ||w*||^2 = ||w||^2 + tr Var(w*)``, in the
fit and once more in replicates, so percentiles of replicated strengths would be far too high.
Instead, for each replicate, ``l*`` is the length of a table in the direction of ``w`` that the
error ``e* = w* - w`` would make as strong as that of the fit,

    || (l* / ||w||) w + e* || = ||w||,      l* = -u* + sqrt(||w||^2 - (||e*||^2 - u*^2)),

with ``u*`` the part of ``e*`` along ``w``; zero if there is no such length. The interval is between
quantiles of ``l*``: the lengths that a test with the same errors would not reject. For a table with
one free entry it is the basic bootstrap interval. It is approximate, because the direction is that
of the fit.
"""

from __future__ import annotations

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.threads import run
from edgegraft.core.types import Edges, Floats
from edgegraft.learn.conditional import Conditionals, Side
from edgegraft.learn.effective_score import (
    MAX_DOUBTED,
    Ends,
    moments,
    needs_test_at_zero,
    simpler,
    weight_groups,
)
from edgegraft.learn.sparse_tails import tail_at_zero

_BLOCK = 1 << 14  # numbers of projected scores held at a time


def replicate_p_values(
    rows: Conditionals,
    layout: Layout,
    theta: Floats,
    pairs: Edges,
    weights: Floats,
    *,
    n_jobs: int = 1,
) -> Floats:
    """Return the p-value of every pair on every replicate, shape (n_replicates, m).

    `rows` have the weights of the fit, and `theta` was fitted to them with a ridge. `pairs` are
    edges of the model or pairs that it lacks, the smaller index first. `weights` have one row per
    replicate. NaN where the rows cannot tell of a pair: no direction of its table has enough of
    them. The variance is the fit's, so in every replicate or none. The caller keeps the matrix
    library to one thread.
    """
    out = np.full((len(weights), len(pairs)), np.nan)
    place = set(map(tuple, layout.edges.tolist()))
    nodes = rows.describe_all(layout, theta, n_jobs, inverse=rows.at_fit)

    def test(k: int) -> None:
        i, j = pairs[k].tolist()
        own = nodes
        if not rows.sizes[i] or not rows.sizes[j]:
            return
        if (i, j) not in place:  # in the model with the pair's table, at zero
            grown = layout.grow(pairs[k : k + 1])
            moved = grown.carry(theta, layout)
            own = rows.describe_all(grown, moved, 1, pairs[k], inverse=rows.at_fit)
        ends = [(own[a], b) for a, b in ((i, j), (j, i)) if own[a].usable]
        if ends:
            out[:, k] = _test(rows, ends, weights)

    run(test, range(len(pairs)), n_jobs)
    return out


def _test(rows: Conditionals, ends: Ends, weights: Floats) -> Floats:
    """Return the p-values of one pair."""
    found, largest, pair = None, 1.0, np.array([ends[0][0].target, ends[0][1]])
    if rows.at_fit:
        found = _judge_all(rows, [rows.side(node, other) for node, other in ends], weights)
        largest = 1.0 if np.isnan(found).any() else float(found.max())
        if not needs_test_at_zero(largest, rows.strength(*ends[0]), pair, rows):
            return found
    sparse = bool(rows.rarity.are_sparse(*pair))
    if sparse and rows.rarity.are_single(*pair):
        return tail_at_zero(ends, rows).replicated(weights)
    used = simpler(ends) if sparse or found is None else ends
    sides = [rows.side(rows.without(*end), end[1]) for end in used]
    at_zero = _judge_all(rows, sides, weights, doubled=len(used) < len(ends))
    if np.isnan(at_zero).any():
        known = at_zero if found is None else found
        return tail_at_zero(ends, rows).replicated(weights) if sparse else known
    if sparse and found is None:
        return np.fmax(at_zero, tail_at_zero(ends, rows).replicated(weights))
    if found is None or not sparse or largest >= MAX_DOUBTED:
        return at_zero
    return np.fmax(found, at_zero)


def _judge_all(
    rows: Conditionals, sides: list[Side], weights: Floats, *, doubled: bool = False
) -> Floats:
    """Return one p-value per replicate, by the larger of the two variances, or NaN."""
    score, by_model, by_rows, information = moments(sides, rows, doubled)
    linear = rows.linear(*sorted((sides[0].node.target, sides[0].other)))
    groups = weight_groups(by_model, by_rows, linear, information=information)
    if not any(group.directions.dof for group in groups):
        return np.full(len(weights), np.nan)
    scores = (2.0 if doubled else 1.0) * _scores(rows, sides, weights)
    p = [group.replicated(score, scores) / group.share for group in groups]
    return np.asarray(np.minimum(1.0, np.min(p, axis=0)))


def _scores(rows: Conditionals, sides: list[Side], weights: Floats) -> Floats:
    """Return the effective scores of the replicates, one per row."""
    size, n = len(sides[0].shift), len(rows.weights)
    out = np.zeros((len(weights), size))
    block = max(4, _BLOCK // size)
    for first in range(0, n, block):
        last = min(first + block, n)
        u = np.sum([rows.project(side, first, last - first) for side in sides], axis=0)
        out += weights[:, first:last] @ u
    return np.asarray(out + np.sum([side.shift for side in sides], axis=0))


def strength_intervals(
    strength: Floats, again: Floats, moved: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return intervals of norms of tables, corrected for the bias of a norm.

    `strength` is ``||w||`` of the fit; `again` and `moved` are ``||w*||`` and ``||w* - w||`` of the
    replicates, one row each.

    >>> error = np.random.default_rng(0).normal(size=(5000, 1, 9))  # of nine entries
    >>> table = 12.0 * np.eye(9)[:1]
    >>> again, moved = np.linalg.norm(table + error, axis=2), np.linalg.norm(error, axis=2)
    >>> lower, upper = strength_intervals(np.array([12.0]), again, moved, 0.95)
    >>> lower.round(1), upper.round(1)
    (array([9.7]), array([13.7]))
    """
    error = moved**2
    # w'e = (||w + e||^2 - ||w||^2 - ||e||^2) / 2
    longest = np.maximum(strength, np.finfo(np.float64).tiny)
    along = (again**2 - strength**2 - error) / (2.0 * longest)
    across = np.maximum(0.0, error - along**2)
    length = np.sqrt(np.maximum(0.0, strength**2 - across)) - along
    length = np.where(across > strength**2, 0.0, np.maximum(0.0, length))
    tail = (1.0 - level) / 2.0
    lower, upper = np.quantile(length, (tail, 1.0 - tail), axis=0)
    return lower, upper
