"""The losses that a search goes through: a growing sample of the rows first, all rows at the end.

    a few rows in memory -> more rows in memory -> all rows, block by block

Early steps need no more than a direction, and a pass over all rows is expensive; so the
search begins on samples, each of which continues from the graph and parameters of the one before,
and ends over all rows: last fits, the test of every inactive pair, certificate and KKT residual are
of all of them. The tests of :mod:`~edgegraft.learn.edge_tests` use the sample alone:
their p-values are valid and have the power of the sample's rows.

A sample has short runs of neighbouring rows from every block, drawn with the seed of the search. A
table in memory, and blocks that fit the sample, have one stage: all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.conditional.survey_design import SurveyDesign, weigh_rows
from edgegraft.config import Plan, Settings
from edgegraft.core.backend import find_backend
from edgegraft.core.types import Mask
from edgegraft.counts import PairCounts
from edgegraft.errors import DataError, FileFormatError
from edgegraft.grafting import steps
from edgegraft.grafting.events import Observer, StopReason
from edgegraft.grafting.loop import grow, run_search
from edgegraft.grafting.problem import (
    Problem,
    check_states,
    losses,
    penalty_of,
    search_settings,
)
from edgegraft.grafting.state import SearchState
from edgegraft.learn.checkpoint import load
from edgegraft.learn.too_few_rows import too_few_rows, warn_of_sparse_pairs
from edgegraft.objective.objective import Objective
from edgegraft.table import PackedTable
from edgegraft.table.blocks import (
    SAMPLE_ROWS,
    Rows,
    TableRows,
    as_rows,
    distinct_rows,
    sample_rows,
)

_STEP = 8  # from one sample to the next
_MIN_ROWS = 50_000  # of a sample that is worth a stage of its own
_TESTS_PER_VARIABLE = 50  # between two activations over all rows: few edges are left to find
_OF_NOISE = 0.2  # left unfitted at most, of the standard deviation of one row's share

MakeLoss = Callable[[], tuple[Objective, PairCounts]]


class Stages:
    """The losses that a search goes through, the last of them over all rows.

    A table may have weights and a design; of blocks, the largest sample has `n_sample` rows.
    `sample` are the rows in memory; `sampling`: whether row weights are those of a sample.
    `filled` are the rows in memory with their missing cells drawn, once they are, and `drawn` says
    which these are.
    """

    def __init__(
        self,
        rows: PackedTable | Rows,
        plan: Plan,
        weights: ArrayLike | None = None,
        n_sample: int = SAMPLE_ROWS,
        design: SurveyDesign | None = None,
    ) -> None:
        given = as_rows(rows, weights, plan.n_jobs, find_backend(plan.device))
        weighed, self.sampling = weigh_rows(given, plan.weights_are)
        if design is not None and not isinstance(weighed, TableRows):
            raise DataError(
                "strata and clusters need all rows in memory: raise max_memory, or give a table"
            )
        self.design = design
        self.plan, self._rows = plan, weighed if design is not None else distinct_rows(weighed)
        check_states(rows.schema)
        self._settings = search_settings(plan, len(rows.schema))
        self._in_memory: tuple[Objective, PairCounts] | None = None
        self.filled: TableRows | None = None
        self.drawn: Mask | None = None
        if isinstance(self._rows, TableRows):
            self.sample = self._rows
        else:
            rng = np.random.default_rng(plan.random_state)
            self.sample = sample_rows(self._rows, n_sample, rng, plan.n_jobs)
        self._whole = self.sample.n_rows == self._rows.n_rows

    @property
    def variance(self) -> dict[str, Any]:
        """What tests need for the variance of sums over rows."""
        return {"sampling": self.sampling, "survey": self.design}

    @property
    def apart(self) -> bool:
        """Whether weights are numbers of equal rows."""
        return self.design is None and not self.sampling

    def counts(self) -> PairCounts:
        """Return the counts of all rows."""
        return PairCounts(self.filled or self._rows)

    def run(self, observers: Sequence[Observer]) -> SearchState:
        """Search from the beginning."""
        first, *rest = self._losses()
        loss, counts = first()
        rule = penalty_of(self.plan, loss)
        problem = Problem.of(loss, rule, self._settings)
        if too_few_rows(loss, problem.penalty, self.plan):
            state = SearchState.begin(problem)
            state.reason = StopReason.TOO_FEW_ROWS
            return run_search(state, observers)
        warn_of_sparse_pairs(self.sample.table, problem.penalty)
        state = grow(loss, rule, self._settings, counts=counts, observers=observers)
        return self._continue(state, rest, observers)

    def resume(
        self,
        path: str | PathLike[str],
        observers: Sequence[Observer],
        max_time: float | None,
        max_edges: int | None,
    ) -> SearchState:
        """Resume from a checkpoint of any stage."""
        waiting = self._losses()
        while True:
            make, *waiting = waiting
            try:
                state = load(path, make()[0], max_time, max_edges)
                break
            except FileFormatError:
                # A later stage has another loss; what is not a checkpoint is reported at the end.
                if not waiting:
                    raise
        return self._continue(run_search(state, observers), waiting, observers)

    def _continue(
        self, state: SearchState, rest: list[MakeLoss], observers: Sequence[Observer]
    ) -> SearchState:
        for make in rest:
            if state.reason is None or state.reason.requested:
                break
            state = advance(state, make()[0], self.plan)
            state = run_search(state, observers, checkpoint=over_all_rows(state))
        return state

    def _losses(self) -> list[MakeLoss]:
        if self._whole:
            return [self._over_sample]
        if self.plan.objective == "likelihood":
            return [self._over_all]
        stages: list[MakeLoss] = [self._over_all, self._over_sample]
        share = 1.0 / _STEP
        while share * self.sample.n_rows >= _MIN_ROWS:
            stages.append(partial(self._over_share, share))
            share /= _STEP
        return stages[::-1]

    def _over_all(self) -> tuple[Objective, PairCounts]:
        likelihood = self.plan.objective == "likelihood"
        stand_in = None if likelihood else self._over_sample()[0]
        # One meaning of parameters in all stages.
        features = self._over_sample()[0].features if self._rows.schema.scored else None
        return losses(self._rows, self.plan, stand_in=stand_in, features=features)

    def _over_sample(self) -> tuple[Objective, PairCounts]:
        if self._in_memory is None:
            self._in_memory = losses(self.sample, self.plan)
        return self._in_memory

    def _over_share(self, share: float) -> tuple[Objective, PairCounts]:
        rng = np.random.default_rng([self.plan.random_state, round(1 / share)])
        whole, counts = self._over_sample()
        rows = self.sample.subsample(share, rng)
        return losses(rows, self.plan, features=whole.features)[0], counts


def advance(state: SearchState, loss: Objective, plan: Plan) -> SearchState:
    """Return a search over more rows, ready to run, from where one over fewer has ended."""
    rule = penalty_of(plan, loss)
    settings = state.settings
    if loss.stand_in is not None:
        settings = _settings_of_all(settings, plan, loss)
    problem = state.problem.changed(objective=loss, penalty=rule, settings=settings)
    after = state.warm(problem)
    if loss.stand_in is not None:
        steps.fit_fully(after)  # at parameters of fewer rows nearly every pair violates
    # What a checkpoint is recognised by: the model without edges, over the rows at hand.
    empty = SearchState.begin(Problem.of(loss, rule, settings)).solution.info.objective
    after.events[0] = replace(after.events[0], objective=empty)
    return after


def _settings_of_all(settings: Settings, plan: Plan, loss: Objective) -> Settings:
    """Return the settings of a search over all rows.

    A fit is several passes over them: it must not be made for a handful of edges, nor be lost with
    a search that is killed. And what it leaves unfitted must stay below the noise of the gradients,
    or else it is taken for edges.
    """
    tests = plan.test_limit or _TESTS_PER_VARIABLE * len(loss.schema)
    tol = min(settings.tol, _OF_NOISE / np.sqrt(loss.n_rows))
    return replace(settings, max_tests=tests, tol=float(tol), checkpoint_every=1)


def over_all_rows(state: SearchState) -> bool:
    """Return whether a search is over all rows in blocks: each step is worth a checkpoint."""
    return state.objective.stand_in is not None
