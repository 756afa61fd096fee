"""All that changes while a search runs, how it judges pairs, and what it leaves when it has ended.

A pair violates optimality when ``s_e > penalty``. The parameters are fitted to a tolerance only,
and the solver leaves a group alone that violates its condition by at most ``tol``; so the test is

    (s_e - penalty) d_e > slack

with the solver's own measure on the left: an edge that passes is one that the solver will move.

A pair outside the model and an edge inside it may be judged by different approximations of an
engine.
A pair may then violate optimality from outside while its edge, once active, is best left at zero,
and the search would never end. A pair that was set back to zero `MAX_RETURNS` times, without the
fit having moved anything, is given up.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from time import perf_counter
from typing import NamedTuple, Self

import numpy as np

from edgegraft.config import Settings
from edgegraft.core import ActiveGraph
from edgegraft.core.adjacency import PairMap
from edgegraft.core.pairs import PairTables, all_pairs, pair_ids
from edgegraft.core.types import Edges, Floats, Mask, Tree
from edgegraft.grafting.events import Columns, Event, StopReason, as_columns
from edgegraft.grafting.policies import Policy
from edgegraft.grafting.problem import Problem
from edgegraft.grafting.reservoir import Reservoir
from edgegraft.grafting.stream import CandidateStream
from edgegraft.model import PairwiseMRF
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import Penalty
from edgegraft.optimize.solver import Solution

MAX_RETURNS = 3  # budget: each costs a fit
FIRST_ITERATIONS = 1000  # budget of the fit of the node vectors


class Judged(NamedTuple):
    """Pairs at the current parameters."""

    scores: Floats  # s_e
    violates: Mask


@dataclass
class SearchState:
    """A graph on its way, with its fitted parameters and the search's memory."""

    problem: Problem  #: what is minimised and how
    graph: ActiveGraph  #: the active edges
    #: parameters of the last fit; its layout may still have edges that left the graph, at zero
    solution: Solution
    stream: CandidateStream
    reservoir: Reservoir
    tested: PairMap = field(default_factory=PairMap)  #: pairs scored so far
    n_tests: int = 0  #: pairs scored, a pair scored again counted again
    n_activations: int = 0  #: activation steps
    filled: bool = False  #: whether the reservoir has been full once
    ranked: bool = False  #: whether the data ranked the pairs
    #: significant pairs at the head of the queue, which the first step activates
    n_significant: int = 0
    n_closed: int = 0  #: edges there were when neighbours of neighbours were last queued
    n_fresh: int = 0  #: frozen pairs whose offsets are of the current parameters
    #: how often pairs (their ids) were set back to zero by a fit that moved nothing
    returned: Counter[int] = field(default_factory=Counter)
    seconds_before: float = 0.0  #: time spent by earlier parts of a resumed run
    events: list[Event] = field(default_factory=list)
    reason: StopReason | None = None  #: why the search ended; None while it runs
    started: float = field(default_factory=perf_counter)

    @classmethod
    def begin(
        cls,
        problem: Problem,
        edges: Edges | None = None,
        start: Solution | Floats | None = None,
        max_iter: int = FIRST_ITERATIONS,
        *,
        fell_back: bool = False,
    ) -> Self:
        """Return a search that has fitted the node vectors, or `edges` from `start`.

        It has tested nothing. `fell_back`: the objective's fallback has taken over.
        """
        schema = problem.objective.schema
        graph = ActiveGraph(schema.n_states, edges, problem.objective.layout().widths)
        stream = CandidateStream(len(schema), problem.settings.random_state)
        stream.remove(graph.layout.edges)
        if isinstance(start, np.ndarray) and start.shape != (graph.layout.n_parameters,):
            raise ValueError(
                f"the graph has {graph.layout.n_parameters} parameters, found {start.shape}"
            )
        objective, quiet = problem.objective.fallback if fell_back else None, start is not None
        solution = problem.solve(graph.layout, start, max_iter, objective=objective, quiet=quiet)
        return cls(problem, graph, solution, stream, Reservoir(problem.policy.capacity))

    def result(self) -> Tree:
        """Return what the search has found, for :meth:`ended`."""
        n, tested = self.graph.layout.n_variables, self.tested.with_value()
        return {
            "edges": self.graph.layout.edges,
            "theta": self.theta(),
            "tested": None if len(tested) == n * (n - 1) // 2 else tested,
            "n_tests": self.n_tests,
            "n_activations": self.n_activations,
            "seconds": self.seconds,
            "events": [list(vars(event).values()) for event in self.events],
            "reason": None if self.reason is None else self.reason.name,
            "fell_back": self.fell_back,
        }

    @classmethod
    def ended(cls, problem: Problem, found: Tree) -> Self:
        """Return an ended search of the same problem: its result, and no candidates."""
        n, tested = len(problem.objective.schema), found["tested"]
        fell_back = found["fell_back"]
        theta = np.asarray(found["theta"], np.float64)
        state = cls.begin(problem, found["edges"], theta, 0, fell_back=fell_back)
        ids = pair_ids(all_pairs(n), n) if tested is None else np.asarray(tested, np.int64)
        state.tested = PairMap(ids)
        state.n_tests, state.n_activations = int(found["n_tests"]), int(found["n_activations"])
        state.seconds_before = float(found["seconds"])
        state.events = [Event(*values) for values in found["events"]]
        state.reason = StopReason[found["reason"]]
        return state

    def warm(self, problem: Problem, keep: Mask | None = None) -> Self:
        """Return a search of another problem that starts from this one's graph and parameters.

        Nothing else is assumed to hold: all other pairs are candidates again. Counters and events
        continue. This is how a path of penalties and a search over more rows start. The problem is
        over the same variables.
        """
        whole = self.graph.layout
        kept = np.ones(whole.n_edges, bool) if keep is None else keep
        layout = whole.with_edges(whole.edges[kept])
        known = self.solution.objective is problem.objective
        start = self.solution if known else layout.carry(self.theta(), whole)
        after = type(self).begin(problem, layout.edges, start, 0)
        after.tested = PairMap(self.tested.with_value())
        after.n_tests, after.n_activations = self.n_tests, self.n_activations
        after.filled, after.ranked = True, self.ranked
        after.seconds_before = self.seconds
        after.events = [event for event in self.events if event.kind != "end"]
        return after

    @property
    def objective(self) -> Objective:
        """The loss that was asked for; that of `solution` may be its fallback."""
        return self.problem.objective

    @property
    def fell_back(self) -> bool:
        """Whether the objective's fallback has taken over."""
        return self.solution.objective is not self.objective

    @property
    def penalty(self) -> Penalty:
        """What pairs are judged by."""
        return self.problem.penalty

    @property
    def settings(self) -> Settings:
        """Settings of the search."""
        return self.problem.settings

    @property
    def policy(self) -> Policy:
        """What differs between searches."""
        return self.problem.policy

    @property
    def seconds(self) -> float:
        """Time spent, earlier parts of a resumed run included."""
        return self.seconds_before + perf_counter() - self.started

    @property
    def n_tables(self) -> int:
        """Number of different pairs scored."""
        return len(self.tested)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the search."""
        return self.reason is StopReason.INTERRUPTED

    @property
    def room(self) -> int | None:
        """How many more edges the budget allows; None without a limit."""
        most = self.settings.max_edges
        return None if most is None else max(0, most - len(self.graph))

    @property
    def full(self) -> StopReason | None:
        """Why no edge has room; None if one has."""
        return StopReason.MAX_EDGES if self.room == 0 else None

    @property
    def spent(self) -> StopReason | None:
        """Which budget of time or tables is spent; None if none is."""
        settings = self.settings
        if settings.max_time is not None and self.seconds >= settings.max_time:
            return StopReason.MAX_TIME
        if settings.max_tables is not None and self.n_tables >= settings.max_tables:
            return StopReason.MAX_TABLES
        return None

    @property
    def settled(self) -> bool:
        """Whether the parameters are those of the graph, fitted to the tolerance.

        Not after an edge has left: engines may judge pairs outside of the model by another
        approximation than its edges.
        """
        return self.solution.layout is self.graph.layout and self.solution.info.converged

    def gradients(self, edges: Edges) -> PairTables:
        """Return the loss's gradient with respect to tables of pairs at the current parameters."""
        solution = self.solution
        return solution.objective.edge_gradients(solution.theta, solution.state, edges)

    def judge(self, edges: Edges) -> Judged:
        """Score pairs at the current parameters and count them as tested.

        Pairs that were given up do not count as violating.
        """
        tables = self.gradients(edges)
        self.n_tests += len(edges)
        self.tested.put(pair_ids(edges, self.graph.layout.n_variables))
        scores = self.penalty.score(tables)
        return Judged(scores, self.exceeds(scores, edges) & ~self.gave_up(edges))

    def exceeds(self, scores: Floats, edges: Edges) -> Mask:
        """Return which scores of pairs violate optimality."""
        cells = self.graph.layout.widths[edges].prod(axis=1)
        weights = self.penalty.edge_weights(edges, cells)
        return np.asarray((scores - self.penalty.penalty) * weights > self.policy.slack)

    def offsets(self, scores: Floats | float) -> Floats:
        """Return the violation offsets ``1 - s / penalty`` of scores."""
        penalty = self.penalty.penalty
        return np.asarray(1.0 - scores / penalty if penalty else -scores)

    def gave_up(self, edges: Edges) -> Mask:
        """Return which pairs are not to be activated again."""
        often = [id_ for id_, times in self.returned.items() if times >= MAX_RETURNS]
        return np.isin(pair_ids(edges, self.graph.layout.n_variables), often)

    def theta(self) -> Floats:
        """Return the parameters in the layout of the graph."""
        return self.graph.layout.carry(self.solution.theta, self.solution.layout)

    def model(self) -> PairwiseMRF:
        """Return the model of the active edges."""
        layout = self.graph.layout
        theta = self.objective.expand(self.theta(), layout)
        return PairwiseMRF(self.objective.schema, layout.edges, theta)

    def trace(self) -> Columns:
        """Return the trajectory as columns, one entry per event, by the names of `Event`."""
        return as_columns(self.events)

    def event(self, kind: str) -> Event:
        """Return a snapshot."""
        return Event(
            kind,
            self.seconds,
            self.solution.info.objective,
            len(self.graph),
            self.n_activations,
            self.n_tests,
            self.n_tables,
            str(self.reason) if kind == "end" else "",
            self.objective.round_trips,
        )
