"""Tests of the edges of a network, and whether scores of levels are enough for them.

Every test is the verdict of a :class:`~edgegraft.conditional.judge.Judge` beside all other edges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.conditional.features import Features
from edgegraft.conditional.judge import Judge, Network, Verdicts
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.conditional.survey_design import SurveyDesign
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.errors import ModelError
from edgegraft.learn.cut import q_values
from edgegraft.learn.effects import ENOUGH
from edgegraft.learn.graded import whole_widths
from edgegraft.model import PairwiseMRF
from edgegraft.table import PackedTable
from edgegraft.table.blocks import TableRows

_SCORES = 2  # of an ordered column in the search and its tests


class GroupTests(NamedTuple):
    """P-values of the scores of ordered columns."""

    p_linear: Floats  # of the linear scores
    p_rest: Floats  # of the further ones beside them; NaN without such

    def columns(self, at: Integers) -> dict[str, Floats | Mask]:
        """Return what tables and files keep of some edges, by name."""
        linear = ~(self.p_rest <= ENOUGH)
        return {
            "p_linear": self.p_linear[at],
            "p_rest": self.p_rest[at],
            "linear_is_enough": linear[at],
        }


class EdgeTests(NamedTuple):
    """One test per edge.

    Attributes
    ----------
    edges : array of int, shape (m, 2)
        In the order of the model.
    statistic : array of float, shape (m,)
        Chi-squared with `dof` degrees of freedom if ``w_ij = 0``.
    dof : array of int, shape (m,)
        At most ``(s_i - 1) (s_j - 1)``; zero if the rows cannot tell.
    p_value : array of float, shape (m,)
        Never zero: at least the smallest normal number.
    q_value : array of float, shape (m,)
        Smallest false discovery rate at which the edge is kept.
    groups : GroupTests, optional
        Tests of linear and further scores, if any column is ordered.
    """

    edges: Edges
    statistic: Floats
    dof: Integers
    p_value: Floats
    q_value: Floats
    groups: GroupTests | None = None

    @classmethod
    def of(cls, edges: Edges, tested: Verdicts, q_value: Floats, *, ordered: bool) -> EdgeTests:
        """Return verdicts on edges with their q-values; of groups if any column is ordered."""
        groups = GroupTests(tested.p_linear, tested.p_rest) if ordered else None
        return cls(edges, *tested[:3], q_value, groups)


def edge_tests(
    table: PackedTable,
    model: PairwiseMRF,
    *,
    weights: ArrayLike | None = None,
    n_jobs: int | None = None,
    sampling: bool = False,
) -> EdgeTests:
    """Test every edge of a model on the rows of a table, given the others.

    The q-values follow Benjamini and Hochberg over all ``n (n - 1) / 2`` pairs. A pair that
    is not an edge counts as tested with a p-value of 1. This keeps the rate valid although the same
    rows chose the edges: compared with testing every pair, the choice can only have raised p-values
    to 1. The p-values of the edges alone, or q-values over the edges only, would ignore that they
    are the best of many. One case is not covered: other edges may replace a true edge that the
    model lacks, so the model should rather have too many edges.

    Parameters
    ----------
    table : PackedTable
        A conditional uses the rows in which its variable and all of its neighbours are known.
    model : PairwiseMRF
        Its edges are tested; the judge makes fits of its own.
    weights : array of float, shape (table.n_rows,), optional
        Row weights; a row of weight 2 is two rows.
    n_jobs : int, optional
        Threads; -1 for all cores. The results do not depend on it.
    sampling : bool, default False
        Whether the weights are sampling weights, scaled to the effective number of rows (see
        :mod:`~edgegraft.conditional.survey_design`).

    Examples
    --------
    >>> from edgegraft.datasets import make_chain
    >>> from edgegraft.learn import grow, refit
    >>> from edgegraft.objective.penalty import Penalty
    >>> from edgegraft.objective.pseudolikelihood import Pseudolikelihood
    >>> data = make_chain(5, n_rows=2000, couplings="ising", random_state=0)
    >>> table = PackedTable.from_codes(data.X.astype(int))
    >>> found = edge_tests(table, refit(grow(Pseudolikelihood(table), Penalty(0.001))))
    >>> sorted(found.edges[found.q_value <= 0.05].tolist())
    [[0, 1], [1, 2], [2, 3], [3, 4]]
    """
    _check_fit(table, model)
    rows = ConditionalRows(table, weights, sampling=sampling)
    found = judge_edges(rows, model.edges, n_jobs)
    n = model.layout.n_variables
    return EdgeTests.of(
        model.edges, found, q_values(found.p_value, n * (n - 1) // 2), ordered=False
    )


def judge_edges(rows: ConditionalRows, edges: Edges, n_jobs: int | None) -> Verdicts:
    """Return verdicts on the edges of a network, each given the others."""
    pairs = [(i, j) for i, j in edges.tolist()]
    network = Network(len(rows.states), edges)
    return Verdicts.of(Judge(rows, n_jobs=n_jobs).ask(network, pairs))


def judge_tables(
    model: PairwiseMRF,
    rows: TableRows,
    n_jobs: int | None,
    *,
    sampling: bool = False,
    survey: SurveyDesign | None = None,
) -> Floats:
    """Return the p-value of the rest of each edge's table beside the scores; NaN without one.

    All edges have their whole tables in the tests, so that what one lacks does not show in another.
    """
    schema, table = model.schema, rows.table
    widths, found = whole_widths(schema), np.full(model.n_edges, np.nan)
    chosen = np.flatnonzero((widths > schema.widths)[model.edges].any(axis=1))
    if not len(chosen):
        return found
    plain = ConditionalRows(table, rows.weights)
    margins = np.concatenate([column.margin for column in plain.columns])
    whole = ConditionalRows(
        table,
        rows.weights,
        Features.of(schema, margins, widths),
        sampling=sampling,
        survey=survey,
        n_linear=_SCORES,
    )
    pairs = [(i, j) for i, j in model.edges[chosen].tolist()]
    network = Network(len(schema), model.edges)
    found[chosen] = Verdicts.of(Judge(whole, n_jobs=n_jobs).ask(network, pairs)).p_rest
    return found


def _check_fit(table: PackedTable, model: PairwiseMRF) -> None:
    if table.schema.names != model.names:
        raise ModelError("the table's columns differ from the model's, or are in another order")
    differ = np.flatnonzero(table.schema.n_states != model.layout.states)
    if differ.size:
        i = int(differ[0])
        raise ModelError(
            f"column '{model.names[i]}' has {table.schema.n_states[i]} states in the table and "
            f"{model.layout.states[i]} in the model"
        )
