"""One conditional on distinct rows: their numbers, likelihood, derivatives and scores of rows.

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

from edgegraft.kernels.compiler import helper, kernel
from edgegraft.kernels.conditionals.row_conditionals import normalise

_FAST = {"contract", "reassoc", "nsz", "arcp"}  # sums may be reordered; nothing is assumed finite
_SPREAD = np.int64(-7046029254386353131)  # 2^64 over the golden ratio (Knuth 6.4)


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
def number_codes(code, table, place, first):
    """Give distinct codes numbers in the order in which they appear; return how many there are.

    `place` is the number of each row's code, `first` the row in which it appears. `table` has a
    cell of -1 for every code, or a power of two of them, more than rows, into which codes are
    spread.
    """
    n, mask, spread = 0, table.size - 1, code.size > 0 and code.max() >= table.size
    for r in range(code.size):
        at = code[r]
        if spread:
            at = (at * _SPREAD >> 20) & mask
            while table[at] >= 0 and code[first[table[at]]] != code[r]:
                at = (at + 1) & mask
        if table[at] < 0:
            table[at] = n
            first[n] = r
            n += 1
        place[r] = table[at]
    return n


@kernel
def add_rows(scores, place, states, rows, out):
    """Add to each row of `out` the scores of its configuration and state.

    `states` are those of all rows; only `rows` are in a configuration, or all if there are none.
    """
    for r in range(place.size):
        row = rows[r] if rows.size else r
        for w in range(out.shape[1]):
            out[row, w] += scores[place[r], states[row], w]


@helper
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


@helper(fastmath=_FAST)
def _predict(design, theta, columns, values, n, p):
    """Write the probabilities of the states, and return the logarithm of their sum of weights."""
    (s, k), q = design.own.shape, design.free.shape[1]
    slope = np.zeros(k)
    for x in range(n):
        first = q + columns[x] * k
        for m in range(k):
            slope[m] += values[x] * theta[first + m]
    for a in range(s):
        logit = 0.0
        for f in range(q):
            logit += design.free[a, f] * theta[f]
        for m in range(k):
            logit += design.own[a, m] * slope[m]
        p[a] = logit
    return normalise(p, s)


@kernel(fastmath=_FAST)
def derive(design, theta, gradient, information):
    """Write gradient and information of the log-likelihood, and return its value.

    Of the information the lower triangle is written; none if it has no cells. Covariances of the
    coordinates are packed, so that what a row adds to a pair of features is one vector.
    """
    bends = information.size > 0
    (n_rows, s), d = design.counts.shape, design.start[-1]
    k, q = design.own.shape[1], design.free.shape[1]
    size = k * (k + 1) // 2
    columns, values = np.empty(d, np.int64), np.empty(d)
    p, rest, mean, mean_free = np.empty(s), np.empty(s), np.empty(k), np.empty(q)
    spread, cross, whole = np.empty(size), np.empty(k * q), np.zeros((q, q))
    some = d if bends else 0
    inner, beside = np.zeros((some * (some + 1) // 2, size)), np.zeros((some, k * q))
    sums = np.zeros((d, k))
    gradient[:] = 0.0
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
        for m in range(k):
            shown = 0.0
            for a in range(s):
                shown += rest[a] * design.own[a, m]
            mean[m] = shown
        for f in range(q):
            for a in range(s):
                gradient[f] += rest[a] * design.free[a, f]
        for x in range(n):
            for m in range(k):
                sums[columns[x], m] += values[x] * mean[m]
        if not bends:
            continue
        spread[:] = 0.0
        cross[:] = 0.0
        mean[:] = 0.0
        mean_free[:] = 0.0
        for a in range(s):
            share = total * p[a]
            for f in range(q):
                if design.free[a, f] != 0.0:
                    mean_free[f] += p[a]
                    whole[f, f] += share
                    for m in range(k):
                        cross[m * q + f] += share * design.own[a, m]
            place = 0
            for m in range(k):
                weight = share * design.own[a, m]
                mean[m] += p[a] * design.own[a, m]
                if weight != 0.0:
                    for v in range(m + 1):
                        spread[place + v] += weight * design.own[a, v]
                place += m + 1
        place = 0
        for m in range(k):
            for v in range(m + 1):
                spread[place + v] -= total * mean[m] * mean[v]
            place += m + 1
            for f in range(q):
                cross[m * q + f] -= total * mean[m] * mean_free[f]
        for f in range(q):
            for h in range(f + 1):
                whole[f, h] -= total * mean_free[f] * mean_free[h]
        for x in range(n):
            column, value = columns[x], values[x]
            add = beside[column]
            for m in range(k * q):
                add[m] += value * cross[m]
            first = column * (column + 1) // 2
            for y in range(x + 1):
                add, weight = inner[first + columns[y]], value * values[y]
                for m in range(size):
                    add[m] += weight * spread[m]
    for x in range(d):
        for m in range(k):
            gradient[q + x * k + m] = sums[x, m]
    if not bends:
        return out
    for f in range(q):
        for h in range(f + 1):
            information[f, h] = whole[f, h]
    for x in range(d):
        row = q + x * k
        for m in range(k):
            for f in range(q):
                information[row + m, f] = beside[x, m * q + f]
        for y in range(x + 1):
            column, packed = q + y * k, inner[x * (x + 1) // 2 + y]
            place = 0
            for m in range(k):
                for v in range(m + 1):
                    information[row + m, column + v] = packed[place + v]
                    information[row + v, column + m] = packed[place + v]
                place += m + 1
    return out


@kernel
def scores_along(design, probabilities, directions, out):
    """Write the scores of single rows along directions of the parameters.

    Probabilities of the states in every configuration are given. `directions` has one row each;
    `out` is (configurations, states, directions).
    """
    (n_rows, n), s = design.codes.shape, design.counts.shape[1]
    k, q, size = design.own.shape[1], design.free.shape[1], directions.shape[0]
    first = np.zeros(n + 1, np.int64)  # of the tables of the neighbours' states
    for j in range(n):
        end = design.at[j + 1] if j + 1 < n else design.phi.size
        width = design.start[j + 1] - design.start[j]
        first[j + 1] = first[j] + ((end - design.at[j]) // width if width else 0)
    tables, base = np.empty((first[n], s)), np.empty(s)
    by_state = np.empty(s)
    for w in range(size):
        for a in range(s):
            base[a] = 0.0
            for f in range(q):
                base[a] += design.free[a, f] * directions[w, f]
        tables[:] = 0.0
        for j in range(n):
            width = design.start[j + 1] - design.start[j]
            for b in range(first[j + 1] - first[j]):
                for u in range(width):
                    value = design.phi[design.at[j] + b * width + u]
                    if value != 0.0:
                        at = q + (design.start[j] + u) * k
                        for a in range(s):
                            for m in range(k):
                                shown = design.own[a, m] * directions[w, at + m]
                                tables[first[j] + b, a] += value * shown
        for g in range(n_rows):
            for a in range(s):
                by_state[a] = base[a]
            for j in range(n):
                if first[j + 1] > first[j]:
                    row = first[j] + design.codes[g, j]
                    for a in range(s):
                        by_state[a] += tables[row, a]
            mean = 0.0
            for a in range(s):
                mean += probabilities[g, a] * by_state[a]
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
