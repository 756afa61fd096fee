"""How strong an edge is, from its coupling, and its sign.

An edge is sized by the table that its weights make of the margins of its two columns
(:mod:`edgegraft.learn.coupling`): on a tree, the distribution of the pair. The *effect* is

- of two ordered columns the correlation of their linear scores. Columns of two states count as
  ordered;
- of other pairs, without a sign, the square root of the share of variance that the one explains of
  the other (Goodman and Kruskal's tau, the geometric mean of both directions), less what chance
  adds. States count by their frequency, so rare cells do not lead.

The *strength* is the size of the effect; of ordered columns whose linear scores are not enough it
is the largest correlation of any combination of their scores, so that a U-shape is not weak.

Intervals are those of the delta method: each row moves the weights, by its influence in the
conditionals of both ends, and the margins; the variance is that of the sum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from edgegraft.conditional.conditional import MAX_BYTES, Conditional, start_from_tables
from edgegraft.conditional.coordinates import state_weights
from edgegraft.conditional.features import Features
from edgegraft.conditional.influence import influence_of, variance_of_sums
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.core.adjacency import neighbours_of
from edgegraft.core.threads import resolve_jobs, run
from edgegraft.core.types import Floats, Integers, Mask
from edgegraft.learn.coupling import TINY, Slopes, couple, slopes_of
from edgegraft.model import PairwiseMRF
from edgegraft.table.blocks import TableRows
from edgegraft.table.numbers import scores_of

LEVEL = 0.95
ENOUGH = 0.05  # p-value of the further scores above which the linear ones are enough


class Effects(NamedTuple):
    """Effects of the edges of a model."""

    effect: Floats
    low: Floats  # ends of the interval; NaN if rows cannot tell
    high: Floats
    signed: Mask  # whether the effect has a sign
    strength: Floats

    def columns(self) -> dict[str, Floats]:
        """Return what tables and files keep, by name; ``weight`` is the strength with the sign."""
        certain = self.signed & ~((self.low <= 0) & (self.high >= 0))
        sign = np.where(certain, np.sign(self.effect), 0.0)
        return {
            "strength": self.strength,
            "weight": np.where(sign < 0, -self.strength, self.strength),
            "sign": sign,
            "effect": self.effect,
            "effect_low": self.low,
            "effect_high": self.high,
        }


def edge_effects(
    model: PairwiseMRF,
    rows: TableRows | ConditionalRows,
    level: float | None = None,
    *,
    p_rest: Floats | None = None,
    n_jobs: int | None = None,
) -> Effects:
    """Return the effects of the edges of a model fitted to the rows with a negligible ridge.

    With a `level` there are intervals, and effects without a sign are less what chance adds.
    `p_rest` are p-values of what linear scores leave out.
    """
    sizes = _Sizes(model, rows)
    effect, signed = sizes.effect, sizes.signed
    low = high = np.full(model.n_edges, np.nan)
    if level is not None:
        error = np.full(model.n_edges, np.nan)

        def measure(k: int, change: Floats) -> None:
            error[k] = np.sqrt(variance_of_sums(sizes.rows, change[:, None])[0, 0])

        sizes.each_change(measure, n_jobs)
        quantile = float(ndtri((1.0 + level) / 2.0))
        dof = np.prod(np.where(sizes.ordered, 1, sizes.rows.sizes)[model.edges], axis=1)
        effect, low, high = np.where(
            signed,
            _interval(effect, quantile * error),
            _interval_of_norm(effect, error, dof, quantile),
        )
    strength = np.abs(effect)
    if p_rest is not None:
        strength = np.where(p_rest <= ENOUGH, sizes.largest, strength)
    return Effects(effect, low, high, signed, strength)


def effect_changes(model: PairwiseMRF, rows: ConditionalRows, n_jobs: int | None = None) -> Floats:
    """Return by how much each row moves each effect, (rows, edges); NaN if rows cannot tell."""
    out = np.full((rows.n_rows, model.n_edges), np.nan)

    def keep(k: int, change: Floats) -> None:
        out[:, k] = change

    _Sizes(model, rows).each_change(keep, n_jobs)
    return out


def _interval(effect: Floats, spread: Floats) -> Floats:
    """Return signed effects with their intervals, symmetric on the scale of ``atanh``."""
    inside = np.clip(effect, -1 + 1e-9, 1 - 1e-9)  # beyond, `atanh` has no digits
    ends = np.stack((-spread, spread)) / (1.0 - inside**2)
    return np.stack((effect, *np.tanh(np.arctanh(inside) + ends)))


def _interval_of_norm(effect: Floats, error: Floats, dof: Integers, quantile: float) -> Floats:
    """Return effects without a sign, less what chance adds, with their intervals.

    The square of a norm over its standard error is chi-square with a centre of
    ``square - dof``, whose variance is ``2 (dof + 2 centre)``.
    """
    square = (effect / np.maximum(error, TINY)) ** 2
    centre = np.maximum(square - dof, 0.0)
    spread = quantile * np.sqrt(2.0 * (dof + 2.0 * centre))
    ends = np.stack((centre, np.maximum(centre - spread, 0.0), centre + spread))
    scaled = np.minimum(effect * np.sqrt(ends / np.maximum(square, TINY)), 1.0)
    scaled[0] = np.where(np.isnan(error), effect, scaled[0])
    return np.asarray(scaled)


class _Sizes:
    """Effects of all edges of a model, and by how much rows move them.

    `largest` are correlations of the best combinations of scores.
    """

    def __init__(self, model: PairwiseMRF, rows: TableRows | ConditionalRows) -> None:
        if isinstance(rows, TableRows):
            weights = np.ones(rows.table.n_rows) if rows.weights is None else rows.weights
            margins = np.concatenate(state_weights(rows.table, weights))
            features = Features.of(rows.schema, margins) if rows.schema.scored else None
            rows = ConditionalRows(rows.table, rows.weights, features)
        layout, m, columns = model.layout, model.n_edges, rows.columns
        self.model, self.rows = model, rows
        self.ordered = (layout.states == 2) | [variable.scored for variable in model.schema]
        self.margins = [c.margin / max(float(c.margin.sum()), TINY) for c in columns]
        self._scores = [
            scores_of(np.maximum(column.margin, TINY), min(2, len(p) - 1), variable.kind)
            if is_ordered
            else np.eye(len(p))
            for column, p, variable, is_ordered in zip(
                columns, self.margins, model.schema, self.ordered, strict=True
            )
        ]
        self.effect, self.largest = np.zeros(m), np.zeros(m)
        self.signed: Mask = self.ordered[model.edges].all(axis=1)
        self._slopes: dict[int, Slopes] = {}
        shapes = np.concatenate((layout.states[model.edges], self.ordered[model.edges]), axis=1)
        kinds, kind = np.unique(shapes, axis=0, return_inverse=True)
        for k in range(len(kinds)):
            self._work_out(np.flatnonzero(kind.reshape(-1) == k))

    def _work_out(self, chosen: Integers) -> None:
        """Size edges of one shape."""
        model = self.model
        ends = model.edges[chosen]
        weights = np.stack([model.layout.edge(model.theta, k) for k in chosen.tolist()])
        a, b = (np.stack([self.margins[i] for i in end]) for end in ends.T)
        left, right = (np.stack([self._scores[i] for i in end]) for end in ends.T)
        tables = couple(weights, a, b)
        ordered = self.ordered[ends[0]]
        if ordered.all():
            shared = left.transpose(0, 2, 1) @ tables @ right
            self.largest[chosen] = np.linalg.norm(shared, 2, axis=(1, 2))
            effect, by = shared[:, 0, 0], _correlation(shared[:, 0, 0], left, right)
        else:
            effect, by = _association(tables, (a, b), (left, right), ordered)
            self.largest[chosen] = effect
        self.effect[chosen] = np.clip(effect, -1.0, 1.0)
        through = slopes_of(tables, by.weights)
        slopes = through.weights, through.first + by.first, through.second + by.second
        for k, *own in zip(chosen.tolist(), *slopes, strict=True):
            self._slopes[k] = Slopes(*own)

    def each_change(self, take: Callable[[int, Floats], None], n_jobs: int | None) -> None:
        """Hand over by how much each row moves each effect of which rows can tell."""
        model, rows, n_jobs = self.model, self.rows, resolve_jobs(n_jobs)
        beside = neighbours_of(model.layout)
        others = [
            sorted(beside.other[first:last].tolist())
            for first, last in zip(beside.start[:-1], beside.start[1:], strict=True)
        ]
        size = max(1, MAX_BYTES // (2 * 8 * rows.n_rows))  # edges whose conditionals are held
        for begin in range(0, model.n_edges, size):
            chosen = range(begin, min(begin + size, model.n_edges))
            fitted: dict[int, Conditional | None] = {}

            def describe(i: int, fitted: dict[int, Conditional | None] = fitted) -> None:
                given = fitted[i] = self._conditional(i, others[i])
                if given is not None:
                    given.prepare()  # edges share it, and would each work it out

            def work(k: int, fitted: dict[int, Conditional | None] = fitted) -> None:
                pair = model.edges[k].tolist()
                ends = [fitted.get(end) for end in pair]
                if rows.pairwise:
                    ends = [self._conditional(end, others[end], pair) for end in pair]
                if any(ends) and rows.sizes[pair].all():  # no column of one state
                    take(k, self._change(k, *ends))

            if not rows.pairwise:
                ends = np.unique(model.edges[chosen.start : chosen.stop]).tolist()
                run(describe, sorted(ends, key=lambda i: -len(others[i])), n_jobs)
            run(work, chosen, n_jobs)

    def _conditional(
        self, i: int, others: list[int], known: list[int] | None = None
    ) -> Conditional | None:
        """Return the conditional of a column at the model's parameters, if it is usable."""
        start = start_from_tables(self.rows, i, others, self.model.layout, self.model.theta)
        given = Conditional(self.rows, i, others, known, start=start)
        given.is_fitted = True
        return given if given.usable else None

    def _change(self, k: int, first: Conditional | None, second: Conditional | None) -> Floats:
        """Return by how much each row moves an effect."""
        rows, slopes = self.rows, self._slopes[k]
        i, j = pair = tuple(self.model.edges[k].tolist())
        inside = rows.columns[i].own.T @ slopes.weights @ rows.columns[j].own
        change = influence_of(first, second, pair).along(inside.reshape(-1, 1))[:, 0]
        for v, slope in ((i, slopes.first), (j, slopes.second)):
            by_state = (slope - slope @ self.margins[v]) / rows.columns[v].margin.sum()
            moved = np.append(by_state, 0.0)[rows.codes[v]]  # nothing where a cell is missing
            change += moved if rows.drawn is None else np.where(rows.drawn[v], 0.0, moved)
        return change


def _correlation(effect: Floats, left: Floats, right: Floats) -> Slopes:
    """Return the derivatives of correlations of scores by the table and, beside it, the margins."""
    s, t = left[:, :, 0], right[:, :, 0]
    half = effect[:, None] / 2.0
    return Slopes(s[:, :, None] * t[:, None], -half * s**2, -half * t**2)


def _association(
    tables: Floats, margins: tuple[Floats, Floats], scores: tuple[Floats, Floats], ordered: Mask
) -> tuple[Floats, Slopes]:
    """Return effects without a sign, and their derivatives by the table and the margins."""
    a, b = margins
    left, right = (x[:, :, :1] if linear else x for x, linear in zip(scores, ordered, strict=True))
    means = (left.transpose(0, 2, 1) @ a[:, :, None]), (right.transpose(0, 2, 1) @ b[:, :, None])
    shared = left.transpose(0, 2, 1) @ tables @ right - means[0] @ means[1].transpose(0, 2, 1)
    inverse, total = [], []
    for p, linear in zip(margins, ordered, strict=True):
        share = np.divide(1.0, p, out=np.zeros_like(p), where=p > 0)
        inverse.append(np.ones((len(p), 1)) if linear else share)
        total.append(np.ones(len(p)) if linear else np.maximum(1.0 - (p**2).sum(axis=1), TINY))
    by_first, by_second = inverse[0][:, :, None] + 0 * shared, inverse[1][:, None] + 0 * shared
    square = shared**2
    explained = [np.maximum((square * by).sum(axis=(1, 2)), TINY) for by in (by_second, by_first)]
    effect = (explained[0] * explained[1] / (total[0] * total[1])) ** 0.25
    quarter = effect / 4.0
    by = sum(
        (2 * quarter / size)[:, None, None] * shared * each
        for size, each in zip(explained, (by_second, by_first), strict=True)
    )
    first = -(left @ (by @ means[1]))[:, :, 0]
    second = -(right @ (by.transpose(0, 2, 1) @ means[0]))[:, :, 0]
    if not ordered[0]:
        own = (square * by_first**2).sum(axis=2) / explained[1][:, None]
        first += quarter[:, None] * (2.0 * a / total[0][:, None] - own)
    if not ordered[1]:
        own = (square * by_second**2).sum(axis=1) / explained[0][:, None]
        second += quarter[:, None] * (2.0 * b / total[1][:, None] - own)
    return effect, Slopes(left @ by @ right.transpose(0, 2, 1), first, second)
