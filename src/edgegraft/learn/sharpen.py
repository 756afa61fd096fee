"""A second look at pairs whose ends are nearly determined by their neighbours.

The noise of a pair's gradient follows the variance that the model leaves unexplained, and noise
weights are computed before there is a model, from the margins. If neighbours nearly determine a
variable (a hub of strong edges), its true edges have gradients far below those weights and stay
out. Once the search has ended, the weights are taken from the conditionals instead,

    v_i = mean over rows of 1 - p(x_i | rest),

which is ``1 - sum_a p_i(a)^2`` for a variable without edges, and the search continues with them.
The threshold doubles: these weights are estimates from the rows that chose the edges, and the edges
that are missed exceed it by far. They are few: when a second look has added half as many edges
again, and one per variable, it ends. Columns that nearly determine each other let in thousands, for
the tests to cut.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from edgegraft.core.adjacency import neighbours_of
from edgegraft.core.types import Floats, Integers
from edgegraft.device.pseudolikelihood import unexplained_on_device
from edgegraft.kernels.conditionals.row_conditionals import log_conditionals
from edgegraft.learn.feature_conditionals import FeatureConditionals
from edgegraft.learn.state import SearchState
from edgegraft.model import PairwiseMRF
from edgegraft.objective.penalties import MIN_ROWS, NoisePenalty
from edgegraft.table import PackedTable
from edgegraft.table.blocks import TableRows

FACTOR = 2.0
TESTS_PER_VARIABLE = 50  # between two activations: few edges are left to find
_BLOCK = 8192  # rows whose conditionals are held at a time


def unexplained(model: PairwiseMRF, table: PackedTable, weights: Floats | None = None) -> Floats:
    """Return ``v_i`` of every variable: the mean chance that its conditional gives another state.

    Rows count by `weights`; missing cells do not count.

    >>> table = PackedTable.from_codes([[0, 0], [1, 1]] * 4)
    >>> model = PairwiseMRF(table.schema, np.empty((0, 2), int), np.zeros(4))
    >>> unexplained(model, table)
    array([0.5, 0.5])
    """
    whole = np.ones(table.n_rows) if weights is None else np.asarray(weights, np.float64)
    right, known = np.zeros((2, len(table.schema)))
    cells = table.codes()
    for first in range(0, table.n_rows, _BLOCK):
        rows = slice(first, first + _BLOCK)
        codes = cells[rows].astype(np.int64)
        chance = np.exp(_conditionals(model, codes))
        right += whole[rows] @ np.nan_to_num(chance)
        known += whole[rows] @ (codes >= 0)
    return np.asarray(1.0 - right / np.maximum(known, np.finfo(float).tiny))


def _conditionals(model: PairwiseMRF, codes: Integers) -> Floats:
    """Return ``log p(x_i | rest)``; as in the search, edges of missing cells are left out."""
    layout, out = model.layout, np.empty(codes.shape)
    graph = layout.states, layout.node_offset, neighbours_of(layout)
    log_conditionals(model.theta, codes, *graph, np.empty(layout.states.max(initial=0)), out)
    return out


def sharpen(state: SearchState, sample: TableRows) -> SearchState:
    """Return a search, ready to run, with the weights that the model of `state` asks for."""
    rule, settings, table, weights = state.penalty, state.settings, sample.table, sample.weights
    if not isinstance(rule, NoisePenalty) or rule.noise is None:
        raise ValueError("only noise weights can be sharpened: use group_weight='noise'")
    least = min(0.5, MIN_ROWS / state.objective.n_rows)
    left, features, layout = np.zeros(0), state.objective.features, state.graph.layout
    if not layout.scored.all():
        model = state.model()
        if sample.device is None:
            left = unexplained(model, table, weights)
        else:
            left = unexplained_on_device(sample, model.theta, model.layout)
    if features is not None:
        rows = FeatureConditionals(table, features, weights)
        whole = layout.widths * rows.unexplained(layout, state.theta())
        left = np.where(layout.scored, whole, left) if len(left) else whole
    spread = np.sqrt(np.maximum(left * state.objective.known_shares(), least))
    sharper = replace(rule.noise, spread=np.minimum(spread, rule.noise.spread))
    problem = state.problem.changed(
        penalty=replace(rule, penalty=FACTOR * rule.penalty, noise=sharper),
        settings=replace(settings, max_tests=TESTS_PER_VARIABLE * len(spread)),
    )
    after = state.warm(problem)
    after.sharpened = max(1, len(state.graph))
    return after
