"""Conditionals of columns of many states, whose tests are those of groups of states.

A conditional of ``d`` neighbours of 21 states has ``20 (1 + 20 d)`` parameters, and a test of an
edge inverts their information. So the states of a column are put together, twice:

- *as a target and as the end of a tested edge* in a few groups, so large that two of them are
  expected to meet in enough rows. A table is tested by the differences between groups.
- *as another neighbour* in smaller groups, since what a neighbour explains must be removed from
  the score, or else its neighbours seem to depend on each other.

Expected states are those of the whole model; only scores and their information are of groups. What
differs within a group of the target is nearly uncorrelated with what differs between groups, and
exactly if the shares within the group are the same in all rows. Groups follow from the margins
alone, so that tests stay valid; a dependence within groups alone is not seen.

Tests are made at zero: a fitted table of 400 cells, some of them empty, has variances of its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core import Layout
from edgegraft.core.types import Floats, Integers
from edgegraft.learn.conditional import Conditional, contrast_basis
from edgegraft.learn.rare_states import Rarity
from edgegraft.learn.table_conditionals import TableConditionals
from edgegraft.table import PackedTable

MAX_ALONE = 10
"""States of a column up to which none are put together."""

_MIN_SHARE = 1 / 16  # of the rows in a group of a tested column
_MEETINGS = 20.0  # expected rows in which two groups meet
_FINER = 4  # times smaller groups of other neighbours


class _Groups(NamedTuple):
    """The states of one column in groups; -1 is the reference, and states that do not occur."""

    own: Integers  # (states + 1,) group of a state, as a target and in tests
    seen: Integers  # (states + 1,) smaller group, as another neighbour
    within: Integers  # (smaller groups,) their larger groups
    pool: Floats  # (kept states, groups) sums of states without the reference
    sums: Floats  # (groups, smaller groups) sums of smaller groups
    own_mean: Floats  # (groups, kept states) means of contrasts to the reference
    seen_mean: Floats  # (smaller groups, kept states)


class PooledConditionals(TableConditionals):
    """The rows of a table, of which columns have many states.

    Parameters
    ----------
    table, weights, **options
        As in :class:`~edgegraft.learn.table_conditionals.TableConditionals`, except for `device`.
    """

    at_fit = False

    def __init__(
        self, table: PackedTable, weights: ArrayLike | None = None, **options: Any
    ) -> None:
        super().__init__(table, weights, **options)
        total = float(self.weights.sum())
        least = max(_MIN_SHARE * total, np.sqrt(_MEETINGS * total))
        self._groups = [
            _find_groups(shown, kept, int(first), least)
            for shown, kept, first in zip(self.shown, self.kept, self.reference, strict=True)
        ]
        self.sizes = np.array([len(own.sums) for own in self._groups], np.int64)
        self._seen = np.array([len(own.within) for own in self._groups], np.int64)
        each = zip(self.shown, self._groups, strict=True)
        rows = [np.bincount(groups.own[:-1] + 1, shown).astype(float) for shown, groups in each]
        single = (self.sizes == 1) & (self._seen == 1)
        self.rarity = Rarity.of(rows, total)._replace(single=single)

    def place_of(self, i: int) -> Integers:
        """Return the group of each row's state, -1 for the reference."""
        return np.asarray(self._groups[i].own[self.codes[i]])

    def seen_place_of(self, i: int) -> Integers:
        """Return the smaller group of each row's state, -1 for the reference."""
        return np.asarray(self._groups[i].seen[self.codes[i]])

    def within(self, other: int) -> Integers:
        """Return which tested group each design column of a neighbour belongs to."""
        return self._groups[other].within

    def basis_in(self, node: Conditional, other: int) -> Floats:
        """Return the matrix from the parameters of a pair in a conditional to those of groups."""
        i = node.target
        one, across = (contrast_basis(int(self.sizes[v])) for v in (i, other))
        across = across @ self._groups[other].sums
        return np.asarray(np.kron(across, one) if other < i else np.kron(one, across), float)

    def expect(
        self, node: Conditional, first: int = 0, n: int | None = None
    ) -> tuple[Floats, Floats]:
        """Return observed minus expected groups of rows, and the expected ones."""
        pool = self._groups[node.target].pool
        shown, p = self.expect_states(node, first, n)
        return shown @ pool, p @ pool

    def coefficients_of(self, node: Conditional, other: int) -> slice:
        """Return the coefficients of a neighbour's states."""
        sources = node.design.sources
        start = np.cumsum(np.concatenate(([1], self.n_kept[sources])))
        k = int(np.flatnonzero(sources == other)[0])
        return slice(int(start[k]), int(start[k + 1]))

    def weights_of(self, node: Conditional, other: int) -> Floats:
        """Return the mean coefficients of the groups of a neighbour."""
        table = node.coefficients[self.coefficients_of(node, other)]
        return self._groups[other].seen_mean @ table @ self._groups[node.target].own_mean.T

    def table_of(self, node: Conditional, other: int) -> Floats:
        """Return the mean table of a neighbour's groups by the own ones, the references last."""
        table = node.coefficients[self.coefficients_of(node, other)]
        table = self._groups[other].own_mean @ table @ self._groups[node.target].own_mean.T
        return np.pad(table, ((0, 1), (0, 1)))

    def read(self, i: int, layout: Layout, theta: Floats, edges: Integers) -> Conditional:
        """Return a conditional at the parameters of a model, without its information."""
        node = super().read(i, layout, theta, edges)
        sources, q = node.design.sources, int(self.sizes[i])
        start = np.cumsum(np.concatenate(([1], self._seen[sources])))
        places = [self._groups[j].seen for j in sources.tolist()]
        design = self.design(i, self._groups[i].own, sources, places)
        return replace(node, design=design, start=start, shape=(q, q), of_states=node.design)

    def spread(self, node: Conditional, moved: Floats) -> Floats:
        """Return how the coefficients of states move with the parameters of their groups."""
        i, padded = node.target, np.pad(moved, ((0, 1), (0, 1)))
        rows = [np.zeros(1, np.int64)]
        for j, first in zip(node.design.sources.tolist(), node.start.tolist(), strict=False):
            seen = self._groups[j].seen[self.kept[j]]
            rows.append(np.where(seen < 0, -1, first + seen))
        return padded[np.ix_(np.concatenate(rows), self._groups[i].own[self.kept[i]])]

    def whole_table(self, i: int, j: int, values: Floats) -> Floats:
        """Return values of the tested contrasts of a pair as a table of all states."""
        own = (self._groups[v].own[: self.states[v]] for v in (i, j))
        return np.pad(values, ((0, 1), (0, 1)))[np.ix_(*own)]


def conditionals_of(
    table: PackedTable, weights: ArrayLike | None = None, **options: Any
) -> TableConditionals:
    """Return the conditionals of nominal columns: of whole tables, or of groups of many states."""
    if table.schema.n_states.max(initial=0) <= MAX_ALONE:
        return TableConditionals(table, weights, **options)
    options.pop("device", None)  # groups are summed on the processor
    return PooledConditionals(table, weights, **options)


def group_states(shown: Floats, least: float) -> Integers:
    """Return the group of each state by the rows that show it; -1 if none do.

    A state of at least so many rows is alone. The others are put together in their order until they
    have as many, so that columns of the same states and alike margins have the same groups.

    Examples
    --------
    >>> group_states(np.array([50, 3, 4, 0, 20, 4, 2]), 7)
    array([ 0,  2,  2, -1,  1,  2,  2])
    """
    found = np.full(len(shown), -1, np.int64)
    alone = np.flatnonzero(shown >= max(least, np.finfo(float).tiny))
    found[alone] = np.arange(len(alone))
    group, rows = len(alone), 0.0
    for state in np.flatnonzero((shown > 0) & (found < 0)).tolist():
        found[state], rows = group, rows + shown[state]
        if rows >= least:
            group, rows = group + 1, 0.0
    if rows > 0 and group > len(alone):  # the last are too few: they join those before
        found[found == group] = group - 1
    return found


def _find_groups(shown: Floats, kept: Integers, reference: int, least: float) -> _Groups:
    """Return the groups of a column; those of the most common state are the reference."""
    few = len(kept) + 1 <= MAX_ALONE
    fine = group_states(shown, 0.0 if few else least / _FINER)
    rows = np.bincount(fine[fine >= 0], shown[fine >= 0]).astype(float)
    coarse = group_states(rows, 0.0 if few else least)
    own = np.append(coarse, -1)[fine]
    seen, own = (np.append(_beside(group, reference), -1) for group in (fine, own))
    q, n_seen = int(own.max()) + 1, int(seen.max()) + 1
    within = np.full(n_seen, -1, np.int64)
    within[seen[seen >= 0]] = own[:-1][seen[:-1] >= 0]
    return _Groups(
        own,
        seen,
        within,
        (own[kept][:, None] == np.arange(q)).astype(float),
        (within == np.arange(q)[:, None]).astype(float),
        *(_means(group, shown, kept) for group in (own, seen)),
    )


def _beside(group: Integers, reference: int) -> Integers:
    """Return groups without that of the reference, which is -1, numbered from zero."""
    group = np.where(group == group[reference], -1, group)
    return np.where(group < 0, -1, np.searchsorted(np.unique(group[group >= 0]), group))


def _means(group: Integers, shown: Floats, kept: Integers) -> Floats:
    """Return the matrix from contrasts of states to mean contrasts of groups to the reference."""
    share = (group[:-1] == np.arange(-1, group.max() + 1)[:, None]) * shown
    share /= np.maximum(share.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return np.asarray((share[1:] - share[0])[:, kept])
