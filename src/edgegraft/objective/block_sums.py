"""Losses of the conditionals and sums of their residuals, over the rows of a block.

The rows are read by the kernels of :mod:`edgegraft.kernels.conditionals.pseudolikelihood`; here a
block's columns are laid out for them, bundles are distributed over threads, and the results are
put where the parameters lie.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.threads import run
from edgegraft.core.types import Floats, Integers
from edgegraft.counts.pair_counts import weigh_states
from edgegraft.device.pseudolikelihood import evaluate_on_device
from edgegraft.kernels.compiler import for_size
from edgegraft.kernels.conditionals.counted import work_counted
from edgegraft.kernels.conditionals.lookup import exchange
from edgegraft.kernels.conditionals.pseudolikelihood import (
    Columns,
    Kept,
    Results,
    scratch_for,
    work_bundles,
)
from edgegraft.objective.bundles import BundleSources, route
from edgegraft.table.blocks import TableRows

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
    for_size(exchange, len(theta), 1000)(theta, nodes, tables, *at, scale)


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
