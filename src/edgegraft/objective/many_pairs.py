"""Two quicker ways to the sums of residuals of many pairs at one point.

All pairs from one matrix product: a pass over a few pairs reads only their columns. If most pairs
of a table are tested at the same parameters, as at the end of a search, the products of all one-hot
columns with all residuals cost less: one multiply-add per row and pair of states, at the speed of a
matrix product.

Pairs from bit planes, in wide or long tables with sparse graphs: a target whose neighbours have few
joint states needs no residuals. What its conditional expects of a pair is a count of rows for each
joint state (:mod:`edgegraft.kernels.conditionals.counted`). Sums are in double precision.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.adjacency import neighbours_of
from edgegraft.core.threads import one_blas_thread, run, run_in_order
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.counts.pair_counts import PairCounts
from edgegraft.kernels.compiler import for_size
from edgegraft.kernels.conditionals.counted import Asked, subtract_expected
from edgegraft.kernels.conditionals.lookup import Places, gather_tables
from edgegraft.kernels.conditionals.pseudolikelihood import Columns, Kept
from edgegraft.objective.bundles import MIN_CELLS, joint_sizes
from edgegraft.table.blocks import TableRows
from edgegraft.table.packed import MAX_PLANES

MAX_CELLS = 1 << 24  # of the matrix of products: 128 MiB
_ROWS = 4096  # per product; products are added in double precision
_MULTIPLY, _WRITE = 0.03, 0.6  # nanoseconds per row: a multiply-add in single precision, a cell


def price(columns: Columns) -> float:
    """Return the estimated nanoseconds per row of all products; infinity if they are too many.

    In the measure of :func:`~edgegraft.objective.bundles.estimate`.
    """
    n_columns = float((columns.states - 1).sum())
    if n_columns**2 > MAX_CELLS:
        return float("inf")
    double = columns.weights.dtype.itemsize / 4
    return double * (_MULTIPLY * n_columns**2 + _WRITE * n_columns)


class AllPairs:
    """Sums of the residuals of every variable over the states of every other.

    `kept` has the residuals of the targets, those of as many alternatives together.
    """

    def __init__(self, columns: Columns, kept: list[tuple[Integers, Kept]], n_jobs: int) -> None:
        states = columns.states
        gaps = columns.radix > states
        sizes = states - 1 + gaps
        target = np.empty(len(states), np.int64)
        first = 0
        for targets, _ in kept:
            used = _used(states, targets)
            target[targets] = first + used * np.arange(len(targets))
            first += used * len(targets)
        self._places = Places(states, np.cumsum(sizes) - sizes, gaps, target)
        self._sums = np.zeros((int(sizes.sum()) + 1, first))
        owner = np.repeat(np.arange(len(states)), sizes)
        state = np.arange(len(owner)) - np.repeat(self._places.source, sizes) + 1
        state[state == states[owner]] = 0  # the row of a variable with missing cells
        sources = owner, state.astype(columns.codes.dtype)
        starts = range(0, columns.codes.shape[1], _ROWS)
        with one_blas_thread():  # the threads are ours
            for part in run_in_order(partial(_product, columns, kept, sources), starts, n_jobs):
                self._sums += part

    def tables(self, edges: Edges, offsets: Integers, scale: float) -> Floats:
        """Return `scale` times the sums of both ends of each pair, table after table."""
        out = np.empty(int(offsets[-1]))
        gather = for_size(gather_tables, len(out), 1000)
        gather(self._sums, self._places, edges, offsets, scale, out)
        return out


def _product(
    columns: Columns,
    kept: list[tuple[Integers, Kept]],
    sources: tuple[Integers, Integers],
    first: int,
) -> Floats:
    """Return the products of a block of rows."""
    owner, state = sources
    n_rows = columns.codes.shape[1]
    rows = slice(first, min(first + _ROWS, n_rows))
    codes = columns.codes[:, rows]
    shown = np.ones((len(owner) + 1, codes.shape[1]), columns.weights.dtype)
    np.equal(codes[owner], state[:, None], out=shown[:-1], casting="unsafe")
    residuals = []
    for targets, (values, _, _) in kept:
        used = _used(columns.states, targets)
        wide = values.reshape(len(targets), n_rows, -1)[:, rows, :used]
        residuals.append(wide.transpose(0, 2, 1).reshape(-1, codes.shape[1]))
    return np.asarray(shown @ np.concatenate(residuals).T)


def _used(states: Integers, targets: Integers) -> int:
    """Return the most alternatives that one of the targets has."""
    return max(1, int(states[targets].max()) - 1)


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
    few = np.rint(np.exp(np.minimum(joint_sizes(layout, states), 99.0))) <= _MAX_JOINT
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
    rows, neighbours = (table.planes, table.n_rows), neighbours_of(layout)
    for end in (0, 1):
        pairs = _asked(asked, end, np.flatnonzero(ends[:, end]))
        work = partial(subtract_expected, *rows, at, neighbours, pairs, _MAX_JOINT, out)
        pieces = 1 if block.n_jobs == 1 else _PIECES * block.n_jobs
        run(work, np.array_split(np.arange(len(pairs.target)), pieces), block.n_jobs)


def _asked(asked: Layout, end: int, pairs: Integers) -> Asked:
    """Return the pairs by the target at one of their ends."""
    own, other = asked.edges[pairs, end], asked.edges[pairs, 1 - end]
    order = np.argsort(own, kind="stable")
    own, other, pairs = own[order], other[order], pairs[order]
    target, start = np.unique(own, return_index=True)
    wide, ones = asked.states[asked.edges[pairs, 1]], np.ones(len(pairs), np.int64)
    steps = (wide, ones) if end == 0 else (ones, wide)
    return Asked(target, np.append(start, len(own)), other, asked.edge_offset[pairs], *steps)
