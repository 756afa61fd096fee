"""Effective scores of edges in every group, in coordinates that all groups share.

What the other parameters of a conditional could explain is removed from the score of an edge's
weights: the intercepts of a group by the group's own information, other edges by that of all
groups together,

    psi~ = psi_s - H_su H_uu^-1 psi_u,    u = J [S^-1 psi~]_w
    S = sum of S_g,    J = ([S^-1]_ww)^-1

with ``u`` the intercepts, ``s`` the weights of all edges, and ``S_g`` the information of ``psi~``
in a group. A projection by each group's own ``S_g`` would add its noise to the scores.

Scores of an edge are in a frame that treats the states of an unordered column alike: with the score
of its most common state, minus the sum of the others, their Gram matrix is ``I + 1 1'``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from edgegraft.conditional.conditional import RIDGE_ROWS, Conditional, start_from_tables
from edgegraft.conditional.coordinates import Coordinates
from edgegraft.conditional.features import Features
from edgegraft.conditional.judge import Network, small_sample
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.core import Layout
from edgegraft.core.threads import run
from edgegraft.core.types import Floats, Integers, Mask
from edgegraft.study.group_fit import JointFit
from edgegraft.study.group_rows import GroupRows

_MAX_BYTES = 1 << 27  # of scores of rows that are held at a time
_TINY = float(np.finfo(float).tiny)


class EdgeScores(NamedTuple):
    """The effective scores of one edge, of k weights, in one group."""

    rows: Floats  # (rows of the group, k): weighted scores of rows, of both ends together
    step: Floats  # moves their sum to the score at zero: sensitivity times weights
    sensitivity: Floats  # of the sum to the weights
    by_model: Floats  # variance of the sum
    by_rows: Floats

    @property
    def score(self) -> Floats:
        """The score at zero: sensitivity times the weights, after one step from the fit."""
        return np.asarray(self.rows.sum(axis=0) + self.step)


class _End(NamedTuple):
    """The conditional of a column in one group, at the joint fit."""

    given: Conditional
    information: Floats  # on the weights, without what intercepts explain
    explained: Floats  # of the weights' scores by those of the intercepts


class GroupScores:
    """The conditionals of every group at a joint fit."""

    def __init__(self, given: GroupRows, features: Features, fitted: JointFit, n_jobs: int) -> None:
        self._given, self._edges, self._n_jobs = given, fitted.layout.edges, n_jobs
        rows = ConditionalRows(given.table, given.weights, features, sampling=given.sampling)
        self._columns = rows.columns
        parts = [rows.take(given.of(g)) for g in range(len(given.names))]
        network = Network(len(rows.columns), self._edges)
        layout = Layout(fitted.layout.states, self._edges)
        tables = [features.expand(theta, fitted.layout) for theta in fitted.thetas]
        ends = {i: sorted(beside) for i, beside in enumerate(network.beside) if beside}
        self._ends: dict[int, list[_End | None]] = {}
        self._inverse: dict[int, Floats] = {}  # of the information of all groups together

        def read(i: int) -> None:
            own = [
                _read(part, i, ends[i], layout, theta)
                for part, theta in zip(parts, tables, strict=True)
            ]
            self._ends[i] = own
            if known := [end.information for end in own if end is not None]:
                self._inverse[i] = _inverted(np.sum(known, axis=0))

        run(read, ends, n_jobs)

    def linear(self, k: int) -> Mask:
        """Return which weights of an edge are linear, flat."""
        i, j = self._edges[k].tolist()
        return np.outer(self._columns[i].linear, self._columns[j].linear).ravel()

    def signed(self, k: int) -> bool:
        """Return whether an edge has a sign: its ends are ordered or have two states."""
        ends = [self._columns[i] for i in self._edges[k].tolist()]
        return all(end.own.size and (end.scored or end.own.shape[1] == 1) for end in ends)

    def effect(self, k: int, weights: Floats) -> float:
        """Return the size of weights on the scale of a correlation, with a sign if any.

        It is the norm of their table, cells weighted by the product of the margins; of an edge with
        a sign the linear weight counts alone.
        """
        return float(self.slope(k, weights) @ weights)

    def slope(self, k: int, weights: Floats) -> Floats:
        """Return how much the size of weights changes with them, at these ones."""
        pair = self._edges[k].tolist()
        ends, frame = [self._columns[i] for i in pair], self._frame(*pair)
        if not self.signed(k):
            pull = frame @ np.kron(*map(_spread, ends)) @ frame.T @ weights
            return np.asarray(pull / np.sqrt(max(float(weights @ pull), _TINY)))
        first = np.zeros(len(weights))
        first[0] = np.sqrt(np.prod([_spread(end)[0, 0] for end in ends]))
        for end in ends:  # towards later states
            first[0] *= 1.0 if end.own[-1, 0] >= end.own[0, 0] else -1.0
        return np.asarray(frame @ first)

    def _frame(self, i: int, j: int) -> Floats:
        """Return the turn from the coordinates of a pair to the frame of its scores."""
        frames = []
        for column in (self._columns[i], self._columns[j]):
            gram = np.eye(column.own.shape[1]) + (0.0 if column.scored else 1.0)
            frames.append(np.linalg.cholesky(gram).T)
        return np.kron(*frames)

    def batches(self) -> Iterator[tuple[Integers, list[list[EdgeScores | None]]]]:
        """Yield positions of edges with the scores of each in every group."""
        widths = np.array([column.own.shape[1] for column in self._columns])
        size = widths[self._edges].prod(axis=1)
        room = max(1, _MAX_BYTES // (16 * self._given.table.n_rows))
        batch = (np.cumsum(size) - 1) // room
        for number in np.unique(batch):
            chosen = np.flatnonzero(batch == number)
            found: dict[int, list[EdgeScores | None]] = {}

            def work(k: int, found: dict[int, list[EdgeScores | None]] = found) -> None:
                found[k] = [self._scores(g, k) for g in range(len(self._given.names))]

            run(work, chosen.tolist(), self._n_jobs)
            yield chosen, [found[k] for k in chosen.tolist()]

    def _scores(self, g: int, k: int) -> EdgeScores | None:
        """Return the scores of an edge in a group; None if it cannot be tested there."""
        pair = self._edges[k].tolist()
        frame = self._frame(*pair)
        weights, size = self._given.weights[self._given.of(g)], len(self.linear(k))
        step, (slopes, by_model) = np.zeros(size), np.zeros((2, size, size))
        scores, used = [], []
        for i, j in (pair, pair[::-1]):
            end = self._ends[i][g]
            if end is None or not size:
                continue
            given, cells = end.given, end.given.cells_of(j)
            if i < j:  # a conditional has the coordinates of the other end first
                cells = cells.reshape(-1, given.k).T.ravel()
            at = cells - given.q
            across = self._inverse[i][:, at]
            turn = across @ _inverted(across[at]) @ frame.T
            directions = np.concatenate((-end.explained @ turn, turn)).T
            scores.append(weights[:, None] * given.by_row(given.rows_along(given.fit, directions)))
            sensitivity = turn.T @ end.information[:, at]
            step += sensitivity @ given.fit.theta[cells]
            slopes += sensitivity @ frame.T
            by_model += turn.T @ end.information @ turn
            used.append(given)
        if not used:
            return None
        total = max(given.weight for given in used)
        shown = None if self._given.sampling else weights
        if len(scores) == 2:
            shared = _covariance(scores[0], scores[1], total, shown)
            by_model += shared + shared.T
        whole, raised = np.sum(scores, axis=0), np.mean([1 / small_sample(own) for own in used])
        by_rows = _covariance(whole, whole, total, shown)
        return EdgeScores(whole, step, slopes, by_model * raised, by_rows * raised)


def _read(
    rows: ConditionalRows, i: int, others: list[int], layout: Layout, theta: Floats
) -> _End | None:
    """Return a conditional at the parameters of tables; None if it has too few rows."""
    start = start_from_tables(rows, i, others, layout, theta)
    given = Conditional(rows, i, others, start=start)
    given.is_fitted = True
    if not given.usable:
        return None
    q, whole = given.q, np.tril(given.fit.information)
    whole += np.tril(whole, -1).T
    explained = np.linalg.solve(whole[:q, :q], whole[:q, q:])
    information = whole[q:, q:] - whole[q:, :q] @ explained
    information[np.diag_indices_from(information)] -= RIDGE_ROWS  # estimates are free of it
    return _End(given, information, np.asarray(explained, np.float64))


def _spread(column: Coordinates) -> Floats:
    """Return the covariance of a column's coordinates."""
    share = column.margin / max(float(column.margin.sum()), _TINY)
    mean = share @ column.own
    return np.asarray((column.own.T * share) @ column.own - np.outer(mean, mean))


def _covariance(first: Floats, second: Floats, total: float, weights: Floats | None) -> Floats:
    """Return the covariance of two sums over rows of weighted scores; weights count rows."""
    shown = second if weights is None else second / weights[:, None]
    return np.asarray(first.T @ shown - np.outer(first.sum(axis=0), second.sum(axis=0)) / total)


def _inverted(matrix: Floats) -> Floats:
    """Return the inverse of a symmetric matrix, without its directions of no information."""
    return np.asarray(np.linalg.pinv(matrix, hermitian=True), np.float64)
