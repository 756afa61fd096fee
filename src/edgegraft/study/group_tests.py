"""Tests that an edge is the same in all groups, from the influence of rows in each group.

The effective scores of an edge at a fit of all groups (:mod:`edgegraft.conditional.influence`) have
the sum ``U_g`` in a group, moved to weights of zero by the information ``J_g``. If the weights are
the same in all groups, what a common value explains is removed from every score:

    D_g = U_g - J_g (sum J)^-1 sum U,        Var D = A Var(U) A',   A_gh = 1[g = h] - J_g (sum J)^-1

The last group follows from the others and is left out. As the judge of edges does, tests divide by
the design effect, the variance over the rows or clusters in units of the model's, and test linear
and further scores separately. A direction in which a group has no rows, such as a category that it
lacks, has no variance and is not tested.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from edgegraft.conditional.conditional import Conditional, start_from_tables
from edgegraft.conditional.coordinates import Coordinates
from edgegraft.conditional.features import Features
from edgegraft.conditional.influence import influence_of
from edgegraft.conditional.judge import Network, Verdict, combine, shares, small_sample
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.core import Layout
from edgegraft.core.threads import run
from edgegraft.core.types import Floats, Integers, Mask
from edgegraft.study.groups import GroupRows, JointFit

_MAX_BYTES = 1 << 27  # of scores of rows that are held at a time: a budget
_TINY = float(np.finfo(float).tiny)
MIN_VARIANCE = 10.0
"""Minimum variance of a direction, in rows; below it, noise is not Gaussian.

The scores of two ends are added; if they agree, the variance is four times the expected count of a
cell, so 10 corresponds to 2.5 to 5 expected rows.
"""


class EdgeScores(NamedTuple):
    """The effective scores of one edge, of k weights, in one group."""

    rows: Floats  # (rows of the group, k): weighted scores of rows, of both ends together
    step: Floats  # moves their sum to the score at zero: information times weights
    information: Floats
    by_model: Floats  # variance of the sum
    by_rows: Floats

    @property
    def score(self) -> Floats:
        """The score at zero: information times the weights, after one step from the fit."""
        return np.asarray(self.rows.sum(axis=0) + self.step)


class GroupScores:
    """The conditionals of every group at a joint fit."""

    def __init__(self, data: GroupRows, features: Features, fitted: JointFit, n_jobs: int) -> None:
        self._data, self._edges, self._n_jobs = data, fitted.layout.edges, n_jobs
        rows = ConditionalRows(data.table, data.weights, features, sampling=data.sampling)
        self._columns = rows.columns
        parts = [rows.take(data.of(g)) for g in range(len(data.names))]
        beside = Network(len(rows.columns), self._edges).beside
        layout = Layout(fitted.layout.states, self._edges)
        tables = [features.expand(theta, fitted.layout) for theta in fitted.thetas]
        self._ends: dict[int, list[Conditional | None]] = {}

        def read(i: int) -> None:
            ends = []
            for part, theta in zip(parts, tables, strict=True):
                others = sorted(beside[i])
                start = start_from_tables(part, i, others, layout, theta)
                end = Conditional(part, i, others, start=start)
                end.is_fitted = True
                ends.append(end if end.usable else None)
            self._ends[i] = ends

        run(read, [i for i, others in enumerate(beside) if others], n_jobs)

    def linear(self, k: int) -> Mask:
        """Return which weights of an edge are linear, flat."""
        i, j = self._edges[k].tolist()
        return np.outer(self._columns[i].linear, self._columns[j].linear).ravel()

    def signed(self, k: int) -> bool:
        """Return whether an edge has a sign: its ends are ordered or have two states."""
        ends = [self._columns[i] for i in self._edges[k].tolist()]
        return all(end.own.size and (end.scored or end.own.shape[1] == 1) for end in ends)

    def slope(self, k: int, weights: Floats) -> Floats:
        """Return the derivative of the size of weights on the scale of a correlation.

        The size, ``slope @ weights``, is the norm of their table, cells weighted by the product of
        the margins; of an edge with a sign the linear weight counts alone.
        """
        ends = [self._columns[i] for i in self._edges[k].tolist()]
        if not self.signed(k):
            pull = np.kron(*map(_spread, ends)) @ weights
            return np.asarray(pull / np.sqrt(max(float(weights @ pull), _TINY)))
        first = np.zeros(len(weights))
        first[0] = np.sqrt(np.prod([_spread(end)[0, 0] for end in ends]))
        for end in ends:  # towards later states
            first[0] *= 1.0 if end.own[-1, 0] >= end.own[0, 0] else -1.0
        return first

    def batches(self) -> Iterator[tuple[Integers, list[list[EdgeScores | None]]]]:
        """Yield positions of edges with the scores of each in every group."""
        widths = np.array([column.own.shape[1] for column in self._columns])
        size = widths[self._edges].prod(axis=1)
        room = max(1, _MAX_BYTES // (16 * self._data.table.n_rows))
        batch = (np.cumsum(size) - 1) // room
        for number in np.unique(batch):
            chosen = np.flatnonzero(batch == number)
            found: dict[int, list[EdgeScores | None]] = {}

            def work(k: int, found: dict[int, list[EdgeScores | None]] = found) -> None:
                found[k] = [self._scores(g, k) for g in range(len(self._data.names))]

            run(work, chosen.tolist(), self._n_jobs)
            yield chosen, [found[k] for k in chosen.tolist()]

    def _scores(self, g: int, k: int) -> EdgeScores | None:
        """Return the scores of an edge in a group; None if it cannot be tested there."""
        i, j = pair = tuple(self._edges[k].tolist())
        first, second = self._ends[i][g], self._ends[j][g]
        if not (first or second) or not len(self.linear(k)):
            return None
        used = [end for end in (first, second) if end]
        ends = [
            influence_of(end if end is first else None, end if end is second else None, pair)
            for end in used
        ]
        weights = self._data.weights[self._data.of(g)]
        counts = None if self._data.sampling else weights
        total = max(end.weight for end in used)
        scores = [weights[:, None] * end.scores for end in ends]
        information = np.sum([end.information for end in ends], axis=0)
        by_model = information.copy()
        if len(ends) == 2:
            shared = _covariance(scores[0], scores[1], total, counts)
            by_model += shared + shared.T
        whole, raised = np.sum(scores, axis=0), np.mean([1 / small_sample(end) for end in used])
        by_rows = _covariance(whole, whole, total, counts)
        step = np.sum([end.information @ end.estimate for end in ends], axis=0)
        return EdgeScores(whole, step, information, by_model * raised, by_rows * raised)


def _spread(column: Coordinates) -> Floats:
    """Return the covariance of a column's coordinates."""
    share = column.margin / max(float(column.margin.sum()), _TINY)
    mean = share @ column.own
    return np.asarray((column.own.T * share) @ column.own - np.outer(mean, mean))


def _covariance(first: Floats, second: Floats, total: float, weights: Floats | None) -> Floats:
    """Return the covariance of two sums over rows of weighted scores; weights count rows."""
    per_row = second if weights is None else second / weights[:, None]
    return np.asarray(first.T @ per_row - np.outer(first.sum(axis=0), second.sum(axis=0)) / total)


class Part(NamedTuple):
    """Some directions of a score, white under the model's variance."""

    turn: Floats  # (size, dof) from the score to its directions
    scale: float  # the design effect, at least 1
    share: float  # of the level

    @property
    def dof(self) -> int:
        """Number of directions."""
        return int(self.turn.shape[1])


def parts_of(by_model: Floats, by_rows: Floats, linear: Mask) -> list[Part]:
    """Return the linear weights and the rest without what these explain, or all in one part."""
    every = np.eye(len(linear))
    turns = [every]
    if linear.any() and not linear.all():
        rest = every[~linear]
        lead = np.linalg.pinv(by_model[np.ix_(linear, linear)])
        rest[:, linear] = -by_model[np.ix_(~linear, linear)] @ lead
        turns = [every[linear], rest]
    parts = []
    for turn, share in zip(turns, shares(len(turns)), strict=True):
        spread, axes = np.linalg.eigh(turn @ by_model @ turn.T)
        able = spread >= MIN_VARIANCE
        white = turn.T @ (axes[:, able] / np.sqrt(spread[able]))
        ratio = np.einsum("ai,ab,bi->i", white, by_rows, white)
        parts.append(Part(white, max(1.0, float(ratio.mean())) if len(ratio) else 1.0, share))
    return parts


def _judge(score: Floats, by_model: Floats, by_rows: Floats, linear: Mask) -> Verdict:
    """Return the verdict on a score with its variance by the model and over the rows."""
    parts = parts_of(by_model, by_rows, linear)
    statistics = [float(np.square(score @ part.turn).sum()) / part.scale for part in parts]
    dof = [part.dof for part in parts]
    p = [float(chdtrc(size, t)) if size else 1.0 for size, t in zip(dof, statistics, strict=True)]
    return combine(statistics, dof, p)


class Estimate(NamedTuple):
    """The weights of an edge in one group with their variances.

    The variance over the rows is too small if a cell happens to be empty: the larger error counts.
    """

    weights: Floats
    by_model: Floats
    by_rows: Floats

    def error(self, slope: Floats) -> float:
        """Return the standard error of what has this slope in the weights."""
        spreads = (float(slope @ spread @ slope) for spread in (self.by_model, self.by_rows))
        return float(np.sqrt(max(0.0, *spreads)))


class EdgeEquality(NamedTuple):
    """The tests and estimates of one edge."""

    verdict: Verdict  # the test that its weights are equal
    estimates: list[Estimate | None]  # per group; None if it cannot be estimated there
    difference: Estimate | None  # of the second of two groups from the first
    centred: Floats  # scores of all rows, of mean zero in each group if the weights were equal
    pooled: float  # the p-value of the edge in all groups together
    common: Floats  # the weights that all groups have if they are equal


def judge_equality(data: GroupRows, scores: list[EdgeScores | None], linear: Mask) -> EdgeEquality:
    """Test one edge, from its scores in every group."""
    size = len(linear)
    each = [group or _nothing(size, len(data.of(g))) for g, group in enumerate(scores)]
    score, step, information, by_model, by_rows = (
        np.sum([getattr(group, name) for group in each], axis=0)
        for name in ("score", "step", "information", "by_model", "by_rows")
    )
    pooled = _judge(score, by_model, by_rows, linear).p_value
    total = np.linalg.pinv(information)
    common, steps = total @ score, total @ step
    contrasts = np.concatenate([group.score - group.information @ common for group in each[:-1]])
    loadings = {
        h: np.concatenate(
            [
                (g == h) * np.eye(size) - group.information @ total
                for g, group in enumerate(each[:-1])
            ]
        )
        for h in range(len(each))
    }
    verdict = _judge(contrasts, *_variances(data, each, loadings), np.tile(linear, len(each) - 1))
    centred = np.empty((len(data.groups), size))
    for g, group in enumerate(each):
        rows, moved = data.of(g), group.step - group.information @ steps
        centred[rows] = group.rows + np.outer(data.weights[rows] / data.weights[rows].sum(), moved)
    inverse = [np.asarray(np.linalg.pinv(group.information), np.float64) for group in each]
    weights = [by @ group.score for by, group in zip(inverse, each, strict=True)]
    estimates = [
        Estimate(weights[g], *_variances(data, each, {g: inverse[g]})) if known else None
        for g, known in enumerate(scores)
    ]
    difference = None
    if len(scores) == 2 and all(scores):
        turns = {0: -inverse[0], 1: inverse[1]}
        difference = Estimate(weights[1] - weights[0], *_variances(data, each, turns))
    return EdgeEquality(verdict, estimates, difference, centred, pooled, common)


def _nothing(size: int, n_rows: int) -> EdgeScores:
    """Return the scores of an edge that a group says nothing of."""
    zero = np.zeros((size, size))
    return EdgeScores(np.zeros((n_rows, size)), np.zeros(size), zero, zero, zero)


def _variances(
    data: GroupRows, each: list[EdgeScores], turns: dict[int, Floats]
) -> tuple[Floats, Floats]:
    """Return the variance by the model and over rows of the sum of turned scores of some groups.

    Over clusters there is one alone: a cluster may have rows of all groups.
    """
    if data.clusters is None:
        by_model = [turn @ each[g].by_model @ turn.T for g, turn in turns.items()]
        by_rows = [turn @ each[g].by_rows @ turn.T for g, turn in turns.items()]
        return np.sum(by_model, axis=0), np.sum(by_rows, axis=0)
    sums: Floats = np.zeros(())
    for g, turn in turns.items():
        weights, rows = data.weights[data.of(g)], each[g].rows
        centred = rows - np.outer(weights / weights.sum(), rows.sum(axis=0))
        sums = sums + data.by_cluster(centred, data.of(g)) @ turn.T
    spread = sums.T @ sums * (len(sums) / max(len(sums) - 1, 1))
    return spread, spread
