"""Scores of pairs in units of the noise that the fitted model leaves.

The noise of a pair's gradient follows the variance of its columns that the model leaves
unexplained. If neighbours nearly determine a column (a hub of strong edges), its true edges have
gradients far below the noise of the margins. So after every fit the weights of the pairs are taken
from the conditionals,

    v_i = mean over rows of var(phi_i | rest) / var(phi_i),

which is 1 for a column without edges; `phi` are the states of a nominal column and the linear score
of an ordered one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from edgegraft.conditional.features import Features
from edgegraft.core import Layout
from edgegraft.core.adjacency import neighbours_of
from edgegraft.core.types import Floats
from edgegraft.kernels.conditionals.row_conditionals import state_conditionals
from edgegraft.objective.noise import noise_weights
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import Penalty
from edgegraft.table.blocks import TableRows

_CELLS = 1 << 24  # probabilities that are averaged: a tenth of a second
_MIN_ROWS, _MAX_ROWS = 256, 4096  # a mean over these has an error of 6 % at most, and of 1.5 %


def reweighed(rule: Penalty, objective: Objective, theta: Floats, layout: Layout) -> Penalty:
    """Return a penalty with the noise that fitted parameters leave, if it has noise weights."""
    rows = sample_of(objective)
    if rule.group_weight != "noise" or rows is None:
        return rule
    tables = objective.expand(theta, layout)
    left = unexplained(rows, tables, Layout(layout.states, layout.edges), objective.features)
    return replace(rule, noise=noise_weights(objective, left))


def sample_of(objective: Objective) -> TableRows | None:
    """Return the rows of a loss that are in memory, or those of its stand-in."""
    for loss in (objective, objective.stand_in):
        if loss is not None and isinstance(loss.rows, TableRows):
            return loss.rows
    return None


def unexplained(
    rows: TableRows, theta: Floats, layout: Layout, features: Features | None = None
) -> Floats:
    """Return ``v_i`` of every column of a model of tables, over some of the rows.

    >>> from edgegraft.table import PackedTable
    >>> rows = TableRows(PackedTable.from_codes([[0, 0], [1, 1]] * 4))
    >>> unexplained(rows, np.array([0, 0, 0, 0, 1, -1, -1, 1.0]), Layout([2, 2], [(0, 1)])).round(3)
    array([0.42, 0.42])
    """
    n_rows, states = rows.table.n_rows, layout.states
    size = int(np.clip(_CELLS // max(int(states.sum()), 1), _MIN_ROWS, _MAX_ROWS))
    chosen = np.arange(n_rows)
    if n_rows > size:
        chosen = np.sort(np.random.default_rng(0).choice(n_rows, size, replace=False))
    # As in the search, edges of missing cells are left out.
    cells = rows.table.cells[:, chosen].T.astype(np.int64)
    codes = np.ascontiguousarray(np.where(cells < states, cells, -1))
    weights = np.ones(len(codes)) if rows.weights is None else rows.weights[chosen]
    neighbours = neighbours_of(layout)
    out = np.ones(layout.n_variables)
    for i in np.flatnonzero(np.diff(neighbours.start)).tolist():
        known = weights * (codes[:, i] >= 0)
        p = np.empty((len(codes), int(states[i])))
        state_conditionals(theta, codes, i, states, layout.node_offset, neighbours, p)
        phi = np.eye(int(states[i]))
        if features is not None and features.widths[i] < states[i]:
            phi = features.matrix(i)[:, :1]
        mean = p @ phi
        left = float(known @ (p @ phi**2 - mean**2).sum(axis=1))
        margin = known @ phi[np.maximum(codes[:, i], 0)]
        total = max(float(known.sum()), np.finfo(float).tiny)
        squares = known @ (phi**2)[np.maximum(codes[:, i], 0)]
        whole = float((squares - margin**2 / total).sum())
        out[i] = min(left / whole, 1.0) if whole > 0 else 1.0
    return out
