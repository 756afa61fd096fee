"""Edge tables from weights of features, and gradients back: ``Phi_i W Phi_j'``, ``Phi_i' G Phi_j``.

A variable's features lie in `phi`, states by features, row by row; one without (its part of `phi`
is empty) has its states as features, and nothing is multiplied.
"""

import numpy as np

from edgegraft.kernels.compiler import kernel


@kernel
def expand_tables(weights, offsets, edges, states, start, phi, table_offsets, out):
    """Write the table of every edge, from its weights."""
    for e in range(edges.shape[0]):
        i, j = edges[e, 0], edges[e, 1]
        tall = _matrix(phi, start, i, states[i])
        wide = _matrix(phi, start, j, states[j])
        high = tall.shape[1] if tall.size else states[i]
        across = wide.shape[1] if wide.size else states[j]
        given = weights[offsets[e] : offsets[e + 1]].reshape(high, across)
        half = np.dot(tall, given) if tall.size else given
        table = np.dot(half, wide.T) if wide.size else half
        out[table_offsets[e] : table_offsets[e + 1]] = table.ravel()


@kernel
def fold_tables(values, offsets, edges, states, start, phi, weight_offsets, out):
    """Write the gradient with respect to the weights of every pair, from that of its table."""
    for e in range(edges.shape[0]):
        i, j = edges[e, 0], edges[e, 1]
        tall = _matrix(phi, start, i, states[i])
        wide = _matrix(phi, start, j, states[j])
        given = values[offsets[e] : offsets[e + 1]].reshape(states[i], states[j])
        half = np.dot(tall.T, given) if tall.size else given
        folded = np.dot(half, wide) if wide.size else half
        out[weight_offsets[e] : weight_offsets[e + 1]] = folded.ravel()


@kernel
def _matrix(phi, start, i, n_states):
    flat = phi[start[i] : start[i + 1]]
    return flat.reshape(n_states, flat.shape[0] // n_states)
