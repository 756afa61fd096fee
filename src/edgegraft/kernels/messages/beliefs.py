"""From messages to marginals and the free energy.

    b_i(a)      ∝ B_i(a)
    b_ij(a, b)  ∝ exp(w_ij(a, b) / rho) B_i(a) / M_ji(a) * B_j(b) / M_ij(b)
    log Z       ≈ sum_i log z_i + sum_e rho_e (log z_e - log z_i - log z_j)

with ``z`` the normalisers of the two lines above. Scaling a message changes nothing in it, and at
a fixed point its first derivative in the messages vanishes, so what is left of their error enters
squared. Working with normalised beliefs makes each bracket one small number; a hub would otherwise
lose digits to the difference of large ones.
"""

from __future__ import annotations

import numpy as np

from edgegraft.kernels.compiler import kernel
from edgegraft.kernels.messages.schedules import wide_nodes
from edgegraft.kernels.messages.updates import TINY, linear_belief, log_belief


@kernel
def linear_marginals(wiring, potentials, value, inverse, out):
    """Write node and edge beliefs of plain messages to `out`; return the Bethe log Z."""
    start, links, states, node_offset = (
        wiring.start, wiring.links, wiring.states, wiring.node_offset,
    )  # fmt: skip
    unary, unary_exp, tables = potentials.unary, potentials.unary_exp, potentials.tables
    wide = wide_nodes(wiring, potentials)
    beliefs = out[: node_offset[-1]]
    total = potentials.node_top.sum() + potentials.edge_top.sum()
    for i in range(len(states)):
        at, s = node_offset[i], states[i]
        mine = beliefs[at : at + s]
        scale = linear_belief(start, links, unary, unary_exp, at, value, i, s, wide[i], mine)
        z = mine.sum()
        for a in range(s):
            mine[a] /= z
        total += scale + np.log(z)
    into_first, reverse, edge_offset = wiring.into_first, wiring.reverse, wiring.edge_offset
    left, right = np.empty(states.max()), np.empty(states.max())
    for e in range(len(into_first)):
        k = into_first[e]
        back = reverse[k]
        i, j = links[back, 4], links[k, 4]
        for a in range(states[i]):
            left[a] = beliefs[node_offset[i] + a] * inverse[links[k, 0] + a]
        for b in range(states[j]):
            right[b] = beliefs[node_offset[j] + b] * inverse[links[back, 0] + b]
        z = _outer(tables, links[k, 2], left, right, states[i], states[j], out, edge_offset[e])
        total += np.log(z)
    return total


@kernel
def log_marginals(wiring, potentials, value, out):
    """Write node and edge beliefs of log messages to `out`; return the free energy's log Z."""
    start, links, states, node_offset = (
        wiring.start, wiring.links, wiring.states, wiring.node_offset,
    )  # fmt: skip
    tables, log_tables, weight = potentials.tables, potentials.log_tables, potentials.weight
    rho = weight[wiring.edge]
    beliefs = np.empty(node_offset[-1])
    total = potentials.node_top.sum() + potentials.edge_top.sum()
    for i in range(len(states)):
        at, s = node_offset[i], states[i]
        mine = beliefs[at : at + s]
        log_belief(start, links, potentials.unary, rho, at, value, i, s, mine)
        z = _softmax(mine, out[at : at + s])
        for a in range(s):
            mine[a] -= z
        total += z
    into_first, reverse, edge_offset = wiring.into_first, wiring.reverse, wiring.edge_offset
    left, right = np.empty(states.max()), np.empty(states.max())
    for e in range(len(into_first)):
        k = into_first[e]
        back = reverse[k]
        i, j = links[back, 4], links[k, 4]
        for a in range(states[i]):
            left[a] = beliefs[node_offset[i] + a] - value[links[k, 0] + a]
        for b in range(states[j]):
            right[b] = beliefs[node_offset[j] + b] - value[links[back, 0] + b]
        total += weight[e] * _log_outer(
            tables, log_tables, links[k, 2], left, right, states[i], states[j], out, edge_offset[e]
        )
    return total


@kernel
def _softmax(logs, out):
    top = logs.max()
    z = 0.0
    for a in range(len(logs)):
        out[a] = np.exp(logs[a] - top)
        z += out[a]
    for a in range(len(logs)):
        out[a] /= z
    return top + np.log(z)


@kernel
def _outer(tables, t, left, right, rows, columns, out, at):
    z = 0.0
    for a in range(rows):
        for b in range(columns):
            value = tables[t + a * columns + b] * left[a] * right[b]
            out[at + a * columns + b] = value
            z += value
    scale = 1.0 / z
    for c in range(at, at + rows * columns):
        out[c] *= scale
    return z


@kernel
def _log_outer(tables, log_tables, t, left, right, rows, columns, out, at):
    top = left[:rows].max()
    other = right[:columns].max()
    z = 0.0
    for a in range(rows):
        x = np.exp(left[a] - top)
        for b in range(columns):
            value = tables[t + a * columns + b] * x * np.exp(right[b] - other)
            out[at + a * columns + b] = value
            z += value
    if z > TINY:
        for c in range(at, at + rows * columns):
            out[c] /= z
        return top + other + np.log(z)
    for a in range(rows):
        for b in range(columns):
            c = a * columns + b
            out[at + c] = log_tables[t + c] + left[a] + right[b]
    logs = out[at : at + rows * columns].copy()
    return _softmax(logs, out[at : at + rows * columns])
