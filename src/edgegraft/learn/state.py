"""All that a run is at one moment, and how it judges pairs.

A pair violates optimality when ``s_e > penalty``. The parameters are fitted to a tolerance only,
and the solver leaves a group alone that violates its condition by at most ``tol``; so the test is

    (s_e - penalty) d_e > 1.1 tol

with the solver's own measure on the left: an edge that passes is one that the solver will move.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.config import Settings
from edgegraft.core import ActiveGraph, Layout
from edgegraft.core.pair_set import PairSet
from edgegraft.core.types import Edges, Floats, Mask
from edgegraft.learn.events import Event, StopReason
from edgegraft.learn.parts import Parts, choose_parts
from edgegraft.learn.returns import Returns
from edgegraft.learn.trace import Columns, as_columns
from edgegraft.model import PairwiseMRF
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalties import allowing
from edgegraft.objective.penalty import Penalty
from edgegraft.optimize.solver import Solution, Stopping, minimize
from edgegraft.search import CandidateStream, Reservoir

_SECOND_LOOK = 0.5  # of the edges that it began with, or one a variable: it is for the last few
_SLACK = 1.1  # of the solver's tolerance: rounding must not let it leave a chosen edge at zero


def fit_penalty(penalty: Penalty, settings: Settings) -> Penalty:
    """Return what the active edges are fitted with: the ridge alone where the run is relaxed."""
    return replace(penalty, penalty=0.0) if settings.relaxed else penalty


class Judged(NamedTuple):
    """Pairs at the current parameters."""

    scores: Floats  # s_e
    violates: Mask


@dataclass
class Growth:
    """A graph on its way, with its fitted parameters and the search's memory.

    Attributes
    ----------
    objective, penalty, settings, parts
        What is minimised and how.
    graph : ActiveGraph
        The active edges.
    solution : Solution
        Parameters of the last fit; its layout may still have edges that left the graph, at zero.
    stream, reservoir, rng
        The search.
    allowed : array of bool
        Parameters of `solution` that may leave zero, in feature grafting.
    tested : PairSet
        Pairs scored so far.
    ranked : bool
        Whether the data ranked the pairs.
    n_sure : int
        Pairs at the head of the queue that the ranking is sure of: the first step activates them.
    n_closed : int
        Edges there were when neighbours of neighbours were last queued.
    n_fresh : int
        Frozen pairs whose offsets are of the current parameters.
    returned : Returns
        Pairs that the fit set back to zero without moving anything.
    restarted_from : array or None
        Parameters that the last restart was given.
    sharpened : int
        Edges at which the second look of :func:`~edgegraft.learn.discover` began; 0 before it.
    """

    objective: Objective
    penalty: Penalty
    settings: Settings
    parts: Parts
    graph: ActiveGraph
    solution: Solution
    stream: CandidateStream
    reservoir: Reservoir
    rng: np.random.Generator
    allowed: NDArray[np.bool_]
    tested: PairSet
    n_tests: int = 0
    n_activations: int = 0
    filled: bool = False  # whether the reservoir has been full once
    ranked: bool = False
    n_sure: int = 0
    n_closed: int = 0
    n_fresh: int = 0
    returned: Returns = field(default_factory=Returns)
    restarted_from: Floats | None = None
    sharpened: int = 0
    seconds_before: float = 0.0
    events: list[Event] = field(default_factory=list)
    reason: StopReason | None = None
    started: float = field(default_factory=perf_counter)

    @classmethod
    def begin(cls, objective: Objective, penalty: Penalty, settings: Settings) -> Growth:
        """Return a run that has fitted the node vectors and tested nothing."""
        schema = objective.schema
        parts = choose_parts(settings, len(schema))
        layout = Layout(schema.n_states)
        allowed = np.ones(layout.n_parameters, bool)
        used = allowing(penalty, allowed) if parts.single_features else penalty.bound(objective)
        fitted = fit_penalty(used, settings)
        solution = minimize(objective, fitted, layout, stopping=Stopping(tol=settings.tol))
        return cls(
            objective,
            used,
            settings,
            parts,
            ActiveGraph(schema.n_states),
            solution,
            CandidateStream(len(schema), full=settings.full_queue),
            Reservoir(parts.capacity),
            np.random.default_rng(settings.random_state),
            allowed,
            PairSet(len(schema)),
        )

    @property
    def seconds(self) -> float:
        """Time spent, earlier parts of a resumed run included."""
        return self.seconds_before + perf_counter() - self.started

    @property
    def n_tables(self) -> int:
        """Number of different pairs scored."""
        return len(self.tested)

    @property
    def room(self) -> int | None:
        """How many more edges the budget allows, or a second look; None without a limit."""
        limits = [] if self.settings.max_edges is None else [self.settings.max_edges]
        if self.sharpened:
            few = max(int(_SECOND_LOOK * self.sharpened), self.graph.layout.n_variables)
            limits.append(self.sharpened + few)
        return max(0, min(limits) - len(self.graph)) if limits else None

    @property
    def full(self) -> StopReason | None:
        """Why no edge has room; None if one has."""
        if self.room != 0:
            return None
        budget = self.settings.max_edges
        if budget is not None and len(self.graph) >= budget:
            return StopReason.MAX_EDGES
        return StopReason.SECOND_LOOK

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
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the run."""
        return self.reason is StopReason.INTERRUPTED

    def judge(self, edges: Edges) -> Judged:
        """Score pairs at the current parameters and count them as tested.

        Pairs that were given up do not count as violating.
        """
        solution = self.solution
        tables = solution.objective.edge_gradients(solution.theta, solution.state, edges)
        self.n_tests += len(edges)
        self.tested.add(edges)
        scores = self.penalty.score(tables)
        return Judged(scores, self.exceeds(scores, edges) & ~self.returned.given_up(edges))

    def exceeds(self, scores: Floats, edges: Edges) -> Mask:
        """Tell which scores of pairs violate optimality."""
        cells = self.graph.layout.states[edges].prod(axis=1)
        weights = self.penalty.edge_weights(edges, cells)
        return np.asarray((scores - self.penalty.penalty) * weights > self.slack)

    @property
    def slack(self) -> float:
        """Largest violation that counts as none.

        None where the run is relaxed: there no penalty holds an activated edge at zero.
        """
        return 0.0 if self.settings.relaxed else _SLACK * self.settings.tol

    def offsets(self, scores: Floats) -> Floats:
        """Return the violation offsets ``1 - s / penalty`` of scores."""
        if self.penalty.penalty == 0:
            return -scores
        return np.asarray(1.0 - scores / self.penalty.penalty)

    def theta(self) -> Floats:
        """Return the parameters in the layout of the graph."""
        return self.graph.layout.carry(self.solution.theta, self.solution.layout)

    def model(self) -> PairwiseMRF:
        """Return the model of the active edges."""
        return PairwiseMRF(self.objective.schema, self.graph.layout.edges, self.theta())

    def trace(self) -> Columns:
        """Return the course of the run as columns: one entry an event, by the names of `Event`."""
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
