"""Belief propagation: exact on forests, the Bethe approximation elsewhere.

    M_ij(b) ∝ sum_a exp(u_i(a) + w_ij(a, b)) prod_{k != j} M_ki(a)

At a fixed point the beliefs are a stationary point of the Bethe free energy, whose value stands
for log Z. Loops of strong couplings can make it oscillate or leave the truth far behind: a run
says whether it converged, and :class:`~edgegraft.inference.trw.TreeReweighted` is the safe choice
where it does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.tables import PairTables
from edgegraft.core.types import Edges, Floats
from edgegraft.errors import ModelError
from edgegraft.inference.decoding import decode, score
from edgegraft.inference.engine import Assignment, Capabilities, Info, Marginals
from edgegraft.inference.floors import floored
from edgegraft.inference.messages import (
    MessageState,
    Passed,
    Plan,
    Schedule,
    beliefs_of,
    cold_state,
    pass_messages,
    regrown,
)
from edgegraft.inference.response import PairMethod, describe, joint_tables


@dataclass(frozen=True)
class BeliefPropagation:
    """Sum-product belief propagation on a pairwise model.

    Parameters
    ----------
    schedule : {"residual", "flooding"}
        Update the node whose messages are most out of date, in place; or all messages at once.
        Both have the same fixed points; the first gets there with fewer updates, and after a
        small change of a warm model with very few.
    damping : float, 0 <= damping < 1
        Share of the old message kept at each update.
    tol : float
        A run has converged when no message would change by more than this relative amount.
    max_iter : int
        Sweeps (or as many single updates) before a run gives up.
    pair_method : {"product", "linear-response"}
        How a pair without an edge is answered: product of the two beliefs, or with the covariance
        that follows from how beliefs respond to node potentials (exact on forests).

    Examples
    --------
    >>> layout = Layout([2, 2, 2], [(0, 1), (1, 2)])
    >>> theta = np.array([0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1.0])
    >>> engine = BeliefPropagation()
    >>> marginals, state, info = engine.run(theta, engine.init(layout))
    >>> info.converged, round(marginals.log_partition, 6)
    (True, 3.939785)
    >>> layout.node(marginals.values, 0).round(4)
    array([0.4507, 0.5493])
    """

    schedule: Schedule = "residual"
    damping: float = 0.0
    tol: float = 1e-6
    max_iter: int = 500
    pair_method: PairMethod = "product"

    def __post_init__(self) -> None:
        check_settings(self.schedule, self.damping, self.tol, self.max_iter, self.pair_method)

    @property
    def capabilities(self) -> Capabilities:
        """What the answers are."""
        return Capabilities("bp", False, "Bethe approximation", describe(self.pair_method))

    def init(self, layout: Layout) -> MessageState:
        """Return the state of uniform messages."""
        return cold_state(layout)

    def grow(self, state: MessageState, layout: Layout) -> MessageState:
        """Return a state for another graph that keeps the messages of the edges in both."""
        return regrown(state, layout)

    def run(
        self,
        theta: Floats,
        state: MessageState,
        rng: np.random.Generator | None = None,
    ) -> tuple[Marginals, MessageState, Info]:
        """Return beliefs and the Bethe log Z, the state for the next run, and how it went.

        `rng` is not used: the engine is deterministic. ``info.diagnostics["message_updates"]``
        counts the messages computed.
        """
        given = floored(theta, state.layout, state.weight)
        passed = pass_messages(given, state, self._plan())
        values, log_z = beliefs_of(passed, theta)
        if passed.converged and log_z < given.least - 50.0:
            raise ModelError(
                "the zero entries of the potentials leave no configuration that is possible"
            )
        info = report(passed, "belief propagation", "raise `damping` or `max_iter`, or use trw")
        return Marginals(values, log_z), passed.state._replace(beliefs=values), info

    def pair_marginals(self, theta: Floats, state: MessageState, edges: Edges) -> PairTables:
        """Return joint marginals of any pairs: edge beliefs, or by `pair_method`."""
        if not is_current(state, theta):
            _, state, _ = self.run(theta, state)
        return joint_tables(state, edges, self.pair_method)

    def map(self, theta: Floats, layout: Layout) -> Assignment:
        """Return a likely assignment, its unnormalised log score, and how the search went.

        Max-product messages are decoded from the roots of a spanning forest outwards, each
        variable given those before it, and the result is improved by setting random forests, then
        single variables, to their best states given the rest. Exact on forests; elsewhere an
        approximation whose score is exact.

        Examples
        --------
        >>> layout = Layout([2, 2], [(0, 1)])
        >>> theta = np.array([0, 1, 0, 0, 0, 0, 0, 2.0])
        >>> found = BeliefPropagation().map(theta, layout)
        >>> found.assignment, found.value
        (array([1, 1]), 3.0)
        """
        given = floored(theta, layout, np.ones(layout.n_edges))
        passed = pass_messages(given, cold_state(layout), self._plan(), maximise=True)
        assignment = decode(passed.state)
        value = score(theta, layout, assignment)
        info = report(
            passed,
            "max-product",
            "the assignment is the best of a local search from where they stopped",
        )
        return Assignment(assignment, value, info)

    def _plan(self) -> Plan:
        return Plan(self.schedule, self.damping, self.tol, self.max_iter)


def check_settings(
    schedule: str, damping: float, tol: float, max_iter: int, pair_method: str
) -> None:
    """Refuse settings that make no sense, before any work."""
    if schedule not in ("residual", "flooding"):
        raise ValueError(f"schedule is 'residual' or 'flooding', not {schedule!r}")
    if not 0.0 <= damping < 1.0:
        raise ValueError(f"damping is at least 0 and less than 1, not {damping}")
    if not tol > 0.0:
        raise ValueError(f"tol is positive, not {tol}")
    if max_iter < 1:
        raise ValueError(f"max_iter is at least 1, not {max_iter}")
    if pair_method not in ("product", "linear-response"):
        raise ValueError(f"pair_method is 'product' or 'linear-response', not {pair_method!r}")


def is_current(state: MessageState, theta: Floats) -> bool:
    """Whether `state` holds the beliefs of a run under `theta`."""
    if len(state.beliefs) == 0:
        return False
    return np.array_equal(floored(theta, state.layout, state.weight).theta, state.theta)


def report(passed: Passed, what: str, advice: str) -> Info:
    """Say how a run went."""
    message = ""
    if not passed.converged:
        message = (
            f"{what} did not converge in {passed.n_iter} sweeps (the largest message change "
            f"is {passed.residual:.2g}): {advice}"
        )
    diagnostics = {"message_updates": passed.n_updates}
    return Info(passed.converged, passed.n_iter, passed.residual, message, diagnostics)
