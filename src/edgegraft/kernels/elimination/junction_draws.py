"""Assignments from a bucket tree: the most probable one, and exact independent samples.

Both walk down from the roots and choose ``x_k`` given ``N_k``, which is already chosen: by
``argmax f_k`` with maxima for messages, or by a draw from ``p(x_k | N_k)``.
"""

import numpy as np

from edgegraft.kernels.compiler import helper, kernel

from .buckets import new_walk
from .junction import condition_rows, fill_clique, is_safe


@kernel
def trace_back(tree, logs, messages, assignment):
    """Write the maximising assignment, by variable; a cell of each child's message suffices."""
    n = tree.variable.shape[0]
    chosen = np.empty(n, np.int64)
    scores = np.empty(tree.states.max() if n > 0 else 0)
    for k in range(n - 1, -1, -1):
        s = tree.states[k]
        scores[:s] = logs[tree.node_block[k] : tree.node_block[k] + s]
        for e in range(tree.local_start[k], tree.local_start[k + 1]):
            at = tree.edge_block[e] + chosen[tree.other[e]] * s
            for a in range(s):
                scores[a] += logs[at + a]
        for x in range(tree.child_start[k], tree.child_start[k + 1]):
            c = tree.child[x]
            row = 0
            for y in range(tree.scope_start[c], tree.scope_start[c + 1] - 1):
                row = row * tree.states[tree.scope[y]] + chosen[tree.scope[y]]
            at = tree.message_start[c] + row * s
            for a in range(s):
                scores[a] += messages.values[at + a]
        chosen[k] = np.argmax(scores[:s])
        assignment[tree.variable[k]] = chosen[k]


@kernel
def draw(tree, potentials, messages, uniform, out):
    """Write one sample per column to `out`, row ``v`` for variable ``v``, from uniforms by bucket.

    The states of a variable are written for all samples at once, while its conditional table is
    at hand.
    """
    n, n_samples = uniform.shape
    walk = new_walk(tree.largest[2])
    clique = np.empty(tree.largest[0])
    local = np.empty(tree.largest[1])
    row = np.empty(n_samples, np.int64)
    for k in range(n - 1, -1, -1):
        s = tree.states[k]
        in_logs = not is_safe(k, tree, potentials, messages)
        cells = fill_clique(k, tree, potentials, messages, in_logs, walk, local, clique)
        condition_rows(clique, s, cells // s, in_logs)
        row[:] = 0
        for y in range(tree.scope_start[k], tree.scope_start[k + 1]):
            j = tree.scope[y]
            given = out[tree.variable[j]]
            for r in range(n_samples):
                row[r] = row[r] * tree.states[j] + given[r]
        mine = out[tree.variable[k]]
        for r in range(n_samples):
            mine[r] = _pick(clique[row[r] * s : row[r] * s + s], uniform[k, r])


@helper
def _pick(probabilities, u):
    """Return the state in whose share of [0, 1) `u` lies; never one of probability zero."""
    last = 0
    for a in range(probabilities.shape[0]):
        if probabilities[a] > 0.0:
            last = a
            u -= probabilities[a]
            if u < 0.0:
                break
    return last
