"""Tree-reweighted belief propagation: a concave problem with one optimum, and a bound on log Z.

    M_ij(b) ∝ sum_a exp(u_i(a) + w_ij(a, b) / rho_ij) prod_k M_ki(a)^rho_ki / M_ji(a)

with ``rho_e`` the probability of edge ``e`` in a random spanning forest (Wainwright, Jaakkola &
Willsky 2005). Whatever the messages are, they split the model into a mean of models on forests,
and the mean of the forests' log-partition functions is an upper bound of log Z. That mean is what
is reported: a bound by construction, converged or not, and the tightest for these forests at the
fixed point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.tables import PairTables
from edgegraft.core.types import Edges, Floats
from edgegraft.errors import ModelError
from edgegraft.inference.bp import check_settings, is_current, report
from edgegraft.inference.engine import Capabilities, Info, Marginals
from edgegraft.inference.floors import Floored, floored
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
from edgegraft.inference.spanning import Forests, cover
from edgegraft.inference.wiring import wire
from edgegraft.kernels.messages.spanning import forest_log_partition

#: A run is cut into so many stages, after each of which damping may be raised.
STAGES = 6


class TreeReweightedState(NamedTuple):
    """Messages, and the forests that their edge weights come from."""

    messages: MessageState
    forests: Forests


@dataclass(frozen=True)
class TreeReweighted:
    """Tree-reweighted belief propagation on a pairwise model.

    Where messages oscillate, damping is raised until they settle; the damping that a run ended
    with is in ``info.diagnostics["damping"]``. With strong conflicting couplings the optimum lies
    where some pair beliefs vanish, and the last digits come slowly (the error falls as one over
    the sweeps): the tolerance is therefore looser than that of plain belief propagation, and the
    bound is near its best long before.

    Parameters
    ----------
    schedule, damping, tol, max_iter, pair_method
        As in :class:`~edgegraft.inference.bp.BeliefPropagation`.
    seed : int
        Of the random choice of spanning forests.

    Examples
    --------
    >>> layout = Layout([2, 2, 2], [(0, 1), (0, 2), (1, 2)])
    >>> theta = np.array([0, 0, 0, 0, 0, 0] + [1, 0, 0, 1.0] * 3)
    >>> engine = TreeReweighted()
    >>> marginals, state, info = engine.run(theta, engine.init(layout))
    >>> exact = np.log(2 * np.exp(3) + 6 * np.exp(1))
    >>> round(marginals.log_partition - float(exact), 3)
    0.062
    """

    schedule: Schedule = "residual"
    damping: float = 0.0
    tol: float = 1e-4
    max_iter: int = 300
    pair_method: PairMethod = "product"
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self.schedule, self.damping, self.tol, self.max_iter, self.pair_method)

    @property
    def capabilities(self) -> Capabilities:
        """What the answers are."""
        return Capabilities("trw", False, "upper bound", describe(self.pair_method))

    def init(self, layout: Layout) -> TreeReweightedState:
        """Return uniform messages and the spanning forests of the graph."""
        forests = cover(layout, wire(layout), self.seed)
        return TreeReweightedState(cold_state(layout, forests.probability), forests)

    def grow(self, state: TreeReweightedState, layout: Layout) -> TreeReweightedState:
        """Return a state for another graph: messages of common edges kept, forests chosen anew."""
        forests = cover(layout, wire(layout), self.seed)
        return TreeReweightedState(regrown(state.messages, layout, forests.probability), forests)

    def run(
        self,
        theta: Floats,
        state: TreeReweightedState,
        rng: np.random.Generator | None = None,
    ) -> tuple[Marginals, TreeReweightedState, Info]:
        """Return beliefs and an upper bound of log Z, the state for the next run, how it went.

        `rng` is not used: the engine is deterministic.
        """
        before = state.messages
        given = floored(theta, before.layout, before.weight)
        passed, damping = self._settle(given, before)
        values, _ = beliefs_of(passed, theta)
        bound = _bound(passed, state.forests)
        if bound < given.least - 50.0:
            raise ModelError(
                "the zero entries of the potentials leave no configuration that is possible"
            )
        info = report(
            passed, "tree-reweighted belief propagation",
            "the log Z is still an upper bound; raise `damping` or `max_iter` for a tighter one",
        )  # fmt: skip
        info = info._replace(diagnostics={**(info.diagnostics or {}), "damping": damping})
        after = state._replace(messages=passed.state._replace(beliefs=values))
        return Marginals(values, bound), after, info

    def pair_marginals(self, theta: Floats, state: TreeReweightedState, edges: Edges) -> PairTables:
        """Return joint marginals of any pairs: edge beliefs, or by `pair_method`."""
        if not is_current(state.messages, theta):
            _, state, _ = self.run(theta, state)
        return joint_tables(state.messages, edges, self.pair_method)

    def _settle(self, given: Floored, state: MessageState) -> tuple[Passed, float]:
        """Pass messages in stages, with more damping when a stage did not help."""
        n_iter = n_updates = 0
        damping, before = self.damping, np.inf
        patience = -(-self.max_iter // STAGES)
        while True:
            plan = Plan(self.schedule, damping, self.tol, min(patience, self.max_iter - n_iter))
            passed = pass_messages(given, state, plan)
            n_iter += passed.n_iter
            n_updates += passed.n_updates
            if passed.converged or n_iter >= self.max_iter:
                return passed._replace(n_iter=n_iter, n_updates=n_updates), damping
            if passed.residual > 0.9 * before:
                damping = max(damping, 0.5 + 0.5 * damping)
            before, state = passed.residual, passed.state


def _bound(passed: Passed, forests: Forests) -> float:
    state = passed.state
    assert state.potentials is not None  # a run has filled them
    if state.layout.n_variables == 0:
        return 0.0
    # The edges of a forest weigh one, and their messages may be plain.
    logs = np.log(state.value) if state.plain else state.value
    return float(
        forest_log_partition(state.wiring, state.potentials, logs, forests.order, forests.upward)
    )
