"""What messages are made from and lead to: wiring, potentials, marginals, free energy.

Message ``k`` runs into its owner, the node ``i`` with ``start[i] <= k < start[i + 1]``, from a
neighbour ``j``. The messages into a node lie side by side, so that a node is updated by reading
one stretch of memory. All that is needed to answer message ``k`` (from ``i`` back to ``j``) is in
the row ``links[k]``. Each edge's table is stored twice, once in each direction, rows for the
sender's states: both products then run along rows, which is what vector units want.

The kernels take these tuples apart once per call and hand plain arrays down: reading a field of a
tuple counts references, which measured more than the arithmetic of a small message.

    b_i(a)      ∝ B_i(a)
    b_ij(a, b)  ∝ exp(w_ij(a, b) / rho) B_i(a) / M_ji(a) * B_j(b) / M_ij(b)
    log Z       ≈ sum_i log z_i + sum_e rho_e (log z_e - log z_i - log z_j)

with ``z`` the normalisers of the first two lines. Scaling a message changes nothing in it, and at
a fixed point its first derivative in the messages vanishes, so what is left of their error enters
squared. Working with normalised beliefs makes each bracket one small number; a hub would otherwise
lose digits to the difference of large ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgegraft.kernels.compiler import helper, kernel
from edgegraft.kernels.messages.updates import TINY, WIDE_BELIEF, linear_belief, log_belief

#: Columns of ``links``: first entry of message ``k``, first entry of its answer, first entry of
#: the table of the answer, states of the neighbour, the neighbour.
INCOMING, ANSWER, TABLE, WIDTH, NEIGHBOUR = range(5)


class Wiring(NamedTuple):
    """Integer wiring of the ``2 m`` directed messages of a graph."""

    start: np.ndarray  # (n + 1,) messages into node i
    links: np.ndarray  # (2m, 5) see the columns above
    reverse: np.ndarray  # (2m,) the message the other way
    edge: np.ndarray  # (2m,) edge that message k runs along
    into_first: np.ndarray  # (m,) message into the smaller end of each edge
    states: np.ndarray  # (n,)
    node_offset: np.ndarray  # (n + 1,) first entry of a node vector in theta
    edge_offset: np.ndarray  # (m + 1,) first entry of an edge table in theta
    order: np.ndarray  # (n,) nodes, every subtree of a forest before its root


class MessagePotentials(NamedTuple):
    """What a run needs to know of the parameters, in the order of the wiring."""

    unary: np.ndarray  # node vectors, largest entry 0
    unary_exp: np.ndarray  # their exponentials
    log_tables: np.ndarray  # directed tables w / rho, largest entry 0
    tables: np.ndarray  # their exponentials
    node_top: np.ndarray  # (n,) what was subtracted from the node vectors
    edge_top: np.ndarray  # (m,) what was subtracted from the edge tables
    node_span: np.ndarray  # (n,) largest minus smallest entry of the node vector
    edge_span: np.ndarray  # (m,) the same of the table w / rho
    weight: np.ndarray  # (m,) edge appearance probability rho; 1 in plain belief propagation


@kernel
def fill_potentials(theta, old_theta, refill, wiring, potentials, dirty):
    """Refresh the potentials of the nodes and edges whose `theta` differs from `old_theta`.

    Nodes whose outgoing messages are no longer up to date are set in `dirty`; an entry that was
    not known before is nan in `old_theta`. With `refill`, potentials that did not change are
    written as well.
    """
    for i in range(len(wiring.states)):
        first, last = wiring.node_offset[i], wiring.node_offset[i + 1]
        changed = _differ(theta, old_theta, first, last)
        dirty[i] |= changed
        if changed or refill:
            top = theta[first:last].max()
            potentials.node_top[i] = top
            potentials.node_span[i] = top - theta[first:last].min()
            for a in range(first, last):
                potentials.unary[a] = theta[a] - top
                potentials.unary_exp[a] = np.exp(theta[a] - top)
    for e in range(len(wiring.into_first)):
        first, last = wiring.edge_offset[e], wiring.edge_offset[e + 1]
        changed = _differ(theta, old_theta, first, last)
        if changed:
            k = wiring.into_first[e]
            dirty[wiring.links[k, NEIGHBOUR]] = True
            dirty[wiring.links[wiring.reverse[k], NEIGHBOUR]] = True
        if changed or refill:
            _fill_edge(theta[first:last], wiring, potentials, e)


@helper
def _differ(left, right, first, last):
    for a in range(first, last):
        if left[a] != right[a]:
            return True
    return False


@helper
def _fill_edge(table, wiring, potentials, e):
    k = wiring.into_first[e]
    back = wiring.reverse[k]
    columns, rows = wiring.links[k, WIDTH], wiring.links[back, WIDTH]
    forward, backward = wiring.links[k, TABLE], wiring.links[back, TABLE]
    top = table.max()
    rho = potentials.weight[e]
    log_tables, tables = potentials.log_tables, potentials.tables
    potentials.edge_top[e] = top
    potentials.edge_span[e] = (top - table.min()) / rho
    for a in range(rows):
        for b in range(columns):
            log = (table[a * columns + b] - top) / rho
            value = np.exp(log)
            log_tables[forward + a * columns + b] = log
            log_tables[backward + b * rows + a] = log
            tables[forward + a * columns + b] = value
            tables[backward + b * rows + a] = value


@helper
def wide_nodes(wiring, potentials):
    """Return which nodes' beliefs may span too much for plain products, or be too small for them.

    The entries of a message sum to one: every one of a hub's makes the product smaller.
    """
    span = potentials.node_span.copy()
    edge, edge_span = wiring.edge, potentials.edge_span
    for i in range(len(span)):
        for k in range(wiring.start[i], wiring.start[i + 1]):
            span[i] += edge_span[edge[k]] + np.log(wiring.states[i])
    return span > WIDE_BELIEF


@kernel
def write_marginals(wiring, potentials, value, inverse, plain, out):
    """Write node and edge beliefs to `out`; return the free energy's log Z.

    Messages are `plain`, with their reciprocals, or logarithms.
    """
    start, links = wiring.start, wiring.links
    states, node_offset = wiring.states, wiring.node_offset
    unary, unary_exp = potentials.unary, potentials.unary_exp
    tables, log_tables, weight = potentials.tables, potentials.log_tables, potentials.weight
    rho, wide = weight[wiring.edge], wide_nodes(wiring, potentials)
    beliefs = out[: node_offset[-1]] if plain else np.empty(node_offset[-1])
    total = potentials.node_top.sum() + potentials.edge_top.sum()
    for i in range(len(states)):
        at, s = node_offset[i], states[i]
        mine = beliefs[at : at + s]
        if plain:
            scale = linear_belief(start, links, unary, unary_exp, at, value, i, s, wide[i], mine)
            z = mine.sum()
            for a in range(s):
                mine[a] /= z
            total += scale + np.log(z)
        else:
            log_belief(start, links, unary, rho, at, value, i, s, mine)
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
        to, t, m, n = edge_offset[e], links[k, 2], links[k, 0], links[back, 0]
        for a in range(states[i]):
            own = beliefs[node_offset[i] + a]
            left[a] = own * inverse[m + a] if plain else own - value[m + a]
        for b in range(states[j]):
            own = beliefs[node_offset[j] + b]
            right[b] = own * inverse[n + b] if plain else own - value[n + b]
        if plain:
            total += np.log(_outer(tables, t, left, right, states[i], states[j], out, to))
        else:
            total += weight[e] * _log_outer(
                tables, log_tables, t, left, right, states[i], states[j], out, to
            )
    return total


@helper
def _softmax(logs, out):
    top = logs.max()
    z = 0.0
    for a in range(len(logs)):
        out[a] = np.exp(logs[a] - top)
        z += out[a]
    for a in range(len(logs)):
        out[a] /= z
    return top + np.log(z)


@helper
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


@helper
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
