"""Pair tables fitted to given margins, by iterative proportional fitting.

Rows and columns are scaled in turn until both margins hold; zeros and odds ratios, which are what
a pair table knows and its margins do not, stay as they are.
"""

from __future__ import annotations

import numpy as np

from edgegraft.kernels.compiler import kernel

_MAX_SWEEPS = 2000  # for counts, whose tables have a solution
_MAX_ROUNDS = 50  # for noisy tables, which may have none
_CLOSE = 1e-13


@kernel
def pair_frequencies(counts, edges, offsets, node_offset, margins, out):
    """Write the frequencies of every pair table, with the margins of its two variables.

    `margins` are the frequencies of the states of every variable. A table that has these margins
    is only divided by its total. One that does not (some cells are missing) is raked; it first
    gets the weight of one row spread by independence, so that a state which is never seen
    together with the other variable can be raked at all.
    """
    for e in range(len(edges)):
        u = margins[node_offset[edges[e, 0]] : node_offset[edges[e, 0] + 1]]
        v = margins[node_offset[edges[e, 1]] : node_offset[edges[e, 1] + 1]]
        shape = (len(u), len(v))
        table = out[offsets[e] : offsets[e + 1]].reshape(shape)
        seen = counts[offsets[e] : offsets[e + 1]].reshape(shape)
        total = seen.sum()
        for a in range(len(u)):
            for b in range(len(v)):
                table[a, b] = seen[a, b] / total if total > 0 else u[a] * v[b]
        if total <= 0 or _apart(table, u, v) <= 1e-12:
            continue
        for a in range(len(u)):
            for b in range(len(v)):
                table[a, b] = (seen[a, b] + u[a] * v[b]) / (total + 1.0)
        for _ in range(_MAX_SWEEPS):
            _scale(table, u, np.inf)
            _scale(table.T, v, np.inf)
            if _apart(table, u, v) <= _CLOSE:
                break


@kernel
def fit_margins(values, states, edges, node_offset, edge_offset):
    """Change the edge tables of `values` in place to have its node vectors as margins.

    If noise has left margins that no table with these zeros has, the little that is missing is
    spread as an outer product (Altschuler, Weed & Rigollet 2017, "Near-linear time approximation
    algorithms for optimal transport via Sinkhorn iteration").
    """
    for k in range(len(edges)):
        i, j = edges[k]
        rows = values[node_offset[i] : node_offset[i + 1]]
        columns = values[node_offset[j] : node_offset[j + 1]]
        table = values[edge_offset[k] : edge_offset[k + 1]].reshape(states[i], states[j])
        for _ in range(_MAX_ROUNDS):
            _scale(table, rows, np.inf)
            _scale(table.T, columns, np.inf)
            if _missing(table, rows) < _CLOSE:
                break
        else:
            _spread(table, rows, columns)


@kernel
def _scale(table, goal, most):
    """Scale rows to their goals, by a factor of at most `most`."""
    for a in range(len(goal)):
        total = table[a].sum()
        factor = min(most, goal[a] / total) if total > 0.0 else 0.0
        for b in range(table.shape[1]):
            table[a, b] *= factor


@kernel
def _apart(table, u, v):
    worst = 0.0
    for a in range(len(u)):
        worst = max(worst, abs(table[a].sum() - u[a]))
    for b in range(len(v)):
        worst = max(worst, abs(table[:, b].sum() - v[b]))
    return worst


@kernel
def _missing(table, goal):
    missing = 0.0
    for a in range(len(goal)):
        missing += abs(goal[a] - table[a].sum())
    return missing


@kernel
def _spread(table, rows, columns):
    _scale(table, rows, 1.0)
    _scale(table.T, columns, 1.0)
    more_rows, more_columns = rows.copy(), columns.copy()
    for a in range(len(rows)):
        for b in range(len(columns)):
            more_rows[a] -= table[a, b]
            more_columns[b] -= table[a, b]
    left = more_rows.sum()
    if left > 0.0:
        for a in range(len(rows)):
            for b in range(len(columns)):
                table[a, b] += max(more_rows[a], 0.0) * max(more_columns[b], 0.0) / left
