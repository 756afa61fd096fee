"""Columns as feature maps: states, groups of states, or scores.

A column has a free intercept for every state that occurs but the most common, and its dependence on
others is written in *coordinates*: the scores of an ordered column, or of a nominal one indicators
of its states against the most common. Rare states of a nominal column share an indicator, so that
any two indicators of two columns are expected to meet in `MIN_MEETINGS` rows: with fewer, a cell
costs a degree of freedom and carries no evidence, and chi-squared levels fail. Groups follow from
the margins alone, so tests stay valid; a dependence within a group is not seen by them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgegraft.core.types import Floats, Integers, Mask
from edgegraft.counts.pair_counts import weigh_states
from edgegraft.conditional.features import Features
from edgegraft.table import PackedTable

MIN_MEETINGS = 4.0  # Cochran's rule for chi-squared tests asks for about 5; most cells have more
MAX_GROUPS = 16  # indicators of a column: a pair then has at most 256 degrees of freedom


class Coordinates(NamedTuple):
    """A column in coordinates without redundancy."""

    own: Floats  # (states, k) what its edges see
    free: Floats  # (states, q) indicators of the states that have an intercept
    linear: Mask  # (k,) which coordinates are linear: all of a nominal column
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


def coordinates_of(features: Features | None, i: int, margin: Floats) -> Coordinates:
    """Return the coordinates of a column whose states have these weights."""
    s, common = len(margin), int(margin.argmax())
    rest = np.setdiff1d(np.flatnonzero(margin > 0), [common])
    free = np.zeros((s, len(rest)))
    free[rest, np.arange(len(rest))] = 1.0
    if features is not None and features.widths[i] < s:
        own = np.ascontiguousarray(features.matrix(i)[:, : len(rest)])
        return Coordinates(own, free, np.arange(own.shape[1]) < 1, margin)
    own = np.zeros((s, 0))
    if len(rest):
        group = _groups(margin[rest], float(margin.sum()))
        own = np.zeros((s, int(group.max()) + 1))
        own[rest, group] = 1.0
    return Coordinates(own, free, np.ones(own.shape[1], bool), margin)


def _groups(weights: Floats, total: float) -> Integers:
    """Return the group of each state: common states alone, rare ones together.

    >>> _groups(np.array([300.0, 10.0, 200.0, 30.0, 40.0]), 1000.0)
    array([2, 0, 1, 0, 0])
    """
    least = (MIN_MEETINGS * total) ** 0.5
    if len(weights) > MAX_GROUPS:
        least = max(least, float(weights.sum()) / MAX_GROUPS)
    group, n, held = np.zeros(len(weights), np.int64), 0, 0.0
    for k in np.argsort(weights, kind="stable").tolist():
        group[k] = n
        held += weights[k]
        if held >= least:
            n, held = n + 1, 0.0
    if n and held:  # what is left over joins the group before
        group[group == n] = n - 1
    return group
