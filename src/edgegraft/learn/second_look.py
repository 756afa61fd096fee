"""What a forward search misses: a second look with sharper weights, and a fit of all pairs.

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

Edges that matter only together (two near-copies with opposite effects), and those of columns that
their neighbours nearly determine, have small scores until the others are in the model. A fit of all
pairs under a small group-l1 penalty, ended early, ranks them. It costs as much as all pairs do, so
it is for tables of moderate size.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from edgegraft.core.adjacency import neighbours_of
from edgegraft.core.pairs import all_pairs, pair_ids
from edgegraft.core.types import Edges, Floats
from edgegraft.device.pseudolikelihood import unexplained_on_device
from edgegraft.grafting.journal import Journal
from edgegraft.grafting.state import SearchState
from edgegraft.kernels.conditionals.row_conditionals import log_conditionals
from edgegraft.learn.feature_conditionals import FeatureConditionals
from edgegraft.model import PairwiseMRF
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalties import MIN_ROWS, NoisePenalty
from edgegraft.objective.penalty import Penalty
from edgegraft.optimize.solver import Stopping, minimize
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
    cells, layout = table.codes(), model.layout
    graph = layout.states, layout.node_offset, neighbours_of(layout)
    for first in range(0, table.n_rows, _BLOCK):
        rows = slice(first, first + _BLOCK)
        # In the order of other callers: one kernel serves all.
        codes = np.ascontiguousarray(cells[rows], np.int64)
        out, scratch = np.empty(codes.shape), np.empty(layout.states.max(initial=0))
        # As in the search, edges of missing cells are left out.
        log_conditionals(model.theta, codes, *graph, scratch, out)
        right += whole[rows] @ np.nan_to_num(np.exp(out))
        known += whole[rows] @ (codes >= 0)
    return np.asarray(1.0 - right / np.maximum(known, np.finfo(float).tiny))


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


_LEVEL = 0.2  # penalty per cell, in units of 1 / sqrt(rows)
_RIDGE = 1e-6
_STOPPING = Stopping(tol=1e-3, max_iter=200)  # the early end is part of the method
_STANDS_OUT = 2.0  # times the median strength of pairs that have one
_MAX_WORK = 4e8  # cells of all pairs times rows: a few seconds


class JointStrengths(NamedTuple):
    """All pairs with their strengths in the fit of all pairs."""

    pairs: Edges
    strengths: Floats

    @property
    def background(self) -> float:
        """Strength up to which pairs do not stand out.

        In cold models all columns nearly agree, and all pairs share a little of what couples them.
        """
        some = self.strengths[self.strengths > 0]
        return _STANDS_OUT * float(np.median(some)) if len(some) else 0.0

    def of(self, edges: Edges) -> Floats:
        """Return the strengths of some pairs."""
        n = int(self.pairs.max()) + 1
        place = np.searchsorted(pair_ids(self.pairs, n), pair_ids(edges, n))
        return self.strengths[place]

    def strongest(self, count: int) -> Edges:
        """Return the strongest pairs; fewer if others are zero."""
        order = np.argsort(-self.strengths, kind="stable")[:count]
        return self.pairs[order[self.strengths[order] > 0]]


def is_affordable(objective: Objective) -> bool:
    """Return whether a fit of all pairs takes no more than a few seconds; a likelihood's does."""
    if objective.terms != 2:
        return False
    states = objective.schema.n_states.astype(float)
    cells = (states.sum() ** 2 - (states**2).sum()) / 2
    return bool(cells * objective.n_rows <= _MAX_WORK)


def fit_jointly(objective: Objective, journal: Journal) -> JointStrengths:
    """Fit all pairs at once."""
    schema = objective.schema
    layout = objective.layout(all_pairs(len(schema)))
    rule = Penalty(_LEVEL / float(np.sqrt(objective.n_rows)), _RIDGE)

    def strengths() -> Floats:
        found = minimize(
            objective, rule, layout, stopping=_STOPPING, quiet=True, watch=journal.watch
        )
        theta = objective.expand(found.theta, layout)
        return PairwiseMRF(schema, layout.edges, theta).edge_strengths()

    return JointStrengths(layout.edges, journal.step(strengths))
