"""Which targets are processed together, and which sources each of them looks up.

Targets are grouped by the width of their logits (1, 2, 4, 8, 16, 32, ... numbers). Those of one
width go one by one, or in bundles of sixteen that share their look-ups, whichever is estimated
cheaper. One by one a target reads its own neighbours. A bundle reads the union of its members'
neighbours, sixteen targets at the price of little more than one: it wins on dense graphs, and the
sooner the fewer the states. Targets whose neighbours have few joint states are not worked on row by
row at all, if their rows can be counted once for many evaluations: each then takes as long as there
are joint states, whatever the number of rows. Rows are counted once for a graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.adjacency import neighbours_of
from edgegraft.core.threads import run
from edgegraft.core.types import Integers, Mask
from edgegraft.errors import MemoryBudgetError
from edgegraft.kernels.conditionals.counted import Counted, count_bundles
from edgegraft.kernels.conditionals.lanes import LANES
from edgegraft.kernels.conditionals.lookup import ROOM, Directed, Groups, pack_groups
from edgegraft.kernels.conditionals.pseudolikelihood import Bundles, Columns

PIECES = 4  # of work per thread, so that the last to finish is not waited for long


@dataclass(frozen=True)
class _Cost:
    """Nanoseconds per row, measured on one core with 512-bit vectors; only their ratios matter."""

    sum_group: float = 0.5  # look up a group's row and add it to the logits
    sum_lane: float = 0.03
    add_group: float = 0.9  # add residuals to a group's row
    add_lane: float = 0.055
    source: float = 0.1  # one source's part of a joint code
    column: float = 3.0  # a softmax
    logit: float = 0.7  # each of its logits
    multiply: float = 0.03  # a multiply-add of a matrix product in single precision
    write: float = 0.6  # a cell of its operands


COST = _Cost()

_NARROW = 8  # logits of a target that may be bundled


class BundleSources(NamedTuple):
    """The sources of one set of bundles under one layout."""

    bundles: Bundles
    directed: Directed  # where the tables of the sources lie
    groups: Groups
    counted: Counted | None = None  # rows by the joint states of the sources of each bundle

    @property
    def lanes(self) -> int:
        """Targets of a bundle."""
        return int(self.bundles.member.shape[1])

    @property
    def n_bundles(self) -> int:
        """Number of bundles."""
        return len(self.bundles.member)

    @property
    def widths(self) -> Integers:
        """Numbers that a bundle's logits of one row take."""
        return self.bundles.alternatives * self.lanes


def alternatives_of(states: Integers) -> Integers:
    """Return the width of targets' logits: one per state but the first, rounded up.

    >>> alternatives_of(np.array([1, 2, 3, 5, 9, 10, 70])).tolist()
    [1, 1, 2, 4, 8, 16, 80]
    """
    needed = np.maximum(states - 1, 1)
    powers = 2 ** np.ceil(np.log2(needed)).astype(np.int64)
    return np.where(needed <= _NARROW, powers, -(-needed // LANES) * LANES)


def by_width(states: Integers, targets: Mask) -> list[tuple[Integers, int]]:
    """Return the targets by the width of their logits."""
    widths = np.where(targets, alternatives_of(states), 0)
    return [(np.flatnonzero(widths == width), int(width)) for width in np.unique(widths[targets])]


def bundle(targets: Integers, alternatives: int, lanes: int) -> Bundles:
    """Return the targets in bundles of `lanes`, in order, the last filled up with -1."""
    member = np.full((-(-len(targets) // lanes), lanes), -1, np.int64)
    member.ravel()[: len(targets)] = targets
    return Bundles(member, np.full(len(member), alternatives, np.int64))


def wire(
    layout: Layout, bundles: Bundles, columns: Columns, *, whole: bool = False
) -> BundleSources:
    """Return the sources of each bundle, in groups, or `whole` in one group per bundle.

    A bundle's sources are the neighbours that its members have in `layout`. Joint tables are
    kept an eighth as long as the rows: filling them is then never what takes the time.
    """
    n = layout.n_variables
    n_bundles, lanes = bundles.member.shape
    home = np.full(n, -1, np.int64)
    place = np.zeros(n, np.int64)
    t, lane = np.nonzero(bundles.member >= 0)
    home[bundles.member[t, lane]] = t
    place[bundles.member[t, lane]] = lane
    neighbours = neighbours_of(layout)
    own = home[np.repeat(np.arange(n), np.diff(neighbours.start))]
    here = own >= 0
    keys, inverse = np.unique(own[here] * n + neighbours.other[here], return_inverse=True)
    slots = np.full(len(own), -1, np.int64)
    slots[here] = inverse
    start = np.searchsorted(keys, np.arange(n_bundles + 1) * n).astype(np.int64)
    widths = bundles.alternatives * lanes
    max_codes = np.minimum(max(LANES, columns.codes.shape[1] // 8), ROOM // (8 * widths))
    if whole:
        max_codes[:] = np.iinfo(np.int32).max
    groups = Groups(*pack_groups(start, keys % n, columns.radix, widths, max_codes))
    largest = int(groups.size.max(initial=0))
    if largest > np.iinfo(np.int32).max:
        raise MemoryBudgetError(
            f"the tables of one variable and its neighbours take {8 * largest:,} bytes: "
            "merge rare states"
        )
    width = np.repeat(widths, np.diff(start))
    directed = Directed(bundles, neighbours, slots, place, width, groups.table)
    return BundleSources(bundles, directed, groups)


def estimate(forward: BundleSources | None, scatter: BundleSources | None, itemsize: int) -> float:
    """Return the estimated nanoseconds per row for the logits of one and the sums of the other.

    `itemsize` is the bytes of a logit: lanes of double precision take twice as long.
    """
    total = 0.0
    double = itemsize / 4
    if forward is not None:
        groups, widths = np.diff(forward.groups.start), forward.widths
        total += float((groups * (COST.sum_group + COST.sum_lane * double * widths)).sum())
        total += COST.source * len(forward.groups.source)
        total += float((forward.lanes * COST.column + COST.logit * double * widths).sum())
    if scatter is not None:
        groups, widths = np.diff(scatter.groups.start), scatter.widths
        total += float((groups * (COST.add_group + COST.add_lane * double * widths)).sum())
        if scatter is not forward:
            total += COST.source * len(scatter.groups.source)
    return total


def route(
    layout: Layout, columns: Columns, lanes: int | None = None, but: Mask | None = None
) -> tuple[BundleSources, ...]:
    """Return the cheapest bundles, with their sources, that have every variable as a target once.

    With `lanes`, 1 or 16, that way is taken if it is possible. Variables of `but` are left out.
    """
    widths = alternatives_of(layout.states)
    if but is not None:
        widths[but] = 0
    size = columns.weights.dtype.itemsize
    found = []
    for alternatives in np.unique(widths[widths > 0]):
        targets = np.flatnonzero(widths == alternatives)
        choices = [
            wire(layout, bundle(targets, int(alternatives), count), columns)
            for count in ((1, LANES) if lanes is None else (lanes,))
            if count == 1 or alternatives <= _NARROW
        ] or [wire(layout, bundle(targets, int(alternatives), 1), columns)]
        found.append(min(choices, key=lambda choice: estimate(choice, choice, size)))
    return tuple(found)


MIN_CELLS = 1 << 19  # of a table; the fits of a smaller one take milliseconds anyway
_ROWS_PER_CELL = 4  # of the counts of a target: they take less memory than its residuals


def count_neighbours(layout: Layout, columns: Columns, n_jobs: int) -> tuple[BundleSources, ...]:
    """Return bundles of one target each, with their counts, for all targets that suit them."""
    if columns.codes.size < MIN_CELLS:
        return ()
    first, second = layout.edges.T
    size = np.log(np.maximum(columns.states, 1))  # of joint states, with those of the target
    for own, other in ((first, second), (second, first)):
        size += np.bincount(own, np.log(columns.radix[other]), layout.n_variables)
    few = size <= np.log(max(1, columns.codes.shape[1] // _ROWS_PER_CELL))
    widths = np.where(few & (columns.states > 0), alternatives_of(layout.states), 0)
    found = []
    for alternatives in np.unique(widths[widths > 0]).tolist():
        targets = np.flatnonzero(widths == alternatives)
        sources = wire(layout, bundle(targets, alternatives, 1), columns, whole=True)
        plain = sources.groups._replace(copies=np.ones_like(sources.groups.copies))
        sources = sources._replace(groups=plain)
        found.append(sources._replace(counted=_count(sources, columns, n_jobs)))
    return tuple(found)


def _count(sources: BundleSources, columns: Columns, n_jobs: int) -> Counted:
    sizes = sources.groups.codes * columns.states[sources.bundles.member[:, 0]]
    start = np.concatenate(([0], np.cumsum(sizes)))
    counted = Counted(start, np.empty(int(start[-1])))
    pieces = min(len(sizes), PIECES * n_jobs)
    chosen = [np.arange(k, len(sizes), pieces) for k in range(pieces)]
    run(partial(count_bundles, columns, sources.bundles, sources.groups, counted), chosen, n_jobs)
    return counted
