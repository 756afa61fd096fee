"""One conditional on distinct rows: its likelihood with derivatives, and scores along directions.

A column with states ``a`` has ``q`` free intercepts and ``k`` coordinates ``own[a]``; its
neighbours show the sparse features ``z`` in a configuration ``g`` of their states. With ``n[g, a]``
the weight of the rows that have both,

    log p(a | g) = t_a + own[a] . (B' z_g) - log Z_g,        t = free @ intercepts.

Parameters are the intercepts, then ``B`` feature by feature. Every sum runs over configurations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.kernels.compiler import kernel


class Design(NamedTuple):
    """A column, its neighbours, and the configurations of their states."""

    codes: NDArray[np.int64]  # (configurations, neighbours) states
    counts: NDArray[np.float64]  # (configurations, states) weights of rows
    own: NDArray[np.float64]  # (states, k) coordinates
    free: NDArray[np.float64]  # (states, q) of the intercepts
    phi: NDArray[np.float64]  # features of the neighbours' states, one after the other
    at: NDArray[np.int64]  # (neighbours,) where those of each begin in `phi`
    start: NDArray[np.int64]  # (neighbours + 1,) first feature of each, from 0


@kernel
def _show(design, g, columns, values):
    """Write the features that differ from zero in a configuration, and return their number."""
    n = 0
    for j in range(design.codes.shape[1]):
        width = design.start[j + 1] - design.start[j]
        first = design.at[j] + design.codes[g, j] * width
        for u in range(width):
            value = design.phi[first + u]
            if value != 0.0:
                columns[n], values[n] = design.start[j] + u, value
                n += 1
    return n


@kernel
def _predict(design, theta, columns, values, n, p):
    """Write the probabilities of the states, and return the logarithm of their sum of weights."""
    (s, k), q = design.own.shape, design.free.shape[1]
    slope = np.zeros(k)
    for x in range(n):
        first = q + columns[x] * k
        for m in range(k):
            slope[m] += values[x] * theta[first + m]
    top = -np.inf
    for a in range(s):
        logit = 0.0
        for f in range(q):
            logit += design.free[a, f] * theta[f]
        for m in range(k):
            logit += design.own[a, m] * slope[m]
        p[a] = logit
        top = max(top, logit)
    total = 0.0
    for a in range(s):
        p[a] = np.exp(p[a] - top)
        total += p[a]
    for a in range(s):
        p[a] /= total
    return top + np.log(total)


@kernel
def derive(design, theta, gradient, information):
    """Write gradient and information of the log-likelihood, and return its value.

    Of the information the lower triangle is written.
    """
    (n_rows, s), d = design.counts.shape, design.start[-1]
    k, q = design.own.shape[1], design.free.shape[1]
    columns, values = np.empty(d, np.int64), np.empty(d)
    p, rest, mean, mean_free = np.empty(s), np.empty(s), np.empty(k), np.empty(q)
    spread, cross, whole = np.empty((k, k)), np.empty((k, q)), np.zeros((q, q))
    # Then what an intercept adds is what a feature adds that every row shows.
    same = q == k and (design.own == design.free).all()
    gradient[:] = 0.0
    information[:] = 0.0
    out = 0.0
    for g in range(n_rows):
        n = _show(design, g, columns, values)
        _predict(design, theta, columns, values, n, p)
        total = 0.0
        for a in range(s):
            count = design.counts[g, a]
            total += count
            if count > 0.0:
                out += count * np.log(max(p[a], 1e-300))
        for a in range(s):
            rest[a] = design.counts[g, a] - total * p[a]
        _spread(design.own, design.own, p, total, mean, mean, spread)
        if same:
            cross[:] = spread
            whole += spread
        else:
            _spread(design.own, design.free, p, total, mean, mean_free, cross)
            for a in range(s):
                for f in range(q):
                    if design.free[a, f] != 0.0:
                        for h in range(q):
                            whole[f, h] += total * p[a] * design.free[a, f] * design.free[a, h]
            for f in range(q):
                for h in range(q):
                    whole[f, h] -= total * mean_free[f] * mean_free[h]
        for f in range(q):
            for a in range(s):
                gradient[f] += rest[a] * design.free[a, f]
        for m in range(k):
            shown = 0.0
            for a in range(s):
                shown += rest[a] * design.own[a, m]
            for x in range(n):
                gradient[q + columns[x] * k + m] += values[x] * shown
        for x in range(n):
            row = q + columns[x] * k
            for m in range(k):
                for f in range(q):
                    information[row + m, f] += values[x] * cross[m, f]
            for y in range(x + 1):
                column, weight = q + columns[y] * k, values[x] * values[y]
                for m in range(k):
                    for v in range(k):
                        information[row + m, column + v] += weight * spread[m, v]
    for f in range(q):
        for h in range(f + 1):
            information[f, h] = whole[f, h]
    return out


@kernel
def _spread(left, right, p, total, mean_left, mean_right, out):
    """Write the means of features of the states, and their covariance times a weight."""
    s = len(p)
    for m in range(left.shape[1]):
        mean_left[m] = 0.0
        for a in range(s):
            mean_left[m] += p[a] * left[a, m]
    for v in range(right.shape[1]):
        mean_right[v] = 0.0
        for a in range(s):
            mean_right[v] += p[a] * right[a, v]
    for m in range(len(out)):
        for v in range(right.shape[1]):
            out[m, v] = -mean_left[m] * mean_right[v]
    if len(out):
        for a in range(s):
            for m in range(left.shape[1]):
                value = p[a] * left[a, m]
                if value != 0.0:
                    for v in range(right.shape[1]):
                        out[m, v] += value * right[a, v]
    for m in range(len(out)):
        for v in range(right.shape[1]):
            out[m, v] *= total


@kernel
def scores_along(design, theta, directions, out):
    """Write the scores of single rows along directions of the parameters.

    `directions` has one row each; `out` is (configurations, states, directions).
    """
    (n_rows, s), d = design.counts.shape, design.start[-1]
    k, q, size = design.own.shape[1], design.free.shape[1], directions.shape[0]
    columns, values = np.empty(d, np.int64), np.empty(d)
    p, by_state, slope = np.empty(s), np.empty(s), np.empty(k)
    for g in range(n_rows):
        n = _show(design, g, columns, values)
        _predict(design, theta, columns, values, n, p)
        for w in range(size):
            for m in range(k):
                slope[m] = 0.0
            for x in range(n):
                first = q + columns[x] * k
                for m in range(k):
                    slope[m] += values[x] * directions[w, first + m]
            mean = 0.0
            for a in range(s):
                value = 0.0
                for f in range(q):
                    value += design.free[a, f] * directions[w, f]
                for m in range(k):
                    value += design.own[a, m] * slope[m]
                by_state[a] = value
                mean += p[a] * value
            for a in range(s):
                out[g, a, w] = by_state[a] - mean


@kernel
def predict_rows(design, theta, out):
    """Write the probabilities of the states in every configuration."""
    (n_rows, s), d = design.counts.shape, design.start[-1]
    columns, values = np.empty(d, np.int64), np.empty(d)
    p = np.empty(s)
    for g in range(n_rows):
        n = _show(design, g, columns, values)
        _predict(design, theta, columns, values, n, p)
        for a in range(s):
            out[g, a] = p[a]
