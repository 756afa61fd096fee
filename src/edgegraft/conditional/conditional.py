"""p(column | neighbours): maximum likelihood on distinct rows, whole or without an edge.

    loss     L = - sum_r c_r log p(x_i | r) + ridge / 2 ||B||^2
    step     B + H^-1 sum_r c_r psi_r,      psi_r = (own(x_i) - E[own | r]) (x) z_r

The ridge weighs as a tenth of a row: states that never occur together keep finite parameters. A fit
ends when a further Newton step would gain less than `_TOL` nats, and that gain is added.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from edgegraft.conditional.rows import ConditionalRows
from edgegraft.core.types import Floats, Integers
from edgegraft.kernels.conditionals.distinct import (
    Design,
    derive,
    log_likelihood,
    predict_rows,
    scores_along,
)

RIDGE_ROWS = 0.1  # weight of the ridge in rows; of a ratio it is a hundredth of a nat or less
ROWS_PER_FEATURE = 5  # with fewer, a regression fits noise and chi-squared levels fail
MAX_BYTES = 1 << 28  # of the information of a conditional (a budget); a larger one is not used
_TOL = 0.02  # nats: ratios are judged in whole nats, and half of a step's gain is added
_MAX_STEPS, _HALVINGS = 40, 12


class Fit(NamedTuple):
    """Parameters at the maximum of a likelihood."""

    theta: Floats
    value: float  # log-likelihood less the ridge
    information: Floats  # lower triangle


class Conditional:
    """The conditional of a column given some others.

    `known`: the columns that must not be drawn, if missing cells have been. `fitted`: parameters
    that are taken for the fit.
    """

    def __init__(
        self,
        rows: ConditionalRows,
        target: int,
        others: list[int],
        known: list[int] | None = None,
        start: Floats | None = None,
        fitted: Floats | None = None,
    ) -> None:
        self.rows, self.target, self.others = rows, target, others
        self.seen = rows.count(target, others, known)
        own, columns = rows.columns[target], [rows.columns[j] for j in others]
        self.q, self.k = own.free.shape[1], own.own.shape[1]
        sizes = [column.own.size for column in columns]
        self.design = Design(
            self.seen.codes,
            self.seen.counts,
            own.own,
            own.free,
            np.concatenate([np.zeros(0), *(column.own.ravel() for column in columns)]),
            np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)[:-1],
            np.concatenate(([0], np.cumsum(rows.sizes[others]))).astype(np.int64),
        )
        self._start, self._fitted = start, fitted

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""
        return int(self.q + self.design.start[-1] * self.k)

    @cached_property
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

    @cached_property
    def fit(self) -> Fit:
        """The fit of all parameters."""
        if self._fitted is not None:
            return self._maximise(self._fitted, np.empty((len(self._fitted), 0)))
        theta = np.zeros(self.n_parameters) if self._start is None else self._start.copy()
        if self._start is None:  # intercepts that give the margin
            margin = self.seen.counts.sum(axis=0) + RIDGE_ROWS
            logs = np.log(margin)
            base = logs[~self.design.free.any(axis=1)].max(initial=-np.inf)
            theta[: self.q] = logs @ self.design.free - base
        return self._maximise(theta)

    @cached_property
    def inverse(self) -> Floats:
        """The inverse of the information at the fit."""
        found, failed = lapack.dpotri(self._factor(self.fit.information), lower=1)
        if failed:
            raise np.linalg.LinAlgError("the information of a conditional is not finite")
        return np.asarray(found + np.tril(found, -1).T)

    def within(self, cells: Integers, directions: Floats) -> Fit:
        """Return the fit with some parameters in the span of directions, from a step towards it.

        `directions` are columns; without any, the parameters are zero.
        """
        fit, inside = self.fit, np.zeros(len(cells))
        shift = fit.theta[cells]
        information = np.linalg.inv(self.inverse[np.ix_(cells, cells)])
        if directions.shape[1]:
            slopes = directions.T @ information
            inside = directions @ np.linalg.solve(slopes @ directions, slopes @ shift)
        stepped, plain = fit.theta.copy(), fit.theta.copy()
        stepped -= self.inverse[:, cells] @ (information @ (shift - inside))
        stepped[cells] = plain[cells] = inside
        start = max((stepped, plain), key=self._value)
        others = np.setdiff1d(np.arange(len(start)), cells)
        basis = np.zeros((len(start), len(others) + directions.shape[1]))
        basis[others, np.arange(len(others))] = 1.0
        basis[cells, len(others) :] = directions
        return self._maximise(start, basis)

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

    def by_row(self, scores: Floats) -> Floats:
        """Return scores of configurations and states as scores of rows, zero for unused ones."""
        chosen = slice(None) if self.seen.rows is None else self.seen.rows
        cell = self.seen.place * scores.shape[1] + self.rows.codes[self.target][chosen]
        found = scores.reshape(-1, scores.shape[2]).take(cell, axis=0)
        if self.seen.rows is None:
            return np.asarray(found)
        out = np.zeros((self.rows.n_rows, scores.shape[2]))
        out[chosen] = found
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

    @cached_property
    def _shares(self) -> Floats:
        return self.probabilities(self.fit)

    def _value(self, theta: Floats) -> float:
        slopes = theta[self.q :]
        found = float(log_likelihood(self.design, theta))
        return found - 0.5 * RIDGE_ROWS * float(slopes @ slopes)

    def _factor(self, information: Floats) -> Floats:
        """Return the Cholesky factor of an information, of which the lower triangle is given."""
        factor, failed = lapack.dpotrf(information, lower=1)
        if failed:
            raised = information.copy()
            raised[np.diag_indices_from(raised)] += 1e-9 * max(1.0, information.diagonal().max())
            factor, failed = lapack.dpotrf(raised, lower=1)
            if failed:
                raise np.linalg.LinAlgError("the information of a conditional is not finite")
        return np.asarray(factor)

    def _maximise(self, theta: Floats, basis: Floats | None = None) -> Fit:
        """Return the fit along the columns of a basis by Newton's method; along all by default."""
        size, q = len(theta), self.q
        ridge = np.full(size, RIDGE_ROWS)
        ridge[:q] = 1e-9 * max(1.0, self.weight)  # an intercept of a state without rows stays
        best: tuple[Floats, float, Floats, Floats] | None = None
        step, length, halvings = np.zeros(size), 1.0, 0
        for _ in range(_MAX_STEPS):
            gradient, information = np.empty(size), np.empty((size, size))
            there = theta if best is None else best[0] + length * step
            slopes = there[q:]
            value = derive(self.design, there, gradient, information)
            value -= 0.5 * RIDGE_ROWS * float(slopes @ slopes)
            if best is not None and not value > best[1]:
                length, halvings = length / 2.0, halvings + 1
                if halvings > _HALVINGS:
                    break
                continue
            gradient[q:] -= RIDGE_ROWS * slopes
            information[np.diag_indices(size)] += ridge
            best, length, halvings = (there, value, gradient, information), 1.0, 0
            if basis is None:
                step = lapack.dpotrs(self._factor(information), gradient, lower=1)[0]
            elif basis.shape[1]:
                whole = np.tril(information)
                whole += np.tril(whole, -1).T
                factor = self._factor(basis.T @ whole @ basis)
                step = basis @ lapack.dpotrs(factor, basis.T @ gradient, lower=1)[0]
            gain = 0.5 * float(step @ gradient)
            if gain < _TOL:
                return Fit(there, value + gain, information)
        assert best is not None
        return Fit(best[0], best[1], best[3])
