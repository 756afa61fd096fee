"""The wiring of a bucket tree, and the ways of parameters in and of marginals out.

Both sweeps of inference (see `junction`) visit buckets in sequence, while parameters lie in the
order of variables and edges. They are copied once into the order of the buckets, with their
exponentials, and marginals are copied back once.
"""

from typing import NamedTuple

import numpy as np

from edgegraft.kernels.compiler import kernel


class JunctionTree(NamedTuple):
    """Buckets in a depth-first elimination order; scopes list buckets, the latest first.

    Potentials and marginals are kept in the order of the buckets (*blocks*: a bucket's node
    vector, then the tables of the edges that end in it, the own state running fastest), so that
    both sweeps read and write memory in sequence; `theta` is touched once on either side.
    """

    variable: np.ndarray  # (n,) the variable of a bucket
    states: np.ndarray  # (n,)
    scope_start: np.ndarray  # (n + 1,)
    scope: np.ndarray  # N_k; its last entry is the parent of k
    message_start: np.ndarray  # (n + 1,) cells of the messages
    child_start: np.ndarray  # (n + 1,)
    child: np.ndarray
    local_start: np.ndarray  # (n + 1,) edges that end in a bucket
    other: np.ndarray  # (m,) the later bucket of an edge, ordered like a scope
    node_block: np.ndarray  # (n + 1,) where a bucket's blocks start
    edge_block: np.ndarray  # (m,) where an edge's block starts
    unary: np.ndarray  # (n,) where the node vector starts in theta
    table: np.ndarray  # (m,) where an edge's table starts in theta
    own_stride: np.ndarray  # (m,) of that table, along the bucket's own states
    other_stride: np.ndarray  # (m,)
    largest: np.ndarray  # (3,) cells of a clique, cells of a product of locals, axes of a clique


class BucketPotentials(NamedTuple):
    """Log-potentials in blocks, and the same scaled to a largest entry of one, block by block."""

    logs: np.ndarray
    weight: np.ndarray  # exp(logs - peak of the block)
    peak: np.ndarray  # (n,) sum of the peaks of a bucket's blocks
    range: np.ndarray  # (n,) sum of the logarithms of their ratios of largest to smallest


@kernel
def gather_potentials(tree, theta):
    """Return the potentials of `theta` in blocks, scaled."""
    n = tree.variable.shape[0]
    out = BucketPotentials(np.empty_like(theta), np.empty_like(theta), np.empty(n), np.empty(n))
    _gather(tree, theta, out.logs)
    for k in range(n):
        at = tree.node_block[k]
        end = at + tree.states[k]
        out.peak[k], out.range[k] = _scale(out.logs[at:end], out.weight[at:end])
        for e in range(tree.local_start[k], tree.local_start[k + 1]):
            at = tree.edge_block[e]
            end = at + tree.states[k] * tree.states[tree.other[e]]
            peak, ratio = _scale(out.logs[at:end], out.weight[at:end])
            out.peak[k] += peak
            out.range[k] += ratio
    return out


@kernel
def _gather(tree, theta, blocks):
    # Copies alone: with nothing between them, many reads from afar are under way at once.
    for k in range(tree.variable.shape[0]):
        s = tree.states[k]
        for a in range(s):
            blocks[tree.node_block[k] + a] = theta[tree.unary[k] + a]
        for e in range(tree.local_start[k], tree.local_start[k + 1]):
            for b in range(tree.states[tree.other[e]]):
                source = tree.table[e] + b * tree.other_stride[e]
                for a in range(s):
                    blocks[tree.edge_block[e] + b * s + a] = theta[source + a * tree.own_stride[e]]


@kernel
def scatter_marginals(tree, blocks, out):
    """Write marginals in blocks where the parameters of the same tables lie."""
    for k in range(tree.variable.shape[0]):
        s = tree.states[k]
        for a in range(s):
            out[tree.unary[k] + a] = blocks[tree.node_block[k] + a]
        for e in range(tree.local_start[k], tree.local_start[k + 1]):
            for b in range(tree.states[tree.other[e]]):
                target = tree.table[e] + b * tree.other_stride[e]
                for a in range(s):
                    out[target + a * tree.own_stride[e]] = blocks[tree.edge_block[e] + b * s + a]


@kernel
def _scale(logs, weight):
    peak = -np.inf
    least = np.inf
    for value in logs:
        peak = max(peak, value)
        if value > -np.inf:
            least = min(least, value)
    for t in range(logs.shape[0]):
        weight[t] = np.exp(logs[t] - peak) if peak > -np.inf else 0.0
    return peak, max(peak - least, 0.0)
