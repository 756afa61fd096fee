"""The composite pseudolikelihood: every variable predicted from its neighbours, row by row.

    L(theta) = -(1/W) sum over rows r of weight_r sum over variables i of log p(x_ri | x_r,rest)

    d L / d w_ij(a, b) = -(1/W) sum_r [ R_i(r, a) 1[x_rj = b] + 1[x_ri = a] R_j(r, b) ]

``W`` is the weight of all rows and ``R_i(r, a) = weight_r (1[x_ri = a] - p(x_i = a | x_r,rest))``.
The loss is convex, needs no inference, and is consistent for the true graph: a pair outside the
model is scored by what the model leaves unexplained. One table ``w_ij`` enters the conditionals
of both its ends (the symmetric, composite form).

Rows with missing cells are used for what they know: a missing target has no term, and a missing
neighbour's table is left out of the conditional, as if it were zero. That is an approximation
(exact would be to sum over what the cell may have been). ``W`` counts all rows all the same, so
losses of variables with missing cells are per row, not per known cell.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.core import Layout
from edgegraft.core.checks import check_edges, check_theta, check_weights
from edgegraft.core.tables import PairTables, table_offsets
from edgegraft.core.threads import resolve_jobs
from edgegraft.core.types import Edges, Floats
from edgegraft.counts.pair_counts import check_size
from edgegraft.errors import DataError, ModelError
from edgegraft.kernels.conditionals.directed import margin_sums
from edgegraft.kernels.conditionals.pseudolikelihood import Columns, Kept
from edgegraft.objective.composite import CompositeLoss
from edgegraft.objective.objective import Evaluation
from edgegraft.objective.residuals import (
    Job,
    choose_rows,
    do_jobs,
    gradient_of,
    lay_out,
    nothing_kept,
)
from edgegraft.objective.row_choice import check_rows, draw_rows
from edgegraft.objective.scoring import Residuals, score_tables
from edgegraft.objective.wiring import Wiring, route
from edgegraft.table import PackedTable, Schema


class PseudoState(NamedTuple):
    """What an evaluation hands to the next one.

    Attributes
    ----------
    layout : Layout
    wirings : tuple of Wiring
        How the rows are read for this graph.
    losses : array of float, shape (n,), or None
        Mean loss of a row for each variable at the parameters evaluated; they sum to the value.
    residuals : Residuals or None
        Residuals at the parameters evaluated, kept as far as they were asked for.
    """

    layout: Layout
    wirings: tuple[Wiring, ...]
    losses: Floats | None = None
    residuals: Residuals | None = None


class Pseudolikelihood(CompositeLoss):
    """Mean negative log-pseudolikelihood of the rows of a table.

    Parameters
    ----------
    table : PackedTable
    weights : array of float, shape (table.n_rows,), optional
        Non-negative row weights; integers count as repeated rows.
    n_jobs : int, optional
        Threads; -1 for all cores. The results do not depend on it, to the last bit.
    max_bytes : int, default 256 MiB
        Memory for residuals kept from one `edge_gradients` to the next at the same parameters.
        Where they do not fit they are worked out again.
    rows : array of int, optional
        The rows to use, all by default.
    precision : {"double", "single"}, default "double"
        Of logits and probabilities; sums over rows are double in both. Single agrees with double
        to 1e-7 of the value and 1e-7 in the gradient and takes 0.5 to 0.75 of the time, but
        values so close to each other that only their last digits differ can no longer be told
        apart: a solver's last steps then look like noise.

    Examples
    --------
    >>> from edgegraft.table import PackedTable
    >>> objective = Pseudolikelihood(PackedTable.from_codes([[0, 0], [1, 1], [1, 1], [0, 1]]))
    >>> layout = Layout([2, 2], [(0, 1)])
    >>> at_start = objective.evaluate(objective.start(layout), objective.init(layout))
    >>> round(at_start.value, 4)
    1.2555
    >>> layout.edge(at_start.gradient, 0).round(4)
    array([[-0.25,  0.25],
           [ 0.25, -0.25]])
    """

    def __init__(
        self,
        table: PackedTable,
        *,
        weights: ArrayLike | None = None,
        n_jobs: int | None = None,
        max_bytes: int = 1 << 28,
        rows: ArrayLike | None = None,
        precision: Literal["single", "double"] = "double",
    ) -> None:
        if precision not in ("single", "double"):
            raise ValueError(f"precision must be 'single' or 'double', found {precision!r}")
        chosen = check_rows(rows, table.n_rows)
        whole = np.ones(table.n_rows) if weights is None else check_weights(weights, table.n_rows)
        kept = whole[chosen]
        dtype = np.float32 if precision == "single" else np.float64
        self._set(
            table.schema, lay_out(table, chosen, kept, dtype), kept, resolve_jobs(n_jobs), max_bytes
        )

    def _set(
        self, schema: Schema, columns: Columns, weights: Floats, n_jobs: int, max_bytes: int
    ) -> None:
        self._columns = columns
        self._weights = weights
        self.n_jobs = n_jobs
        self.max_bytes = max_bytes
        total = float(weights.sum())
        if not total > 0:
            raise DataError("the rows chosen have no weight: no row counts")
        margins = np.zeros(int(schema.n_states.sum()))
        margin_sums(columns, Layout(schema.n_states).node_offset, margins)
        super().__init__(schema, margins, total, len(weights))

    def init(self, layout: Layout, *, lanes: int | None = None) -> PseudoState:
        """Return a state for a graph: how its rows are best read.

        Targets are worked on one by one or sixteen together, as is estimated cheaper for the
        graph; `lanes`, 1 or 16, asks for one of the two.
        """
        if not np.array_equal(layout.states, self._schema.n_states):
            raise ModelError("the layout's numbers of states are not those of the table")
        return PseudoState(layout, route(layout, self._columns, lanes))

    def grow(self, state: PseudoState, layout: Layout) -> PseudoState:
        """Return a state for another graph over the same variables; nothing needs keeping."""
        return state if layout is state.layout else self.init(layout)

    def evaluate(self, theta: Floats, state: PseudoState) -> Evaluation:
        """Return the loss and its gradient at `theta`.

        Examples
        --------
        >>> from edgegraft.table import PackedTable
        >>> objective = Pseudolikelihood(PackedTable.from_codes([[0, 2], [1, 1], [1, -1]]))
        >>> result = objective.evaluate(np.zeros(5), objective.init(Layout([2, 3])))
        >>> result.state.losses.round(4)
        array([0.6931, 0.7324])
        """
        layout = state.layout
        theta = check_theta(theta, layout, finite=True).copy()
        jobs = [
            Job(wiring, wiring, np.arange(wiring.n_bundles), self._nothing(wiring))
            for wiring in state.wirings
        ]
        gradient = np.zeros(layout.n_parameters)
        losses = np.zeros(layout.n_variables)
        results = do_jobs(self._columns, layout, theta, jobs, self.n_jobs)
        for job, result in zip(jobs, results, strict=True):
            gradient_of(job, result, layout, -1.0 / self._total, gradient)
            losses += result.losses
        losses /= self._total
        residuals = Residuals(theta, self._columns, self.max_bytes)
        after = PseudoState(layout, state.wirings, losses, residuals)
        return Evaluation(float(losses.sum()), gradient, after, True)

    def edge_gradients(self, theta: Floats, state: PseudoState, edges: Edges) -> PairTables:
        """Return the loss's gradient with respect to the tables of any pairs.

        Pairs may be edges of the model or not, in either orientation, and given more than once.

        Examples
        --------
        >>> from edgegraft.table import PackedTable
        >>> objective = Pseudolikelihood(PackedTable.from_codes([[0, 0], [1, 1], [1, 1], [0, 1]]))
        >>> state = objective.init(Layout([2, 2]))
        >>> objective.edge_gradients(np.zeros(4), state, [(0, 1)])[0]
        array([[-0.125,  0.125],
               [ 0.375, -0.375]])
        """
        edges = check_edges(edges, len(self._schema))
        shapes = self._schema.n_states[edges]
        offsets = table_offsets(shapes)
        check_size(int(offsets[-1]))
        theta = check_theta(theta, state.layout, finite=True).copy()
        residuals = state.residuals
        if residuals is None or not np.array_equal(theta, residuals.theta):
            residuals = Residuals(theta, self._columns, self.max_bytes)
        values = score_tables(residuals, state.layout, edges, offsets, self.n_jobs)
        values *= -1.0 / self._total
        return PairTables(edges, shapes, values, offsets)

    def subsample(
        self, rows: float | ArrayLike, rng: np.random.Generator | None = None
    ) -> Pseudolikelihood:
        """Return the same objective over some of the rows.

        Parameters
        ----------
        rows : float or array of int
            A share of the rows, between 0 and 1, drawn in blocks of neighbouring rows; or the
            rows themselves, counted within this objective's.
        rng : numpy.random.Generator, optional
            Draws the blocks; needed with a share.
        """
        n = len(self._weights)
        if isinstance(rows, int | float):
            if not 0 < rows <= 1:
                raise ValueError(f"the share of rows must be above 0 and at most 1, found {rows}")
            if rng is None:
                raise ValueError("a share of the rows is drawn at random: give a Generator as rng")
            chosen = draw_rows(n, float(rows), rng)
        else:
            chosen = check_rows(rows, n)
        return self._chosen(chosen, self._weights[chosen])

    def reweighted(self, weights: ArrayLike, *, n_jobs: int | None = None) -> Pseudolikelihood:
        """Return the same objective with other row weights; the codes are not laid out again.

        Rows that weigh nothing are left out, which saves a bootstrap replicate a third of them.

        Parameters
        ----------
        weights : array of float, one a row of this objective
            They replace its own.
        n_jobs : int, optional
            Threads; as many as this objective's by default.

        Examples
        --------
        >>> from edgegraft.table import PackedTable
        >>> objective = Pseudolikelihood(PackedTable.from_codes([[0, 0], [1, 1], [1, 0]]))
        >>> objective.reweighted([2, 0, 1]).n_rows
        3.0
        """
        checked = check_weights(weights, len(self._weights))
        shown = np.flatnonzero(checked)
        jobs = self.n_jobs if n_jobs is None else resolve_jobs(n_jobs)
        return self._chosen(shown, checked[shown], jobs)

    def _chosen(
        self, rows: NDArray[np.int64], weights: Floats, n_jobs: int | None = None
    ) -> Pseudolikelihood:
        other = object.__new__(Pseudolikelihood)
        columns = choose_rows(self._columns, rows, weights)
        other._set(self._schema, columns, weights, n_jobs or self.n_jobs, self.max_bytes)
        return other

    def _nothing(self, wiring: Wiring) -> Kept:
        return nothing_kept(wiring.n_bundles, self._columns.weights.dtype)
