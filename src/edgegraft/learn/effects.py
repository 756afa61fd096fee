"""How strong an edge is, on the scale of a partial correlation, and its sign.

Given all other columns of a row, the two columns of an edge have the distribution

    p(x_i, x_j | rest)  ~  exp(h_i(x_i) + w_ij(x_i, x_j) + h_j(x_j)),

``h`` being what the other neighbours in that row add. Its covariances and variances, averaged over
rows, are those that the rest leaves. The *effect* is

- of two ordered columns the correlation of their linear scores: the partial correlation, if columns
  are Gaussian. Columns of two states count as ordered;
- of other pairs, without a sign, the square root of the share of variance that the one explains of
  the other (Goodman and Kruskal's tau, the geometric mean of both directions), less what chance
  adds. States count by their frequency, so rare cells do not lead.

The *strength* is the size of the effect; of ordered columns whose linear scores are not enough it
is the largest correlation of any combination of their scores, so that a U-shape is not weak.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from edgegraft.core.threads import resolve_jobs, run
from edgegraft.core.types import Floats, Integers, Mask
from edgegraft.learn.counted_tests import MIN_EDGES, binary_effects
from edgegraft.learn.effective_score import ENOUGH, Verdicts
from edgegraft.model import PairwiseMRF
from edgegraft.table import Variable
from edgegraft.table.blocks import TableRows
from edgegraft.table.numbers import scores_of

_CELLS, _MIN_ROWS, _MAX_ROWS = 1 << 14, 256, 4096  # rows whose conditionals are averaged
_NORMAL = 1.959963984540054
_CERTAIN = 1e9  # statistic
_TINY = float(np.finfo(np.float64).tiny)


class Effects(NamedTuple):
    """Effects of the edges of a model."""

    effect: Floats
    low: Floats  # interval of 95 %; NaN if the edge has no test
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
    model: PairwiseMRF, rows: TableRows, tests: Verdicts | None = None, n_jobs: int | None = None
) -> Effects:
    """Return the effects of the edges of a model that was fitted to the rows, hardly shrunk.

    Of many rows a sample is used. The `tests` of the edges are for intervals, and for what chance
    adds; by default edges are certain.
    """
    m, threads = model.n_edges, resolve_jobs(n_jobs)
    if tests is None:
        tests = Verdicts.of(np.repeat([[_CERTAIN], [1.0], [0.0]], m, axis=1))
    found, largest, signed = np.zeros(m), np.zeros(m), np.zeros(m, bool)
    rest = np.arange(m)
    if m >= MIN_EDGES:
        known = binary_effects(model.layout, model.theta, rows.table, rows.weights, threads)
        rest = np.flatnonzero(np.isnan(known))
        found, signed = np.nan_to_num(known), ~np.isnan(known)
        largest = np.abs(found)
    columns = _Columns(model, rows, rest)

    def work(k: int) -> None:
        found[k], largest[k], signed[k] = columns.correlations(k)

    run(work, rest.tolist(), threads)
    effect, low, high = np.where(signed, _tested(found, tests), _tested_norm(found, tests))
    strength = np.where(tests.p_rest <= ENOUGH, largest, np.abs(effect))
    return Effects(effect, low, high, signed, strength)


def _tested(effect: Floats, tests: Verdicts) -> Floats:
    """Return signed effects with their intervals, symmetric on the scale of ``atanh``."""
    z, p = np.sqrt(np.maximum(tests.statistic, 0.0)), np.clip(tests.p_linear, _TINY, 1.0)
    z = np.where((tests.dof == 1) | np.isnan(p), z, -ndtri(p / 2))
    z = np.where(tests.dof > 0, np.maximum(z, 1e-9), np.nan)
    centre = np.arctanh(np.clip(effect, -1 + 1e-9, 1 - 1e-9))
    spread = np.abs(centre) * _NORMAL / z
    return np.stack((effect, np.tanh(centre - spread), np.tanh(centre + spread)))


def _tested_norm(effect: Floats, tests: Verdicts) -> Floats:
    """Return effects without a sign, less what chance adds, with their intervals.

    The statistic is chi-square with a centre of ``statistic - dof``, whose variance is
    ``2 (dof + 2 centre)``; the effect is proportional to the root of the centre.
    """
    statistic = np.where(tests.dof > 0, np.maximum(tests.statistic, _TINY), np.nan)
    centre = np.maximum(statistic - tests.dof, 0.0)
    spread = _NORMAL * np.sqrt(2.0 * (tests.dof + 2.0 * centre))
    ends = np.stack((centre, np.maximum(centre - spread, 0.0), centre + spread))
    scaled = np.minimum(effect * np.sqrt(ends / statistic), 1.0)
    scaled[0] = np.where(tests.dof > 0, scaled[0], effect)
    return np.asarray(scaled)


class _Columns:
    """What the rest of each row says of the columns of some edges of a model."""

    def __init__(self, model: PairwiseMRF, rows: TableRows, chosen: Integers) -> None:
        table, layout = rows.table, model.layout
        self._model = model
        # The first rows of the sample are a sample themselves.
        shuffled = np.random.default_rng(0).permutation(table.n_rows)[:_MAX_ROWS]
        weights = np.ones(table.n_rows) if rows.weights is None else rows.weights
        ends = np.zeros(layout.n_variables, bool)
        ends[layout.edges[chosen]] = True
        beside = np.flatnonzero(ends[layout.edges].any(axis=1))
        self._weights = weights[shuffled]
        self._codes = {
            i: table.cells[i, shuffled] for i in np.unique(layout.edges[beside]).tolist()
        }
        self._features = {
            i: _features(
                model.schema[i],
                np.bincount(
                    table.cells[i, : table.n_rows], weights, minlength=layout.states[i] + 1
                )[:-1],
            )
            for i in np.flatnonzero(ends).tolist()
        }
        size = np.clip(_CELLS // layout.states, _MIN_ROWS, _MAX_ROWS)
        self._fields: dict[int, Floats] = {
            i: np.tile(layout.node(model.theta, i)[:, None], min(int(size[i]), len(shuffled)))
            for i in np.flatnonzero(ends).tolist()
        }
        for k in beside.tolist():
            (i, j), weight = layout.edges[k].tolist(), layout.edge(model.theta, k)
            for own, other, table_of in ((i, j, weight), (j, i, weight.T)):
                if ends[own]:
                    field = self._fields[own]
                    field += self._seen(table_of, other, field.shape[1])

    def _seen(self, table: Floats, other: int, n_rows: int) -> Floats:
        """Return what a neighbour adds to a column: nothing where its cell is missing."""
        padded = np.zeros((table.shape[0], table.shape[1] + 1))
        padded[:, :-1] = table
        return padded[:, self._codes[other][:n_rows]]

    def correlations(self, k: int) -> tuple[float, float, bool]:
        """Return the effect of an edge, the largest correlation, and whether it has a sign."""
        i, j = self._model.edges[k].tolist()
        table = self._model.layout.edge(self._model.theta, k)
        n = min(self._fields[i].shape[1], self._fields[j].shape[1])
        first = _likely(self._fields[i][:, :n] - self._seen(table, j, n))
        second = _likely(self._fields[j][:, :n] - self._seen(table.T, i, n))
        both = np.exp(np.maximum(table - table.max(), -600.0))
        across, back = both @ second, both.T @ first
        total = np.maximum((first * across).sum(axis=0), _TINY)
        weights = self._weights[:n] / max(float(self._weights[:n].sum()), _TINY)
        p, q = first * across / total, second * back / total
        shared = both * ((first * (weights / total)) @ second.T) - (p * weights) @ q.T
        left, right = self._features[i], self._features[j]
        v, u = _spread(p, weights, left.scores), _spread(q, weights, right.scores)
        shared = left.scores.T @ shared @ right.scores
        if left.ordered and right.ordered:
            size = float(np.sqrt(v[0, 0] * u[0, 0]))
            effect = float(shared[0, 0]) / size if size > _TINY else 0.0
            largest = np.linalg.svd(_root(v) @ shared @ _root(u), compute_uv=False)
            return float(np.clip(effect, -1, 1)), min(1.0, float(largest.max(initial=0.0))), True
        if left.ordered:
            shared, v = shared[:1], v[:1, :1]
        if right.ordered:
            shared, u = shared[:, :1], u[:1, :1]
        of_first = np.trace(shared @ np.linalg.pinv(u, hermitian=True) @ shared.T)
        of_second = np.trace(shared.T @ np.linalg.pinv(v, hermitian=True) @ shared)
        size = float(np.sqrt(np.trace(v) * np.trace(u)))
        effect = float(np.sqrt(np.sqrt(max(of_first * of_second, 0.0)) / size)) if size else 0.0
        return min(1.0, effect), min(1.0, effect), False


class _Feature(NamedTuple):
    scores: Floats  # (states, k)
    ordered: bool


def _features(variable: Variable, margin: NDArray[Any]) -> _Feature:
    if not variable.scored and variable.n_states != 2:
        return _Feature(np.eye(variable.n_states), False)
    n_scores = min(2, variable.n_states - 1)
    return _Feature(scores_of(np.maximum(margin, _TINY), n_scores, variable.kind), True)


def _likely(logits: Floats) -> Floats:
    return np.asarray(np.exp(logits - logits.max(axis=0)))


def _spread(p: Floats, weights: Floats, scores: Floats) -> Floats:
    """Return the mean covariance of scores under the probabilities of each row."""
    means = scores.T @ p
    return np.asarray(scores.T @ ((p @ weights)[:, None] * scores) - (means * weights) @ means.T)


def _root(matrix: Floats) -> Floats:
    """Return the inverse square root of a covariance; nothing along directions without variance."""
    values, axes = np.linalg.eigh(matrix)
    kept = values > 1e-9 * max(float(values.max(initial=0.0)), 1e-9)
    return np.asarray((axes[:, kept] / np.sqrt(values[kept])) @ axes[:, kept].T)
