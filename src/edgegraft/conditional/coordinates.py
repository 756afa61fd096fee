"""Columns as feature maps: states, groups of states, or scores.

A column has a free intercept for every state that occurs but the most common, and its dependence on
others is written in *coordinates*: the scores of an ordered column, or of a nominal one indicators
of its states against the most common. Of many states the rarest share an indicator.

A pair is tested in fewer directions: the rare states of a nominal column are taken together until
two groups of two columns are expected to meet in `MIN_MEETINGS` rows. With fewer, a cell costs a
degree of freedom, carries no evidence, and chi-squared levels fail. Other neighbours keep their
coordinates, since what they explain must be removed. Groups follow from the margins alone, so tests
stay valid; a dependence within a group is not seen by them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgegraft.conditional.features import Features
from edgegraft.core.types import Floats, Integers, Mask
from edgegraft.counts.pair_counts import weigh_states
from edgegraft.table import PackedTable

MIN_MEETINGS = 4.0  # Cochran's rule for chi-squared tests asks for about 5; most cells have more
MIN_ROWS = 20.0  # of a group that is left over: with fewer, chance is not Gaussian
MAX_STATES = 10  # indicators of a column (a budget): the information has 10^4 cells for a pair


class Coordinates(NamedTuple):
    """A column in coordinates without redundancy."""

    own: Floats  # (states, k) what its edges see
    free: Floats  # (states, q) indicators of the states that have an intercept
    #: (k, g) sums of coordinates in which pairs are tested
    tested: Floats
    linear: Mask  # (g,) which of these are linear: all of a nominal column
    margin: Floats  # (states,) weight of the rows

    @property
    def scored(self) -> bool:
        """Whether a part of the coordinates is tested beside the linear ones."""
        return not self.linear.all()


def state_weights(table: PackedTable, weights: Floats) -> list[Floats]:
    """Return the weight of the rows in each state of each column."""
    states = table.schema.n_states
    counts = weigh_states(table.cells[:, : table.n_rows], weights, states)
    return np.split(counts, np.cumsum(states)[:-1])


def coordinates_of(
    features: Features | None, i: int, margin: Floats, n_linear: int = 1
) -> Coordinates:
    """Return the coordinates of a column whose states have these weights."""
    s, common = len(margin), int(margin.argmax())
    rest = np.setdiff1d(np.flatnonzero(margin > 0), [common])
    free = np.zeros((s, len(rest)))
    free[rest, np.arange(len(rest))] = 1.0
    if features is not None and features.widths[i] < s:
        own = np.ascontiguousarray(features.matrix(i)[:, : len(rest)])
        own[margin == 0] = own[common]  # without an intercept it shares the common state's
        k = own.shape[1]
        return Coordinates(own, free, np.eye(k), np.arange(k) < n_linear, margin)
    weights, total = margin[rest], float(margin.sum())
    group = np.arange(len(rest))
    if len(rest) > MAX_STATES:
        group = group_states(weights, float(weights.sum()) / MAX_STATES)
        group = np.maximum(group, 0)
    own = np.zeros((s, int(group.max(initial=-1)) + 1))
    own[rest, group] = 1.0
    held = np.bincount(group, weights).astype(np.float64)
    group = group_states(held, (MIN_MEETINGS * total) ** 0.5)
    tested = (group[:, None] == np.arange(int(group.max(initial=-1)) + 1)).astype(float)
    return Coordinates(own, free, tested, np.ones(tested.shape[1], bool), margin)


def group_states(weights: Floats, least: float) -> Integers:
    """Return the group of each state: those of some weight alone, rarer ones together.

    What is left over has -1 if it is too little for a group; the last state never has.

    >>> group_states(np.array([300.0, 10.0, 200.0, 30.0, 40.0]), 60.0)
    array([2, 0, 1, 0, 0])
    >>> group_states(np.array([300.0, 10.0, 200.0]), 60.0)
    array([ 1, -1,  0])
    """
    order = np.argsort(weights, kind="stable")
    rare = order[weights[order] < least]
    group, n, held = np.full(len(weights), -1, np.int64), 0, 0.0
    for k in rare.tolist():
        group[k] = n
        held += weights[k]
        if held >= least:
            n, held = n + 1, 0.0
    if held >= MIN_ROWS or (held and len(rare) == len(weights)):
        n += 1
    group[group == n] = -1
    common = order[len(rare) :]
    group[common] = n + np.arange(len(common))
    return group
