"""Rows counted by the joint states of a target's neighbours, for targets that have few of these.

An evaluation then takes as long as there are joint states, whatever the number of rows. Rows are
counted once for a graph; of the next graph, only for targets whose neighbours are others.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.tables import stretches
from edgegraft.core.threads import run
from edgegraft.core.types import Integers, Mask
from edgegraft.device.pair_sums import DENSE_STATES
from edgegraft.kernels.conditionals.counted import Counted, count_bundles
from edgegraft.kernels.conditionals.pseudolikelihood import Columns
from edgegraft.objective.bundles import BundleSources, alternatives_of, bundle, wire

MIN_CELLS = 1 << 19  # of a table; the fits of a smaller one take milliseconds anyway
_ROWS_PER_CELL = 4  # of the counts of a target: they take less memory than its residuals
_PIECES = 4  # of work per thread


def suits_counts(layout: Layout) -> bool:
    """Return whether a device has so much work with an evaluation that counts are worth it."""
    return int(layout.states.sum()) > DENSE_STATES


def targets_of(counted: tuple[BundleSources, ...], layout: Layout) -> Mask:
    """Return which variables are targets of some bundles."""
    found = np.zeros(layout.n_variables, bool)
    for sources in counted:
        found[sources.bundles.member[:, 0]] = True
    return found


def count_neighbours(
    layout: Layout, columns: Columns, before: tuple[BundleSources, ...], n_jobs: int
) -> tuple[BundleSources, ...]:
    """Return bundles of one target each, with their counts, for all targets that suit them.

    `before` are those of another graph over the same rows.
    """
    if columns.codes.size < MIN_CELLS:
        return ()
    widths = np.where(_suited(layout, columns), alternatives_of(layout.states), 0)
    known = {int(sources.bundles.alternatives[0]): sources for sources in before}
    found = []
    for alternatives in np.unique(widths[widths > 0]).tolist():
        targets = np.flatnonzero(widths == alternatives)
        sources = wire(layout, bundle(targets, alternatives, 1), columns, whole=True)
        plain = sources.groups._replace(copies=np.ones_like(sources.groups.copies))
        sources = sources._replace(groups=plain)
        counted = _count(sources, known.get(alternatives), columns, n_jobs)
        found.append(sources._replace(counted=counted))
    return tuple(found)


def _suited(layout: Layout, columns: Columns) -> Mask:
    """Return which targets have far fewer joint states of neighbours than there are rows."""
    size = np.log(np.maximum(columns.states, 1))
    first, second = layout.edges.T
    size += np.bincount(first, np.log(columns.radix[second]), layout.n_variables)
    size += np.bincount(second, np.log(columns.radix[first]), layout.n_variables)
    few = size <= np.log(max(1, columns.codes.shape[1] // _ROWS_PER_CELL))
    return np.asarray(few & (columns.states > 0))


def _count(
    sources: BundleSources, before: BundleSources | None, columns: Columns, n_jobs: int
) -> Counted:
    groups, targets = sources.groups, sources.bundles.member[:, 0]
    sizes = groups.codes * columns.states[targets]
    start = np.concatenate(([0], np.cumsum(sizes)))
    counted = Counted(start, np.empty(int(start[-1])))
    chosen = np.arange(len(targets))
    if before is not None and before.counted is not None:
        at = _same(sources, before, len(columns.states))
        here, there = np.flatnonzero(at >= 0), at[at >= 0]
        old = stretches(before.counted.start[there], sizes[here])
        counted.values[stretches(start[here], sizes[here])] = before.counted.values[old]
        chosen = np.flatnonzero(at < 0)
    pieces = [chosen[k :: _PIECES * n_jobs] for k in range(_PIECES * n_jobs)]
    work = partial(_work, columns, sources, counted)
    run(work, [piece for piece in pieces if len(piece)], n_jobs)
    return counted


def _work(columns: Columns, sources: BundleSources, counted: Counted, chosen: Integers) -> None:
    chosen = np.ascontiguousarray(chosen)
    count_bundles(columns, sources.bundles, chosen, sources.groups, counted)


def _same(sources: BundleSources, before: BundleSources, n: int) -> Integers:
    """Return the bundle of `before` with the same target and sources, -1 if there is none."""
    targets, earlier = sources.bundles.member[:, 0], before.bundles.member[:, 0]
    home = np.full(n, -1, np.int64)
    home[earlier] = np.arange(len(earlier))
    found: Integers = home[targets]
    now, then = sources.groups, before.groups  # one group per bundle
    degree, degree_then = np.diff(now.source_start), np.diff(then.source_start)
    found[(found >= 0) & (degree != degree_then[found])] = -1
    rest = np.flatnonzero(found >= 0)
    sizes = degree[rest]
    own = now.source[stretches(now.source_start[rest], sizes)]
    other = then.source[stretches(then.source_start[found[rest]], sizes)]
    changed = np.bincount(np.repeat(np.arange(len(rest)), sizes), own != other, len(rest)) > 0
    found[rest[changed]] = -1
    return found
