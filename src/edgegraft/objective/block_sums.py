"""Losses of the conditionals and sums of their residuals, over the rows of a block.

The rows are read by the kernels of :mod:`edgegraft.kernels.conditionals.pseudolikelihood`; here a
block's columns are laid out for them, bundles are distributed over threads, and the results are
put where the parameters lie.

Sums of residuals of all pairs at one point are one matrix product: a pass over a few pairs reads
only their columns, but if most pairs of a table are tested at the same parameters, as at the end of
a search, the products of all columns with all residuals cost less: one multiply-add per row and
pair of features, at the speed of a matrix product. Features are states or, of an ordered column,
its scores: it enters with as many rows as it has scores.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.conditional.features import Features
from edgegraft.core import Layout
from edgegraft.core.threads import one_blas_thread, run, run_in_order
from edgegraft.core.types import Edges, Floats, Integers
from edgegraft.counts.pair_counts import weigh_states
from edgegraft.kernels.conditionals.counted import work_counted
from edgegraft.kernels.conditionals.lookup import exchange
from edgegraft.kernels.conditionals.pseudolikelihood import (
    Columns,
    Results,
    scratch_for,
    work_bundles,
)
from edgegraft.objective.bundles import COST, PIECES, BundleSources, bundle, by_width, route, wire
from edgegraft.table.blocks import TableRows


class Job(NamedTuple):
    """Residuals of one set of bundles, and the sources that they are summed for."""

    forward: BundleSources  # whose tables make the logits
    scatter: BundleSources  # whose sources get sums; the same bundles
    kept: NDArray[Any] | None = None  # where residuals of all bundles are written, if wanted


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
    if sources is None and (device := block.product_device) is not None:
        return device.evaluate(block, theta, layout, dtype, scale)
    columns = columns_of(block, dtype)
    jobs = [Job(each, each) for each in sources or route(layout, columns)]
    out = np.zeros(layout.n_variables + layout.n_parameters)
    losses, gradient = out[: layout.n_variables], out[layout.n_variables :]
    results = do_jobs(columns, layout, theta, jobs, block.n_jobs)
    for job, result in zip(jobs, results, strict=True):
        gradient_of(job, result, layout, scale, gradient)
        losses += result.losses
    return out


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
        n_pieces = 1 if n_jobs == 1 else min(job.forward.n_bundles, PIECES * n_jobs)
        # Every n-th bundle: neighbours in order often take equally long.
        tasks += [(task, np.arange(k, job.forward.n_bundles, n_pieces)) for k in range(n_pieces)]
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
        np.empty(0, columns.weights.dtype) if job.kept is None else job.kept,
        scratch_for(columns, forward.bundles, forward.groups, job.scatter.groups),
        result,
    )


MAX_CELLS = 1 << 24  # of the matrix of products: 128 MiB
_PART_BYTES = 1 << 24  # of residuals by state, before they are folded to features
_ROWS = 4096  # per product; products are added in double precision


def price(columns: Columns, features: Features) -> float:
    """Return the estimated nanoseconds per row of all products; infinity if they are too many.

    In the measure of :func:`~edgegraft.objective.bundles.estimate`.
    """
    n_columns = float(features.free.sum())
    if float(features.widths.sum()) ** 2 > MAX_CELLS:
        return float("inf")
    double = columns.weights.dtype.itemsize / 4
    return double * (COST.multiply * n_columns**2 + COST.write * n_columns)


class AllPairs:
    """Sums of the residuals of every variable over the features of every other.

    Products are of all states but the first. What that has is the total less the others', or a
    product of its own if cells are missing; its residuals are minus the sum of the others.
    """

    def __init__(
        self, columns: Columns, layout: Layout, theta: Floats, features: Features, n_jobs: int
    ) -> None:
        self._widths, plain, free = features.widths, features.is_plain, features.free
        self._start = start = _starts(self._widths)
        gaps = plain & (columns.radix > columns.states)
        residuals = _residuals(columns, layout, theta, features, _starts(free), n_jobs)
        feature = np.arange(int(self._widths.sum())) - np.repeat(start, self._widths)
        owner, is_state = (
            np.repeat(np.arange(len(free)), self._widths),
            np.repeat(plain, self._widths),
        )
        target = np.flatnonzero(~is_state | (feature > 0))
        shown = np.flatnonzero(is_state & ((feature > 0) | gaps[owner]))
        sources = owner[shown], feature[shown].astype(columns.codes.dtype)[:, None]
        matrices = [
            # A missing cell has a state beyond the last, whose scores are zero.
            (i, np.pad(features.matrix(i).T, ((0, 0), (0, 1))).astype(columns.weights.dtype))
            for i in np.flatnonzero(~plain).tolist()
        ]
        rows = np.concatenate((shown, np.flatnonzero(~is_state)))
        products = np.zeros((len(rows) + 1, len(residuals)))
        work = partial(_product, columns, residuals, sources, matrices)
        starts = range(0, columns.codes.shape[1], _ROWS)
        with one_blas_thread():  # the threads are ours
            for part in run_in_order(work, starts, n_jobs):
                products += part
        sums = np.zeros((len(feature) + 1, len(residuals)))  # a last row keeps starts within
        sums[rows] = products[:-1]
        left = np.flatnonzero(plain & ~gaps)
        sums[start[left]] = products[-1] - np.add.reduceat(sums, start)[left]
        self._sums = np.zeros((len(feature), len(feature)))
        self._sums[:, target] = sums[:-1]
        self._sums[:, start[plain]] -= np.add.reduceat(self._sums, start, axis=1)[:, plain]

    def tables(self, edges: Edges, offsets: Integers) -> Floats:
        """Return the sums of both ends of each pair, table after table."""
        sizes = np.diff(offsets)
        cell = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], sizes)
        a, b = np.divmod(cell, np.repeat(self._widths[edges[:, 1]], sizes))
        a += np.repeat(self._start[edges[:, 0]], sizes)
        b += np.repeat(self._start[edges[:, 1]], sizes)
        return np.asarray(self._sums[b, a] + self._sums[a, b])


def _starts(sizes: Integers) -> Integers:
    return np.cumsum(sizes) - sizes


def _residuals(
    columns: Columns,
    layout: Layout,
    theta: Floats,
    features: Features,
    start: Integers,
    n_jobs: int,
) -> Floats:
    """Return the residuals of all features, one row each; a column's begin at its `start`.

    Of states, the first has none: it is minus the sum of the others.
    """
    n_rows, precision = columns.codes.shape[1], columns.weights.dtype
    out = np.empty((int(features.free.sum()), n_rows), precision)
    empty = Layout(layout.states)
    for targets, alternatives in by_width(layout.states, np.ones(len(start), bool)):
        length = n_rows * alternatives
        at_once = max(n_jobs, _PART_BYTES // (length * precision.itemsize))
        for part in (targets[k : k + at_once] for k in range(0, len(targets), at_once)):
            values = np.empty((len(part), n_rows, alternatives), precision)
            bundles = bundle(part, alternatives, 1)
            forward, nothing = (wire(graph, bundles, columns) for graph in (layout, empty))
            do_jobs(columns, layout, theta, [Job(forward, nothing, values.ravel())], n_jobs)
            for by_state, i in zip(values, part.tolist(), strict=True):
                matrix = features.matrix(i)
                shown = by_state[:, : len(matrix) - 1].T
                if not features.is_plain[i]:
                    shown = (matrix[1:] - matrix[:1]).T.astype(precision) @ shown
                out[start[i] : start[i] + features.free[i]] = shown
    return out


def _product(
    columns: Columns,
    residuals: Floats,
    sources: tuple[Integers, Integers],
    matrices: list[tuple[int, Floats]],
    first: int,
) -> Floats:
    """Return the products of a block of rows."""
    owner, state = sources
    rows = slice(first, min(first + _ROWS, columns.codes.shape[1]))
    codes = columns.codes[:, rows]
    scores = [matrix[:, codes[i]] for i, matrix in matrices]
    last = np.ones((1, codes.shape[1]), residuals.dtype)
    shown = np.concatenate((codes[owner] == state, *scores, last), dtype=residuals.dtype)
    return np.asarray(shown @ residuals[:, rows].T)
