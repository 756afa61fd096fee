"""Missing cells drawn from a model, given the known cells of their rows.

A pseudolikelihood that leaves out unknown neighbours is that of another model, and few rows know a
whole neighbourhood. So once a search has ended, missing cells are drawn from the model of the kept
edges, the rows so completed are fitted and tested, and again with draws from that fit. Draws are
Gibbs sweeps over the missing cells that go on from one model to the next (stochastic EM). A fit to
drawn cells returns what they were drawn from, so the tables of a fit take a further step by the
rows that know both of their ends: without it, hundreds of rounds may be needed.

A drawn cell is not evidence: an edge is tested in the rows that know both of its ends. Their other
neighbours may be drawn, since a row whose missing cells are drawn given the others is a row of the
model. What the model lacks is lacking in the draws too, so edges that were cut stay candidates.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from edgegraft.conditional.conditional import Conditional, start_from_tables
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.core import Layout
from edgegraft.core.adjacency import neighbours_of
from edgegraft.core.threads import resolve_jobs, run
from edgegraft.core.types import Floats, Mask, Tree
from edgegraft.grafting.loop import adopt
from edgegraft.grafting.problem import losses
from edgegraft.grafting.state import SearchState
from edgegraft.kernels.conditionals.row_conditionals import sweep_cells
from edgegraft.learn.confirm import Confirmation, confirm, test_all
from edgegraft.learn.stages import Stages
from edgegraft.model import PairwiseMRF
from edgegraft.objective.penalty import Penalty
from edgegraft.optimize.solver import Stopping, minimize
from edgegraft.table import PackedTable
from edgegraft.table.blocks import TableRows
from edgegraft.table.packed import Cells

_ROUNDS = 4  # of tests
_FITS = 3  # before the tests of a round
_SWEEPS = 10  # of a draw
_RIDGE_ROWS = 0.1
_STOPPING = Stopping(1e-3, 100)
_MAX_MOVE = 2.0  # log-odds of a step: a pair that hardly anyone knows must not run away
_BLOCK = 4096  # rows drawn at a time
_MAX_STATES = 32
_MAX_ROWS, _MAX_CELLS = 1 << 20, 1 << 26  # with a row for each of equal ones


class Completion:
    """The rows of a table with their missing cells drawn.

    `frequencies`: whether weights are numbers of equal rows, whose cells are drawn one by one.
    `known` are the cells that were not drawn.
    """

    def __init__(self, rows: TableRows, frequencies: bool, rng: np.random.Generator) -> None:
        codes, weights = rows.table.codes().astype(np.int64), rows.weights
        if frequencies and weights is not None:
            codes = np.repeat(codes, weights.astype(np.int64), axis=0)
            weights = None
        self.known: Mask = codes >= 0
        self._rows, self._weights, self._rng = rows, weights, rng
        self._codes = codes
        gaps = ~self.known
        self._starts = np.concatenate(([0], np.cumsum(gaps.sum(axis=1))))
        self._cells = np.nonzero(gaps)[1]
        shares = [
            np.log(np.bincount(column[column >= 0], minlength=s) + 1.0)
            for column, s in zip(codes.T, rows.schema.n_states.tolist(), strict=True)
        ]
        self._sweep(Layout(rows.schema.n_states), np.concatenate(shares), 1)

    @classmethod
    def of(cls, stages: Stages) -> Completion:
        """Return the rows of a run, seeded by its plan."""
        rng = np.random.default_rng([stages.plan.random_state, 3])
        return cls(stages.sample, stages.has_frequencies, rng)

    def draw(self, model: PairwiseMRF) -> TableRows:
        """Return the rows with their missing cells drawn from a model."""
        self._sweep(model.layout, model.theta, _SWEEPS)
        return self._completed()

    @property
    def cells(self) -> Cells:
        """The cells that were drawn last, for :meth:`fill`."""
        smallest = np.uint8 if self._rows.schema.n_states.max(initial=0) < 256 else np.uint16
        return self._codes[~self.known].astype(smallest)

    def fill(self, cells: Cells) -> TableRows:
        """Return the rows with cells that were drawn before."""
        self._codes[~self.known] = cells
        return self._completed()

    def _completed(self) -> TableRows:
        table = PackedTable.from_codes(self._codes, self._rows.schema)
        return TableRows(table, self._weights, self._rows.n_jobs)

    def _sweep(self, layout: Layout, theta: Floats, n_sweeps: int) -> None:
        """Draw every missing cell some times, given all others of its row."""
        neighbours = neighbours_of(layout)
        for first in range(0, len(self._codes), _BLOCK):
            rows = slice(first, min(first + _BLOCK, len(self._codes)))
            starts = self._starts[first : rows.stop + 1]
            uniform = self._rng.random((n_sweeps, int(starts[-1] - starts[0])))
            sweep_cells(
                theta, self._codes[rows], self._cells, starts, layout.states, layout.node_offset,
                neighbours, np.ones(n_sweeps), uniform,
            )  # fmt: skip


def decide(search: SearchState, stages: Stages) -> tuple[SearchState, Confirmation]:
    """Return the tested network, and the search over the rows that it was tested on.

    If the plan cuts edges by tests, missing cells are drawn from the model of the kept ones, edges
    are tested again, and so on. Only cells of nominal columns are drawn, and of rows in memory.
    """
    tree = stages.file.stage("decisions", partial(_decide, search, stages))
    if tree["cells"] is not None:
        search = _fill(search, stages, Completion.of(stages), tree["cells"])
    adopt(search, tree["tests"]["edges"])
    return search, Confirmation.of_tree(tree, search)


def _decide(search: SearchState, stages: Stages) -> Tree:
    if not stages.plan.cuts:
        return test_all(search, stages).tree() | {"cells": None}
    confirmed, loss = confirm(search, stages), search.objective
    plain = (
        stages.plan.objective == "pseudolikelihood" and loss.features is None and not loss.stand_in
    )
    if not plain or not _can_complete(stages.sample, stages.has_frequencies):
        return confirmed.tree() | {"cells": None}
    completion = Completion.of(stages)
    for _ in range(_ROUNDS):
        model = confirmed.model
        for _ in range(_FITS):
            model = _refit(model, completion.draw(model), ~completion.known, stages)
        completion.draw(model)
        search = _fill(search, stages, completion, completion.cells)
        confirmed = confirm(search, stages, stages.drawn)
    return confirmed.tree() | {"cells": completion.cells}


def _fill(search: SearchState, stages: Stages, completion: Completion, cells: Cells) -> SearchState:
    """Fill in the missing cells of a run; return its search over the completed rows."""
    stages.filled, stages.drawn = completion.fill(cells), ~completion.known
    loss = losses(stages.filled, stages.plan)[0]
    return search.warm(replace(search.problem, objective=loss))


def _refit(model: PairwiseMRF, rows: TableRows, drawn: Mask, stages: Stages) -> PairwiseMRF:
    """Return the model fitted to completed rows, then moved by the rows that know both ends."""
    loss, layout = losses(rows, stages.plan)[0], model.layout
    rule = Penalty(0.0, _RIDGE_ROWS / loss.n_rows)
    theta = minimize(loss, rule, layout, model.theta, _STOPPING, quiet=True).theta
    known = ConditionalRows(rows.table, rows.weights, **stages.variance, drawn=drawn)
    moved = _steps(known, layout, theta, stages.plan.n_jobs)
    return PairwiseMRF(model.schema, model.edges, theta + moved)


def _steps(rows: ConditionalRows, layout: Layout, theta: Floats, n_jobs: int | None) -> Floats:
    """Return what a Newton step on the rows that know both ends does to each table."""
    out, neighbours = np.zeros(len(theta)), neighbours_of(layout)

    def step(k: int) -> None:
        i, j = layout.edges[k].tolist()
        beside = [neighbours.other[slice(*neighbours.start[v : v + 2])] for v in (i, j)]
        size = [
            int(rows.sizes[v] * rows.sizes[near].sum())
            for v, near in zip((i, j), beside, strict=True)
        ]
        first = size[0] <= size[1]
        target, other = (i, j) if first else (j, i)
        others = np.sort(beside[0 if first else 1]).tolist()
        start = start_from_tables(rows, target, others, layout, theta)
        given = Conditional(rows, target, others, [i, j], start)
        if not given.usable or not given.k:
            return
        block = given.first_step[given.cells_of(other)].reshape(-1, given.k)
        table = rows.columns[other].own @ np.clip(block, -_MAX_MOVE, _MAX_MOVE)
        table = table @ rows.columns[target].own.T
        layout.edge(out, k)[:] = table.T if first else table

    run(step, range(layout.n_edges), resolve_jobs(n_jobs))
    return out


def _can_complete(rows: TableRows, frequencies: bool) -> bool:
    """Return whether rows have missing cells that can be drawn: equal rows one by one.

    Cells of columns of very many states are not drawn.
    """
    if not rows.table.n_missing.any() or rows.schema.n_states.max(initial=0) > _MAX_STATES:
        return False
    weights, most = rows.weights, min(_MAX_ROWS, _MAX_CELLS // len(rows.schema))
    if not frequencies or weights is None:
        return rows.table.n_rows <= most
    return bool((weights == np.floor(weights)).all()) and weights.sum() <= most
