"""From a table to a network and a model, with nothing tuned.

    grow -> sharpen -> test every edge -> keep those below the false discovery rate -> refit

The search is relaxed by default (see :class:`~edgegraft.config.Settings`) and its
threshold is what chance passes about once a variable, so it ends with nearly all true edges and
some that are none; the tests of :mod:`~edgegraft.learn.edge_tests` tell them apart.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from edgegraft.config import Plan
from edgegraft.errors import DataError
from edgegraft.ingest.memory import SAMPLE_ROWS
from edgegraft.learn import steps
from edgegraft.learn.certificate import Certificate, certify
from edgegraft.learn.checkpoint import Checkpoints, resume
from edgegraft.learn.edge_tests import EdgeTests, edge_tests
from edgegraft.learn.events import Observer, StopReason
from edgegraft.learn.loop import go_on, grow
from edgegraft.learn.plan import ALL_PAIRS, last_ridge, losses, penalty_of, search_settings
from edgegraft.learn.refit import refit
from edgegraft.learn.sharpen import FACTOR, sharpen
from edgegraft.learn.stages import Stages, marks
from edgegraft.learn.state import Growth
from edgegraft.learn.warm import warm_start
from edgegraft.model import PairwiseMRF
from edgegraft.search import BestChoice
from edgegraft.table import PackedTable
from edgegraft.table.blocks import Rows

_NEEDED = 1.5  # of the threshold, for an edge without a test


class Discovery(NamedTuple):
    """A network, its model, and how both were come by.

    Attributes
    ----------
    model : PairwiseMRF
        Of the edges kept.
    kept : array of bool
        Which of the edges that the search ended with are kept.
    tests : EdgeTests
        Of all edges that the search ended with, in its order.
    strengths : array of float
        Of those edges, in the search's own model.
    growth : Growth
        The search: trace, reason, counters.
    certificate : Certificate
        Of the search, before the cut: what it left out, not what the tests did.
    converged : bool
        Whether the last fits, of the search and of the model, reached their tolerance.
    plan : Plan
        What it was learned by.
    """

    model: PairwiseMRF
    kept: NDArray[np.bool_]
    tests: EdgeTests
    strengths: NDArray[np.float64]
    growth: Growth
    certificate: Certificate
    converged: bool
    plan: Plan

    @property
    def penalty(self) -> float:
        """Threshold of the first activation tests; a sharpened run ends with twice as much."""
        return self.growth.penalty.penalty / (FACTOR if self.growth.sharpened else 1.0)

    @property
    def ridge(self) -> float:
        """Weight of the squared norms in the last fit."""
        if not self.plan.refit:
            return self.growth.penalty.ridge
        return last_ridge(self.plan, self.growth.objective.n_rows)


def discover(
    table: PackedTable | Rows,
    plan: Plan | None = None,
    *,
    weights: ArrayLike | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    observers: Sequence[Observer] = (),
    sample_rows: int = SAMPLE_ROWS,
) -> Discovery:
    """Learn the network of a table's columns, and a model of its rows.

    Parameters
    ----------
    table : PackedTable or Rows
        Rows in memory; or in blocks on disk or on a cluster, of which a sample is learned from
        first and then all (see :mod:`~edgegraft.learn.stages`).
    plan : Plan, optional
    weights : array of float, shape (n_rows,), optional
        Of a table: a row of weight 2 counts as two rows. `Rows` have their own.
    checkpoint : path, optional
        File for :func:`resume_discovery`, written as the search goes.
    observers : sequence of Observer
        Told of every step of the search; each may end it.
    sample_rows : int, default 524288
        Rows in blocks are sampled: so many are read into memory, for the first steps and for the
        tests of edges. If there are no more rows than that, they are learned from as any table.

    Examples
    --------
    >>> from edgegraft.datasets import make_chain
    >>> data = make_chain(6, n_states=3, n_rows=3000, random_state=0)
    >>> found = discover(PackedTable.from_codes(data.X.astype(int)))
    >>> sorted(map(tuple, found.model.edges.tolist()))
    [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    """
    plan = plan or Plan()
    watching = _watching(checkpoint, observers)
    if not isinstance(table, PackedTable):
        _refuse_weights(weights)
        stages = Stages(table, plan, sample_rows)
        if not stages.whole:
            return _conclude(stages.run(watching), *_tested(stages), watching)
        table, weights = stages.sample.table, stages.sample.weights
    loss, counts = losses(table, plan, weights)
    settings = search_settings(plan, len(table.schema))
    growth = grow(loss, penalty_of(plan, loss), settings, counts=counts, observers=watching)
    return _conclude(growth, table, plan, weights, watching)


def resume_discovery(
    path: str | os.PathLike[str],
    table: PackedTable | Rows,
    plan: Plan | None = None,
    *,
    weights: ArrayLike | None = None,
    observers: Sequence[Observer] = (),
    max_time: float | None = None,
    max_edges: int | None = None,
    sample_rows: int = SAMPLE_ROWS,
) -> Discovery:
    """Go on from a checkpoint of :func:`discover`, over the same rows and with the same plan.

    The search's settings and penalty are those of the checkpoint, but for the budgets given here:
    `max_time` seconds and `max_edges` edges, in both of which the run until then counts.
    """
    plan = plan or Plan()
    watching = _watching(path, observers)
    if not isinstance(table, PackedTable):
        _refuse_weights(weights)
        stages = Stages(table, plan, sample_rows)
        if not stages.whole:
            growth = stages.resume(path, watching, max_time, max_edges)
            return _conclude(growth, *_tested(stages), watching)
        table, weights = stages.sample.table, stages.sample.weights
    loss, _ = losses(table, plan, weights)
    growth = resume(path, loss, watching, max_time=max_time, max_edges=max_edges)
    return _conclude(growth, table, plan, weights, watching)


def _refuse_weights(weights: ArrayLike | None) -> None:
    if weights is not None:
        raise DataError("these rows have weights of their own: pass them when the rows are made")


def _tested(stages: Stages) -> tuple[PackedTable, Plan, ArrayLike | None]:
    """Return what rows are read one by one: those of the sample."""
    return stages.sample.table, stages.plan, stages.sample.weights


def _watching(
    checkpoint: str | os.PathLike[str] | None, observers: Sequence[Observer]
) -> list[Observer]:
    return [*observers, *([] if checkpoint is None else [Checkpoints(checkpoint)])]


def _conclude(
    growth: Growth,
    table: PackedTable,
    plan: Plan,
    weights: ArrayLike | None,
    observers: Sequence[Observer],
) -> Discovery:
    """Sharpen, test, cut and refit what the search found."""
    n_pairs = len(table.schema) * (len(table.schema) - 1) // 2
    whole = None if weights is None else np.asarray(weights, np.float64)
    again = growth.settings.relaxed and growth.penalty.group_weight == "noise"
    if (
        again
        and not growth.sharpened
        and growth.reason is StopReason.OPTIMAL
        and n_pairs <= ALL_PAIRS
    ):
        growth = go_on(sharpen(growth, table, whole), observers, mark=marks(growth))
    model = growth.model() if growth.settings.relaxed else refit(growth, growth.penalty.ridge)
    with threadpool_limits(1, "blas"):  # the threads are ours
        tests = edge_tests(table, model, weights=weights, n_jobs=plan.n_jobs)
    kept = np.ones(len(tests.edges), bool) if plan.fdr is None else tests.q_value <= plan.fdr
    last, kept, fitted = _last_model(growth, kept, tests.dof == 0, plan)
    return Discovery(
        last,
        kept,
        tests,
        model.edge_strengths(),
        growth,
        certify(growth),
        growth.solution.info.converged and fitted,
        plan,
    )


def _last_model(
    growth: Growth, kept: NDArray[np.bool_], untold: NDArray[np.bool_], plan: Plan
) -> tuple[PairwiseMRF, NDArray[np.bool_], bool]:
    """Fit what is kept; edges that no test can tell of return where the model needs them.

    Where columns settle each other (identical ones, or a hub whose neighbours leave nothing open)
    an edge has no test. Of three identical columns each pair is explained by the third, and with
    all edges cut nothing would be. Such edges come back, the strongest first, as long as their
    score at the fitted parameters exceeds the threshold of the search by half.
    """
    ridge = last_ridge(plan, growth.objective.n_rows)
    if kept.all() and not plan.refit:
        return growth.model(), kept, True
    if not plan.refit or growth.parts.single_features:
        # A fit that does not reach its tolerance warns.
        return refit(growth, ridge, keep=kept, shrunk=not plan.refit), kept, True
    settings = replace(growth.settings, relaxed=True)
    run = warm_start(
        growth, penalty=replace(growth.penalty, ridge=ridge), settings=settings, keep=kept
    )
    steps.fit(run, final=True)
    waiting = growth.graph.layout.edges[untold & ~kept]
    while len(waiting):
        scores = run.judge(waiting).scores
        scores[scores <= _NEEDED * run.penalty.penalty] = 0.0
        if not scores.any():
            break
        chosen = BestChoice(0.0).select(waiting, scores)
        run.graph.add(waiting[chosen])
        waiting = np.delete(waiting, chosen, axis=0)
        steps.fit(run, final=True)
    kept = run.graph.contains(growth.graph.layout.edges)
    return run.model(), kept, run.solution.info.converged
