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

from edgegraft.conditional.conditional import MAX_BYTES, Conditional, start_from_tables
from edgegraft.conditional.coordinates import state_weights
from edgegraft.conditional.features import Features
from edgegraft.conditional.influence import influence_of, variance_of_sums
from edgegraft.conditional.judge import Verdicts
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.core.adjacency import neighbours_of
from edgegraft.core.threads import resolve_jobs, run
from edgegraft.core.types import Floats, Integers, Mask
from edgegraft.learn.coupling import Slopes, couple, slopes_of
from edgegraft.model import PairwiseMRF
from edgegraft.table.blocks import TableRows
from edgegraft.table.numbers import scores_of

ENOUGH = 0.05  # p-value of the further scores above which the linear ones are enough
_NORMAL = 1.959963984540054
_TINY = float(np.finfo(np.float64).tiny)
_CERTAIN = 1 - 1e-9  # correlation beyond which `atanh` has no digits


class Effects(NamedTuple):
    """Effects of the edges of a model."""

    effect: Floats
    low: Floats  # interval of 95 %; NaN if rows cannot tell
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
    tests: Verdicts | None = None,
    n_jobs: int | None = None,
) -> Effects:
    """Return the effects of the edges of a model that was fitted to the rows, hardly shrunk.

    Without `tests` of the edges there are no intervals, and nothing is taken off for chance.
    """
    if tests is not None and not isinstance(rows, ConditionalRows):
        weights = np.ones(rows.table.n_rows) if rows.weights is None else rows.weights
        margins = np.concatenate(state_weights(rows.table, weights))
        features = Features.of(rows.schema, margins) if rows.schema.scored else None
        rows = ConditionalRows(rows.table, rows.weights, features)
    sizes = _Sizes(model, rows)
    if tests is None or not isinstance(rows, ConditionalRows):
        unknown = np.full(model.n_edges, np.nan)
        return Effects(sizes.effect, unknown, unknown, sizes.signed, np.abs(sizes.effect))
    error, given = np.full(model.n_edges, np.nan), rows

    def measure(k: int, change: Floats) -> None:
        error[k] = np.sqrt(variance_of_sums(given, change[:, None])[0, 0])

    _Changes(model, rows, sizes).tell(measure, resolve_jobs(n_jobs))
    directions = np.where(sizes.ordered, 1, rows.sizes)
    dof = np.prod(directions[model.edges], axis=1)
    effect, low, high = np.where(
        sizes.signed, _interval(sizes.effect, error), _interval_of_norm(sizes.effect, error, dof)
    )
    strength = np.where(tests.p_rest <= ENOUGH, sizes.largest, np.abs(effect))
    return Effects(effect, low, high, sizes.signed, strength)


def effect_changes(model: PairwiseMRF, rows: ConditionalRows, n_jobs: int | None = None) -> Floats:
    """Return by how much each row moves each effect, (rows, edges); NaN if rows cannot tell."""
    out = np.full((rows.n_rows, model.n_edges), np.nan)

    def keep(k: int, change: Floats) -> None:
        out[:, k] = change

    _Changes(model, rows, _Sizes(model, rows)).tell(keep, resolve_jobs(n_jobs))
    return out


def _interval(effect: Floats, error: Floats) -> Floats:
    """Return signed effects with their intervals, symmetric on the scale of ``atanh``."""
    inside = np.clip(effect, -_CERTAIN, _CERTAIN)
    spread = _NORMAL * error / (1.0 - inside**2)
    return np.stack((effect, *np.tanh(np.arctanh(inside) + np.stack((-spread, spread)))))


def _interval_of_norm(effect: Floats, error: Floats, dof: Integers) -> Floats:
    """Return effects without a sign, less what chance adds, with their intervals.

    The square of a norm over its standard error is chi-square with a centre of
    ``square - dof``, whose variance is ``2 (dof + 2 centre)``.
    """
    square = (effect / np.maximum(error, _TINY)) ** 2
    centre = np.maximum(square - dof, 0.0)
    spread = _NORMAL * np.sqrt(2.0 * (dof + 2.0 * centre))
    ends = np.stack((centre, np.maximum(centre - spread, 0.0), centre + spread))
    scaled = np.minimum(effect * np.sqrt(ends / np.maximum(square, _TINY)), 1.0)
    scaled[0] = np.where(np.isnan(error), effect, scaled[0])
    return np.asarray(scaled)


class _Sizes:
    """Effects of all edges with their derivatives."""

    def __init__(self, model: PairwiseMRF, rows: TableRows | ConditionalRows) -> None:
        layout, m = model.layout, model.n_edges
        if isinstance(rows, ConditionalRows):
            margins = [column.margin for column in rows.columns]
        else:
            weights = np.ones(rows.table.n_rows) if rows.weights is None else rows.weights
            margins = state_weights(rows.table, weights)
        self.ordered = (layout.states == 2) | [variable.scored for variable in model.schema]
        self.margins = [margin / max(float(margin.sum()), _TINY) for margin in margins]
        self._scores = [
            scores_of(np.maximum(margin, _TINY), min(2, len(margin) - 1), variable.kind)
            if is_ordered
            else np.eye(len(margin))
            for margin, variable, is_ordered in zip(
                self.margins, model.schema, self.ordered, strict=True
            )
        ]
        self.effect, self.largest = np.zeros(m), np.zeros(m)
        self.signed: Mask = self.ordered[model.edges].all(axis=1)
        self.slopes: list[Slopes] = [Slopes(*(np.empty(0),) * 3)] * m
        shapes = np.concatenate((layout.states[model.edges], self.ordered[model.edges]), axis=1)
        kinds, kind = np.unique(shapes, axis=0, return_inverse=True)
        for k in range(len(kinds)):
            self._work_out(model, np.flatnonzero(kind.reshape(-1) == k))

    def _work_out(self, model: PairwiseMRF, chosen: Integers) -> None:
        """Size edges of one shape."""
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
        found = through.weights, through.first + by.first, through.second + by.second
        for k, *own in zip(chosen.tolist(), *found, strict=True):
            self.slopes[k] = Slopes(*own)


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
        total.append(np.ones(len(p)) if linear else np.maximum(1.0 - (p**2).sum(axis=1), _TINY))
    by_first, by_second = inverse[0][:, :, None] + 0 * shared, inverse[1][:, None] + 0 * shared
    square = shared**2
    explained = [np.maximum((square * by).sum(axis=(1, 2)), _TINY) for by in (by_second, by_first)]
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


class _Changes:
    """By how much rows move effects, from the conditionals at a model's parameters."""

    def __init__(self, model: PairwiseMRF, rows: ConditionalRows, sizes: _Sizes) -> None:
        self._model, self._rows, self._sizes = model, rows, sizes

    def tell(self, take: Callable[[int, Floats], None], n_jobs: int) -> None:
        """Hand over what each row adds to each effect of which rows can tell."""
        model, rows = self._model, self._rows
        beside = neighbours_of(model.layout)
        others = [
            sorted(beside.other[first:last].tolist())
            for first, last in zip(beside.start[:-1], beside.start[1:], strict=True)
        ]
        size = max(1, MAX_BYTES // (2 * 8 * rows.n_rows))  # edges whose conditionals are held
        for begin in range(0, model.n_edges, size):
            chosen = range(begin, min(begin + size, model.n_edges))
            known: dict[int, Conditional | None] = {}

            def describe(i: int, known: dict[int, Conditional | None] = known) -> None:
                known[i] = self._conditional(i, others[i])

            def work(k: int, known: dict[int, Conditional | None] = known) -> None:
                pair = model.edges[k].tolist()
                ends = [known.get(end) for end in pair]
                if rows.pairwise:
                    ends = [self._conditional(end, others[end], pair) for end in pair]
                if any(ends) and rows.sizes[pair].all():  # no column of one state
                    take(k, self._change(k, *ends))

            if not rows.pairwise:
                run(describe, np.unique(model.edges[chosen.start : chosen.stop]).tolist(), n_jobs)
            run(work, chosen, n_jobs)

    def _conditional(
        self, i: int, others: list[int], known: list[int] | None = None
    ) -> Conditional | None:
        """Return the conditional of a column at the model's parameters, if it is usable."""
        layout, theta = self._model.layout, self._model.theta
        start = start_from_tables(self._rows, i, others, layout, theta)
        found = Conditional(self._rows, i, others, known, start=start)
        found.is_fitted = True
        return found if found.usable else None

    def _change(self, k: int, first: Conditional | None, second: Conditional | None) -> Floats:
        """Return by how much each row moves an effect."""
        rows, slopes = self._rows, self._sizes.slopes[k]
        i, j = pair = tuple(self._model.edges[k].tolist())
        inside = rows.columns[i].own.T @ slopes.weights @ rows.columns[j].own
        change = influence_of(first, second, pair).along(inside.reshape(-1, 1))[:, 0]
        for v, slope in ((i, slopes.first), (j, slopes.second)):
            by_state = (slope - slope @ self._sizes.margins[v]) / rows.columns[v].margin.sum()
            shown = np.append(by_state, 0.0)[rows.codes[v]]  # nothing where a cell is missing
            change += shown if rows.drawn is None else np.where(rows.drawn[v], 0.0, shown)
        return change
