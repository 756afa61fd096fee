"""Tests of edges on bootstrap replicates, to first order from the fit.

The effective score of a pair is a sum over rows (:mod:`~edgegraft.learn.edge_tests`). On a
replicate it is the same sum with other weights, with the parameters of the other edges kept:

    U* = sum over rows of w*_r u_r + J w,        T* = (U* - s U)' V^-1 (U* - s U)

``U`` has the noise of the sample, to which a replicate adds as much again; ``s U`` is what chance
has added (:meth:`~edgegraft.learn.effective_score.Directions.again`), so that ``T*`` is distributed
as the statistic of another sample of as many rows. That is an approximation (the score bootstrap of
Kline and Santos 2012): edges that a replicate adds are not taken into account for the others, and
the variance ``V`` is the fit's. In return, testing a pair on a thousand replicates is one product
of matrices. Pairs that the fit lacks are tested with their table added to it, at zero.
"""

from __future__ import annotations

import numpy as np
from scipy.special import chdtrc

from edgegraft.core import Layout
from edgegraft.core.threads import run
from edgegraft.core.types import Edges, Floats
from edgegraft.learn.conditional import Conditional, Rows, describe, without
from edgegraft.learn.effective_score import (
    MAX_DOUBTED,
    Side,
    describe_all,
    directions,
    moments,
    needs_test_at_zero,
    project,
    side_of,
    simpler,
)
from edgegraft.model import PairwiseMRF

_BLOCK = 1 << 14  # numbers of projected scores held at a time


def replicate_p_values(
    rows: Rows,
    model: PairwiseMRF,
    pairs: Edges,
    weights: Floats,
    *,
    n_jobs: int = 1,
    max_bytes: int = 1 << 28,
) -> Floats:
    """Return the p-value of every pair on every replicate.

    Parameters
    ----------
    rows : Rows
        Of the fit, with its weights.
    model : PairwiseMRF
        Fitted to them with a ridge.
    pairs : array of int, shape (m, 2)
        Edges of the model, or pairs that it lacks; the smaller index first.
    weights : array of float, shape (n_replicates, n_rows)
    n_jobs : int, default 1
        Threads; the results do not depend on it. The caller keeps the matrix library to one.
    max_bytes : int, default 256 MiB
        As in :func:`~edgegraft.learn.edge_tests.edge_tests`.

    Returns
    -------
    array of float, shape (n_replicates, m)
        NaN where the rows cannot tell of a pair: no direction of its table has enough of them. The
        variance is the fit's, so in every replicate or none.
    """
    layout = model.layout
    out = np.full((len(weights), len(pairs)), np.nan)
    place = {(i, j): k for k, (i, j) in enumerate(layout.edges.tolist())}
    nodes = describe_all(rows, layout, model.theta, n_jobs, max_bytes)

    def test(k: int) -> None:
        i, j = pairs[k].tolist()
        if not len(rows.kept[i]) or not len(rows.kept[j]):
            return
        if (i, j) in place:
            ends = [(nodes[i], j), (nodes[j], i)]
        else:
            ends = _with_pair(rows, model, (i, j), max_bytes)
        out[:, k] = _test(rows, ends, weights)

    run(test, range(len(pairs)), n_jobs)
    return out


def _with_pair(
    rows: Rows, model: PairwiseMRF, pair: tuple[int, int], max_bytes: int
) -> list[tuple[Conditional, int]]:
    """Return the conditionals of a pair's ends in the model with the pair's table, at zero."""
    grown = Layout(model.layout.states, np.concatenate((model.layout.edges, [pair])))
    theta = grown.carry(model.theta, model.layout)
    i, j = pair
    ends = []
    for own, other in ((i, j), (j, i)):
        touching = np.flatnonzero((grown.edges == own).any(axis=1))
        ends.append((describe(own, rows, grown, theta, touching, max_bytes), other))
    return ends


def _test(rows: Rows, ends: list[tuple[Conditional, int]], weights: Floats) -> Floats:
    """Return the p-values of one pair; NaN if no conditional can be used."""
    ends = [(node, other) for node, other in ends if node.inverse is not None]
    if not ends:
        return np.full(len(weights), np.nan)
    found = _judge_all(rows, [side_of(node, rows, other, None) for node, other in ends], weights)
    largest = 1.0 if np.isnan(found).any() else float(found.max())
    if needs_test_at_zero(largest, *ends[0], rows):
        sparse = rows.is_sparse(ends[0][0].design.target, ends[0][1])
        doubled = sparse and len(ends) == 2
        ends = simpler(ends) if sparse else ends
        sides = [side_of(without(node, rows, other), rows, other, None) for node, other in ends]
        at_zero = _judge_all(rows, sides, weights, doubled=doubled)
        if not np.isnan(at_zero).any():
            found = np.fmax(found, at_zero) if sparse and largest < MAX_DOUBTED else at_zero
    return found


def _judge_all(rows: Rows, sides: list[Side], weights: Floats, *, doubled: bool = False) -> Floats:
    """Return one p-value per replicate, by the larger of the two variances, or NaN."""
    score, by_model, by_rows = moments(sides, rows, doubled)
    usable = directions(by_model, by_rows)
    if usable.dof == 0:
        return np.full(len(weights), np.nan)
    statistics = usable.again(score, (2.0 if doubled else 1.0) * _scores(rows, sides, weights))
    return np.asarray(chdtrc(usable.dof, statistics))


def _scores(rows: Rows, sides: list[Side], weights: Floats) -> Floats:
    """Return the effective scores of the replicates, one per row."""
    size, n = len(sides[0].shift), len(rows.weights)
    out = np.zeros((len(weights), size))
    block = max(4, _BLOCK // size)
    for first in range(0, n, block):
        last = min(first + block, n)
        u = project(sides[0], rows, first, last - first)
        for side in sides[1:]:
            u += project(side, rows, first, last - first)
        out += weights[:, first:last] @ u
    for side in sides:
        out += side.shift
    return out
