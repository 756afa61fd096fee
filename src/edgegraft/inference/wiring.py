"""The graph as message passing sees it: wiring, and where pairs of another graph are in it."""

from __future__ import annotations

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.pairs import pair_ids
from edgegraft.core.types import Integers
from edgegraft.kernels.messages.wiring import Wiring, leaves_first


def wire(layout: Layout) -> Wiring:
    """Return the wiring of the two messages of every edge of `layout`.

    Examples
    --------
    >>> wiring = wire(Layout([2, 3, 2], [(0, 1), (1, 2)]))
    >>> wiring.start
    array([0, 1, 3, 4])
    >>> wiring.reverse
    array([1, 0, 3, 2])
    """
    m, n, states = layout.n_edges, layout.n_variables, layout.states
    first, second = layout.edges[:, 0], layout.edges[:, 1]
    owner, source = np.concatenate((first, second)), np.concatenate((second, first))
    sorted_messages = np.lexsort((source, owner))
    place = np.empty(2 * m, np.int64)
    place[sorted_messages] = np.arange(2 * m)
    reverse = np.concatenate((place[m:], place[:m]))[sorted_messages]
    owner, source = owner[sorted_messages], source[sorted_messages]
    start = np.searchsorted(owner, np.arange(n + 1)).astype(np.int64)
    offset = _starts(states[owner])
    links = np.empty((2 * m, 5), np.int64)
    links[:, 0] = offset
    links[:, 1] = offset[reverse]
    links[:, 2] = _starts(states[owner] * states[source])
    links[:, 3] = states[source]
    links[:, 4] = source
    return Wiring(
        start=start,
        links=links,
        reverse=reverse,
        edge=np.tile(np.arange(m), 2)[sorted_messages],
        into_first=place[:m].copy(),
        states=states,
        node_offset=layout.node_offset,
        edge_offset=layout.edge_offset,
        order=leaves_first(start, links),
    )


def common_pairs(layout: Layout, pairs: Integers) -> tuple[Integers, Integers]:
    """Return which of `pairs` (smaller index first) are edges of `layout`, and which edges.

    Examples
    --------
    >>> layout = Layout([2, 2, 2], [(1, 2), (0, 1)])
    >>> common_pairs(layout, np.array([(0, 2), (0, 1)]))
    (array([1]), array([1]))
    """
    n = layout.n_variables
    keys = pair_ids(layout.edges, n)
    wanted = pair_ids(pairs, n)
    order = np.argsort(keys)
    at = np.searchsorted(keys, wanted, sorter=order)
    at[at == len(keys)] = 0
    found = keys[order[at]] == wanted if len(keys) else np.zeros(len(wanted), np.bool_)
    here = np.flatnonzero(found)
    return here, order[at[here]] if len(keys) else here


def _starts(sizes: Integers) -> Integers:
    return np.cumsum(sizes) - sizes
