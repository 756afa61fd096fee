"""Gradients of pairs outside the model: sums of the residuals at one point.

Residuals of a variable are computed once per batch whatever the number of its pairs, and kept for
later batches at the same parameters as long as they fit the memory allowed. A batch of so many
pairs that sixteen targets share most of their sources is processed in bundles instead, without
keeping anything. Once the batches at one point have cost as much as all pairs together would, or so
many pairs were asked for that the rest is likely to follow and would cost more, all are computed
(:class:`~edgegraft.objective.block_sums.AllPairs`) and later batches look them up. In large tables
with sparse graphs most targets need no residuals at all.

What is known at the point of the last evaluation is kept, so that no pass is repeated: an
evaluation at known parameters costs nothing; nor, over blocks, does one that only adds edges of
zeros once the gradients of all pairs are known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.pairs import pair_ids, pairs_of_ids, table_offsets
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.device.pseudolikelihood import score_on_device
from edgegraft.kernels.conditionals.lanes import LANES
from edgegraft.kernels.conditionals.pseudolikelihood import Columns, Kept
from edgegraft.objective.block_sums import (
    AllPairs,
    Job,
    add_counted,
    columns_of,
    counted_targets,
    do_jobs,
    gradient_of,
    nothing_kept,
    price,
)
from edgegraft.objective.bundles import alternatives_of, bundle, estimate, wire
from edgegraft.table.blocks import TableRows

_BLOCK_BYTES = 1 << 27  # of a block's residuals that are not kept
_LIKELY_ALL = 1 / 32  # share of all pairs, asked for at one point, after which the rest follows


class Residuals:
    """Residuals at the point `theta`, as far as they have been asked for.

    They are kept up to `max_bytes`.
    """

    def __init__(self, theta: Floats, columns: Columns, max_bytes: int) -> None:
        self.theta = theta
        self.columns = columns
        self.free = max_bytes
        self.spent = 0.0  # nanoseconds per row, estimated
        self.asked = 0  # pairs
        self.whole: AllPairs | None = None
        self.counted: Mask | None = None  # targets that need no residuals
        self._kept: dict[int, Kept] = {}

    def keep(self, targets: Integers, alternatives: int) -> Kept:
        """Return the place of the residuals of these targets, one per bundle, filled or not."""
        dtype = self.columns.weights.dtype
        length = self.columns.codes.shape[1] * alternatives
        if alternatives not in self._kept:
            n_kept = min(len(targets), self.free // (length * dtype.itemsize))
            self.free -= n_kept * length * dtype.itemsize
            start = np.where(np.arange(len(targets)) < n_kept, np.arange(len(targets)) * length, -1)
            # Pages are only taken when written: what is never asked for costs nothing.
            values = np.empty(n_kept * length, dtype)
            self._kept[alternatives] = Kept(values, start, np.zeros(len(targets), bool))
        return self._kept[alternatives]


def score_block(
    block: TableRows,
    theta: Floats,
    layout: Layout,
    edges: Edges,
    dtype: type[np.floating],
    residuals: Residuals | None = None,
) -> Floats:
    """Return the sums of a block's residuals for pairs, table after table.

    `residuals` are those at `theta`, if they are kept from one batch to the next.
    """
    if block.device is not None:
        return score_on_device(block, theta, layout, edges, dtype)
    if residuals is None:
        residuals = Residuals(theta, columns_of(block, dtype), _BLOCK_BYTES)
    offsets = table_offsets(layout.states[edges])
    if residuals.counted is None:
        residuals.counted = counted_targets(block, layout)
    if residuals.whole is not None:
        return residuals.whole.tables(edges, offsets, 1.0)
    counted = residuals.counted
    asked, plans = _plan_all(residuals, layout, edges, ~counted)
    if not counted.any():
        residuals.spent += sum(cost for cost, _ in plans)
        residuals.asked += len(edges)
        if _worth_all(residuals) and _fill(residuals, layout, block.n_jobs):
            return score_block(block, theta, layout, edges, dtype, residuals)
    summed, jobs = np.zeros(asked.n_parameters), [job for _, job in plans]
    results = do_jobs(residuals.columns, layout, residuals.theta, jobs, block.n_jobs)
    for job, result in zip(jobs, results, strict=True):
        gradient_of(job, result, asked, 1.0, summed)
    if counted.any():
        add_counted(block, residuals.theta, layout, asked, counted, summed)
    return take_tables(summed, asked, edges, offsets)


def _plan_all(
    residuals: Residuals, layout: Layout, edges: Edges, targets: Mask
) -> tuple[Layout, list[tuple[float, Job]]]:
    """Return the pairs, each once, and the cheapest way to the sums of these targets."""
    n = layout.n_variables
    asked = Layout(layout.states, pairs_of_ids(np.unique(pair_ids(edges, n)), n))
    touched = np.zeros(n, bool)
    touched[asked.edges] = True
    plans = [
        _plan(residuals, layout, asked, own, alternatives, touched)
        for own, alternatives in _by_width(layout, targets)
        if touched[own].any()
    ]
    return asked, plans


def _worth_all(residuals: Residuals) -> bool:
    """Return whether all pairs should be computed at once."""
    n = len(residuals.columns.states)
    share, limit = 2 * residuals.asked / (n * (n - 1)), price(residuals.columns)
    return residuals.spent >= limit or (
        share >= _LIKELY_ALL and residuals.spent >= 2 * limit * share
    )


def _by_width(layout: Layout, targets: Mask) -> list[tuple[Integers, int]]:
    """Return the targets by the width of their logits."""
    widths = np.where(targets, alternatives_of(layout.states), 0)
    return [(np.flatnonzero(widths == width), int(width)) for width in np.unique(widths[targets])]


def _fill(residuals: Residuals, layout: Layout, n_jobs: int) -> bool:
    """Compute all pairs at once; return whether the memory allowed suffices."""
    jobs, kept = [], []
    for targets, alternatives in _by_width(layout, np.ones(layout.n_variables, bool)):
        held = residuals.keep(targets, alternatives)
        if (held.start < 0).any():
            residuals.spent = -np.inf  # and do not try again
            return False
        bundles = bundle(targets, alternatives, 1)
        nothing = wire(Layout(layout.states), bundles, residuals.columns)
        to_do = np.flatnonzero(~held.filled)
        jobs.append(Job(wire(layout, bundles, residuals.columns), nothing, to_do, held))
        kept.append((targets, held))
    do_jobs(residuals.columns, layout, residuals.theta, jobs, n_jobs)
    residuals.whole = AllPairs(residuals.columns, kept, n_jobs)
    return True


def take_tables(gradient: Floats, asked: Layout, edges: Edges, offsets: Integers) -> Floats:
    """Return the tables of `edges`, in their order and orientation, one after another."""
    n_nodes = int(asked.node_offset[-1])
    if len(edges) == asked.n_edges and np.array_equal(edges, asked.edges):
        return gradient[n_nodes:]
    n = asked.n_variables
    where = np.searchsorted(pair_ids(asked.edges, n), pair_ids(edges, n))
    sizes = np.diff(offsets)
    cell = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], sizes)
    wide = np.repeat(asked.states[edges[:, 1]], sizes)
    tall = np.repeat(asked.states[edges[:, 0]], sizes)
    turned = np.repeat(edges[:, 0] > edges[:, 1], sizes)  # stored with its columns first
    cell = np.where(turned, cell % wide * tall + cell // wide, cell)
    return np.asarray(gradient[np.repeat(asked.edge_offset[where], sizes) + cell])


def _plan(
    residuals: Residuals,
    layout: Layout,
    asked: Layout,
    targets: Integers,
    alternatives: int,
    touched: np.ndarray,
) -> tuple[float, Job]:
    """Return the cheaper way to compute the pairs of some targets, and its cost."""
    columns = residuals.columns
    choices: list[tuple[float, Job]] = []
    for lanes in (1, LANES):
        bundles = bundle(targets, alternatives, lanes)
        members = (bundles.member >= 0) & touched[bundles.member]
        chosen = np.flatnonzero(members.any(axis=1))
        forward = wire(layout, bundles, columns)
        scatter = wire(asked, bundles, columns)
        kept = nothing_kept(len(bundles.member), columns.weights.dtype)
        size = columns.weights.dtype.itemsize
        cost = estimate(forward, scatter, size)
        if lanes == 1:
            kept = residuals.keep(targets, alternatives)
            to_do = float((~kept.filled[chosen]).mean()) * len(chosen) / len(targets)
            # Half: later batches will find them.
            cost = 0.5 * to_do * estimate(forward, None, size) + estimate(None, scatter, size)
        choices.append((cost, Job(forward, scatter, chosen, kept)))
        if alternatives > LANES // 2:
            break
    return min(choices, key=lambda choice: choice[0])


class AllGradients(NamedTuple):
    """Gradients of all pairs at one point."""

    layout: Layout  # of the graph of all pairs
    values: Floats  # node vectors, which mean nothing, then tables

    def tables(self, edges: Edges) -> Floats:
        """Return the tables of `edges`, in their order and orientation, one after another."""
        offsets = table_offsets(self.layout.states[edges])
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
        if whole is None:
            return None
        nodes, added = np.zeros(int(layout.node_offset[-1])), Layout(layout.states, new)
        gradient += layout.carry(np.concatenate((nodes, whole.tables(new))), added)
    pairs = PairsAt(theta, None, known.pairs.asked, whole)
    return Known(layout, theta, known.losses, gradient, pairs)
