"""Conditionals of columns of every kind, at given weights of features.

A conditional has a free intercept for every state, and a weight for every pair of a feature of the
target and a feature of a neighbour (:mod:`edgegraft.conditional.features`), so its size follows the
features, not the states. Only rows in which the target and all neighbours are known are used.
Coordinates have no redundancy: an unordered column is written against its most common state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.conditional.features import Features
from edgegraft.conditional.survey_design import SurveyDesign
from edgegraft.core import Layout
from edgegraft.core.types import Floats, Integers, Mask
from edgegraft.counts.pair_counts import weigh_states
from edgegraft.kernels.conditionals.effective_scores import lay_out
from edgegraft.learn.conditional import (
    MAX_MOVE,
    MIN_INFORMATION,
    PULL,
    Conditional,
    Conditionals,
    Side,
    clean,
    contrast_basis,
    edges_by_end,
)
from edgegraft.learn.rare_states import Rarity, intercept_shift
from edgegraft.table import PackedTable

_ROWS = 4096  # whose scores are held at a time
_NEWTON_STEPS = 8
_HALVINGS = 6
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
    share: Floats  # (states, groups) of states that go together

    @property
    def whole(self) -> bool:
        """Whether it has a coordinate for every state, all in one group."""
        return self.own.shape[1] == self.free.shape[1] and bool(self.linear.all())


class FeatureConditionals(Conditionals):
    """The rows of a table and the features of its columns.

    An intercept is a vector over the states; coefficients are weights of features, those of the
    neighbours by those of the target.

    Parameters
    ----------
    table : PackedTable
    features : Features
        Those that the model was fitted with.
    weights, sampling, survey
        As in :class:`~edgegraft.learn.conditional.Conditionals`.
    contrasts : list of Contrasts, optional
        Coordinates of the columns, instead of those that follow from the rows.
    """

    grouped = True

    def __init__(
        self,
        table: PackedTable,
        features: Features,
        weights: ArrayLike | None = None,
        *,
        sampling: bool = False,
        survey: SurveyDesign | None = None,
        contrasts: list[Contrasts] | None = None,
    ) -> None:
        super().__init__(table, weights, sampling=sampling, survey=survey)
        self.features = features
        self.margins = state_weights(table, self.weights)
        self.contrasts = contrasts or [
            contrasts_of(features, i, own) for i, own in enumerate(self.margins)
        ]
        self.sizes = np.array([column.own.shape[1] for column in self.contrasts], np.int64)
        self.kept = [np.flatnonzero(column.free.any(axis=1)) for column in self.contrasts]
        whole = np.array([column.whole for column in self.contrasts], bool)
        self.rarity = Rarity.of(self.margins, float(self.weights.sum()), whole)

    def basis(self, i: int, j: int) -> Floats:
        """Return the identity: the coordinates of columns treat their states alike."""
        return np.eye(int(self.sizes[i] * self.sizes[j]))

    def linear(self, i: int, j: int) -> Mask:
        """Return which weights of a pair are linear, flat."""
        return np.outer(self.contrasts[i].linear, self.contrasts[j].linear).ravel()

    def evidence(self, sides: list[Side]) -> tuple[Floats, Floats, float, list[float]]:
        """Return weights and factors of the rows, and the sum of those that a side uses."""
        total = max(float(side.node.weights.sum()) for side in sides)
        return self.weights, self.variances, total, [1.0] * len(sides)

    def table_of(self, node: Conditional, other: int) -> Floats:
        """Return the table of a neighbour's observed states by the own ones."""
        i = node.target
        shown = self.features.matrix(other) @ node.coefficients[self._rows_of(node, other)]
        shown = shown @ self.features.matrix(i).T
        return np.asarray(shown[self.margins[other] > 0][:, self.margins[i] > 0])

    def inform(self, node: Conditional, base: Conditional | None) -> Conditional:
        """Return a conditional with its information, if there are rows and memory for it."""
        settle = self.known.size and len(node.design.sources)
        return self._informed(self._settle(node) if settle else node)

    def unexplained(
        self, layout: Layout, theta: Floats, only: Sequence[int] | None = None
    ) -> Floats:
        """Return what conditionals leave of the variances of their columns' linear features."""
        groups, none = edges_by_end(layout.edges), np.empty(0, np.int64)
        chosen = range(len(self.states)) if only is None else only
        nodes = (self.read(i, layout, theta, groups.get(i, none)) for i in chosen)
        return np.array([self._variance(node) for node in nodes])

    def _variance(self, node: Conditional) -> float:
        i = node.target
        own = self.contrasts[i]
        total, left = float(node.weights.sum()), 0.0
        if not own.own.size or not total:
            return 1.0
        first = own.own[:, : len(own.linear) if own.linear.all() else 1]
        for rows in self._chunks():
            p = self._inputs(node, rows)[0]
            left += float((node.weights[rows] @ (p @ first**2 - (p @ first) ** 2)).sum())
        margin = self.margins[i] / max(self.margins[i].sum(), TINY)
        whole = margin @ own.own**2 - (margin @ own.own) ** 2
        spread = float(whole.sum() if own.linear.all() else whole[0])
        return left / total / max(spread, TINY)

    def read(self, i: int, layout: Layout, theta: Floats, edges: Integers) -> Conditional:
        """Return a conditional at the parameters of a model, without its information."""
        sources = layout.edges[edges].sum(axis=1) - i
        slopes = [np.zeros((0, int(layout.widths[i])))]
        for k, j in zip(edges.tolist(), sources.tolist(), strict=True):
            block = layout.edge(theta, k)
            slopes.append(block.T if i < j else block)
        weights = self.weights
        if self.known.size:
            weights = weights * self.known[np.append(sources, i)].all(axis=0)
        # The columns of the projection: one per state of a neighbour, after an empty intercept.
        places = [np.arange(s) for s in self.states[sources].tolist()]
        return Conditional(
            self.design(i, np.empty(0, np.int64), sources, places),
            weights,
            layout.node(theta, i),
            np.concatenate(slopes),
            np.cumsum(np.concatenate(([1], self.sizes[sources]))),
            (self.contrasts[i].free.shape[1], int(self.sizes[i])),
        )

    def _settle(self, given: Conditional) -> Conditional:
        """Return the conditional after Newton steps on the rows that it is tested with.

        It is held near the given one by a ridge of one row, and a step that does not lower the
        loss is shortened: states that never occur together would make parameters diverge.
        """
        node, moved = given, np.zeros(given.n_parameters)
        best, score = self._value(node)
        for _ in range(_NEWTON_STEPS):
            inverse = self._informed(node, ridge=PULL).inverse
            if inverse is None:
                return given
            step = np.clip(inverse @ (score - PULL * moved), -MAX_MOVE, MAX_MOVE)
            for _ in range(_HALVINGS):
                there = self._moved(given, moved + step)
                value, slope = self._value(there)
                value += 0.5 * PULL * float((moved + step) @ (moved + step))
                if value < best:
                    node, moved, best, score = there, moved + step, value, slope
                    break
                step = step / 4.0
            else:
                break
        return node

    def _value(self, node: Conditional) -> tuple[float, Floats]:
        """Return the loss of a conditional over its rows, and the score of its parameters."""
        (q, k), loss, score = node.shape, 0.0, np.zeros(node.n_parameters)
        for rows in self._chunks():
            p, z = self._inputs(node, rows)
            w, codes = node.weights[rows], self.codes[node.target, rows]
            used = w > 0
            loss -= float(w[used] @ np.log(np.maximum(p[used, codes[used]], TINY)))
            shown = w[:, None] * self._shown(node, rows, p)
            score[:q] += shown[:, k:].sum(axis=0)
            score[q:] += (z.T @ shown[:, :k]).ravel()
        return loss, score

    def _moved(self, given: Conditional, step: Floats) -> Conditional:
        """Return a conditional with its parameters moved, in coordinates."""
        (q, k), own = given.shape, self.contrasts[given.target]
        slopes, moved = given.coefficients.copy(), step[q:].reshape(-1, k)
        for j in given.design.sources.tolist():
            at = given.columns_of(j)
            block = moved[at.start - 1 : at.stop - 1]
            slopes[self._rows_of(given, j)] += self.contrasts[j].back.T @ block @ own.back
        intercept = given.intercept + own.free @ step[:q]
        return replace(given, intercept=intercept, coefficients=slopes)

    def without(self, node: Conditional, other: int) -> Conditional:
        """Return a conditional with one edge at zero, and intercepts refitted."""
        rows = self._rows_of(node, other)
        margin = self.margins[other] / max(self.margins[other].sum(), TINY)
        mean = margin @ self.features.matrix(other) @ node.coefficients[rows]
        slopes = node.coefficients.copy()
        slopes[rows] = 0.0
        intercept = node.intercept + self.features.matrix(node.target) @ mean
        found = replace(node, intercept=intercept, coefficients=slopes, inverse=None)
        intercept[self.kept[node.target]] += intercept_shift(found.weights, *self.expect(found))
        return self._informed(found)

    def _rows_of(self, node: Conditional, other: int) -> slice:
        """Return the coefficients of a neighbour's features."""
        k = int(np.flatnonzero(node.design.sources == other)[0])
        widths = self.features.widths[node.design.sources]
        return slice(int(widths[:k].sum()), int(widths[: k + 1].sum()))

    def _chunks(self) -> list[slice]:
        """Return the rows in pieces that are worked on at a time."""
        n = self.codes.shape[1]
        return [slice(first, min(first + _ROWS, n)) for first in range(0, n, _ROWS)]

    def _inputs(self, node: Conditional, rows: slice) -> tuple[Floats, Floats]:
        """Return the conditional probabilities of some rows, and the coordinates of the others."""
        sources = node.design.sources.tolist()
        z = self._coordinates(sources, rows, [self.features.matrix(j) for j in sources])
        # States by rows: sums over the states are then sums of long vectors.
        p = self.features.matrix(node.target) @ (node.coefficients.T @ z.T)
        p += node.intercept[:, None]
        p -= p.max(axis=0)
        np.exp(p, out=p)
        p /= p.sum(axis=0)
        p = p.T
        own = [self.contrasts[j].own for j in sources]
        if all(
            self.contrasts[j].scored and shown.shape[1] == self.features.widths[j]
            for j, shown in zip(sources, own, strict=True)
        ):
            return p, z
        return p, self._coordinates(sources, rows, own)

    def _coordinates(self, columns: list[int], rows: slice, shown: list[Floats]) -> Floats:
        """Return what columns show in some rows; nothing where a cell is missing."""
        out = np.empty((rows.stop - rows.start, sum(own.shape[1] for own in shown)))
        first = 0
        for j, own in zip(columns, shown, strict=True):
            to = out[:, first : first + own.shape[1]]
            np.take(_padded(own), self.codes[j, rows], axis=0, out=to, mode="clip")
            first += own.shape[1]
        return out

    def _shown(self, node: Conditional, rows: slice, p: Floats) -> Floats:
        """Return what the target shows less what is expected: coordinates, then the states."""
        own = self.contrasts[node.target]
        every = np.concatenate((own.own, own.free), axis=1)
        return np.asarray(_padded(every)[self.codes[node.target, rows]] - p @ every)

    def residuals(self, node: Conditional, first: int, n: int) -> Floats:
        """Return what `n` rows show less what is expected; nothing of rows that are not used."""
        rows = slice(first, first + n)
        shown = self._shown(node, rows, self._inputs(node, rows)[0])
        return np.asarray(shown * (node.weights[rows, None] > 0))

    def expect(self, node: Conditional) -> tuple[Floats, Floats]:
        """Return what all rows show of the states that are kept less what is expected, and that."""
        kept, place = self.kept[node.target], self.place_of(node.target)
        p = np.concatenate([self._inputs(node, rows)[0][:, kept] for rows in self._chunks()])
        shown = (place[:, None] == np.arange(len(kept))) - p
        return shown * (node.weights[:, None] > 0), p

    def terms(
        self, node: Conditional, other: int, cell: tuple[int, int], used: Integers
    ) -> tuple[Floats, Floats]:
        """Return what own states add to the score of a cell, beside the other parameters.

        Both columns have a coordinate for every state that is kept.
        """
        (q, k), i = node.shape, node.target
        # Scores of coordinates are those of the cells, turned.
        steps = [self._steps(c) for c in (other, i)]
        turns = (np.linalg.inv(step)[:, at] for step, at in zip(steps, cell, strict=True))
        at = node.columns_of(other)
        cells = q + np.arange((at.start - 1) * k, (at.stop - 1) * k)
        projection = clean(node.across(cells), cells, np.kron(*turns)[None])[0][:, 0]
        columns = projection[q:].reshape(-1, k)
        slope, added = np.repeat(projection[None, :q], len(used), axis=0), projection[None, :q]
        for j in node.design.sources.tolist():
            at = node.columns_of(j)
            table = self.contrasts[j].own @ columns[at.start - 1 : at.stop - 1] @ steps[1].T
            if j == other:
                common = table[self.contrasts[j].common]
                slope, added = slope + common, table[self.kept[j]] - common
            else:
                slope += _padded(table)[self.codes[j, used]]
        return slope, added

    def _steps(self, i: int) -> Floats:
        """Return what the kept states of a column show beyond the most common one."""
        own = self.contrasts[i]
        return np.asarray(own.own[self.kept[i]] - own.own[own.common])

    def project_all(self, node: Conditional, projection: Floats) -> Floats:
        """Return the projected scores of all rows."""
        size, tables = projection.shape[1], self.lay_out(node, projection)
        side = Side(node, -1, None, *tables, np.zeros((size, size)), np.zeros(size))
        return np.concatenate(
            [self.project(side, rows.start, rows.stop - rows.start) for rows in self._chunks()]
        )

    def _informed(self, node: Conditional, ridge: float = 0.0) -> Conditional:
        """Return the conditional with the inverse of its information."""
        if not self.has_rows(node):
            return node
        own, (q, k), size = self.contrasts[node.target], node.shape, node.n_parameters
        m = int(node.start[-1]) - 1
        whole = np.zeros((size, size))
        beside, inner = np.zeros((q, m, k)), np.zeros((m, k, m, k))
        for rows in self._chunks():
            p, z = self._inputs(node, rows)
            w = node.weights[rows]
            weighted = p * w[:, None]
            free, spread = p @ own.free, p @ own.own
            whole[:q, :q] += own.free.T @ (weighted.sum(axis=0)[:, None] * own.free)
            whole[:q, :q] -= free.T @ (w[:, None] * free)
            for x in range(k):
                cross = weighted @ (own.free * own.own[:, [x]]) - free * (w * spread[:, x])[:, None]
                beside[:, :, x] += cross.T @ z
                for y in range(x, k):
                    v = weighted @ (own.own[:, x] * own.own[:, y]) - w * spread[:, x] * spread[:, y]
                    block = z.T @ (v[:, None] * z)
                    inner[:, x, :, y] += block
                    if x != y:
                        inner[:, y, :, x] += block
        whole[:q, q:] = beside.reshape(q, -1)
        whole[q:, :q] = whole[:q, q:].T
        whole[q:, q:] = inner.reshape(m * k, m * k)
        least = MIN_INFORMATION * max(1.0, whole.diagonal().max())
        whole[np.diag_indices_from(whole)] += max(ridge, least)
        return replace(node, inverse=np.asarray(np.linalg.inv(whole), np.float64), usable=True)

    def lay_out(self, node: Conditional, projection: Floats) -> tuple[Floats, Floats]:
        """Return a projection as tables over the states of the neighbours, and of the intercept."""
        (q, k), size = node.shape, projection.shape[1]
        parts, columns = [np.zeros((1, k * size))], projection[q:].reshape(-1, k * size)
        for j in node.design.sources.tolist():
            at = node.columns_of(j)
            parts.append(self.contrasts[j].own @ columns[at.start - 1 : at.stop - 1])
        return lay_out(np.concatenate(parts).reshape(-1, k, size)), projection[:q]

    def weights_of(self, node: Conditional, other: int) -> Floats:
        """Return the weights of an edge in coordinates: the other's by the target's."""
        block = node.coefficients[self._rows_of(node, other)]
        first, second = self.contrasts[other], self.contrasts[node.target]
        return _reduce(second, _reduce(first, block).T).T


def state_weights(table: PackedTable, weights: Floats) -> list[Floats]:
    """Return the weight of the rows in each state of each column."""
    states = table.schema.n_states
    counts = weigh_states(table.cells[:, : table.n_rows], weights, states)
    return np.split(counts, np.cumsum(states)[:-1])


def contrasts_of(features: Features, i: int, margin: Floats, n_first: int = 1) -> Contrasts:
    """Return a column's coordinates; states that never occur have none.

    The first scores of an ordered column count as its linear ones. Common states of an unordered
    one are alone, rare ones together in a group: groups follow from the margin alone, so tests stay
    valid; what differs only within a group is not seen.
    """
    s = len(margin)
    common = int(margin.argmax())
    rest = np.setdiff1d(np.flatnonzero(margin > 0), [common])
    free = np.zeros((s, len(rest)))
    free[rest, np.arange(len(rest))] = 1.0
    if features.widths[i] < s:
        own = features.matrix(i)
        width = min(own.shape[1], len(rest))
        linear, back = np.arange(width) < n_first, np.eye(width, own.shape[1])
        return Contrasts(own[:, :width], free, back, common, True, linear, free)
    n_groups = min(len(rest), MAX_GROUPS)
    if n_groups < len(rest):
        rest = rest[np.argsort(-margin[rest], kind="stable")]
    share = np.zeros((s, n_groups))
    share[rest, np.minimum(np.arange(len(rest)), n_groups - 1)] = margin[rest]
    share /= share.sum(axis=0)
    own, turn = (share > 0).astype(np.float64), contrast_basis(n_groups)
    every = np.ones(n_groups, bool)
    return Contrasts(own @ turn.T, free, turn @ own.T, common, False, every, share)


def _reduce(column: Contrasts, block: Floats) -> Floats:
    if not column.scored:
        contrast = column.share.T @ block - block[column.common]
        turn = column.back @ column.share
        return np.asarray(np.linalg.solve(turn.T, contrast))
    return np.asarray(block[: column.own.shape[1]])


def _padded(matrix: Floats) -> Floats:
    """Return a matrix with a row of zeros, for missing cells."""
    return np.vstack((matrix, np.zeros((1, matrix.shape[1]))))
