"""Which message goes where: the arrays that every message-passing kernel reads.

Message ``k`` runs into its owner, the node ``i`` with ``start[i] <= k < start[i + 1]``, from a
neighbour ``j``. The messages into a node lie side by side, so that a node is updated by reading
one stretch of memory. All that is needed to answer message ``k`` (from ``i`` back to ``j``) is in
the row ``links[k]``. Each edge's table is stored twice, once in each direction, rows for the
sender's states: both products then run along rows, which is what vector units want.

The kernels take these tuples apart once per call and hand plain arrays down: reading a field of a
tuple counts references, which measured more than the arithmetic of a small message.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgegraft.kernels.compiler import kernel

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


@kernel
def _differ(left, right, first, last):
    for a in range(first, last):
        if left[a] != right[a]:
            return True
    return False


@kernel
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
