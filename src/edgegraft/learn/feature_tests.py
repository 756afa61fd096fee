"""Tests of edges between columns of every kind, with their signs and effects.

As in :mod:`~edgegraft.learn.edge_tests`, the score of an edge's weights is cleaned of what the
other parameters of the two conditionals could explain, moved to zero by one Newton step, and
judged by the larger of two variances. A conditional has a free intercept and weights of features
(:mod:`edgegraft.objective.features`), so its size follows the features, not the states.

The weights of a pair with an ordered end fall into two groups, each with its own test:

- *linear*: the linear scores; one weight if both ends are ordered or have two states;
- *rest*: the further scores, beside the linear weights. It answers "is linear enough?".

The p-value of the edge is ``min(p_linear / 0.9, p_rest / 0.1)``, a Bonferroni correction that
leaves the linear test nearly all of the level: it costs a linear edge a tenth of its p-value.

The effect of a pair whose ends are ordered or have two states is ``W_11 sqrt(v_i v_j)``, with ``W_11``
the weight of the linear scores and ``v`` the mean variance that a conditional leaves of its own
score: the partial correlation, if the columns are Gaussian. The effect of other pairs has no sign:
the norm of the centred table, cells weighted by the product of the margins, on the same scale.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc

from edgegraft.core import Layout
from edgegraft.core.checks import check_weights
from edgegraft.core.threads import resolve_jobs, run
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.learn.effective_score import directions
from edgegraft.objective.features import Features
from edgegraft.table import PackedTable

LINEAR_SHARE = 0.9  # of the level of an edge
_ROWS = 4096  # whose scores are held at a time
_ROWS_PER_COLUMN = 5
_MIN_INFORMATION = 1e-9
_LARGE = 1.0  # log-odds beyond which the step to zero is checked at zero itself
_CLEAR = 1e-9  # p-value below which it is not
_FEW = 10.0  # expected rows in which the rarer states of two binary columns meet
_NORMAL = 1.959963984540054
_TINY = float(np.finfo(float).tiny)


class FeatureTests(NamedTuple):
    """One test per edge.

    Attributes
    ----------
    statistic, dof, p_value : array, shape (m,)
        Of the group that decided, and the p-value of the edge.
    p_linear, p_rest : array of float, shape (m,)
        Of the groups; NaN for an edge without that group.
    effect, low, high : array of float, shape (m,)
        Standardised effect with its interval of 95 %.
    signed : array of bool, shape (m,)
        Whether the effect has a sign.
    """

    statistic: Floats
    dof: Integers
    p_value: Floats
    p_linear: Floats
    p_rest: Floats
    effect: Floats
    low: Floats
    high: Floats
    signed: Mask


class _Contrasts(NamedTuple):
    """A column in coordinates without redundancy."""

    own: Floats  # (states, k) what an edge sees: scores, or states without the most common
    free: Floats  # (states, q) states without the most common: the intercept
    back: Floats  # (k, width) from its coordinates to the features of the weights
    common: int  # the most common state
    linear: Mask  # (k,) which coordinates are linear: all of an unordered column


class _Node(NamedTuple):
    """The conditional of one variable."""

    target: int
    others: list[int]
    intercept: Floats  # (states,)
    slopes: Floats  # (features of the others, k)
    inverse: Floats | None
    weights: Floats
    raised: float
    variance: float  # mean variance left of the first coordinate, or of all

    def block(self, contrasts: list[_Contrasts], other: int) -> slice:
        """Return the positions of an edge's weights among the parameters."""
        at = self.others.index(other)
        k = contrasts[self.target].own.shape[1]
        widths = [contrasts[j].own.shape[1] for j in self.others]
        first = contrasts[self.target].free.shape[1] + k * sum(widths[:at])
        return slice(first, first + k * widths[at])


class FeatureTester:
    """The rows of a table, ready for tests of the edges of any model of them.

    Parameters
    ----------
    table : PackedTable
    features : Features
        Those that the model was fitted with.
    weights : array of float, shape (n_rows,), optional
    n_jobs : int, optional
        Threads; the results do not depend on it.
    max_bytes : int, default 256 MiB
        Memory for the information of one conditional; one that needs more is not used.
    """

    def __init__(
        self,
        table: PackedTable,
        features: Features,
        weights: ArrayLike | None = None,
        *,
        n_jobs: int | None = None,
        max_bytes: int = 1 << 28,
    ) -> None:
        whole = np.ones(table.n_rows) if weights is None else check_weights(weights, table.n_rows)
        self._weights, self._n_jobs, self._max_bytes = whole, resolve_jobs(n_jobs), max_bytes
        self._codes = table.cells[:, : table.n_rows]
        self._states = table.schema.n_states
        self._missing = bool(table.n_missing.any())
        self._features = features
        self._margins = [
            np.bincount(self._codes[i], whole, minlength=s + 1)[:s]
            for i, s in enumerate(self._states.tolist())
        ]
        self._contrasts = [
            _contrasts(features, i, margin) for i, margin in enumerate(self._margins)
        ]

    def test(self, layout: Layout, theta: Floats, only: Integers | None = None) -> FeatureTests:
        """Test edges of a model of weights.

        Parameters
        ----------
        layout : Layout
        theta : array of float
            Fitted; edges at zero are tested as additions to the others.
        only : array of int, optional
            Positions of the edges to test, in the order of the results; all by default.
        """
        chosen = np.arange(layout.n_edges) if only is None else np.asarray(only)
        edges = layout.edges[chosen]
        nodes: dict[int, _Node] = {}

        def describe(i: int) -> None:
            nodes[i] = self._describe(i, layout, theta)

        run(describe, np.unique(edges).tolist(), self._n_jobs)
        tables = [layout.edge(theta, int(k)) for k in chosen]
        moments = self._moments(edges, nodes)
        out = _empty(len(chosen))

        def judge(k: int) -> None:
            i, j = edges[k].tolist()
            found = moments[k]
            split = self._linear(i, j)
            verdict = None if found is None else _judge(*found[:3], split)
            if found is not None and self._doubtful(i, j, tables[k], verdict):
                apart = {a: self._without(nodes[a], b) for a, b in ((i, j), (j, i))}
                at_zero = self._moments(edges[k : k + 1], apart)[0]
                again = None if at_zero is None else _judge(*at_zero[:3], split)
                verdict = verdict if again is None else again
            _write(out, k, verdict)
            self._write_effect(out, k, (nodes[i], nodes[j]), tables[k], found)

        run(judge, range(len(chosen)), self._n_jobs)
        return out

    def variances(self, layout: Layout, theta: Floats) -> Floats:
        """Return what conditionals leave of the variance of each variable's (linear) feature."""
        return np.array(
            [self._describe(i, layout, theta).variance for i in range(layout.n_variables)]
        )

    def _linear(self, i: int, j: int) -> Mask:
        """Return which weights of a pair are linear, flat."""
        return np.outer(self._contrasts[i].linear, self._contrasts[j].linear).ravel()

    def _describe(self, i: int, layout: Layout, theta: Floats) -> _Node:
        touching = np.flatnonzero((layout.edges == i).any(axis=1))
        others = (layout.edges[touching].sum(axis=1) - i).tolist()
        slopes = [np.zeros((0, int(layout.widths[i])))]
        for k, j in zip(touching.tolist(), others, strict=True):
            block = layout.edge(theta, k)
            slopes.append(block.T if i < j else block)
        weights = self._weights
        if self._missing:
            known = self._codes[[i, *others]] < self._states[[i, *others], None]
            weights = weights * known.all(axis=0)
        node = _Node(
            i, others, layout.node(theta, i), np.concatenate(slopes), None, weights, 1.0, 1.0
        )
        if self._missing and len(others):
            node = self._settle(node)
        return self._informed(node)

    def _settle(self, node: _Node) -> _Node:
        """Return the conditional after Newton steps on the rows that it is tested with."""
        given, own = node, self._contrasts[node.target]
        for _ in range(3):
            node = self._informed(node)
            if node.inverse is None:
                return given
            score = np.zeros(len(node.inverse))
            for rows in self._chunks():
                psi, _ = self._scores(node, rows)
                score += node.weights[rows] @ psi
            step = np.clip(node.inverse @ score, -2.0, 2.0)
            q, k = own.free.shape[1], own.own.shape[1]
            moved, first = [], q
            for j in node.others:
                other = self._contrasts[j]
                size = k * other.own.shape[1]
                block = step[first : first + size].reshape(k, -1)
                moved.append((own.back.T @ block @ other.back).T)
                first += size
            node = node._replace(
                intercept=node.intercept + own.free @ step[:q],
                slopes=node.slopes + np.concatenate(moved),
            )
        return node

    def _without(self, node: _Node, other: int) -> _Node:
        """Return a conditional with one edge at zero; its mean goes to the intercept."""
        widths = [int(self._features.widths[j]) for j in node.others]
        at = node.others.index(other)
        rows = slice(sum(widths[:at]), sum(widths[: at + 1]))
        margin = self._margins[other] / max(self._margins[other].sum(), _TINY)
        mean = margin @ self._features.matrix(other) @ node.slopes[rows]
        slopes = node.slopes.copy()
        slopes[rows] = 0.0
        own = self._features.matrix(node.target)
        return self._informed(
            node._replace(intercept=node.intercept + own @ mean, slopes=slopes, inverse=None)
        )

    def _chunks(self) -> list[slice]:
        n = self._codes.shape[1]
        return [slice(first, min(first + _ROWS, n)) for first in range(0, n, _ROWS)]

    def _inputs(self, node: _Node, rows: slice) -> tuple[Floats, Floats, Floats]:
        """Return the conditional probabilities of some rows, and the coordinates of the others."""
        full = [np.zeros((rows.stop - rows.start, 0))]
        seen = [np.zeros((rows.stop - rows.start, 0))]
        for j in node.others:
            codes = self._codes[j, rows]
            full.append(_padded(self._features.matrix(j))[codes])
            seen.append(_padded(self._contrasts[j].own)[codes])
        z = np.concatenate(full, axis=1)
        logits = node.intercept + (z @ node.slopes) @ self._features.matrix(node.target).T
        logits -= logits.max(axis=1, keepdims=True)
        p = np.exp(logits)
        p /= p.sum(axis=1, keepdims=True)
        return p, np.concatenate(seen, axis=1), z

    def _informed(self, node: _Node) -> _Node:
        """Return the conditional with the inverse of its information."""
        own = self._contrasts[node.target]
        q, k = own.free.shape[1], own.own.shape[1]
        m = sum(self._contrasts[j].own.shape[1] for j in node.others)
        total, size = float(node.weights.sum()), q + k * m
        columns = 1 + m
        if q == 0 or total < _ROWS_PER_COLUMN * columns or 8 * size**2 > self._max_bytes:
            return node
        whole, left = np.zeros((size, size)), 0.0
        for rows in self._chunks():
            p, z, _ = self._inputs(node, rows)
            w = node.weights[rows]
            weighted = p * w[:, None]
            free, spread = p @ own.free, p @ own.own
            whole[:q, :q] += own.free.T @ (weighted.sum(axis=0)[:, None] * own.free)
            whole[:q, :q] -= free.T @ (w[:, None] * free)
            for x in range(k):
                cross = weighted @ (own.free * own.own[:, [x]]) - free * (w * spread[:, x])[:, None]
                at = q + _places(self._contrasts, node.others, k, x)
                whole[:q, at] += cross.T @ z
                for y in range(x, k):
                    v = weighted @ (own.own[:, x] * own.own[:, y]) - w * spread[:, x] * spread[:, y]
                    to = q + _places(self._contrasts, node.others, k, y)
                    block = z.T @ (v[:, None] * z)
                    whole[np.ix_(at, to)] += block
                    if x != y:
                        whole[np.ix_(to, at)] += block
                    # What is left of the first score; of all states of an unordered column.
                    left += float(v.sum()) if x == y and (x == 0 or own.linear.all()) else 0.0
        whole[q:, :q] = whole[:q, q:].T
        whole[np.diag_indices_from(whole)] += _MIN_INFORMATION * max(1.0, whole.diagonal().max())
        margin = self._margins[node.target] / max(self._margins[node.target].sum(), _TINY)
        start = margin @ own.own**2 - (margin @ own.own) ** 2
        start = float(start.sum() if own.linear.all() else start[0])
        return node._replace(
            inverse=np.linalg.inv(whole),
            raised=total / max(total - columns, total / _ROWS_PER_COLUMN),
            variance=left / total / max(start, _TINY),
        )

    def _scores(self, node: _Node, rows: slice) -> tuple[Floats, Floats]:
        """Return the scores of all parameters of a conditional, row by row."""
        own = self._contrasts[node.target]
        p, z, _ = self._inputs(node, rows)
        codes = self._codes[node.target, rows]
        k, q = own.own.shape[1], own.free.shape[1]
        r = _padded(own.own)[codes] - p @ own.own
        out = np.empty((len(codes), q + k * z.shape[1]))
        out[:, :q] = _padded(own.free)[codes] - p @ own.free
        for x in range(k):
            out[:, q + _places(self._contrasts, node.others, k, x)] = r[:, [x]] * z
        return out, r

    def _moments(
        self, edges: Edges, nodes: dict[int, _Node]
    ) -> list[tuple[Floats, Floats, Floats, Floats] | None]:
        """Return score, both variances and information of every edge; None if it has no test."""
        sides = [[self._side(nodes, a, b) for a, b in ((i, j), (j, i))] for i, j in edges.tolist()]
        used = [[side for side in both if side is not None] for both in sides]
        sums = [[np.zeros(len(side.step)) for side in both] for both in used]
        size = [len(both[0].step) if both else 0 for both in used]
        whole, across = ([np.zeros((s, s)) for s in size] for _ in range(2))
        needed = sorted({side.node for both in used for side in both})
        for rows in self._chunks():
            scores: dict[int, Floats] = {}

            def project(i: int, rows: slice = rows, scores: dict[int, Floats] = scores) -> None:
                scores[i] = self._scores(nodes[i], rows)[0]

            def add(k: int, rows: slice = rows, scores: dict[int, Floats] = scores) -> None:
                parts = []
                for side, total in zip(used[k], sums[k], strict=True):
                    w = nodes[side.node].weights[rows]
                    u = scores[side.node] @ side.projection
                    total += w @ u
                    parts.append((u, w))
                if len(parts) == 2:
                    (u, w), (v, other) = parts
                    across[k] += u.T @ (np.minimum(w, other)[:, None] * v)
                    # Rows that one of the two conditionals does not use count for the other.
                    both = [u * (w > 0)[:, None] + v * (other > 0)[:, None]]
                    weight = np.maximum(w, other)
                else:
                    both, weight = [part[0] for part in parts], parts[0][1]
                whole[k] += both[0].T @ (weight[:, None] * both[0])

            run(project, needed, self._n_jobs)
            run(add, [k for k in range(len(edges)) if used[k]], self._n_jobs)
        found: list[tuple[Floats, Floats, Floats, Floats] | None] = []
        for k, both in enumerate(used):
            if not both:
                found.append(None)
                continue
            total = max(float(nodes[side.node].weights.sum()) for side in both)
            score = np.sum(sums[k], axis=0)
            by_rows = whole[k] - np.outer(score, score) / total
            information = np.sum([side.information for side in both], axis=0)
            by_model = information.copy()
            if len(both) == 2:
                shared = across[k] - np.outer(*sums[k]) / total
                by_model += shared + shared.T
            score = score + np.sum([side.step for side in both], axis=0)
            raised = float(np.mean([nodes[side.node].raised for side in both]))
            found.append((score, by_model * raised, by_rows * raised, information))
        return found

    def _side(self, nodes: dict[int, _Node], i: int, j: int) -> _Side | None:
        """Return the effective score of an edge in one conditional, weights as of ``i < j``."""
        node = nodes[i]
        if node.inverse is None or not self._contrasts[j].own.shape[1]:
            return None
        at = node.block(self._contrasts, j)
        tall, wide = self._contrasts[i].own.shape[1], self._contrasts[j].own.shape[1]
        order = np.arange(at.start, at.stop).reshape(tall, wide)
        chosen = (order if i < j else order.T).ravel()
        across = node.inverse[:, chosen]
        information = np.linalg.inv(across[chosen])
        information = (information + information.T) / 2
        weights = self._weights_of(node, j)
        flat = (weights if i < j else weights.T).ravel()
        return _Side(i, across @ information, information, information @ flat)

    def _weights_of(self, node: _Node, j: int) -> Floats:
        """Return the weights of an edge in contrasts: target's coordinates by the other's."""
        widths = [int(self._features.widths[other]) for other in node.others]
        at = node.others.index(j)
        block = node.slopes[sum(widths[:at]) : sum(widths[: at + 1])]
        return _to_contrasts(self._contrasts[node.target], self._contrasts[j], block.T)

    def _doubtful(self, i: int, j: int, table: Floats, verdict: _Verdict | None) -> bool:
        """Return whether a test must be made at zero itself."""
        if verdict is None:
            return False
        few = False
        if self._states[i] == 2 and self._states[j] == 2:
            total = max(self._weights.sum(), _TINY)
            few = float(self._margins[i].min() * self._margins[j].min() / total) < _FEW
        shown = self._features.matrix(i) @ table @ self._features.matrix(j).T
        steep = np.abs(shown - shown.mean()).max() > _LARGE and verdict.p_value > _CLEAR
        return bool(few or (steep and not np.allclose(table, 0.0)))

    def _write_effect(
        self,
        out: FeatureTests,
        k: int,
        nodes: tuple[_Node, _Node],
        table: Floats,
        found: tuple[Floats, Floats, Floats, Floats] | None,
    ) -> None:
        i, j = nodes[0].target, nodes[1].target
        scale = float(np.sqrt(nodes[0].variance * nodes[1].variance))
        ends = [self._contrasts[v] for v in (i, j)]
        out.signed[k] = all(end.own is not end.free and end.own.size for end in ends)
        if out.signed[k]:
            effect = float(table[0, 0])
        else:
            shown = self._features.matrix(i) @ table @ self._features.matrix(j).T
            effect = _weighted_norm(shown, self._margins[i], self._margins[j])
        effect *= scale
        error = np.nan
        if found is not None:
            _, _, by_rows, information = found
            inverse = np.linalg.pinv(information)
            spread = inverse @ by_rows @ inverse
            error = float(np.sqrt(max(spread[0, 0], 0.0))) * scale
            if not out.signed[k]:
                error = float(np.sqrt(max(np.linalg.eigvalsh(spread).max(), 0.0))) * scale
        out.effect[k] = np.clip(effect, -1.0, 1.0)
        out.low[k] = np.clip(effect - _NORMAL * error, -1.0 if out.signed[k] else 0.0, 1.0)
        out.high[k] = np.clip(effect + _NORMAL * error, -1.0, 1.0)


class _Side(NamedTuple):
    node: int
    projection: Floats  # (parameters, weights)
    information: Floats
    step: Floats  # information times weights


class _Verdict(NamedTuple):
    statistic: float
    dof: int
    p_value: float
    p_linear: float
    p_rest: float


def _empty(m: int) -> FeatureTests:
    floats = [np.full(m, np.nan) for _ in range(5)]
    return FeatureTests(
        np.zeros(m), np.zeros(m, np.int64), np.ones(m), *floats, np.zeros(m, bool)
    )


def _write(out: FeatureTests, k: int, verdict: _Verdict | None) -> None:
    if verdict is not None:
        for column, value in zip(out[:5], verdict, strict=True):
            column[k] = value


def _judge(score: Floats, by_model: Floats, by_rows: Floats, linear: Mask) -> _Verdict:
    """Return the verdict of both groups together."""
    if not linear.any() or linear.all():
        statistic, dof, p = _chance(score, by_model, by_rows)
        one = p if linear.all() else np.nan
        return _Verdict(statistic, dof, p, one, np.nan)
    lead = np.ix_(linear, linear)
    first = _chance(score[linear], by_model[lead], by_rows[lead])
    turn = np.zeros((int((~linear).sum()), len(linear)))
    turn[:, ~linear] = np.eye(len(turn))
    turn[:, linear] = -by_model[np.ix_(~linear, linear)] @ np.linalg.pinv(by_model[lead])
    rest = _chance(turn @ score, turn @ by_model @ turn.T, turn @ by_rows @ turn.T)
    p_linear, p_rest = first[2] / LINEAR_SHARE, rest[2] / (1.0 - LINEAR_SHARE)
    statistic, dof, _ = first if p_linear <= p_rest else rest
    return _Verdict(statistic, dof, min(1.0, p_linear, p_rest), first[2], rest[2])


def _chance(score: Floats, by_model: Floats, by_rows: Floats) -> tuple[float, int, float]:
    usable = directions(by_model, by_rows)
    if usable.dof == 0:
        return 0.0, 0, 1.0
    statistic = float(usable.statistics(score))
    return statistic, usable.dof, max(float(chdtrc(usable.dof, statistic)), _TINY)


def _contrasts(features: Features, i: int, margin: Floats) -> _Contrasts:
    """Return a column's coordinates; states that never occur have none."""
    s = len(margin)
    common = int(margin.argmax())
    rest = np.setdiff1d(np.flatnonzero(margin > 0), [common])
    free = np.zeros((s, len(rest)))
    free[rest, np.arange(len(rest))] = 1.0
    if features.widths[i] == s:
        return _Contrasts(free, free, free.T, common, np.ones(len(rest), bool))
    own = features.matrix(i)
    width = min(own.shape[1], len(rest))
    linear = np.arange(width) == 0
    return _Contrasts(own[:, :width], free, np.eye(width, own.shape[1]), common, linear)


def _to_contrasts(first: _Contrasts, second: _Contrasts, block: Floats) -> Floats:
    """Return weights of features as weights of contrasts: against the most common state."""
    return _reduce(second, _reduce(first, block).T).T


def _reduce(column: _Contrasts, block: Floats) -> Floats:
    if column.own is column.free:  # states: differences from the most common
        return np.asarray(column.back @ block - block[column.common])
    return np.asarray(block[: column.own.shape[1]])


def _places(contrasts: list[_Contrasts], others: list[int], k: int, x: int) -> Integers:
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


def _weighted_norm(table: Floats, first: Floats, second: Floats) -> float:
    p, q = first / max(first.sum(), _TINY), second / max(second.sum(), _TINY)
    centred = table - (table @ q)[:, None] - p @ table + p @ table @ q
    return float(np.sqrt(p @ centred**2 @ q))
