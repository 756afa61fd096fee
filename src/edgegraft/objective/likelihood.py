"""The negative log-likelihood per row, from pair counts and an inference engine.

    L(theta) = log Z(theta) - <theta, f>,      grad L = marginals(theta) - f

with ``f`` the frequencies of states and of pairs of states in the data. Rows are never touched:
the counts of an edge are taken once, when it enters the graph, and an evaluation costs one run of
the engine, however many rows there are. With an approximate engine, ``log Z`` and the marginals
are its own (Bethe, or an upper bound); at its fixed point they still are a function and its
gradient.

Missing cells. A variable's frequencies are over the rows that know it, a pair's over the rows
that know both, and the two need not agree. Left so, the loss would fall without end along
directions that do not change the model. Pair tables are therefore raked to the margins of their
variables, which keeps their odds ratios (after adding one row of independence, see
:mod:`edgegraft.core.edge_tables`); tables without missing cells are not touched.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.edge_tables import pair_frequencies
from edgegraft.core.pairs import PairTables, pair_ids, stretches
from edgegraft.core.types import Edges, Floats
from edgegraft.counts.pair_counts import PairCounts
from edgegraft.inference import (
    AutoEngine,
    BeliefPropagation,
    InferenceEngine,
    Info,
    Marginals,
    TreeReweighted,
    answering,
)
from edgegraft.inference.auto import with_log_partition
from edgegraft.kernels.solver import dot
from edgegraft.objective.objective import Evaluation, Objective

#: Probability that the first parameters give to a state that the data never show: the loss is
#: lowest at zero, and this is as good as zero to any tolerance in use.
NEVER = 1e-8
#: Damping tried in turn if messages do not settle.
DAMPING = (0.5, 0.8)
#: Sweeps that the fallback engine may take: its last digits come slowly.
SAFE_SWEEPS = 3000
_SAME = 1e-13  # relative difference of sums of the same weights


class LikelihoodState(NamedTuple):
    """The data's frequencies on a graph, and the engine's state."""

    layout: Layout
    frequencies: Floats  # laid out like the parameters
    engine: Any


class Likelihood(Objective):
    """Mean negative log-likelihood per row.

    Parameters
    ----------
    source : PairCounts
        For example :class:`~edgegraft.counts.PairCounts`; its weights, if any, weigh rows.
    engine : InferenceEngine
        One that gives ``log Z``: exact, belief propagation or tree-reweighted.

    Examples
    --------
    >>> from edgegraft.table import PackedTable
    >>> from edgegraft.inference.exact import ExactEngine
    >>> from edgegraft.counts import PairCounts
    >>> table = PackedTable.from_codes([[0, 0], [0, 0], [1, 1], [0, 1]])
    >>> loss = Likelihood(PairCounts(table), ExactEngine())
    >>> layout = Layout([2, 2], [(0, 1)])
    >>> found = loss.evaluate(loss.start(layout), loss.init(layout))
    >>> round(found.value, 4)  # the entropy of two independent columns
    1.2555
    >>> layout.edge(found.gradient, 0)
    array([[-0.125,  0.125],
           [ 0.125, -0.125]])
    """

    terms = 1

    def __init__(self, source: PairCounts, engine: InferenceEngine) -> None:
        self.source = source
        self.engine = with_log_partition(engine)
        counts = source.margins()
        self._node_offset = counts.offsets
        self._totals = np.add.reduceat(counts.values.astype(np.float64), counts.offsets[:-1])
        states = np.diff(counts.offsets)
        total = np.repeat(self._totals, states)
        # A variable without a single known cell is taken as uniform.
        uniform = np.repeat(1.0 / states, states)
        shares = counts.values / np.where(total > 0, total, 1.0)
        self._margins = np.where(total > 0, shares, uniform)
        self.schema, self.rows = source.schema, source.rows
        # Weighted: the largest sum of weights that a variable is known in.
        weighted = counts.values.dtype.kind == "f"
        self.n_rows = float(self._totals.max()) if weighted else float(source.n_rows)
        iterative = engine.bp if isinstance(engine, AutoEngine) else engine
        self.accuracy = float(getattr(iterative, "tol", 0.0))

    def __repr__(self) -> str:
        return f"Likelihood({self.source!r}, {self.engine!r})"

    def init(self, layout: Layout) -> LikelihoodState:
        """Count the pairs of a graph and return a cold state."""
        frequencies = np.concatenate((self._margins, self._pairs(layout.edges)))
        return LikelihoodState(layout, frequencies, self.engine.init(layout))

    def grow(self, state: LikelihoodState, layout: Layout) -> LikelihoodState:
        """Return a state for another graph: only edges that are new are counted."""
        if layout is state.layout:
            return state
        frequencies = layout.carry(state.frequencies, state.layout)
        ids, known = (
            pair_ids(edges, layout.n_variables) for edges in (layout.edges, state.layout.edges)
        )
        new = np.flatnonzero(~np.isin(ids, known))
        cells = stretches(layout.edge_offset[new], np.diff(layout.edge_offset)[new])
        frequencies[cells] = self._pairs(layout.edges[new])
        return LikelihoodState(layout, frequencies, self.engine.grow(state.engine, layout))

    def evaluate(self, theta: Floats, state: LikelihoodState) -> Evaluation:
        """Return the loss and its gradient at `theta`.

        If messages do not settle, the run resumes from where it stopped with more damping; if
        that fails too, the evaluation is not trusted.
        """
        marginals, after, info = self._run(theta, state.engine)
        value = marginals.log_partition - float(dot(theta, state.frequencies))
        trusted = bool(info.converged and np.isfinite(value))
        gradient = marginals.values - state.frequencies
        return Evaluation(value, gradient, state._replace(engine=after), trusted, info.message)

    def edge_gradients(self, theta: Floats, state: LikelihoodState, edges: Edges) -> PairTables:
        """Return model minus data for any pairs, by the engine's own pair marginals."""
        tables = self.engine.pair_marginals(theta, state.engine, edges)
        data = self._pairs(tables.edges)
        return PairTables(tables.edges, tables.shapes, tables.values - data, tables.offsets)

    def curvature(self, layout: Layout) -> Floats:
        """Return an estimate of the Hessian's diagonal, the variance of each indicator.

        It is taken half-way between the data and independence: a cell that the data never show
        has no variance there, but it has under every model on the way.
        """
        q = np.concatenate((self._margins, self._pairs(layout.edges)))
        q[len(self._margins) :] = 0.5 * (q[len(self._margins) :] + self._products(layout))
        q = np.maximum(q, NEVER)
        return np.asarray(q * (1.0 - q) + NEVER)

    def start(self, layout: Layout) -> Floats:
        """Return the independent model of the margins: log frequencies, and edges of zero."""
        theta = np.zeros(layout.n_parameters)
        theta[: len(self._margins)] = np.log(np.maximum(self._margins, NEVER))
        return theta

    def bethe_start(self, layout: Layout) -> Floats:
        """Return the parameters whose Bethe marginals are the data's frequencies.

            u_i(a) = log p_i(a),    w_ij(a, b) = log p_ij(a, b) / (p_i(a) p_j(b))

        On a forest this is the maximum of the likelihood, and on any graph it is a fixed point of
        belief propagation. With a penalty, shrunk by it or not, it was measured to save no
        iterations, and on dense graphs it starts far too high: there edges start at zero.

        Examples
        --------
        >>> from edgegraft.table import PackedTable
        >>> from edgegraft.inference import ExactEngine
        >>> from edgegraft.counts import PairCounts
        >>> table = PackedTable.from_codes([[0, 0], [0, 1], [1, 1], [0, 0], [1, 0]])
        >>> loss = Likelihood(PairCounts(table), ExactEngine())
        >>> layout = Layout([2, 2], [(0, 1)])
        >>> found = loss.evaluate(loss.bethe_start(layout), loss.init(layout))
        >>> bool(np.abs(found.gradient).max() < 1e-12)
        True
        """
        theta = self.start(layout)
        product = np.maximum(self._products(layout), NEVER * NEVER)
        pairs = np.maximum(self._pairs(layout.edges), NEVER * product)
        theta[int(layout.edge_offset[0]) :] = np.log(pairs / product)
        return theta

    def pair_frequencies(self, layout: Layout) -> Floats:
        """Return the data's pair frequencies on a graph."""
        return self._pairs(layout.edges)

    def engine_name(self, state: LikelihoodState) -> str:
        """Return the name of the engine that answered."""
        return answering(self.engine, state.engine).name

    @cached_property
    def fallback(self) -> Likelihood | None:
        """The same loss with an engine that is surer to converge, if there is one."""
        if isinstance(self.engine, AutoEngine):
            return Likelihood(self.source, self.engine.trw)
        if isinstance(self.engine, BeliefPropagation):
            return Likelihood(
                self.source, TreeReweighted(tol=self.engine.tol, max_iter=SAFE_SWEEPS)
            )
        return None

    def _run(self, theta: Floats, state: Any) -> tuple[Marginals, Any, Info]:
        marginals, after, info = self.engine.run(theta, state)
        if isinstance(self.engine, AutoEngine) and answering(self.engine, after).name == "trw":
            # Another approximation than at the point before: the two cannot be compared.
            return marginals, after, info._replace(converged=False)
        if isinstance(self.engine, BeliefPropagation):
            for damping in DAMPING:
                if info.converged:
                    break
                if damping > self.engine.damping:
                    damped = replace(self.engine, damping=damping)
                    marginals, after, info = damped.run(theta, after)
        return marginals, after, info

    def _products(self, layout: Layout) -> Floats:
        """Return ``p_i(a) p_j(b)`` of every edge, laid out like the edges' parameters."""
        row, column = layout.cell_ends()
        return np.asarray(self._margins[row] * self._margins[column])

    def _pairs(self, edges: Edges) -> Floats:
        if len(edges) == 0:
            return np.empty(0)
        tables = self.source.pairs(edges)
        counts = tables.values.astype(np.float64)
        total = np.add.reduceat(counts, tables.offsets[:-1])
        known = self._totals[tables.edges]
        if (total > 0).all() and (np.abs(known - total[:, None]) <= _SAME * known).all():
            return np.asarray(counts / np.repeat(total, np.diff(tables.offsets)))  # none missing
        at = tables.edges, tables.offsets, self._node_offset
        return pair_frequencies(counts, *at, self._margins)
