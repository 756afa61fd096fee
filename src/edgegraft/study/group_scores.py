"""Effective scores of edges in every group, in coordinates that all groups share.

As in :mod:`~edgegraft.learn.edge_tests`, what the other parameters of a conditional could
explain is removed from the score of an edge's weights: the intercepts of a group by the group's own
information, other edges by that of all groups together,

    psi~ = psi_s - H_su H_uu^-1 psi_u,    u = J [S^-1 psi~]_w
    S = sum of S_g,    J = ([S^-1]_ww)^-1

with ``u`` the intercepts, ``s`` the weights of all edges, and ``S_g`` the information of ``psi~``
in a group. A projection by each group's own ``S_g`` would add its noise to the scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from edgegraft.conditional.features import Features
from edgegraft.core.threads import run
from edgegraft.core.types import Floats, Integers, Mask
from edgegraft.learn.conditional import Conditional
from edgegraft.learn.feature_conditionals import (
    TINY,
    FeatureConditionals,
    contrasts_of,
    state_weights,
)
from edgegraft.study.group_fit import JointFit
from edgegraft.study.group_rows import GroupRows

_MAX_BYTES = 1 << 27  # of scores of rows that are held at a time


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


class _Side(NamedTuple):
    """The effective score of an edge in the conditional of one end, in one group."""

    projection: Floats  # (parameters, weights)
    sensitivity: Floats  # of the sum to the weights
    variance: Floats  # of the sum, by the model
    weights: Floats  # at the fit


class GroupScores:
    """The conditionals of every group at a joint fit."""

    def __init__(self, given: GroupRows, features: Features, fitted: JointFit, n_jobs: int) -> None:
        self._given, self._layout, self._n_jobs = given, fitted.layout, n_jobs
        self._thetas, self._shares_left = fitted.thetas, dict[int, float]()
        margins = state_weights(given.table, given.weights)
        self.contrasts = [contrasts_of(features, i, own) for i, own in enumerate(margins)]
        self._margins = [own / own.sum() for own in margins]
        self._groups: list[tuple[FeatureConditionals, dict[int, Conditional]]] = []
        for g, theta in enumerate(fitted.thetas):
            table, weights = given.part(g)
            rows = FeatureConditionals(table, features, weights, contrasts=self.contrasts)
            self._groups.append((rows, rows.describe_all(self._layout, theta, n_jobs)))
        self._information: dict[int, list[Floats | None]] = {}  # on the weights, per group
        self._inverse: dict[int, Floats] = {}  # of that of all groups together
        for i in np.unique(self._layout.edges).tolist():
            q = self.contrasts[i].free.shape[1]
            inverses = [nodes[i].inverse for _, nodes in self._groups]
            own = [None if inverse is None else _inverted(inverse[q:, q:]) for inverse in inverses]
            self._information[i] = own
            if known := [part for part in own if part is not None]:
                self._inverse[i] = _inverted(np.sum(known, axis=0))

    def _side(self, g: int, i: int, j: int) -> _Side | None:
        """Return the effective score of an edge in the conditional of `i`; None without one."""
        rows, nodes = self._groups[g]
        own, node = self._information[i][g], nodes[i]
        inverse = node.inverse
        if own is None or inverse is None or not rows.sizes[j]:
            return None
        plain, q = rows.side(node, j), node.shape[0]
        chosen = node.cells_of(j) - q
        across = self._inverse[i][:, chosen]
        turn = across @ _inverted(across[chosen])
        return _Side(
            inverse[:, q:] @ (own @ turn),
            turn.T @ own[:, chosen],
            turn.T @ own @ turn,
            _inverted(plain.information) @ plain.shift,
        )

    def linear(self, k: int) -> Mask:
        """Return which weights of an edge are linear, flat."""
        i, j = self._layout.edges[k].tolist()
        return np.outer(self.contrasts[i].linear, self.contrasts[j].linear).ravel()

    def signed(self, k: int) -> bool:
        """Return whether an edge has a sign: its ends are ordered or have two states."""
        ends = [self.contrasts[i] for i in self._layout.edges[k].tolist()]
        return all(end.own.size and (end.scored or end.own.shape[1] == 1) for end in ends)

    def effect(self, k: int, weights: Floats) -> float:
        """Return the size of weights on the scale of a partial correlation, with a sign if any.

        The scale is that of all groups together, so that equal weights have equal effects.
        """
        i, j = self._layout.edges[k].tolist()
        if self.signed(k):
            return float(self._scale(k) * weights[0] * self._unit(i) * self._unit(j))
        return self._scale(k) * _size(self._centred(k, weights), self._margins[i], self._margins[j])

    def slope(self, k: int, weights: Floats) -> Floats:
        """Return how much the effect of an edge changes with its weights, at these ones."""
        if self.signed(k):
            return np.array([self.effect(k, unit) for unit in np.eye(len(weights))])
        i, j = self._layout.edges[k].tolist()
        p, q = self._margins[i], self._margins[j]
        table = self._centred(k, weights)
        cells = table * np.outer(p, q) / max(_size(table, p, q), TINY)
        ends = [self.contrasts[v].own for v in (i, j)]
        return np.asarray(self._scale(k) * (ends[0].T @ cells @ ends[1]).ravel())

    def _scale(self, k: int) -> float:
        i, j = self._layout.edges[k].tolist()
        return float(np.sqrt(self._left(i) * self._left(j)))

    def _centred(self, k: int, weights: Floats) -> Floats:
        """Return the weights of an edge as a table of states that its margins do not explain."""
        i, j = self._layout.edges[k].tolist()
        ends = [self.contrasts[v].own for v in (i, j)]
        table = ends[0] @ weights.reshape(ends[0].shape[1], ends[1].shape[1]) @ ends[1].T
        p, q = self._margins[i], self._margins[j]
        return np.asarray(table - (table @ q)[:, None] - p @ table + p @ table @ q)

    def _left(self, i: int) -> float:
        """Return the share of a column's variance that the conditionals leave."""
        if i not in self._shares_left:
            left = [
                float(rows.unexplained(self._layout, theta, [i])[0])
                for (rows, _), theta in zip(self._groups, self._thetas, strict=True)
            ]
            weights = np.bincount(self._given.groups, self._given.weights)
            self._shares_left[i] = float(np.average(left, weights=weights))
        return self._shares_left[i]

    def _unit(self, i: int) -> float:
        """Return the standard deviation of a column's first coordinate, towards later states.

        The only coordinate of an unordered column is its rarer state, which may be the first.
        """
        own, margin = self.contrasts[i], self._margins[i]
        first = own.own[:, 0]
        turned = not own.scored and own.common == 1
        return float(np.sqrt(margin @ first**2 - (margin @ first) ** 2)) * (-1 if turned else 1)

    def batches(self) -> Iterator[tuple[Integers, list[list[EdgeScores | None]]]]:
        """Yield positions of edges with the scores of each in every group."""
        edges = self._layout.edges
        widths = [contrast.own.shape[1] for contrast in self.contrasts]
        size = np.array([widths[i] * widths[j] for i, j in edges.tolist()], np.int64)
        room = max(1, _MAX_BYTES // (16 * self._given.table.n_rows))
        batch = (np.cumsum(size) - 1) // room
        for number in np.unique(batch):
            chosen = np.flatnonzero(batch == number)
            found = [self._scores(g, chosen) for g in range(len(self._groups))]
            yield chosen, [list(one) for one in zip(*found, strict=True)]

    def _scores(self, g: int, chosen: Integers) -> list[EdgeScores | None]:
        """Return the scores of some edges in a group; None if it cannot test one."""
        rows, nodes = self._groups[g]
        power = 2 if self._given.sampling else 1
        parts: dict[tuple[int, int], tuple[_Side, Floats]] = {}
        ends: dict[int, list[int]] = {}
        for k in chosen.tolist():
            for i in self._layout.edges[k].tolist():
                ends.setdefault(i, []).append(k)

        def project(i: int) -> None:
            others = {k: int(self._layout.edges[k].sum() - i) for k in ends[i]}
            sides = {k: self._side(g, i, j) for k, j in others.items()}
            used = {k: side for k, side in sides.items() if side is not None}
            if not used:
                return
            turn = np.concatenate([side.projection for side in used.values()], axis=1)
            found = rows.project_all(nodes[i], turn)
            cuts = np.cumsum([len(side.weights) for side in used.values()])[:-1]
            for k, part in zip(used, np.split(found, cuts, axis=1), strict=True):
                parts[k, i] = used[k], part

        run(project, ends, self._n_jobs)
        out: list[EdgeScores | None] = []
        for k in chosen.tolist():
            used = [v for v in self._layout.edges[k].tolist() if (k, v) in parts]
            if not used:
                out.append(None)
                continue
            sides = [parts[k, v][0] for v in used]
            weights = [nodes[v].weights for v in used]
            u = [parts[k, v][1] * w[:, None] for v, w in zip(used, weights, strict=True)]
            raised = float(np.mean([nodes[v].correction for v in used]))
            whole, own = np.sum(u, axis=0), np.maximum.reduce(weights)
            by_model = np.sum([side.variance for side in sides], axis=0)
            if len(u) == 2:
                across = _covariance(u[0], u[1], own, power)
                by_model += across + across.T
            by_rows = _covariance(whole, whole, own, power)
            out.append(
                EdgeScores(
                    whole,
                    np.sum([side.sensitivity @ side.weights for side in sides], axis=0),
                    np.sum([side.sensitivity for side in sides], axis=0),
                    by_model * raised,
                    by_rows * raised,
                )
            )
        return out


def _covariance(first: Floats, second: Floats, weights: Floats, power: int) -> Floats:
    """Return the covariance of two sums over rows of weighted scores."""
    factor = 1.0 / np.maximum(weights, np.finfo(float).tiny) ** (2 - power)
    factor[weights <= 0] = 0.0
    products = first.T @ (factor[:, None] * second)
    sums = np.outer(first.sum(axis=0), second.sum(axis=0))
    return np.asarray(products - sums / max(weights.sum(), 1.0))


def _size(table: Floats, first: Floats, second: Floats) -> float:
    """Return the norm of a table, cells weighted by the product of two margins."""
    return float(np.sqrt(first @ table**2 @ second))


def _inverted(matrix: Floats) -> Floats:
    """Return the inverse of a symmetric matrix, without its directions of no information."""
    return np.asarray(np.linalg.pinv(matrix, hermitian=True), np.float64)
