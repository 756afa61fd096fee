"""Conditionals of columns of every kind, at given weights of features.

A conditional has a free intercept for every state, and a weight for every pair of a feature of the
target and a feature of a neighbour (:mod:`edgegraft.objective.features`), so its size follows the
features, not the states. Only rows in which the target and all neighbours are known are used.
Coordinates have no redundancy: an unordered column is written against its most common state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core import Layout
from edgegraft.core.checks import check_weights
from edgegraft.core.types import Floats, Integers, Mask
from edgegraft.objective.features import Features
from edgegraft.table import PackedTable

_ROWS = 4096  # whose scores are held at a time
_ROWS_PER_COLUMN = 5
_MIN_INFORMATION = 1e-9
_NEWTON_STEPS = 8
_HALVINGS = 6
_PULL = 1.0  # weight of the given parameters during the refit, in rows
_MAX_MOVE = 2.0  # largest change of a parameter in a step
MAX_GROUPS = 16  # of the states of an unordered column, besides the most common
TINY = float(np.finfo(float).tiny)


class Contrasts(NamedTuple):
    """A column in coordinates without redundancy."""

    own: Floats  # (states, k) what an edge sees: scores, or contrasts to the most common state
    free: Floats  # (states, q) states without the most common: the intercept
    back: Floats  # (k, width) from its coordinates to the features of the weights
    common: int  # the most common state
    scored: bool  # whether the coordinates are scores
    linear: Mask  # (k,) which coordinates are linear: all of an unordered column
    share: Floats | None = None  # (states, groups) of a column whose rare states go together


class Conditional(NamedTuple):
    """The conditional of one variable."""

    target: int
    others: list[int]
    intercept: Floats  # (states,)
    slopes: Floats  # (features of the others, k)
    inverse: Floats | None
    weights: Floats
    raised: float

    def block(self, contrasts: list[Contrasts], other: int) -> slice:
        """Return the positions of an edge's weights among the parameters."""
        at = self.others.index(other)
        k = contrasts[self.target].own.shape[1]
        widths = [contrasts[j].own.shape[1] for j in self.others]
        first = contrasts[self.target].free.shape[1] + k * sum(widths[:at])
        return slice(first, first + k * widths[at])


class Side(NamedTuple):
    """The effective score of an edge in the conditional of one end."""

    node: int
    projection: Floats  # (parameters, weights)
    information: Floats
    step: Floats  # information times weights


class Conditionals:
    """The rows of a table, from which the conditional of any column can be described.

    Parameters
    ----------
    table : PackedTable
    features : Features
        Those that the model was fitted with.
    weights : array of float, shape (n_rows,), optional
    max_bytes : int, default 256 MiB
        Memory for the information of one conditional; one that needs more is not used.
    contrasts : list of Contrasts, optional
        Coordinates of the columns, instead of those that follow from the rows.
    """

    def __init__(
        self,
        table: PackedTable,
        features: Features,
        weights: ArrayLike | None = None,
        max_bytes: int = 1 << 28,
        contrasts: list[Contrasts] | None = None,
    ) -> None:
        whole = np.ones(table.n_rows) if weights is None else check_weights(weights, table.n_rows)
        self.weights, self._max_bytes, self.features = whole, max_bytes, features
        self._codes, self.states = table.cells[:, : table.n_rows], table.schema.n_states
        self._missing = bool(table.n_missing.any())
        self.margins = state_weights(table, whole)
        self.contrasts = contrasts or [
            contrasts_of(features, i, own) for i, own in enumerate(self.margins)
        ]

    def describe(self, i: int, layout: Layout, theta: Floats) -> Conditional:
        """Return the conditional of a column in a model of weights."""
        node = self._at(i, layout, theta)
        if self._missing and len(node.others):
            node = self._settle(node)
        return self._informed(node)

    def variance(self, i: int, layout: Layout, theta: Floats) -> float:
        """Return what a conditional leaves of the variance of its column's linear feature."""
        node, own = self._at(i, layout, theta), self.contrasts[i]
        total, left = float(node.weights.sum()), 0.0
        if not own.own.size or not total:
            return 1.0
        first = own.own[:, : len(own.linear) if own.linear.all() else 1]
        for rows in self.chunks():
            p = self._inputs(node, rows)[0]
            left += float((node.weights[rows] @ (p @ first**2 - (p @ first) ** 2)).sum())
        return left / total / self._spread(i)

    def _spread(self, i: int) -> float:
        """Return the variance of the linear feature of a column, or of all its states."""
        own, margin = self.contrasts[i], self.margins[i] / max(self.margins[i].sum(), TINY)
        whole = margin @ own.own**2 - (margin @ own.own) ** 2
        return max(float(whole.sum() if own.linear.all() else whole[0]), TINY)

    def _at(self, i: int, layout: Layout, theta: Floats) -> Conditional:
        touching = np.flatnonzero((layout.edges == i).any(axis=1))
        others = (layout.edges[touching].sum(axis=1) - i).tolist()
        slopes = [np.zeros((0, int(layout.widths[i])))]
        for k, j in zip(touching.tolist(), others, strict=True):
            block = layout.edge(theta, k)
            slopes.append(block.T if i < j else block)
        weights = self.weights
        if self._missing:
            known = self._codes[[i, *others]] < self.states[[i, *others], None]
            weights = weights * known.all(axis=0)
        return Conditional(
            i, others, layout.node(theta, i), np.concatenate(slopes), None, weights, 1.0
        )

    def _settle(self, given: Conditional) -> Conditional:
        """Return the conditional after Newton steps on the rows that it is tested with.

        It is held near the given one by a ridge of one row, and a step that does not lower the
        loss is shortened: states that never occur together would make parameters diverge.
        """
        node, moved = given, np.zeros(0)
        best, score = self._value(node)
        moved = np.zeros(len(score))
        for _ in range(_NEWTON_STEPS):
            inverse = self._informed(node, ridge=_PULL).inverse
            if inverse is None:
                return given
            step = np.clip(inverse @ (score - _PULL * moved), -_MAX_MOVE, _MAX_MOVE)
            for _ in range(_HALVINGS):
                there = self._moved(given, moved + step)
                value, slope = self._value(there)
                value += 0.5 * _PULL * float((moved + step) @ (moved + step))
                if value < best:
                    node, moved, best, score = there, moved + step, value, slope
                    break
                step = step / 4.0
            else:
                break
        return node

    def _value(self, node: Conditional) -> tuple[float, Floats]:
        """Return the loss of a conditional over its rows, and the score of its parameters."""
        loss, score = 0.0, np.zeros(0)
        for rows in self.chunks():
            psi, p = self.scores(node, rows)
            w, codes = node.weights[rows], self._codes[node.target, rows]
            used = w > 0
            chosen = p[used, codes[used]]
            loss -= float(w[used] @ np.log(np.maximum(chosen, TINY)))
            part = w @ psi
            score = part if not score.size else score + part
        return loss, score

    def _moved(self, given: Conditional, step: Floats) -> Conditional:
        """Return a conditional with its parameters moved, in coordinates."""
        own = self.contrasts[given.target]
        q, k = own.free.shape[1], own.own.shape[1]
        blocks, first = [np.zeros((0, given.slopes.shape[1]))], q
        for j in given.others:
            other = self.contrasts[j]
            size = k * other.own.shape[1]
            block = step[first : first + size].reshape(k, -1)
            blocks.append((own.back.T @ block @ other.back).T)
            first += size
        return given._replace(
            intercept=given.intercept + own.free @ step[:q],
            slopes=given.slopes + np.concatenate(blocks),
        )

    def without(self, node: Conditional, other: int) -> Conditional:
        """Return a conditional with one edge at zero; its mean goes to the intercept."""
        widths = [int(self.features.widths[j]) for j in node.others]
        at = node.others.index(other)
        rows = slice(sum(widths[:at]), sum(widths[: at + 1]))
        margin = self.margins[other] / max(self.margins[other].sum(), TINY)
        mean = margin @ self.features.matrix(other) @ node.slopes[rows]
        slopes = node.slopes.copy()
        slopes[rows] = 0.0
        own = self.features.matrix(node.target)
        return self._informed(
            node._replace(intercept=node.intercept + own @ mean, slopes=slopes, inverse=None)
        )

    def chunks(self) -> list[slice]:
        """Return the rows in pieces that are worked on at a time."""
        n = self._codes.shape[1]
        return [slice(first, min(first + _ROWS, n)) for first in range(0, n, _ROWS)]

    def _inputs(self, node: Conditional, rows: slice) -> tuple[Floats, Floats]:
        """Return the conditional probabilities of some rows, and the coordinates of the others."""
        z = self._coordinates(node.others, rows, [self.features.matrix(j) for j in node.others])
        logits = node.intercept + (z @ node.slopes) @ self.features.matrix(node.target).T
        logits -= logits.max(axis=1, keepdims=True)
        p = np.exp(logits)
        p /= p.sum(axis=1, keepdims=True)
        own = [self.contrasts[j].own for j in node.others]
        if all(
            self.contrasts[j].scored and shown.shape[1] == self.features.widths[j]
            for j, shown in zip(node.others, own, strict=True)
        ):
            return p, z
        return p, self._coordinates(node.others, rows, own)

    def _coordinates(self, columns: list[int], rows: slice, shown: list[Floats]) -> Floats:
        """Return what columns show in some rows; nothing where a cell is missing."""
        out = np.empty((rows.stop - rows.start, sum(own.shape[1] for own in shown)))
        first = 0
        for j, own in zip(columns, shown, strict=True):
            np.take(
                _padded(own),
                self._codes[j, rows],
                axis=0,
                out=out[:, first : first + own.shape[1]],
                mode="clip",
            )
            first += own.shape[1]
        return out

    def _informed(self, node: Conditional, ridge: float = 0.0) -> Conditional:
        """Return the conditional with the inverse of its information."""
        own = self.contrasts[node.target]
        q, k = own.free.shape[1], own.own.shape[1]
        m = sum(self.contrasts[j].own.shape[1] for j in node.others)
        total, size = float(node.weights.sum()), q + k * m
        columns = 1 + m
        if q == 0 or total < _ROWS_PER_COLUMN * columns or 8 * size**2 > self._max_bytes:
            return node
        whole = np.zeros((size, size))
        for rows in self.chunks():
            p, z = self._inputs(node, rows)
            w = node.weights[rows]
            weighted = p * w[:, None]
            free, spread = p @ own.free, p @ own.own
            whole[:q, :q] += own.free.T @ (weighted.sum(axis=0)[:, None] * own.free)
            whole[:q, :q] -= free.T @ (w[:, None] * free)
            for x in range(k):
                cross = weighted @ (own.free * own.own[:, [x]]) - free * (w * spread[:, x])[:, None]
                at = q + _places(self.contrasts, node.others, k, x)
                whole[:q, at] += cross.T @ z
                for y in range(x, k):
                    v = weighted @ (own.own[:, x] * own.own[:, y]) - w * spread[:, x] * spread[:, y]
                    to = q + _places(self.contrasts, node.others, k, y)
                    block = z.T @ (v[:, None] * z)
                    whole[np.ix_(at, to)] += block
                    if x != y:
                        whole[np.ix_(to, at)] += block
        whole[q:, :q] = whole[:q, q:].T
        whole[np.diag_indices_from(whole)] += max(
            ridge, _MIN_INFORMATION * max(1.0, whole.diagonal().max())
        )
        return node._replace(
            inverse=np.linalg.inv(whole),
            raised=total / max(total - columns, total / _ROWS_PER_COLUMN),
        )

    def scores(self, node: Conditional, rows: slice) -> tuple[Floats, Floats]:
        """Return the scores of a conditional's parameters and its probabilities, row by row."""
        own = self.contrasts[node.target]
        p, z = self._inputs(node, rows)
        codes = self._codes[node.target, rows]
        k, q = own.own.shape[1], own.free.shape[1]
        r = _padded(own.own)[codes] - p @ own.own
        out = np.empty((len(codes), q + k * z.shape[1]))
        out[:, :q] = _padded(own.free)[codes] - p @ own.free
        for x in range(k):
            out[:, q + _places(self.contrasts, node.others, k, x)] = r[:, [x]] * z
        return out, p

    def side(self, nodes: dict[int, Conditional], i: int, j: int) -> Side | None:
        """Return the effective score of an edge in one conditional, weights as of ``i < j``."""
        node = nodes[i]
        if node.inverse is None or not self.contrasts[j].own.shape[1]:
            return None
        at = node.block(self.contrasts, j)
        tall, wide = self.contrasts[i].own.shape[1], self.contrasts[j].own.shape[1]
        order = np.arange(at.start, at.stop).reshape(tall, wide)
        chosen = (order if i < j else order.T).ravel()
        across = node.inverse[:, chosen]
        information = np.linalg.inv(across[chosen])
        information = (information + information.T) / 2
        weights = self._weights_of(node, j)
        flat = (weights if i < j else weights.T).ravel()
        return Side(i, across @ information, information, information @ flat)

    def _weights_of(self, node: Conditional, j: int) -> Floats:
        """Return the weights of an edge in contrasts: target's coordinates by the other's."""
        widths = [int(self.features.widths[other]) for other in node.others]
        at = node.others.index(j)
        block = node.slopes[sum(widths[:at]) : sum(widths[: at + 1])]
        return _to_contrasts(self.contrasts[node.target], self.contrasts[j], block.T)


def state_weights(table: PackedTable, weights: Floats) -> list[Floats]:
    """Return the weight of the rows in each state of each column."""
    codes = table.cells[:, : table.n_rows]
    return [
        np.bincount(codes[i], weights, minlength=s + 1)[:s].astype(np.float64)
        for i, s in enumerate(table.schema.n_states.tolist())
    ]


def contrasts_of(features: Features, i: int, margin: Floats, n_first: int = 1) -> Contrasts:
    """Return a column's coordinates; states that never occur have none.

    The first scores of an ordered column count as its linear ones.
    """
    s = len(margin)
    common = int(margin.argmax())
    rest = np.setdiff1d(np.flatnonzero(margin > 0), [common])
    free = np.zeros((s, len(rest)))
    free[rest, np.arange(len(rest))] = 1.0
    if features.widths[i] == s and len(rest) > MAX_GROUPS:
        return _grouped(margin, free, rest, common)
    if features.widths[i] == s:
        # Orthonormal over all states, whichever is left out: the Gram matrix is 1 + 1 1'.
        turn = np.linalg.cholesky(np.eye(len(rest)) + 1.0).T
        every = np.ones(len(rest), bool)
        return Contrasts(free @ turn.T, free, turn @ free.T, common, False, every)
    own = features.matrix(i)
    width = min(own.shape[1], len(rest))
    linear = np.arange(width) < n_first
    back = np.eye(width, own.shape[1])
    return Contrasts(own[:, :width], free, back, common, True, linear)


def _grouped(margin: Floats, free: Floats, rest: Integers, common: int) -> Contrasts:
    """Return the coordinates of a column of many states: common ones alone, rare ones together.

    The groups follow from the margin alone, so tests stay valid; what differs only within a group
    is not seen.
    """
    order = rest[np.argsort(-margin[rest], kind="stable")]
    group = np.minimum(np.arange(len(order)), MAX_GROUPS - 1)
    share = np.zeros((len(margin), MAX_GROUPS))
    share[order, group] = margin[order]
    share /= share.sum(axis=0)
    turn = np.linalg.cholesky(np.eye(MAX_GROUPS) + 1.0).T
    own = (share > 0).astype(np.float64)
    every = np.ones(MAX_GROUPS, bool)
    return Contrasts(own @ turn.T, free, turn @ own.T, common, False, every, share)


def _to_contrasts(first: Contrasts, second: Contrasts, block: Floats) -> Floats:
    """Return weights of features as weights of contrasts: against the most common state."""
    return _reduce(second, _reduce(first, block).T).T


def _reduce(column: Contrasts, block: Floats) -> Floats:
    if not column.scored:
        share = column.free if column.share is None else column.share
        contrast = share.T @ block - block[column.common]
        turn = column.back @ share
        return np.asarray(np.linalg.solve(turn.T, contrast))
    return np.asarray(block[: column.own.shape[1]])


def _places(contrasts: list[Contrasts], others: list[int], k: int, x: int) -> Integers:
    """Return where the weights of the target's `x`-th coordinate lie, after the intercept."""
    places, first = [], 0
    for j in others:
        width = contrasts[j].own.shape[1]
        places.append(first + x * width + np.arange(width))
        first += k * width
    return np.concatenate([np.zeros(0, np.int64), *places])


def _padded(matrix: Floats) -> Floats:
    """Return a matrix with a row of zeros, for missing cells."""
    return np.vstack((matrix, np.zeros((1, matrix.shape[1]))))
