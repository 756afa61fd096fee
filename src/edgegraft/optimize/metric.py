"""Curvature learned from the way: a diagonal, corrected by the last steps (L-BFGS).

    B = sigma D - W' M^-1 W,   W = [sigma S D; Y],   M = [[sigma S D S', L], [L', -diag(s'y)]]

``D`` is the objective's own diagonal curvature, ``S`` and ``Y`` the last steps and changes of the
gradient, one a row, and ``L`` the strictly lower triangle of ``S Y'`` (Byrd, Nocedal & Schnabel
1994). A diagonal that knows rare states from common ones is worth more than more memory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: A pair is kept only if its curvature is at least this share of the diagonal's.
FLATTEST = 1e-8


class Metric:
    """A positive definite model of the Hessian.

    Parameters
    ----------
    diagonal : array
        Positive first estimate of the Hessian's diagonal.
    memory : int
        Pairs kept.

    Examples
    --------
    >>> metric = Metric(np.ones(2), memory=5)
    >>> metric.update(np.array([1.0, 0.0]), np.array([3.0, 1.0]))
    True
    >>> metric.times(np.array([1.0, 0.0]))  # the secant equation
    array([3., 1.])
    """

    def __init__(self, diagonal: Floats, memory: int = 10) -> None:
        self.diagonal = diagonal
        self.memory = memory
        self.forget()

    def forget(self) -> None:
        """Go back to the diagonal alone."""
        size = len(self.diagonal)
        self.sigma = 1.0
        self._s = np.empty((0, size))
        self._y = np.empty((0, size))
        self._dots = np.empty((3, 0, 0))
        self._refresh()

    @property
    def n_pairs(self) -> int:
        """Number of pairs in memory."""
        return len(self._s)

    def update(self, step: Floats, change: Floats) -> bool:
        """Learn from a step and the change of the gradient; return whether it was of use."""
        curvature = float(step @ change)
        if curvature <= FLATTEST * float(step @ (self.diagonal * step)):
            return False
        first = max(0, self.n_pairs + 1 - self.memory)
        self._s = np.concatenate((self._s[first:], step[None]))
        self._y = np.concatenate((self._y[first:], change[None]))
        self._dots = self._bordered(first)
        self.sigma = float(self._dots[2, -1, -1]) / curvature
        self._refresh()
        return True

    def times(self, vector: Floats) -> Floats:
        """Return ``B vector``."""
        out = self.sigma * self.diagonal * vector
        if self.n_pairs:
            scaled = self.diagonal * vector
            inner = np.concatenate((self.sigma * (self._s @ scaled), self._y @ vector))
            left = self._inverse @ inner
            k = self.n_pairs
            out -= self.sigma * self.diagonal * (left[:k] @ self._s) + left[k:] @ self._y
        return np.asarray(out)

    def solve(self, vector: Floats) -> Floats:
        """Return ``B^-1 vector`` (the two-loop recursion)."""
        out = vector.copy()
        k = self.n_pairs
        rho = 1.0 / np.diag(self._dots[1]) if k else np.empty(0)
        alpha = np.empty(k)
        for i in range(k - 1, -1, -1):
            alpha[i] = rho[i] * (self._s[i] @ out)
            out -= alpha[i] * self._y[i]
        out /= self.sigma * self.diagonal
        for i in range(k):
            out += (alpha[i] - rho[i] * (self._y[i] @ out)) * self._s[i]
        return out

    def carried(self, diagonal: Floats, carry: Callable[[Floats], Floats]) -> Metric:
        """Return the same knowledge in another graph's coordinates.

        What steps of the old parameters did to the gradient of new ones was not seen and is taken
        as nothing, which is what the solver's coordinates make of it near a forest.

        Parameters
        ----------
        diagonal : array
            Of the new graph.
        carry : callable
            Takes a vector from the old layout to the new one.
        """
        other = Metric(diagonal, self.memory)
        for step, change in zip(self._s, self._y, strict=True):
            other.update(carry(step), carry(change))
        return other

    @property
    def spectrum(self) -> tuple[float, float]:
        """The least and the largest eigenvalue of ``B`` relative to the diagonal."""
        return self._spectrum

    def _bordered(self, first: int) -> Floats:
        """Return ``S D S'``, ``S Y'`` and ``Y D^-1 Y'`` with the newest pair's row and column."""
        k = self.n_pairs
        dots = np.empty((3, k, k))
        dots[:, :-1, :-1] = self._dots[:, first:, first:]
        s, y = self._s[-1], self._y[-1]
        dots[0, -1] = dots[0, :, -1] = self._s @ (self.diagonal * s)
        dots[1, -1], dots[1, :, -1] = self._y @ s, self._s @ y
        dots[2, -1] = dots[2, :, -1] = self._y @ (y / self.diagonal)
        return dots

    def _refresh(self) -> None:
        if not self.n_pairs:
            self._inverse, self._spectrum = np.empty((0, 0)), (self.sigma, self.sigma)
            return
        sds, sy, ydy = self._dots
        middle = np.block(
            [[self.sigma * sds, np.tril(sy, -1)], [np.tril(sy, -1).T, -np.diag(np.diag(sy))]]
        )
        gram = np.block([[self.sigma**2 * sds, self.sigma * sy], [self.sigma * sy.T, ydy]])
        self._inverse = np.linalg.inv(middle)
        found = self.sigma - np.linalg.eigvals(self._inverse @ gram).real
        # The diagonal itself acts on everything that the pairs do not span.
        low = max(float(found.min()), FLATTEST * self.sigma)
        self._spectrum = (min(low, self.sigma), max(float(found.max()), self.sigma))
