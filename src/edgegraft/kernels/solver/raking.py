"""Pair tables fitted to given margins, by iterative proportional fitting.

Rows and columns are scaled in turn until both margins hold; the odds ratios, which are what a
pair table knows and its margins do not, stay as they are.
"""

from __future__ import annotations

from edgegraft.kernels.compiler import kernel

SWEEPS = 2000
CLOSE = 1e-13


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
        _rake(table, u, v)


@kernel
def _apart(table, u, v):
    worst = 0.0
    for a in range(len(u)):
        worst = max(worst, abs(table[a].sum() - u[a]))
    for b in range(len(v)):
        worst = max(worst, abs(table[:, b].sum() - v[b]))
    return worst


@kernel
def _rake(table, u, v):
    for _ in range(SWEEPS):
        for a in range(len(u)):
            total = table[a].sum()
            scale = u[a] / total if total > 0.0 else 0.0
            for b in range(len(v)):
                table[a, b] *= scale
        for b in range(len(v)):
            total = table[:, b].sum()
            scale = v[b] / total if total > 0.0 else 0.0
            for a in range(len(u)):
                table[a, b] *= scale
        if _apart(table, u, v) <= CLOSE:
            break
