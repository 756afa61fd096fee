"""Gradients of pairs outside the model: sums of the residuals at one point.

Once the batches at one point have cost as much as all pairs together would, or this many pairs were
asked for that the rest is likely to follow and would cost more, all are computed
(:class:`~edgegraft.objective.block_sums.AllPairs`) and later batches look them up.

What is known at the point of the last evaluation is kept, so that no pass is repeated: an
evaluation at known parameters costs nothing; nor, over blocks, does one that only adds edges of
zeros once the gradients of all pairs are known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edgegraft.conditional.features import Features
from edgegraft.core import Layout
from edgegraft.core.pairs import PairTables, pair_ids, pairs_of_ids, table_offsets
from edgegraft.core.types import Edges, Floats, Integers
from edgegraft.kernels.conditionals.pseudolikelihood import Columns
from edgegraft.objective.block_sums import (
    AllPairs,
    Job,
    columns_of,
    do_jobs,
    gradient_of,
    price,
)
from edgegraft.objective.bundles import bundle, by_width, estimate, wire
from edgegraft.table.blocks import TableRows

BLOCK_BYTES = 1 << 27  # of a block's residuals, or of the tables of all pairs: a budget
_LIKELY_ALL = 1 / 32  # share of all pairs, asked for at one point, after which the rest follows


class Residuals:
    """Sums of residuals at the point `theta`, and what they have cost.

    Residuals of all variables are computed if they take no more than `max_bytes`.
    """

    def __init__(self, theta: Floats, columns: Columns, max_bytes: int) -> None:
        self.theta = theta
        self.columns = columns
        self.max_bytes = max_bytes
        self.spent = 0.0  # nanoseconds per row, estimated
        self.asked = 0  # pairs
        self.whole: AllPairs | None = None

    def find_all(self, layout: Layout, features: Features, n_jobs: int) -> None:
        """Compute all pairs, if the memory allowed suffices."""
        shape = int(features.free.sum()), self.columns.codes.shape[1]
        if shape[0] * shape[1] * self.columns.weights.dtype.itemsize > self.max_bytes:
            self.spent = -np.inf  # and do not try again
            return
        self.whole = AllPairs(self.columns, layout, self.theta, features, n_jobs)


def score_block(
    block: TableRows,
    theta: Floats,
    layout: Layout,
    edges: Edges,
    dtype: type[np.floating],
    features: Features,
    residuals: Residuals | None = None,
) -> Floats:
    """Return the sums of a block's residuals for pairs, block of features after block.

    `residuals` are those at `theta`, if they are kept from one batch to the next.
    """
    offsets = table_offsets(layout.states[edges])
    if (device := block.product_device) is not None:
        sums = device.score(block, theta, layout, edges, dtype)
        return features.fold_pairs(PairTables(edges, layout.states[edges], sums, offsets)).values
    if residuals is None:
        residuals = Residuals(theta, columns_of(block, dtype), BLOCK_BYTES)
    if residuals.whole is None:
        asked, jobs = _plan(residuals.columns, layout, edges)
        size = residuals.columns.weights.dtype.itemsize
        # Without the residuals, which all pairs need too: with them a search over 400 columns
        # computed all pairs 15 times and took 1.7 times as long.
        residuals.spent += sum(estimate(None, job.scatter, size) for job in jobs)
        residuals.asked += len(edges)
        if _worth_all(residuals, features):
            residuals.find_all(layout, features, block.n_jobs)
    if residuals.whole is not None:
        return residuals.whole.tables(edges, table_offsets(features.widths[edges]))
    summed = np.zeros(asked.n_parameters)
    results = do_jobs(residuals.columns, layout, residuals.theta, jobs, block.n_jobs)
    for job, result in zip(jobs, results, strict=True):
        gradient_of(job, result, asked, 1.0, summed)
    sums = take_tables(summed, asked, edges, offsets)
    return features.fold_pairs(PairTables(edges, layout.states[edges], sums, offsets)).values


def _plan(columns: Columns, layout: Layout, edges: Edges) -> tuple[Layout, list[Job]]:
    """Return the pairs, each once, and the jobs that give their sums."""
    n, jobs = layout.n_variables, []
    asked = Layout(layout.states, pairs_of_ids(np.unique(pair_ids(edges, n)), n))
    touched = np.zeros(n, bool)
    touched[asked.edges] = True
    for targets, alternatives in by_width(layout.states, touched):
        # Sixteen targets together share few of the sources of a batch: they took no less time.
        bundles = bundle(targets, alternatives, 1)
        jobs.append(Job(wire(layout, bundles, columns), wire(asked, bundles, columns)))
    return asked, jobs


def _worth_all(residuals: Residuals, features: Features) -> bool:
    """Return whether all pairs should be computed at once."""
    n = len(residuals.columns.states)
    share, limit = 2 * residuals.asked / (n * (n - 1)), price(residuals.columns, features)
    return residuals.spent >= limit or (
        share >= _LIKELY_ALL and residuals.spent >= 2 * limit * share
    )


def take_tables(gradient: Floats, asked: Layout, edges: Edges, offsets: Integers) -> Floats:
    """Return the tables of `edges`, in their order and orientation, one after another."""
    n_nodes = int(asked.node_offset[-1])
    if len(edges) == asked.n_edges and np.array_equal(edges, asked.edges):
        return gradient[n_nodes:]
    n = asked.n_variables
    where = np.searchsorted(pair_ids(asked.edges, n), pair_ids(edges, n))
    sizes = np.diff(offsets)
    cell = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], sizes)
    wide = np.repeat(asked.widths[edges[:, 1]], sizes)
    tall = np.repeat(asked.widths[edges[:, 0]], sizes)
    turned = np.repeat(edges[:, 0] > edges[:, 1], sizes)  # stored with its columns first
    cell = np.where(turned, cell % wide * tall + cell // wide, cell)
    return np.asarray(gradient[np.repeat(asked.edge_offset[where], sizes) + cell])


class AllGradients(NamedTuple):
    """Gradients of all pairs at one point."""

    layout: Layout  # of the graph of all pairs
    values: Floats  # node vectors, which mean nothing, then tables

    def tables(self, edges: Edges) -> Floats:
        """Return the tables of `edges`, in their order and orientation, one after another."""
        offsets = table_offsets(self.layout.widths[edges])
        return take_tables(self.values, self.layout, edges, offsets)


@dataclass(eq=False)
class PairsAt:
    """Gradients of pairs at one point."""

    theta: Floats
    residuals: Residuals | None = None  # of a table in memory
    asked: int = 0  # pairs asked for so far
    whole: AllGradients | None = None  # once known


@dataclass(frozen=True, eq=False)
class Known:
    """The loss at one point."""

    layout: Layout
    theta: Floats
    losses: Floats  # mean loss per row of each variable
    gradient: Floats
    pairs: PairsAt


def reuse(theta: Floats, layout: Layout, known: Known | None) -> Known | None:
    """Return what is known of the same model in the layout of another; None if too little."""
    if known is None:
        return None
    if layout is known.layout:
        return known if np.array_equal(theta, known.theta) else None
    # The same model: parameters differ from the known ones by edges of zeros at most.
    if not np.array_equal(layout.carry(known.theta, known.layout), theta) or not np.array_equal(
        known.layout.carry(theta, layout), known.theta
    ):
        return None
    n = layout.n_variables
    new = layout.edges[~np.isin(pair_ids(layout.edges, n), pair_ids(known.layout.edges, n))]
    gradient = layout.carry(known.gradient, known.layout)
    whole = known.pairs.whole
    if len(new):
        if whole is None or whole.layout.scored.any():
            return None
        nodes, added = np.zeros(int(layout.node_offset[-1])), Layout(layout.states, new)
        gradient += layout.carry(np.concatenate((nodes, whole.tables(new))), added)
    pairs = PairsAt(theta, None, known.pairs.asked, whole)
    return Known(layout, theta, known.losses, gradient, pairs)
