"""Learning from rows in blocks: a growing sample first, all rows at the end.

    a few rows in memory -> more rows in memory -> all rows, block by block

Early steps need no more than a direction, and a pass over all rows is expensive; so the search
begins on samples, each of which resumes from the graph and parameters of the one before, and ends
over all rows: last fits, the test of every inactive pair, certificate and KKT residual are of all
of them. Two parts read rows one by one and are computed on the sample alone: the weights of
:mod:`~edgegraft.learn.sharpen` and the tests of :mod:`~edgegraft.learn.edge_tests`, whose p-values
are valid and have the power of the sample's rows.

A sample has short runs of neighbouring rows from every block, drawn with the seed of the search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike

import numpy as np

from edgegraft.config import Plan, Settings
from edgegraft.counts import PairCounts
from edgegraft.errors import FileFormatError
from edgegraft.ingest.memory import SAMPLE_ROWS
from edgegraft.learn import steps
from edgegraft.learn.checkpoint import allow, load
from edgegraft.learn.events import Observer
from edgegraft.learn.loop import go_on, grow
from edgegraft.learn.parts import choose_parts
from edgegraft.learn.plan import (
    check_states,
    losses,
    penalty_of,
    search_settings,
)
from edgegraft.learn.sharpen import TESTS_A_VARIABLE
from edgegraft.learn.state import Growth
from edgegraft.learn.warm import warm_start
from edgegraft.objective.objective import Objective
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.table.blocks import Rows, TableRows, sample_rows

_STEP = 8  # from one sample to the next
_LEAST = 50_000  # rows of a sample that are worth a stage of their own
_OF_NOISE = 0.2  # left unfitted at most, of the standard deviation of one row's share

MakeLoss = Callable[[], tuple[Objective, PairCounts]]


class Stages:
    """The losses that a search over blocks goes through, the last of them over all rows.

    Parameters
    ----------
    rows : Rows
    plan : Plan
    n_sample : int
        Rows of the largest sample.

    Attributes
    ----------
    sample : TableRows
        The largest one, in memory.
    whole : bool
        Whether the sample is all there is.
    """

    def __init__(self, rows: Rows, plan: Plan, n_sample: int = SAMPLE_ROWS) -> None:
        check_states(rows.schema)
        rng = np.random.default_rng(plan.random_state)
        self.whole = rows.n_rows <= n_sample
        self.sample: TableRows = sample_rows(rows, n_sample, rng)
        self._rows, self.plan = rows, plan
        self._in_memory: tuple[Objective, PairCounts] | None = None

    def run(self, observers: Sequence[Observer]) -> Growth:
        """Search from the beginning."""
        first, *rest = self._losses()
        loss, counts = first()
        growth = grow(
            loss, penalty_of(self.plan, loss), self._settings, counts=counts, observers=observers
        )
        return self._go_through(growth, rest, observers)

    def resume(
        self,
        path: str | PathLike[str],
        observers: Sequence[Observer],
        max_time: float | None,
        max_edges: int | None,
    ) -> Growth:
        """Go on from a checkpoint of any stage."""
        waiting = self._losses()
        while True:
            make, *waiting = waiting
            try:
                growth = load(path, make()[0])
                break
            except FileFormatError:
                # A later stage has another loss; what is no checkpoint at all is told at the end.
                if not waiting:
                    raise
        growth = go_on(allow(growth, max_time, max_edges), observers)
        return self._go_through(growth, waiting, observers)

    @property
    def _settings(self) -> Settings:
        return search_settings(self.plan, len(self._rows.schema))

    def _go_through(
        self, growth: Growth, rest: list[MakeLoss], observers: Sequence[Observer]
    ) -> Growth:
        for make in rest:
            if growth.reason and growth.reason.requested:
                break
            growth = advance(growth, make()[0], self.plan)
            growth = go_on(growth, observers, mark=marks(growth))
        return growth

    def _losses(self) -> list[MakeLoss]:
        plan = self.plan
        n = len(self._rows.schema)
        if plan.objective == "likelihood" or choose_parts(self._settings, n).single_features:
            return [self._over_all]
        stages: list[MakeLoss] = [self._over_all, self._over_sample]
        share = 1.0 / _STEP
        while share * self.sample.n_rows >= _LEAST:
            stages.append(partial(self._over_share, share))
            share /= _STEP
        return stages[::-1]

    def _over_all(self) -> tuple[Objective, PairCounts]:
        likelihood = self.plan.objective == "likelihood"
        stand_in = None if likelihood else self._over_sample()[0]
        return losses(self._rows, self.plan, stand_in=stand_in)

    def _over_sample(self) -> tuple[Objective, PairCounts]:
        if self._in_memory is None:
            self._in_memory = losses(self.sample.table, self.plan, self.sample.weights)
        return self._in_memory

    def _over_share(self, share: float) -> tuple[Objective, PairCounts]:
        loss, counts = self._over_sample()
        assert isinstance(loss, Pseudolikelihood)
        rng = np.random.default_rng([self.plan.random_state, round(1 / share)])
        return loss.subsample(share, rng), counts


def advance(growth: Growth, loss: Objective, plan: Plan) -> Growth:
    """Return a run over more rows, ready for `go_on`, from where one over fewer has ended."""
    rule = penalty_of(plan, loss)
    settings = growth.settings
    if loss.stand_in is not None:
        settings = _settings_of_all(settings, plan, loss)
    after = warm_start(growth, objective=loss, penalty=rule, settings=settings)
    if loss.stand_in is not None:
        steps.fit(after, final=True)  # at parameters of fewer rows nearly every pair violates
    # What a checkpoint is recognised by: the model without edges, over the rows at hand.
    empty = Growth.begin(loss, rule, after.settings).solution.info.objective
    after.events[0] = replace(after.events[0], objective=empty)
    return after


def _settings_of_all(settings: Settings, plan: Plan, loss: Objective) -> Settings:
    """Return the settings of a search over all rows.

    A fit is several passes over them: it must not be made for a handful of edges, nor be lost with
    a run that is killed. And what it leaves unfitted must stay below the noise of the gradients,
    or else it is taken for edges.
    """
    tests = plan.test_limit or TESTS_A_VARIABLE * len(loss.schema)
    tol = min(settings.tol, _OF_NOISE / np.sqrt(loss.n_rows))
    return replace(settings, max_tests=tests, tol=float(tol), checkpoint_every=1)


def marks(growth: Growth) -> bool:
    """Return whether every step of a run deserves a checkpoint: one over all rows in blocks."""
    return growth.objective.stand_in is not None
