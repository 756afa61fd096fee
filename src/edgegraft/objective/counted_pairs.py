"""Sums of residuals of pairs from bit planes, in wide or long tables with sparse graphs.

A target whose neighbours have few joint states needs no residuals: what its conditional expects of
a pair is a count of rows for each joint state (:mod:`edgegraft.kernels.conditionals.joint_masks`).
Sums are in double precision.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.adjacency import neighbours_of
from edgegraft.core.threads import run
from edgegraft.core.types import Floats, Integers, Mask
from edgegraft.counts.pair_counts import PairCounts
from edgegraft.kernels.conditionals.joint_masks import Asked, subtract_expected
from edgegraft.kernels.conditionals.row_conditionals import Neighbours
from edgegraft.objective.bundles import MIN_CELLS
from edgegraft.table.blocks import TableRows
from edgegraft.table.packed import MAX_PLANES, PackedTable

_MAX_JOINT = 64  # states of a target's neighbours together; residuals would not cost more beyond
_MOSTLY = 0.9  # of the targets: the others' residuals cost more one by one than all in bundles
_PIECES = 4  # of work per thread


def counted_targets(block: TableRows, layout: Layout) -> Mask:
    """Return which targets need no residuals: none if there are weights or missing cells."""
    n, states, table = layout.n_variables, layout.states, block.table
    nobody = np.zeros(n, bool)
    if block.weights is not None or table.cells.size < MIN_CELLS:
        return nobody
    if states.max() > MAX_PLANES or table.n_missing.any():
        return nobody
    few = _joint_states(layout) <= _MAX_JOINT
    return few if few.mean() >= _MOSTLY else nobody


def add_counted(
    block: TableRows, theta: Floats, layout: Layout, asked: Layout, counted: Mask, out: Floats
) -> None:
    """Add the sums of the residuals of the `counted` targets for all pairs of `asked`."""
    sizes, n_nodes = np.diff(asked.edge_offset), int(asked.node_offset[-1])
    ends = counted[asked.edges]
    counts = PairCounts(block).pairs(asked.edges)
    out[n_nodes:] += np.repeat(ends.sum(axis=1), sizes) * counts.values
    table, at = block.table, (theta, layout.node_offset)
    neighbours, max_joint = neighbours_of(layout), int(_joint_states(layout)[counted].max())
    for end in (0, 1):
        pairs = _asked(asked, end, np.flatnonzero(ends[:, end]))
        work = partial(_subtract, table, at, neighbours, pairs, max_joint, out)
        pieces = 1 if block.n_jobs == 1 else _PIECES * block.n_jobs
        run(work, np.array_split(np.arange(len(pairs.target)), pieces), block.n_jobs)


def _subtract(
    table: PackedTable,
    at: tuple[Floats, Integers],
    neighbours: Neighbours,
    pairs: Asked,
    max_joint: int,
    out: Floats,
    chosen: Integers,
) -> None:
    subtract_expected(table.planes, table.n_rows, at, neighbours, pairs, chosen, max_joint, out)


def _joint_states(layout: Layout) -> Floats:
    """Return the number of joint states of each variable's neighbours."""
    first, second = layout.edges.T
    size = np.bincount(first, np.log(layout.states[second]), layout.n_variables)
    size += np.bincount(second, np.log(layout.states[first]), layout.n_variables)
    return np.asarray(np.rint(np.exp(np.minimum(size, np.log(2.0 * _MAX_JOINT)))))


def _asked(asked: Layout, end: int, pairs: Integers) -> Asked:
    """Return the pairs by the target at one of their ends."""
    own, other = asked.edges[pairs, end], asked.edges[pairs, 1 - end]
    order = np.argsort(own, kind="stable")
    own, other, pairs = own[order], other[order], pairs[order]
    target, start = np.unique(own, return_index=True)
    wide, ones = asked.states[asked.edges[pairs, 1]], np.ones(len(pairs), np.int64)
    steps = (wide, ones) if end == 0 else (ones, wide)
    return Asked(target, np.append(start, len(own)), other, asked.edge_offset[pairs], *steps)
