"""Losses of the conditionals and sums of their residuals, over the rows of a block.

The rows are read by the kernels of :mod:`edgegraft.kernels.conditionals.pseudolikelihood`; here a
block's columns are laid out for them, bundles are distributed over threads, and the results are
put where the parameters lie. Sums of residuals of many pairs at one point have two quicker ways.

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
from typing import Any, NamedTuple

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.adjacency import neighbours_of
from edgegraft.core.threads import one_blas_thread, run, run_in_order
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.counts.pair_counts import PairCounts, weigh_states
from edgegraft.device.pseudolikelihood import evaluate_on_device
from edgegraft.kernels.conditionals.counted import Asked, subtract_expected, work_counted
from edgegraft.kernels.conditionals.lookup import Places, exchange, gather_tables
from edgegraft.kernels.conditionals.pseudolikelihood import (
    Columns,
    Kept,
    Results,
    scratch_for,
    work_bundles,
)
from edgegraft.objective.bundles import MIN_CELLS, BundleSources, joint_sizes, route
from edgegraft.table.blocks import TableRows
from edgegraft.table.packed import MAX_PLANES

_PIECES = 4  # pieces of work per thread, so that the last to finish is not waited for long


class Job(NamedTuple):
    """Residuals of one set of bundles, and the sources that they are summed for."""

    forward: BundleSources  # whose tables make the logits
    scatter: BundleSources  # whose sources get sums; the same bundles
    chosen: Integers  # the bundles to work on
    kept: Kept


def columns_of(block: TableRows, dtype: type[np.floating]) -> Columns:
    """Return the rows of a block as the kernels read them; nothing is copied but the weights."""
    return block.derive(("columns", dtype), partial(_lay_out, dtype=dtype))


def _lay_out(block: TableRows, dtype: type[np.floating]) -> Columns:
    table, states = block.table, block.table.schema.n_states
    weights = np.zeros(table.cells.shape[1], dtype)
    weights[: table.n_rows] = 1.0 if block.weights is None else block.weights
    plain = np.array([bool(np.isin(weights, (0, 1)).all())])
    weights.flags.writeable = False  # kernels are compiled for read-only arrays
    return Columns(table.cells, weights, np.array(states), states + (table.n_missing > 0), plain)


def margins_of(block: TableRows, dtype: type[np.floating]) -> Floats:
    """Return the weight of a block's rows in each state of each variable."""
    columns = columns_of(block, dtype)
    return weigh_states(columns.codes, columns.weights, columns.states)


def evaluate_block(
    block: TableRows,
    theta: Floats,
    layout: Layout,
    dtype: type[np.floating],
    scale: float,
    sources: tuple[BundleSources, ...] | None = None,
) -> Floats:
    """Return the summed losses of each variable, then `scale` times the sums of residuals.

    `sources` are those of :func:`~edgegraft.objective.bundles.route`, if known.
    """
    if block.device is not None and sources is None:
        return evaluate_on_device(block, theta, layout, dtype, scale)
    columns = columns_of(block, dtype)
    jobs = [
        Job(each, each, np.arange(each.n_bundles), nothing_kept(each.n_bundles, dtype))
        for each in sources or route(layout, columns)
    ]
    out = np.zeros(layout.n_variables + layout.n_parameters)
    losses, gradient = out[: layout.n_variables], out[layout.n_variables :]
    results = do_jobs(columns, layout, theta, jobs, block.n_jobs)
    for job, result in zip(jobs, results, strict=True):
        gradient_of(job, result, layout, scale, gradient)
        losses += result.losses
    return out


def nothing_kept(n_bundles: int, precision: Any) -> Kept:
    """Return `Kept` for residuals that are not kept."""
    return Kept(np.empty(0, precision), np.full(n_bundles, -1), np.zeros(n_bundles, bool))


def do_jobs(
    columns: Columns, layout: Layout, theta: Floats, jobs: list[Job], n_jobs: int
) -> list[Results]:
    """Process all bundles of all jobs on `n_jobs` threads.

    One thread processes a bundle and writes its part of the results, so these do not depend on the
    number of threads.
    """
    results, tasks = [], []
    for job in jobs:
        sums = np.zeros(int(job.scatter.groups.table[-1]))
        nodes = np.zeros((job.scatter.n_bundles, int(job.scatter.widths.max(initial=1))))
        results.append(Results(sums, nodes, np.zeros(len(columns.states))))
        task = partial(_work, columns, _inputs(layout, theta, job.forward), job, results[-1])
        n_pieces = 1 if n_jobs == 1 else min(len(job.chosen), _PIECES * n_jobs)
        # Every n-th bundle: neighbours in order often take equally long.
        tasks += [(task, np.ascontiguousarray(job.chosen[k::n_pieces])) for k in range(n_pieces)]
    run(lambda item: item[0](item[1]), tasks, n_jobs)
    return results


def gradient_of(job: Job, result: Results, layout: Layout, scale: float, out: Floats) -> None:
    """Add `scale` times the sums of residuals to a gradient laid out by the scatter's layout."""
    _exchange(out, result.node_sums, result.sums, layout, job.scatter, scale)


def _inputs(layout: Layout, theta: Floats, sources: BundleSources) -> tuple[Floats, Floats]:
    nodes = np.empty((sources.n_bundles, int(sources.widths.max(initial=1))))
    tables = np.zeros(int(sources.groups.table[-1]))
    _exchange(theta, nodes, tables, layout, sources, 0.0)
    return tables, nodes


def _exchange(
    theta: Floats,
    nodes: Floats,
    tables: Floats,
    layout: Layout,
    sources: BundleSources,
    scale: float,
) -> None:
    at = layout.node_offset, layout.states, sources.directed, sources.lanes
    exchange(theta, nodes, tables, *at, scale)


def _work(
    columns: Columns, inputs: tuple[Floats, Floats], job: Job, result: Results, chosen: Integers
) -> None:
    forward = job.forward
    if forward.counted is not None:
        groups = forward.bundles, chosen, forward.groups
        work_counted(columns, *groups, *inputs, forward.counted, result)
        return
    work_bundles(
        columns,
        forward.bundles,
        chosen,
        forward.groups,
        *inputs,
        job.scatter.groups,
        job.scatter is forward,
        job.kept,
        scratch_for(columns, forward.bundles, forward.groups, job.scatter.groups),
        result,
    )


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
        gather_tables(self._sums, self._places, edges, offsets, scale, out)
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
