"""The searches of a run: over a growing sample of the rows first, over all rows at the end.

    a few rows in memory -> more rows in memory -> all rows, block by block

Early steps need no more than a direction, and a pass over all rows is expensive; so the
search begins on samples, each of which continues from the graph and parameters of the one before,
and ends over all rows: last fits, the test of every inactive pair, certificate and KKT residual are
of all of them. The tests of :mod:`~edgegraft.learn.edge_tests` use the sample alone:
their p-values are valid and have the power of the sample's rows.

A sample has short runs of neighbouring rows from every block, drawn with the seed of the search. A
table in memory, and blocks that fit the sample, have one search: over all rows. A search leaves its
graph, parameters and counters, of which the next one is made; its candidates come in the order of
the data's ranking again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.conditional.survey_design import SurveyDesign, weigh_rows
from edgegraft.config import Plan, Settings
from edgegraft.core.backend import find_backend
from edgegraft.core.types import Mask, Tree
from edgegraft.counts import PairCounts
from edgegraft.errors import DataError
from edgegraft.grafting.events import Observer, StopReason
from edgegraft.grafting.loop import fit_fully, run_search
from edgegraft.grafting.problem import (
    Problem,
    check_states,
    losses,
    penalty_of,
    search_settings,
)
from edgegraft.grafting.state import SearchState
from edgegraft.learn.checkpoint import BUDGETS, StageFile
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

MakeLoss = Callable[[], tuple[Objective, PairCounts]]


@dataclass(frozen=True)
class _Growing:
    """How searches over more and more rows follow each other."""

    step: int = 8  # from one sample to the next: all before take a seventh of the last
    min_rows: int = 50_000  # of a sample that is worth a search of its own
    tests_per_variable: int = 50  # between two fits over all rows: few edges are left to find
    of_noise: float = 0.2  # of the standard deviation of a row's share, left unfitted at most


_GROWING = _Growing()


class Stages:
    """The rows of a run, and the losses of its searches, the last of them over all rows.

    A table may have weights and a design; of blocks, the largest sample has `n_sample` rows.
    `sample` are the rows in memory; `sampling`: whether row weights are sampling weights.
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
        file: StageFile | None = None,
    ) -> None:
        given = as_rows(rows, weights, plan.n_jobs, find_backend(plan.device))
        weighed, self.sampling = weigh_rows(given, plan.weights_are)
        if design is not None and not isinstance(weighed, TableRows):
            raise DataError(
                "strata and clusters need all rows in memory: raise max_memory, or give a table"
            )
        self.design, self.file = design, file or StageFile()
        self.file.begin(plan, weighed, design, n_sample)
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
    def has_frequencies(self) -> bool:
        """Whether weights are numbers of equal rows."""
        return self.design is None and not self.sampling

    def counts(self) -> PairCounts:
        """Return the counts of all rows."""
        return PairCounts(self.filled or self._rows)

    def search(self, observers: Sequence[Observer]) -> SearchState:
        """Return the last search: worked out, gone on with, or as the file of the run has it."""
        state: SearchState | None = None
        for k, make in enumerate(self._losses()):
            loss, counts = make()
            problem = self._problem(loss)
            name = f"search {k}"
            known = self.file.find(name)
            if known is not None and self._goes_on(known):
                state = SearchState.ended(problem, known)
                self.file.forget(name)
            work_out = partial(self._search, problem, state, counts, [*observers, self.file])
            state = SearchState.ended(problem, self.file.stage(name, work_out))
            if state.reason is None or state.reason.requested:
                break
        assert state is not None
        return state

    def _goes_on(self, known: Tree) -> bool:
        """Return whether a search that was stopped can go on: nobody stops it now, or has more."""
        reason = StopReason[known["reason"]]
        more = known["budgets"] != [getattr(self.plan, name) for name in BUDGETS]
        return reason.requested or (reason.resumable and more)

    def _search(
        self,
        problem: Problem,
        before: SearchState | None,
        counts: PairCounts,
        observers: Sequence[Observer],
    ) -> Tree:
        """Return the result of a search, from where an earlier one of fewer rows has ended."""
        loss = problem.objective
        if before is not None:
            state = before.warm(problem)
            if loss.stand_in is not None:
                fit_fully(state)  # at parameters of fewer rows nearly every pair violates
            run_search(state, observers, counts=counts)
        elif too_few_rows(loss, problem.penalty, self.plan):
            state = SearchState.begin(problem)
            state.reason = StopReason.TOO_FEW_ROWS
            run_search(state, observers)
        else:
            warn_of_sparse_pairs(self.sample.table, problem.penalty)
            state = SearchState.begin(problem)
            run_search(state, observers, counts=counts)
        return state.result() | {"budgets": [getattr(self.plan, name) for name in BUDGETS]}

    def _problem(self, loss: Objective) -> Problem:
        settings = self._settings
        if loss.stand_in is not None:
            settings = _settings_of_all(settings, self.plan, loss)
        return Problem(loss, penalty_of(self.plan, loss), settings)

    def _losses(self) -> list[MakeLoss]:
        if self._whole:
            return [self._over_sample]
        if self.plan.objective == "likelihood":
            return [self._over_all]
        stages: list[MakeLoss] = [self._over_all, self._over_sample]
        share = 1.0 / _GROWING.step
        while share * self.sample.n_rows >= _GROWING.min_rows:
            stages.append(partial(self._over_share, share))
            share /= _GROWING.step
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


def _settings_of_all(settings: Settings, plan: Plan, loss: Objective) -> Settings:
    """Return the settings of a search over all rows.

    A fit is several passes over them: it must not be made for a handful of edges. And what it
    leaves unfitted must stay below the noise of the gradients, or else it is taken for edges.
    """
    tests = plan.max_tests or _GROWING.tests_per_variable * len(loss.schema)
    tol = min(settings.tol, _GROWING.of_noise / np.sqrt(loss.n_rows))
    return replace(settings, max_tests=tests, tol=float(tol))
