"""Losses of the conditionals and sums of their residuals, over the rows of a table.

The rows are read by the kernels of :mod:`edgegraft.kernels.conditionals.pseudolikelihood`; here the
columns are laid out for them, bundles are shared out to threads, and what they return is put where
the parameters lie.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.core import Layout
from edgegraft.core.threads import run
from edgegraft.core.types import Floats, Integers
from edgegraft.kernels.conditionals.directed import (
    collect_nodes,
    collect_tables,
    direct_nodes,
    direct_tables,
)
from edgegraft.kernels.conditionals.lanes import LANES
from edgegraft.kernels.conditionals.pseudolikelihood import Columns, Kept, work_bundles
from edgegraft.objective.wiring import Wiring
from edgegraft.table import PackedTable

_PIECES = 4  # pieces of work a thread: the last to finish are then not waited for long


class Job(NamedTuple):
    """Residuals of one set of bundles, and the sources that they are summed for."""

    forward: Wiring  # whose tables make the logits
    scatter: Wiring  # whose sources get sums; the same bundles
    chosen: Integers  # the bundles to work on
    kept: Kept


class Results(NamedTuple):
    """What a job wrote."""

    sums: Floats  # laid out by the groups of `scatter`
    node_sums: Floats  # (bundles, widest)
    losses: Floats  # (n,), of targets whose residuals were worked out


def lay_out(table: PackedTable, rows: Integers | None, weights: Floats, precision: Any) -> Columns:
    """Return the chosen rows of a table, or all, as the kernels read them."""
    states = table.schema.n_states
    dtype = np.uint8 if states.max() <= np.iinfo(np.uint8).max else np.uint16
    n_rows = len(weights)
    codes = np.zeros((table.n_variables, -(-n_rows // LANES) * LANES), dtype)
    missing = np.zeros(table.n_variables, bool)
    for i in range(table.n_variables):
        column = table.codes([i])[:, 0]
        if rows is not None:
            column = column[rows]
        absent = column < 0
        missing[i] = absent.any()
        codes[i, :n_rows] = column
        if missing[i]:
            codes[i, :n_rows][absent] = states[i]
    return columns_of(codes, weights, states, missing, precision)


def choose_rows(columns: Columns, rows: Integers, weights: Floats) -> Columns:
    """Return some rows of columns that are laid out already."""
    codes = np.zeros((len(columns.codes), -(-len(rows) // LANES) * LANES), columns.codes.dtype)
    codes[:, : len(rows)] = columns.codes[:, rows]
    missing = (codes == columns.states[:, None]).any(axis=1)
    return columns_of(codes, weights, columns.states, missing, columns.weights.dtype)


def columns_of(
    codes: NDArray[Any], weights: Floats, states: Integers, missing: NDArray[Any], precision: Any
) -> Columns:
    """Return padded codes and as yet unpadded weights as columns."""
    padded = np.zeros(codes.shape[1], precision)
    padded[: len(weights)] = weights
    plain = np.array([bool(np.isin(padded, (0, 1)).all())])
    # Kernels are compiled for one kind of array: these are never written.
    for array in (codes, padded):
        array.flags.writeable = False
    return Columns(codes, padded, np.array(states), states + missing, plain)


def nothing_kept(n_bundles: int, precision: Any) -> Kept:
    """Return what `Kept` is where residuals are not kept."""
    return Kept(np.empty(0, precision), np.full(n_bundles, -1), np.zeros(n_bundles, bool))


def do_jobs(
    columns: Columns, layout: Layout, theta: Floats, jobs: list[Job], n_jobs: int
) -> list[Results]:
    """Work on all bundles of all jobs on `n_jobs` threads.

    Each bundle is one thread's and writes its own part of the results, so these do not depend
    on the number of threads.
    """
    results = [_empty_results(len(columns.states), job) for job in jobs]
    tasks = []
    for job, result in zip(jobs, results, strict=True):
        task = partial(_work, columns, _inputs(columns, layout, theta, job.forward), job, result)
        n_pieces = 1 if n_jobs == 1 else min(len(job.chosen), _PIECES * n_jobs)
        # Every n-th bundle: neighbours in order often take equally long.
        tasks += [(task, job.chosen[k::n_pieces]) for k in range(n_pieces)]
    run(lambda item: item[0](item[1]), tasks, n_jobs)
    return results


def gradient_of(job: Job, result: Results, layout: Layout, scale: float, out: Floats) -> None:
    """Add `scale` times the sums of residuals to a gradient laid out by the scatter's layout."""
    wiring = job.scatter
    collect_tables(
        result.sums,
        layout.states,
        wiring.neighbours,
        wiring.slots,
        wiring.place,
        wiring.width,
        wiring.lanes,
        wiring.groups.table,
        scale,
        out,
    )
    collect_nodes(result.node_sums, layout.node_offset, layout.states, wiring.bundles, scale, out)


def _inputs(
    columns: Columns, layout: Layout, theta: Floats, wiring: Wiring
) -> tuple[Floats, Floats]:
    nodes = np.empty((wiring.n_bundles, int(wiring.widths.max(initial=1))))
    direct_nodes(theta, layout.node_offset, layout.states, wiring.bundles, nodes)
    tables = np.zeros(int(wiring.groups.table[-1]))
    direct_tables(
        theta,
        layout.states,
        wiring.neighbours,
        wiring.slots,
        wiring.place,
        wiring.width,
        wiring.lanes,
        wiring.groups.table,
        tables,
    )
    return tables, nodes


def _empty_results(n: int, job: Job) -> Results:
    widest = int(job.scatter.widths.max(initial=1))
    return Results(
        np.zeros(int(job.scatter.groups.table[-1])),
        np.zeros((job.scatter.n_bundles, widest)),
        np.zeros(n),
    )


def _work(
    columns: Columns, inputs: tuple[Floats, Floats], job: Job, result: Results, chosen: Integers
) -> None:
    work_bundles(
        columns,
        job.forward.bundles,
        np.ascontiguousarray(chosen),
        job.forward.groups,
        *inputs,
        job.scatter.groups,
        job.scatter is job.forward,
        job.kept,
        result,
    )
