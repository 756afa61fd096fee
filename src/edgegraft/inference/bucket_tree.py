"""From an elimination order to the wiring of a bucket tree.

Everything that depends on the graph alone is worked out once here, as flat arrays; each new
parameter vector then only runs the kernels.
"""

from __future__ import annotations

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.types import Integers
from edgegraft.inference.elimination import Elimination
from edgegraft.kernels.elimination.buckets import JunctionTree
from edgegraft.kernels.elimination.traversal import depth_first


def build_tree(layout: Layout, found: Elimination) -> JunctionTree:
    """Return the bucket tree of a complete elimination order."""
    n = layout.n_variables
    before = found.parents(n)
    # Children right before their parents: any order with children first has the same cliques, and
    # this one uses a message soon after it was written, while it is still in cache.
    by_rank = depth_first(np.where(before == n, -1, before))
    rank = np.empty(n + 1, np.int64)  # the new place of each bucket
    rank[by_rank], rank[n] = np.arange(n), n
    variable, parent = found.order[by_rank], rank[before[by_rank]]
    position = np.empty(n, np.int64)
    position[variable] = np.arange(n)
    states = layout.states[variable]

    owner = rank[np.repeat(np.arange(n), np.diff(found.scope_start))]
    scope = position[found.scope]
    falling = np.argsort(owner * n - scope)  # by owner, and within each by falling position
    owner, scope = owner[falling], scope[falling]
    message_cells = _products(n, owner, states[scope])

    ends = position[layout.edges]
    first, other = ends.min(axis=1, initial=n), ends.max(axis=1, initial=-1)
    by_bucket = np.argsort(first * n - other)
    first, other = first[by_bucket], other[by_bucket]
    i, j = layout.edges[by_bucket].T
    own_is_row = position[i] == first
    node_block, edge_block = _blocks(states, first, states[first] * states[other])
    local_cells = _products(n, first, states[other]) * states
    axes = np.bincount(owner, minlength=n) + 1
    largest = [x.max(initial=0) for x in (message_cells * states, local_cells, axes)]
    return JunctionTree(
        variable=variable,
        states=states,
        scope_start=_starts(axes - 1),
        scope=scope,
        message_start=_starts(message_cells),
        child_start=_starts(np.bincount(parent, minlength=n + 1)[:n]),
        child=np.argsort(parent, kind="stable")[: int((parent < n).sum())],
        local_start=_starts(np.bincount(first, minlength=n)),
        other=other,
        node_block=node_block,
        edge_block=edge_block,
        unary=layout.node_offset[variable],
        table=layout.edge_offset[:-1][by_bucket],
        own_stride=np.where(own_is_row, layout.states[j], 1),
        other_stride=np.where(own_is_row, 1, layout.states[j]),
        largest=np.array(largest, np.int64),
    )


def _blocks(states: Integers, first: Integers, cells: Integers) -> tuple[Integers, Integers]:
    """Return where the blocks of each bucket and of each edge start; edges are by bucket."""
    total = np.zeros(len(states), np.int64)
    np.add.at(total, first, cells)
    node_block = _starts(states + total)
    before = _starts(cells)[:-1]  # cells of all earlier edges
    return node_block, before + _starts(states)[first + 1]


def _products(n: int, owner: Integers, values: Integers) -> Integers:
    product = np.ones(n, np.int64)
    np.multiply.at(product, owner, values)
    return product


def _starts(lengths: Integers) -> Integers:
    start = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=start[1:])
    return start
