"""Tables that turn a Gibbs update into a few row lookups.

The conditional of variable ``i`` is ``p(x_i = a | rest) ~ exp(u_i(a) + sum_j w_ij(a, x_j))``.
Neighbours are taken in groups with at most `max_rows` joint states, and for each joint state of a
group one row over ``a`` is computed beforehand:

- a variable whose neighbours fit one group has its whole conditional in the row, stored as
  cumulative probabilities: a draw is one lookup and a count of the thresholds passed;
- with several groups, a row holds ``exp`` of the group's terms divided by the row's maximum, and
  the conditional is the product of one row from each group: multiplications, never an ``exp``.

Rows are padded to whole vectors. A log-potential of minus infinity becomes `FLOOR`: in a state of
probability zero the conditional then prefers the values that break the fewest constraints, and a
chain walks to where the model lives; elsewhere ``exp(FLOOR) == 0`` and nothing changes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgegraft.kernels.compiler import helper, kernel
from edgegraft.kernels.conditionals.lookup import pack_groups
from edgegraft.kernels.conditionals.row_conditionals import Neighbours

FLOOR = -1e8
#: A cumulative probability that no uniform number reaches.
NEVER = 2.0
#: Joint states of a group, and how many values the tables may then have: the largest groups are
#: the fastest while the tables stay in the cache of a core and its neighbours (16 MB), middling
#: ones as long as memory allows (256 MB). With 5 states the groups have 3, 2 and 1 neighbours.
GROUP_SIZES = ((128, 1 << 21), (32, 1 << 25), (1, 1 << 62))


class GibbsTables(NamedTuple):
    """Wiring and values; entry ``e`` is one neighbour of one variable, in both directions."""

    states: np.ndarray  # (n,) number of states
    width: np.ndarray  # (n,) length of a padded row
    node_offset: np.ndarray  # (n + 1,) into theta
    group_start: np.ndarray  # (n + 1,) groups of a variable
    group_entry: np.ndarray  # (g + 1,) entries of a group
    group_value: np.ndarray  # (g + 1,) first value of a group
    neighbour: np.ndarray  # (2m,) the other variable
    step: np.ndarray  # (2m,) how far its state moves the row, in values
    table: np.ndarray  # (2m,) where its edge table starts in theta
    other_stride: np.ndarray  # (2m,) of the table, along the neighbour's states
    own_stride: np.ndarray  # (2m,) of the table, along the variable's states
    theta: np.ndarray  # flat log-potentials, not below FLOOR
    values: np.ndarray  # rows of cumulative probabilities or of weights


def tabulate(
    states: np.ndarray,
    node_offset: np.ndarray,
    neighbours: Neighbours,
    theta: np.ndarray,
    max_rows: int | None = None,
) -> GibbsTables:
    """Build the tables of a model; `max_rows` = 1 keeps every neighbour in a group of its own.

    Merged groups make updates cheaper and tables larger; without `max_rows` the first of
    `GROUP_SIZES` that keeps its budget is taken.
    """
    states, plain = np.array(states), np.ones(len(states), np.int64)
    for rows, budget in GROUP_SIZES if max_rows is None else ((max_rows, 0),):
        groups = pack_groups(neighbours.start, neighbours.other, states, plain, rows * plain)
        n_groups = np.diff(groups.start)
        width = np.maximum((states - (n_groups == 1) + 3) // 4 * 4, 4)
        sizes = groups.codes * np.repeat(width, n_groups)
        if sizes.sum() <= budget:
            break
    tables = GibbsTables(
        states,
        width,
        np.array(node_offset),
        groups.start,
        groups.source_start,
        np.concatenate(([0], np.cumsum(sizes))),
        neighbours.other,
        groups.step * np.repeat(width, np.diff(neighbours.start)),
        neighbours.table,
        neighbours.step,
        neighbours.own_step,
        np.empty(len(theta)),
        np.empty(int(sizes.sum())),
    )
    refill(tables, np.asarray(theta, np.float64))
    return tables


@kernel
def refill(tables, theta):
    """Work the values out anew for other log-potentials over the same edges."""
    for p in range(len(theta)):
        tables.theta[p] = max(theta[p], FLOOR)
    scores = np.empty(tables.states.max())
    for i in range(len(tables.states)):
        first, last = tables.group_start[i], tables.group_start[i + 1]
        s, width = tables.states[i], tables.width[i]
        for g in range(first, last):
            for at in range(tables.group_value[g], tables.group_value[g + 1], width):
                _row_scores(tables, i, g, at - tables.group_value[g], scores)
                row = tables.values[at : at + width]
                if last - first == 1:
                    _write_cumulative(scores, s, row)
                else:
                    _write_weights(scores, s, row)


@helper
def _row_scores(tables, i, g, position, scores):
    """Log terms of group `g` in the joint state whose row starts at `position`."""
    s = tables.states[i]
    for a in range(s):
        scores[a] = tables.theta[tables.node_offset[i] + a] if g == tables.group_start[i] else 0.0
    for e in range(tables.group_entry[g], tables.group_entry[g + 1]):
        x = position // tables.step[e] % tables.states[tables.neighbour[e]]
        at = tables.table[e] + x * tables.other_stride[e]
        for a in range(s):
            scores[a] += tables.theta[at + a * tables.own_stride[e]]


@helper
def _write_weights(scores, s, row):
    row[:] = 0.0
    top = scores[:s].max()
    for a in range(s):
        row[a] = np.exp(scores[a] - top)


@helper
def _write_cumulative(scores, s, row):
    row[:] = NEVER
    top = scores[:s].max()
    total = 0.0
    last = 0
    for a in range(s):
        scores[a] = np.exp(scores[a] - top)
        total += scores[a]
        if scores[a] > 0.0:
            last = a
    # From the last possible state on nothing is passed, so rounding never leaks past it.
    running = 0.0
    for a in range(last):
        running += scores[a]
        row[a] = running / total
