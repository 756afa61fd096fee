"""The zero-sum gauge of edge tables, and their strengths in it.

    w'(a, b) = w(a, b) - mean_b w(a, .) - mean_a w(., b) + mean w

What is taken from a table goes to its two node vectors, so the distribution stays the same.
"""

import numpy as np

from edgegraft.kernels.compiler import kernel


@kernel
def to_zero_sum(theta, states, edges, node_offset, edge_offset):
    """Change `theta` in place so that every row and column of every edge table sums to zero.

    Returns the constant that the change took out of the log-potentials. Tables with an entry
    of minus infinity have no such gauge and stay as they are.
    """
    constant = 0.0
    for k in range(edges.shape[0]):
        i = edges[k, 0]
        j = edges[k, 1]
        rows = states[i]
        columns = states[j]
        table = theta[edge_offset[k] : edge_offset[k + 1]].reshape(rows, columns)
        if not np.isfinite(table).all():
            continue
        grand = table.mean()
        by_row = np.empty(rows)
        for a in range(rows):
            by_row[a] = table[a].mean()
        for b in range(columns):
            mean = table[:, b].mean()
            theta[node_offset[j] + b] += mean - grand
            for a in range(rows):
                table[a, b] -= by_row[a] + mean - grand
        for a in range(rows):
            theta[node_offset[i] + a] += by_row[a] - grand
        constant += grand
    for i in range(states.shape[0]):
        own = theta[node_offset[i] : node_offset[i + 1]]
        if np.isfinite(own).all():
            mean = own.mean()
            own -= mean
            constant += mean
    return constant


@kernel
def strengths(theta, states, edges, node_offset, edge_offset, counted, out):
    """Write the Frobenius norm of each edge table in the zero-sum gauge to `out`.

    `counted` holds for every state of every variable, laid out by `node_offset`, whether its rows
    and columns are part of the norm; the gauge is that of the whole table. A table with an entry
    of minus infinity has infinite strength.
    """
    for k in range(edges.shape[0]):
        i = edges[k, 0]
        j = edges[k, 1]
        rows = states[i]
        columns = states[j]
        table = theta[edge_offset[k] : edge_offset[k + 1]].reshape(rows, columns)
        if not np.isfinite(table).all():
            out[k] = np.inf
            continue
        grand = table.mean()
        by_row = np.empty(rows)
        for a in range(rows):
            by_row[a] = table[a].mean() - grand
        total = 0.0
        for b in range(columns):
            if not counted[node_offset[j] + b]:
                continue
            mean = table[:, b].mean()
            for a in range(rows):
                if counted[node_offset[i] + a]:
                    total += (table[a, b] - by_row[a] - mean) ** 2
        out[k] = np.sqrt(total)
