"""p(column | neighbours): maximum likelihood on distinct rows, whole or without an edge.

    loss     L = - sum_r c_r log p(x_i | r) + ridge / 2 ||B||^2
    step     B + H^-1 sum_r c_r psi_r,      psi_r = (own(x_i) - E[own | r]) (x) z_r

The ridge is worth a tenth of a row: states that never occur together keep finite parameters. A fit
ends when a further Newton step would gain less than `_TOL` nats, and that gain is added.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np

from edgegraft.conditional.rows import ConditionalRows
from edgegraft.core import Layout
from edgegraft.core.pairs import find_pairs
from edgegraft.core.threads import lazy
from edgegraft.core.types import Floats, Integers
from edgegraft.kernels.cholesky import factorise, invert, solve
from edgegraft.kernels.conditionals.distinct import (
    Design,
    add_rows,
    derive,
    predict_rows,
    scores_along,
)

RIDGE_ROWS = 0.1  # weight of the ridge in rows; of a ratio it is a hundredth of a nat or less
ROWS_PER_FEATURE = 5  # with fewer, a regression fits noise and chi-squared levels fail
MAX_BYTES = 1 << 28  # of the information of a conditional (a budget); a larger one is not used
_TOL = 0.05  # nats: ratios are judged in whole nats, and what the next step promises is added
_FAR = 2.0  # log-odds by which a step does not move parameters to zero: it is too long then
#: share of a gain that a step may leave before the information is worked out again, which costs as
#: much as five to twenty steps without
_SLOW = 0.25
_MAX_STEPS, _SHORTEST = 60, 1e-4  # budgets: six steps are common
_SINGULAR = 1e-9  # share of the largest information: far below one row


class Fit(NamedTuple):
    """Parameters at the maximum of a likelihood."""

    theta: Floats
    value: float  # log-likelihood less the ridge
    metric: Metric | None = None  # of its information, if that has been worked out


class Conditional:
    """The conditional of a column given some others; states that do not occur are left out.

    `known`: the columns that must not be drawn, if missing cells have been.
    """

    def __init__(
        self,
        rows: ConditionalRows,
        target: int,
        others: list[int],
        known: list[int] | None = None,
        start: Floats | None = None,
    ) -> None:
        self.rows, self.target, self.others, self._known = rows, target, others, known
        seen, occurs = rows.count(target, others, known), rows.columns[target].margin > 0
        self.seen = seen._replace(
            counts=np.ascontiguousarray(seen.counts[:, occurs]),
            variances=seen.variances[:, occurs],
        )
        self._place_of_state = np.maximum(np.cumsum(occurs) - 1, 0)  # among those that occur
        own, columns = rows.columns[target], [rows.columns[j] for j in others]
        self.q, self.k = own.free.shape[1], own.own.shape[1]
        sizes = [column.own.size for column in columns]
        self.design = Design(
            self.seen.codes,
            self.seen.counts,
            np.ascontiguousarray(own.own[occurs]),
            np.ascontiguousarray(own.free[occurs]),
            np.concatenate([np.zeros(0), *(column.own.ravel() for column in columns)]),
            np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)[:-1],
            np.concatenate(([0], np.cumsum(rows.sizes[others]))).astype(np.int64),
        )
        self.start = start
        self.is_carried = False  # whether it starts at the fit of nearly the same neighbours
        self.is_fitted = False  # whether what it starts from is taken for the fit

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""
        return int(self.q + self.design.start[-1] * self.k)

    @lazy
    def weight(self) -> float:
        """Weight of the rows that count."""
        return float(self.seen.counts.sum())

    @property
    def usable(self) -> bool:
        """Whether there are rows and memory to fit it."""
        enough = self.weight >= ROWS_PER_FEATURE * (1 + int(self.design.start[-1]))
        return bool(self.q) and enough and 8 * self.n_parameters**2 <= MAX_BYTES

    def cells_of(self, other: int) -> Integers:
        """Return the parameters of an edge, feature by feature of the other end."""
        first, last = self.design.start[self.others.index(other) :][:2]
        return np.arange(self.q + first * self.k, self.q + last * self.k)

    @lazy
    def _first(self) -> _Point:
        """The likelihood where a fit begins."""
        theta = np.zeros(self.n_parameters) if self.start is None else self.start
        if self.start is None:  # intercepts that give the margin
            logs = np.log(self.seen.counts.sum(axis=0) + RIDGE_ROWS)
            base = logs[~self.design.free.any(axis=1)].max(initial=-np.inf)
            theta[: self.q] = logs @ self.design.free - base
        return self._derive(theta)

    @lazy
    def first_gain(self) -> float:
        """What the first step of a fit would gain; half of Rao's score if one edge is new."""
        return Metric(self._first.information).promise(self._first.gradient)[1]

    @property
    def first_step(self) -> Floats:
        """The first step of a fit."""
        return Metric(self._first.information).promise(self._first.gradient)[0]

    @lazy
    def fit(self) -> Fit:
        """The fit of all parameters."""
        first = self._first
        metric = Metric(first.information)
        return (
            Fit(first.theta, first.value, metric) if self.is_fitted else self._climb(first, metric)
        )

    @lazy
    def inverse(self) -> Floats:
        """The inverse of the information at the fit."""
        assert self.fit.metric is not None
        return invert(self.fit.metric.factor)

    def within(self, cells: Integers, directions: Floats) -> Fit:
        """Return the fit with some parameters in the span of directions, from a step towards it.

        `directions` are columns; without any, the parameters are zero. Steps are taken in the
        metric of the whole fit for as long as they gain, and need no information of their own.
        """
        fit, normals = self.fit, self.normals(cells, directions)
        assert fit.metric is not None
        metric = fit.metric.across(normals)
        start, outside = fit.theta.copy(), normals @ fit.theta
        if np.abs(outside @ normals).max(initial=0.0) <= _FAR:
            start -= metric.towards(outside)
        start -= (normals @ start) @ normals
        return self._climb(self._derive(start, bends=False), metric)

    def normals(self, cells: Integers, directions: Floats) -> Floats:
        """Return rows that are orthogonal to all fits with some parameters in a span."""
        turn = np.linalg.qr(directions, mode="complete")[0] if directions.size else None
        inside = np.eye(len(cells)) if turn is None else turn[:, directions.shape[1] :].T
        rows = np.zeros((len(inside), self.n_parameters))
        rows[:, cells] = inside
        return rows

    def metric_at(self, fit: Fit) -> Metric:
        """Return the metric of a fit's own information."""
        return fit.metric or Metric(self._derive(fit.theta).information)

    def carried(self, others: list[int]) -> Floats:
        """Return parameters for other neighbours, from which a fit has not far to go.

        Those that are left out go to zero by a step, and new ones begin there.
        """
        gone = [self.cells_of(other) for other in self.others if other not in others]
        theta = self.fit.theta
        if gone:
            cells = np.concatenate(gone)
            if np.abs(theta[cells]).max(initial=0.0) <= _FAR:
                pull = np.linalg.solve(self.inverse[np.ix_(cells, cells)], theta[cells])
                theta = theta - self.inverse[:, cells] @ pull
        parts = [theta[: self.q]]
        for other in others:
            known = other in self.others
            size = int(self.rows.sizes[other]) * self.k
            parts.append(theta[self.cells_of(other)] if known else np.zeros(size))
        return np.concatenate(parts)

    def step(self, cells: Integers, directions: Floats) -> float:
        """Return the statistic of parameters along directions by one step from the fit."""
        information = np.linalg.inv(self.inverse[np.ix_(cells, cells)])
        pull = directions.T @ information @ self.fit.theta[cells]
        return float(pull @ np.linalg.solve(directions.T @ information @ directions, pull))

    def rows_along(self, fit: Fit, directions: Floats) -> Floats:
        """Return the scores of rows along directions of the parameters.

        Configurations by states by directions.
        """
        p = self._shares if fit is self.fit else self.probabilities(fit)
        out = np.empty((*self.design.counts.shape, len(directions)))
        scores_along(self.design, p, np.ascontiguousarray(directions), out)
        return out

    def prepare(self) -> None:
        """Work out what every pair needs, before threads ask for pairs."""
        _ = self.inverse, self._shares

    def forget_rows(self) -> None:
        """Keep no number per row: what asks of single rows counts them again."""
        self.seen = self.seen._replace(place=None)

    def by_row(self, scores: Floats) -> Floats:
        """Return scores of configurations and states as scores of rows, zero for unused ones."""
        if self.seen.place is None:
            place = self.rows.count(self.target, self.others, self._known).place
            self.seen = self.seen._replace(place=place)
        assert self.seen.place is not None
        scores = np.ascontiguousarray(scores[:, self._place_of_state])
        out = np.zeros((self.rows.n_rows, scores.shape[2]))
        rows = np.empty(0, np.int64) if self.seen.rows is None else self.seen.rows
        add_rows(scores, self.seen.place, self.rows.codes[self.target], rows, out)
        return out

    def clustered(self, scores: Floats) -> Floats:
        """Return the variance of sums of rows' scores over the clusters of a design."""
        survey, of_rows = self.rows.survey, self.by_row(scores)
        assert survey is not None
        if self.rows.weights is not None:
            of_rows *= self.rows.weights[:, None]
        return survey.variance(np.asarray(survey.sums(of_rows, 0)))

    def probabilities(self, fit: Fit) -> Floats:
        """Return the probabilities of the states in every configuration."""
        out = np.empty(self.design.counts.shape)
        predict_rows(self.design, fit.theta, out)
        return out

    @lazy
    def _shares(self) -> Floats:
        return self.probabilities(self.fit)

    def _derive(self, theta: Floats, bends: bool = True) -> _Point:
        """Return the likelihood with the ridge at some parameters, and its information if asked."""
        size = len(theta) if bends else 0
        gradient, information = np.empty(len(theta)), np.empty((size, size))
        value, slopes = derive(self.design, theta, gradient, information), theta[self.q :]
        gradient[self.q :] -= RIDGE_ROWS * slopes
        if bends:
            diagonal = information.reshape(-1)[:: size + 1]
            diagonal[: self.q] += _SINGULAR * max(1.0, self.weight)  # of states without rows
            diagonal[self.q :] += RIDGE_ROWS
        value -= 0.5 * RIDGE_ROWS * float(slopes @ slopes)
        return _Point(theta, float(value), gradient, information)

    def _climb(self, best: _Point, metric: Metric) -> Fit:
        """Return the fit that Newton's method reaches, along the directions of a metric.

        A point has a metric of its own if the first has. If not, that of another fit is kept until
        a step in it leaves too much to gain.
        """
        own, (step, gain) = bool(best.information.size), metric.promise(best.gradient)
        length, bends = 1.0, own
        for _ in range(_MAX_STEPS):
            if gain < _TOL or length < _SHORTEST:
                break
            there = self._derive(best.theta + length * step, bends)
            if there.value > best.value:
                best, length, last = there, min(1.0, 4.0 * length), gain
                if bends:
                    metric = metric.renewed(best.information)
                step, gain = metric.promise(best.gradient)
                bends = own or gain > _SLOW * last
            else:  # where the parabola through both values and the slope has its top
                fall = best.value - there.value + 2.0 * gain * length
                length *= min(0.5, max(0.1, gain * length / fall))
        value = best.value + min(gain, _TOL)
        return Fit(best.theta, value, metric if own else None)


class Metric:
    """Newton's steps by an information, of which the lower triangle is given.

    Steps are orthogonal to some normals, if there are any.
    """

    def __init__(self, information: Floats, normals: Floats | None = None) -> None:
        self.factor = _factor(information)
        self._hold(normals)

    def _hold(self, normals: Floats | None) -> None:
        self.normals = normals
        if normals is not None:
            self._bent = solve(self.factor, normals)
            self._inner = self._bent @ normals.T

    def across(self, normals: Floats) -> Metric:
        """Return the metric of the same information with normals."""
        other = copy(self)
        other._hold(normals)
        return other

    def renewed(self, information: Floats) -> Metric:
        """Return the metric of another information with the same normals."""
        return Metric(information, self.normals)

    def towards(self, values: Floats) -> Floats:
        """Return the shortest shift along which the normals have some values."""
        return np.asarray(self.weigh(values).T @ self._bent)

    def weigh(self, values: Floats) -> Floats:
        """Return the pulls along the normals that have some values."""
        return np.asarray(np.linalg.solve(self._inner, values))

    def promise(self, gradient: Floats) -> tuple[Floats, float]:
        """Return a step, and half of what it promises to gain."""
        step = solve(self.factor, gradient)
        if self.normals is not None:
            step -= self.towards(self._bent @ gradient)
        return step, 0.5 * float(step @ gradient)


def start_from_tables(
    rows: ConditionalRows, target: int, others: list[int], layout: Layout, theta: Floats
) -> Floats:
    """Return the parameters that a model of tables gives a conditional; zero for other pairs."""
    own, column = rows.columns[target].own, rows.columns[target]
    common = int(column.margin.argmax())
    logits, parts = layout.node(theta, target).copy(), []
    pairs = np.array([(target, other) for other in others], np.int64).reshape(-1, 2)
    places = find_pairs(pairs, layout.edges, layout.n_variables).tolist()
    for other, place in zip(others, places, strict=True):
        block = np.zeros((rows.sizes[other], own.shape[1]))
        if place >= 0:
            table = layout.edge(theta, place)
            table = (table if target < other else table.T).T  # states of the other by own ones
            seen = rows.columns[other]
            base = int(seen.margin.argmax())
            shown = table - table[base]
            block = rows.turns[other] @ (shown - shown[:, [common]]) @ rows.turns[target].T
            logits += table[base] - (own - own[common]) @ (block.T @ seen.own[base])
        parts.append(block.ravel())
    return np.concatenate(((logits - logits[common]) @ column.free, *parts))


class _Point(NamedTuple):
    """A likelihood with its derivatives at some parameters."""

    theta: Floats
    value: float
    gradient: Floats
    information: Floats  # lower triangle; no cells if it was not asked for


def _factor(information: Floats) -> Floats:
    """Return the Cholesky factor of an information, of which the lower triangle is given."""
    factor = factorise(information)
    if factor is None:
        raised = information.copy()
        raised[np.diag_indices_from(raised)] += _SINGULAR * max(1.0, information.diagonal().max())
        factor = factorise(raised)
        if factor is None:
            raise np.linalg.LinAlgError("the information of a conditional is not finite")
    return factor
