"""Edge tables that agree with the node vectors beside them.

Iterative proportional fitting scales rows and columns in turn until both sums are right. It keeps
zeros and odds ratios, that is all that a table says about the dependence of its pair. Where noise
has left margins that no table with these zeros has, the little that is missing is spread as an
outer product (Altschuler, Weed & Rigollet 2017, "Near-linear time approximation algorithms for
optimal transport via Sinkhorn iteration").
"""

from __future__ import annotations

import numpy as np

from edgegraft.kernels.compiler import kernel

_MOST_ROUNDS = 50
_CLOSE = 1e-13


@kernel
def fit_margins(values, states, edges, node_offset, edge_offset):
    """Change the edge tables of `values` in place to have its node vectors as margins."""
    for k in range(len(edges)):
        i, j = edges[k]
        rows = values[node_offset[i] : node_offset[i + 1]]
        columns = values[node_offset[j] : node_offset[j + 1]]
        table = values[edge_offset[k] : edge_offset[k + 1]].reshape(states[i], states[j])
        for _ in range(_MOST_ROUNDS):
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
