"""Intervals of edge strengths from the errors of bootstrap replicates.

The norm of a table is biased upwards, ``E ||w*||^2 = ||w||^2 + tr Var(w*)``, in the fit and once
more in replicates, so percentiles of replicated strengths would be far too high. Instead, for each
replicate, ``l*`` is the length of a table in the direction of ``w`` that the error ``e* = w* - w``
would make as strong as that of the fit,

    || (l* / ||w||) w + e* || = ||w||,      l* = -u* + sqrt(||w||^2 - (||e*||^2 - u*^2)),

with ``u*`` the part of ``e*`` along ``w``; zero if there is no such length. The interval is between
quantiles of ``l*``: the lengths that a test with the same errors would not reject. For a table with
one free entry it is the basic bootstrap interval. It is approximate, because the direction is that
of the fit.
"""

from __future__ import annotations

import numpy as np

from edgegraft.core.types import Floats


def strength_intervals(
    strength: Floats, again: Floats, moved: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return intervals of norms of tables, corrected for the bias of a norm.

    `strength` is ``||w||`` of the fit; `again` and `moved` are ``||w*||`` and ``||w* - w||`` of the
    replicates, one row each.

    >>> error = np.random.default_rng(0).normal(size=(5000, 1, 9))  # of nine entries
    >>> table = 12.0 * np.eye(9)[:1]
    >>> again, moved = np.linalg.norm(table + error, axis=2), np.linalg.norm(error, axis=2)
    >>> lower, upper = strength_intervals(np.array([12.0]), again, moved, 0.95)
    >>> lower.round(1), upper.round(1)
    (array([9.7]), array([13.7]))
    """
    error = moved**2
    # w'e = (||w + e||^2 - ||w||^2 - ||e||^2) / 2
    longest = np.maximum(strength, np.finfo(np.float64).tiny)
    along = (again**2 - strength**2 - error) / (2.0 * longest)
    across = np.maximum(0.0, error - along**2)
    length = np.sqrt(np.maximum(0.0, strength**2 - across)) - along
    length = np.where(across > strength**2, 0.0, np.maximum(0.0, length))
    tail = (1.0 - level) / 2.0
    lower, upper = np.quantile(length, (tail, 1.0 - tail), axis=0)
    return lower, upper
