"""Belief propagation: exact on forests, the Bethe approximation elsewhere.

    M_ij(b) ∝ sum_a exp(u_i(a) + w_ij(a, b)) prod_{k != j} M_ki(a)

At a fixed point the beliefs are a stationary point of the Bethe free energy, whose value stands
for log Z. Loops of strong couplings can make it oscillate or leave the truth far behind: a run
reports whether it converged, and :class:`~edgegraft.inference.trw.TreeReweighted` is the safe
choice if it does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.pairs import PairTables
from edgegraft.core.types import Edges, Floats, Integers
from edgegraft.errors import ModelError
from edgegraft.inference.engine import (
    Assignment,
    Capabilities,
    Info,
    Marginals,
    product_tables,
    score,
)
from edgegraft.inference.messages import (
    Floored,
    MessageState,
    Passed,
    beliefs_of,
    carry_messages,
    cold_state,
    floored,
    pass_messages,
    wire,
)
from edgegraft.kernels.messages.forests import decide, improve_forest, polish

#: Rounds without a gain after which an assignment is left as it is.
MAX_IDLE_ROUNDS = 30


@dataclass(frozen=True)
class MessageEngine:
    """What engines that pass messages share; see :class:`BeliefPropagation`."""

    damping: float = 0.0
    tol: float = 1e-6
    max_iter: int = 500

    # Name, kind of log Z, the words for messages, and the advice if they do not converge.
    words: ClassVar[tuple[str, str, str, str]]

    def __post_init__(self) -> None:
        for name, fine, expected in (
            ("damping", 0.0 <= self.damping < 1.0, "at least 0 and less than 1"),
            ("tol", self.tol > 0.0, "positive"),
            ("max_iter", self.max_iter >= 1, "at least 1"),
        ):
            if not fine:
                raise ValueError(f"{name} is {expected}, not {getattr(self, name)!r}")

    @property
    def capabilities(self) -> Capabilities:
        """What the answers are."""
        return Capabilities(self.words[0], False, self.words[1], "product of beliefs")

    def init(self, layout: Layout) -> MessageState:
        """Return the state of uniform messages."""
        return cold_state(layout, wire(layout))

    def grow(self, state: MessageState, layout: Layout) -> MessageState:
        """Return a state for another graph that keeps the messages of the edges in both."""
        return carry_messages(state, self.init(layout))

    def run(
        self, theta: Floats, state: MessageState, rng: np.random.Generator | None = None
    ) -> tuple[Marginals, MessageState, Info]:
        """Return beliefs and log Z, the state for the next run, and how it went.

        `rng` is not used: the engine is deterministic. ``info.diagnostics["message_updates"]``
        counts the messages computed, and ``["damping"]`` is the damping that they ended with.
        """
        given = floored(theta, state.layout, state.weight)
        passed = self._settle(given, state)
        values, free_energy = beliefs_of(passed, theta)
        log_z, trusted = self._log_partition(passed, free_energy)
        if trusted and log_z < given.least - 50.0:
            raise ModelError(
                "the zero entries of the potentials leave no configuration that is possible"
            )
        info = report(passed, *self.words[2:])
        return Marginals(values, log_z), passed.state._replace(beliefs=values), info

    def pair_marginals(self, theta: Floats, state: MessageState, edges: Edges) -> PairTables:
        """Return joint marginals of any pairs: edge beliefs, else products of node beliefs."""
        given = floored(theta, state.layout, state.weight)
        if len(state.beliefs) == 0 or not np.array_equal(given.theta, state.theta):
            _, state, _ = self.run(theta, state)
        return product_tables(state.layout, state.beliefs, edges)[0]

    def _settle(self, given: Floored, state: MessageState) -> Passed:
        """Pass messages until they settle or `max_iter` sweeps are over."""
        return pass_messages(given, state, self.damping, self.tol, self.max_iter)

    def _log_partition(self, passed: Passed, free_energy: float) -> tuple[float, bool]:
        """Return log Z, and whether a value far too small proves that nothing is possible."""
        return free_energy, passed.converged


@dataclass(frozen=True)
class BeliefPropagation(MessageEngine):
    """Sum-product belief propagation on a pairwise model.

    Parameters
    ----------
    damping : float, 0 <= damping < 1
        Share of the old message kept at each update.
    tol : float
        A run has converged when no message would change by more than this relative amount.
    max_iter : int
        Sweeps (or as many single updates) before a run gives up.

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

    words = (
        "bp",
        "Bethe approximation",
        "belief propagation",
        "raise `damping` or `max_iter`, or use trw",
    )

    def map(self, theta: Floats, layout: Layout) -> Assignment:
        """Return a likely assignment, its unnormalised log score, and how the search went.

        Max-product messages are decoded from the roots of a spanning forest outwards, each
        variable given those before it, and the result is improved by setting random forests, then
        single variables, to their best states given the rest. Exact on forests; elsewhere an
        approximation whose score is exact.
        """
        given = floored(theta, layout, np.ones(layout.n_edges))
        limits = self.damping, self.tol, self.max_iter
        passed = pass_messages(given, self.init(layout), *limits, maximise=True)
        assignment = decode(passed.state)
        advice = "the assignment is the best of a local search from where they stopped"
        info = report(passed, "max-product", advice)
        return Assignment(assignment, score(theta, layout, assignment), info)


def report(passed: Passed, what: str, advice: str) -> Info:
    """Return how a run went."""
    message = ""
    if not passed.converged:
        message = (
            f"{what} did not converge in {passed.n_iter} sweeps (the largest message change "
            f"is {passed.residual:.2g}): {advice}"
        )
    diagnostics = {"message_updates": passed.n_updates, "damping": passed.damping}
    return Info(passed.converged, passed.n_iter, passed.residual, message, diagnostics)


def decode(state: MessageState, seed: int = 0) -> Integers:
    """Return the assignment that max-product messages stand for, improved if possible.

    Picking the best state of every variable on its own goes wrong if two assignments tie, so
    variables are decided one after another, roots of a spanning forest first:

        x_i = argmax_a  u_i(a) + sum_{j decided} w_ij(a, x_j) + sum_{j not decided} log M_ji(a)

    On a forest that is a maximising assignment, ties or not. Elsewhere random induced forests,
    about half of a sparse graph at a time, are set to their best states given the rest, exactly
    and from a fixed seed, until that no longer helps; then single variables are.
    """
    assert state.potentials is not None  # a run has filled them
    layout, wiring, potentials = state.layout, state.wiring, state.potentials
    assignment = np.full(layout.n_variables, -1, np.int64)
    if len(assignment) == 0:
        return assignment
    decide(wiring, potentials, state.value, assignment)
    rng = np.random.default_rng(seed)
    best, idle = score(state.theta, layout, assignment), 0
    while idle < MAX_IDLE_ROUNDS:
        improve_forest(wiring, potentials, rng.permutation(layout.n_variables), assignment)
        value = score(state.theta, layout, assignment)
        # Rounding aside the score never falls; only a real gain is worth another round.
        idle = 0 if value > best + 1e-9 * (1.0 + abs(best)) else idle + 1
        best = max(best, value)
    polish(wiring, potentials, assignment)
    return assignment
