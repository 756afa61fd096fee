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

Loss and gradient are sums over blocks of rows, added in block order. A table in memory is one
block, whose residuals are kept from one batch of pairs to the next. Of rows on disk or on a cluster
a pass may take minutes, so nothing is computed twice (:mod:`edgegraft.objective.scoring`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.conditional.features import Features
from edgegraft.core import Layout
from edgegraft.core.checks import check_edges, check_theta
from edgegraft.core.pairs import PairTables, all_pairs, table_offsets
from edgegraft.core.types import Edges, Floats
from edgegraft.counts.pair_counts import check_size
from edgegraft.errors import ModelError
from edgegraft.objective.block_sums import columns_of, evaluate_block, margins_of
from edgegraft.objective.bundles import BundleSources, count_neighbours, route
from edgegraft.objective.objective import Evaluation, Objective
from edgegraft.objective.scoring import (
    BLOCK_BYTES,
    AllGradients,
    Known,
    PairsAt,
    Residuals,
    reuse,
    score_block,
)
from edgegraft.table import PackedTable
from edgegraft.table.blocks import Rows, RowStore, TableRows, add_in_order, as_rows

Precision = Literal["single", "double"]

_MANY = 0.25  # share of the pairs, asked for at one point, after which a pass over blocks has all
#: States of all variables up to which a device evaluates fits: products of all pairs take a
#: millisecond there; of more, counts of few neighbours take less.
_DEVICE_STATES = 1024


class PseudoState(NamedTuple):
    """What an evaluation hands to the next one."""

    layout: Layout
    #: how the rows of the block in memory are read for this graph
    sources: tuple[BundleSources, ...] | None = None
    known: Known | None = None  # the loss and its gradients at the parameters evaluated

    @property
    def losses(self) -> Floats | None:
        """Mean loss per row of each variable at the parameters evaluated."""
        return None if self.known is None else self.known.losses


class Pseudolikelihood(Objective):
    """Mean negative log-pseudolikelihood per row.

    Parameters
    ----------
    rows : PackedTable, RowStore or Rows
        A table in memory; or rows on disk or on a cluster, with weights and threads of their own.
    weights : array of float, shape (n_rows,), optional
        Non-negative row weights; integers count as repeated rows.
    n_jobs : int, optional
        Threads; -1 for all cores. The results do not depend on it, to the last bit.
    max_bytes : int, default 256 MiB
        Memory for the residuals of a table, from which all pairs are computed at once. If they do
        not fit, pairs are computed batch by batch.
    precision : {"double", "single"}, default "double"
        Of logits and probabilities; sums over rows are double in both. Single agrees with double
        to 1e-7 of the value and 1e-7 in the gradient and takes 0.5 to 0.75 of the time, but
        values that differ in their last digits only can no longer be distinguished: a solver's
        last steps then look like noise.
    stand_in : Objective, optional
        The same loss over few of the rows, in memory, by which solvers save passes.

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

    terms = 2
    rows: Rows

    def __init__(
        self,
        rows: PackedTable | RowStore | Rows,
        *,
        weights: ArrayLike | None = None,
        n_jobs: int | None = None,
        max_bytes: int = 1 << 28,
        precision: Precision = "double",
        stand_in: Objective | None = None,
    ) -> None:
        if precision not in ("single", "double"):
            raise ValueError(f"precision must be 'single' or 'double', found {precision!r}")
        self.rows = as_rows(rows, weights, n_jobs)
        self.precision: Precision = precision
        self.max_bytes = max_bytes
        self.stand_in = stand_in
        self.dtype = np.float32 if precision == "single" else np.float64
        self.schema, self.n_rows = self.rows.schema, self.rows.weight
        # A table in memory is one block.
        self._in_memory = self.rows if isinstance(self.rows, TableRows) else None
        self._plain = Features.plain(self.schema)
        self._margins = self._sum(margins_of)
        # A state that never occurs has half a row of mean weight.
        self._some_rows = np.maximum(self._margins, 0.5 * self.n_rows / self.rows.n_rows)
        self._last: Known | None = None  # of the last pass over blocks

    def init(self, layout: Layout, *, lanes: int | None = None) -> PseudoState:
        """Return a state for a graph: how its rows are best read.

        Targets with few neighbours are worked on from counts of their rows; others one by one or
        sixteen together, as is estimated cheaper for the graph. `lanes`, 1 or 16, asks for one of
        these two.
        """
        if not np.array_equal(layout.states, self.schema.n_states):
            raise ModelError("the layout's numbers of states differ from the table's")
        block = self._in_memory
        few = int(layout.states.sum()) <= _DEVICE_STATES
        if block is None or (few and block.product_device is not None):
            return PseudoState(layout)
        columns = columns_of(block, self.dtype)
        if lanes is not None:
            return PseudoState(layout, route(layout, columns, lanes))
        counted = count_neighbours(layout, columns, block.n_jobs)
        but = np.zeros(layout.n_variables, bool)
        for sources in counted:
            but[sources.bundles.member[:, 0]] = True
        return PseudoState(layout, counted + route(layout, columns, but=but))

    def grow(self, state: PseudoState, layout: Layout) -> PseudoState:
        """Return a state for another graph over the same variables, with what is still known."""
        if layout is state.layout:
            return state
        # In memory an evaluation takes no longer than to carry what is known to another graph.
        return self.init(layout)._replace(known=None if self._in_memory else state.known)

    def evaluate(self, theta: Floats, state: PseudoState) -> Evaluation:
        """Return the loss and its gradient at `theta`: one pass over the rows, or none.

        Examples
        --------
        >>> from edgegraft.table import PackedTable
        >>> objective = Pseudolikelihood(PackedTable.from_codes([[0, 2], [1, 1], [1, -1]]))
        >>> result = objective.evaluate(np.zeros(5), objective.init(Layout([2, 3])))
        >>> result.state.losses.round(4)
        array([0.6931, 0.7324])
        """
        theta = check_theta(theta, state.layout, finite=True).copy()
        known = reuse(theta, state.layout, state.known)
        if known is None:
            known = self._known(theta, state)
        after = state._replace(known=known)
        return Evaluation(float(known.losses.sum()), known.gradient, after, True)

    def edge_gradients(
        self, theta: Floats, state: PseudoState, edges: Edges, features: Features | None = None
    ) -> PairTables:
        """Return the loss's gradient with respect to the tables of any pairs.

        With `features`, of which there must be no others at one state, with respect to the weights
        of features.

        Pairs may be edges of the model or not, in either orientation, and listed more than once.
        Over blocks each call is a pass, until so many pairs were asked for at the same parameters
        that all of them are computed at once.

        Examples
        --------
        >>> from edgegraft.table import PackedTable
        >>> objective = Pseudolikelihood(PackedTable.from_codes([[0, 0], [1, 1], [1, 1], [0, 1]]))
        >>> state = objective.init(Layout([2, 2]))
        >>> objective.edge_gradients(np.zeros(4), state, [(0, 1)])[0]
        array([[-0.125,  0.125],
               [ 0.375, -0.375]])
        """
        edges, features = check_edges(edges, len(self.schema)), features or self._plain
        check_size(int((features.states[edges].prod(axis=1)).sum()))
        theta = check_theta(theta, state.layout, finite=True).copy()
        pairs = None if state.known is None else state.known.pairs
        if pairs is None or not np.array_equal(theta, pairs.theta):
            pairs = self._pairs_at(theta)
        pairs.asked += len(edges)
        if pairs.whole is None and self._in_memory is None and self._worth_all(pairs.asked):
            every = features.layout(all_pairs(len(self.schema)))
            nodes = np.zeros(int(every.node_offset[-1]))
            tables = self._sum_tables(pairs, state.layout, every.edges, features)
            pairs.whole = AllGradients(every, np.concatenate((nodes, tables)))
        if pairs.whole is None:
            values = self._sum_tables(pairs, state.layout, edges, features)
        else:
            values = pairs.whole.tables(edges)
        shapes = features.widths[edges]
        return PairTables(edges, shapes, values, table_offsets(shapes))

    def curvature(self, layout: Layout) -> Floats:
        """Return the diagonal of the Hessian at the independent model.

            u_i(a):      p_i(a) (1 - p_i(a))
            w_ij(a, b):  p_i(a) p_j(b) (2 - p_i(a) - p_j(b))

        with margins ``p``, half a row added to states that never occur: an estimate, not a bound.
        """
        p = self._some_rows / self.n_rows
        row, column = (p[at] for at in layout.cell_ends())
        # A constant variable has no curvature: half a row keeps steps along it finite.
        least = 0.5 / self.rows.n_rows
        nodes = p * np.maximum(1 - p, least)
        return np.concatenate((nodes, row * column * np.maximum(2 - row - column, least)))

    def start(self, layout: Layout) -> Floats:
        """Return log-margins for nodes, half a row for a state that never occurs, edges zero."""
        counts = self._some_rows
        theta = np.zeros(layout.n_parameters)
        known = np.add.reduceat(counts, layout.node_offset[:-1])
        theta[: len(counts)] = np.log(counts / np.repeat(known, layout.states))
        return theta

    def state_weights(self) -> Floats:
        """Return the weight of the rows in each state."""
        return self._margins

    def known_shares(self) -> Floats:
        """Return the share of the rows in which each variable is known."""
        first = np.cumsum(self.schema.n_states) - self.schema.n_states
        return np.asarray(np.add.reduceat(self._margins, first) / self.n_rows)

    def _known(self, theta: Floats, state: PseudoState) -> Known:
        layout, last = state.layout, self._last
        if (
            last is not None
            and np.array_equal(last.layout.edges, layout.edges)
            and np.array_equal(last.theta, theta)
        ):
            # The end of a stage forgets the state, and asks once more.
            return Known(layout, theta, last.losses, last.gradient, self._pairs_at(theta))
        if self._in_memory is None and not layout.n_edges:
            losses, gradient = self._without_edges(theta, layout)
            return Known(layout, theta, losses, gradient, self._pairs_at(theta))
        sums = self._sum(
            evaluate_block,
            theta=theta,
            layout=layout,
            scale=-1.0 / self.n_rows,
            sources=state.sources,
        )
        n = layout.n_variables
        known = Known(layout, theta, sums[:n] / self.n_rows, sums[n:], self._pairs_at(theta))
        if self._in_memory is None:
            self._last = known
        return known

    def _sum(self, work: Callable[..., Floats], **arguments: Any) -> Floats:
        """Return the sum over the blocks, in their order."""
        total: Floats = add_in_order(self.rows.map(partial(work, dtype=self.dtype, **arguments)))
        return total

    def _sum_tables(
        self, pairs: PairsAt, layout: Layout, edges: Edges, features: Features
    ) -> Floats:
        if not len(edges):
            return np.zeros(0)
        values = self._sum(
            score_block,
            theta=pairs.theta,
            layout=layout,
            edges=edges,
            features=features,
            residuals=pairs.residuals,
        )
        values *= -1.0 / self.n_rows
        return values

    def _pairs_at(self, theta: Floats) -> PairsAt:
        block = self._in_memory
        if block is None or block.product_device is not None:
            return PairsAt(theta)
        return PairsAt(theta, Residuals(theta, columns_of(block, self.dtype), self.max_bytes))

    def _without_edges(self, theta: Floats, layout: Layout) -> tuple[Floats, Floats]:
        """Return losses and gradient of a model of independent variables, from the margins."""
        starts, states = layout.node_offset[:-1], layout.states
        p = self._margins / self.n_rows
        known = np.add.reduceat(p, starts)
        largest = np.maximum.reduceat(theta, starts)
        chance = np.exp(theta - np.repeat(largest, states))
        total = np.add.reduceat(chance, starts)
        log_chance = theta - np.repeat(largest + np.log(total), states)
        losses = -np.add.reduceat(p * log_chance, starts)
        return losses, np.repeat(known / total, states) * chance - p

    def _worth_all(self, asked: int) -> bool:
        states = self.schema.n_states
        n = len(states)
        cells = (float(states.sum()) ** 2 - float((states**2).sum())) / 2
        return 8 * cells <= BLOCK_BYTES and asked >= _MANY * n * (n - 1) / 2
