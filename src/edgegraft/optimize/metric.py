"""Models of the Hessian: a diagonal or a dense first matrix, corrected by the last steps (L-BFGS).

    B = sigma D - W' M^-1 W,   W = [sigma S D; Y],   M = [[sigma S D S', L], [L', -diag(s'y)]]

``D`` is the objective's own diagonal curvature, ``S`` and ``Y`` the last steps and changes of the
gradient, one per row, and ``L`` the part of ``S Y'`` in which the step is younger than the change
(Byrd, Nocedal & Schnabel 1994). A diagonal that knows rare states from common ones is worth more
than more memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.pairs import all_pairs
from edgegraft.core.types import Floats, Integers
from edgegraft.counts import PairCounts
from edgegraft.kernels.solver import dot, rows_times, subtract_rows

#: A pair is kept only if its curvature is at least this share of the diagonal's.
FLATTEST = 1e-8
#: Share of all pairs from which a graph counts as dense.
DENSE = 0.25
#: States of all variables together up to which dense products are cheaper than passes over rows.
WIDEST = 1500


class Model(NamedTuple):
    """The matrix ``B`` in compact form, on all parameters or on some."""

    sigma: float
    diagonal: Floats
    rows: Floats
    middle: Floats
    spectrum: tuple[float, float]  # bounds of the eigenvalues of B relative to the diagonal

    def times(self, vector: Floats) -> Floats:
        """Return ``B vector``."""
        out = self.sigma * self.diagonal * vector
        if len(self.rows):
            subtract_rows(out, self.middle @ rows_times(self.rows, vector), self.rows)
        return np.asarray(out)


class Metric:
    """A positive definite model of the Hessian, from a first estimate of its diagonal.

    `memory` pairs are kept; `base` is a better first matrix, for :meth:`solve` alone.

    >>> metric = Metric(np.ones(2), memory=5)
    >>> metric.update(np.array([1.0, 0.0]), np.array([3.0, 1.0]))
    True
    >>> metric.model().times(np.array([1.0, 0.0]))  # the secant equation
    array([3., 1.])
    >>> metric.solve(np.array([3.0, 1.0]))
    array([1., 0.])
    """

    def __init__(self, diagonal: Floats, memory: int = 10, base: DenseMetric | None = None) -> None:
        self.diagonal = diagonal
        self.memory = memory
        self.base = base
        # Steps, then changes: together they are the rows W of the compact form.
        self._pairs = np.empty((2, memory, len(diagonal)))
        self._curvature = np.empty(memory)
        self.forget()

    def forget(self) -> None:
        """Go back to the first matrix alone."""
        self.sigma = 1.0
        self._order: list[int] = []  # slots from the oldest to the youngest pair
        self._stale: set[int] = set()  # slots whose products are not up to date
        self._products = np.zeros((3, self.memory, self.memory))  # S D S', S Y', Y D^-1 Y'

    @property
    def n_pairs(self) -> int:
        """Number of pairs in memory."""
        return len(self._order)

    def update(self, step: Floats, change: Floats) -> bool:
        """Learn from a step and the change of the gradient; return whether it was of use."""
        curvature = float(dot(step, change))
        if curvature <= FLATTEST * float(dot(step, self.diagonal * step)):
            return False
        slot = self._order.pop(0) if self.n_pairs == self.memory else self.n_pairs
        self._order.append(slot)
        self._pairs[0, slot], self._pairs[1, slot] = step, change
        self._curvature[slot] = curvature
        self._stale.add(slot)
        self.sigma = float(dot(change, self._first(change))) / curvature
        return True

    def solve(self, vector: Floats) -> Floats:
        """Return ``B^-1 vector`` (the two-loop recursion)."""
        steps, changes = self._pairs
        out = vector.copy()
        alpha = np.empty(self.memory)
        for k in reversed(self._order):
            alpha[k] = dot(steps[k], out) / self._curvature[k]
            out -= alpha[k] * changes[k]
        out = self._first(out) / self.sigma
        for k in self._order:
            out += (alpha[k] - dot(changes[k], out) / self._curvature[k]) * steps[k]
        return out

    def _first(self, vector: Floats) -> Floats:
        return vector / self.diagonal if self.base is None else self.base.solve(vector)

    def copy(self) -> Metric:
        """Return a metric that knows the same and learns on its own."""
        other = Metric(self.diagonal, self.memory, self.base)
        k = self.n_pairs
        other._pairs[:, :k], other._curvature[:k] = self._pairs[:, :k], self._curvature[:k]
        other._order, other._stale = self._order.copy(), self._stale.copy()
        other._products, other.sigma = self._products.copy(), self.sigma
        return other

    def model(self, chosen: Integers | None = None) -> Model:
        """Return ``B``, or its block of the parameters `chosen`."""
        diagonal = self.diagonal if chosen is None else self.diagonal[chosen]
        k = self.n_pairs
        if k == 0:
            none = np.empty((0, len(diagonal))), np.empty((0, 0))
            return Model(self.sigma, diagonal, *none, (self.sigma, self.sigma))
        middle, spectrum = self._middle()
        steps, changes = self._pairs[:, :k]
        if chosen is not None:
            steps, changes = steps.take(chosen, axis=1), changes.take(chosen, axis=1)
        rows = np.concatenate((self.sigma * diagonal * steps, changes))
        return Model(self.sigma, diagonal, rows, middle, spectrum)

    def _middle(self) -> tuple[Floats, tuple[float, float]]:
        """Return the inverse of ``M`` and bounds of the eigenvalues of ``B`` in the diagonal."""
        k = self.n_pairs
        self._refresh()
        sds, sy, ydy = self._products[:, :k, :k]
        age = np.argsort(self._order)  # rank of each slot, oldest first
        cross = np.where(age[:, None] > age[None, :], sy, 0.0)
        middle = np.block([[self.sigma * sds, cross], [cross.T, -np.diag(self._curvature[:k])]])
        gram = np.block([[self.sigma**2 * sds, self.sigma * sy], [self.sigma * sy.T, ydy]])
        inverse = np.linalg.inv(middle)
        found = self.sigma - np.linalg.eigvals(inverse @ gram).real
        # The diagonal itself acts on everything that the pairs do not span.
        low = max(float(found.min()), FLATTEST * self.sigma)
        return inverse, (min(low, self.sigma), max(float(found.max()), self.sigma))

    def _refresh(self) -> None:
        """Bring the products of pairs up to date; plain L-BFGS never needs them."""
        k = self.n_pairs
        steps, changes = self._pairs[:, :k]
        sds, sy, ydy = self._products
        for slot in self._stale:
            s, y = steps[slot], changes[slot]
            sds[slot, :k] = sds[:k, slot] = rows_times(steps, self.diagonal * s)
            sy[slot, :k], sy[:k, slot] = rows_times(changes, s), rows_times(steps, y)
            ydy[slot, :k] = ydy[:k, slot] = rows_times(changes, y / self.diagonal)
        self._stale.clear()


class DenseMetric:
    """A first matrix for dense graphs with a ridge, in which every table knows of all the others.

        C W S + S W C = G,    S = covariance of all indicators + e I,    C = its blocks + e I

    With all pairs in the model, ``W`` is one symmetric matrix over the indicators of all
    variables. Near independence the Hessian of the pseudolikelihood maps it to ``C W S + S W C``:
    the conditional of a variable varies with its own covariance ``C_i``, and its predictors are
    correlated through ``S``. ``e = sqrt(ridge)`` puts the ridge, ``2 e^2 W``, where the
    covariances have nothing to say. The equation is solved in the eigenvectors of
    ``C^-1/2 S C^-1/2``: four matrix products, where the diagonal metric needs several times as
    many passes over the rows. Node vectors have their part of the diagonal.
    """

    def __init__(self, layout: Layout, counts: PairCounts, ridge: float, diagonal: Floats) -> None:
        covariance = _covariance(layout, counts)
        size = len(covariance)
        self._rows, self._columns = layout.cell_ends()
        self._nodes = diagonal[:size]
        own = np.repeat(np.arange(layout.n_variables), layout.states)
        shift = np.sqrt(ridge) * np.eye(size)
        values, vectors = np.linalg.eigh(np.where(own[:, None] == own, covariance, 0.0) + shift)
        whitening = (vectors / np.sqrt(np.maximum(values, ridge))) @ vectors.T
        values, vectors = np.linalg.eigh(whitening @ (covariance + shift) @ whitening)
        # Covariances over differing rows (missing cells) may have negative eigenvalues.
        values = np.maximum(values, 1e-6 * values.max())
        self._basis = whitening @ vectors
        self._sums = values[:, None] + values[None, :]

    def solve(self, vector: Floats) -> Floats:
        """Return the solution for a vector laid out like the parameters."""
        size = len(self._nodes)
        full = np.zeros((size, size))
        full[self._rows, self._columns] = full[self._columns, self._rows] = vector[size:]
        basis = self._basis
        full = basis @ ((basis.T @ full @ basis) / self._sums) @ basis.T
        return np.concatenate((vector[:size] / self._nodes, full[self._rows, self._columns]))


def suits_dense(layout: Layout, penalty: float, ridge: float) -> bool:
    """Return whether a graph is dense enough, and small enough, and the problem smooth."""
    n = layout.n_variables
    dense = layout.n_edges >= DENSE * n * (n - 1) / 2
    smooth = penalty == 0.0 and ridge > 0.0
    return bool(dense and smooth and n > 2 and layout.states.sum() <= WIDEST)


def _covariance(layout: Layout, counts: PairCounts) -> Floats:
    n = layout.n_variables
    complete = Layout(layout.states, all_pairs(n))
    margins = counts.margins().values.astype(np.float64)
    totals = np.add.reduceat(margins, layout.node_offset[:-1])
    p = margins / np.repeat(np.maximum(totals, 1e-300), layout.states)
    tables = counts.pairs(complete.edges)
    sums = np.add.reduceat(tables.values.astype(np.float64), tables.offsets[:-1])
    known = np.repeat(sums > 0, np.diff(tables.offsets))
    joint = tables.values / np.repeat(np.where(sums > 0, sums, 1.0), np.diff(tables.offsets))
    rows, columns = complete.cell_ends()
    out = np.diag(p) - np.outer(p, p)
    own = np.repeat(np.arange(n), layout.states)
    out[own[:, None] != own] = 0.0
    out[rows, columns] = np.where(known, joint - p[rows] * p[columns], 0.0)
    out[columns, rows] = out[rows, columns]
    return out
