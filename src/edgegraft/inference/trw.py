"""Tree-reweighted belief propagation: a concave problem with one optimum, and a bound on log Z.

    M_ij(b) ∝ sum_a exp(u_i(a) + w_ij(a, b) / rho_ij) prod_k M_ki(a)^rho_ki / M_ji(a)

with ``rho_e`` the probability of edge ``e`` in a random spanning forest (Wainwright, Jaakkola &
Willsky 2005). Whatever the messages are, they split the model into a mean of models on forests,
and the mean of the forests' log-partition functions is an upper bound of log Z. That mean is what
is reported: a bound by construction, converged or not, and the tightest for these forests at the
fixed point.

The distribution over forests is uniform over a few explicit ones, each of which prefers the edges
that were taken least often so far (ties at random, from a fixed seed). That covers the graph with
about as few forests as possible, evens out the probabilities, and makes the bound computable
forest by forest. A bridge is in every forest; the edges of a forest have probability one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree

from edgegraft.core import Layout
from edgegraft.core.adjacency import link_matrix
from edgegraft.core.types import Integers, Mask
from edgegraft.inference.bp import MessageEngine
from edgegraft.inference.messages import (
    Floored,
    MessageState,
    Passed,
    cold_state,
    pass_messages,
    wire,
)
from edgegraft.kernels.messages.beliefs import Wiring
from edgegraft.kernels.messages.forests import Forests, forest_log_partition, root_forest


@dataclass(frozen=True)
class _Rule:
    """Forests, and stages of a run."""

    min_forests: int = 12  # of fewer the probabilities are coarse; more hardly tighten the bound
    stages: int = 6  # after each of which damping may be raised
    stuck: float = 0.9  # share of the residual left after a stage that did not help


_RULE = _Rule()


@dataclass(frozen=True)
class TreeReweighted(MessageEngine):
    """Tree-reweighted belief propagation on a pairwise model.

    If messages oscillate, damping is raised until they settle; the damping that a run ended
    with is in ``info.diagnostics["damping"]``. With strong conflicting couplings the optimum lies
    where some pair beliefs vanish, and the last digits come slowly (the error falls as one over
    the sweeps): the tolerance is therefore looser than that of plain belief propagation, and the
    bound is near its best long before.

    Parameters
    ----------
    damping, tol, max_iter
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

    tol: float = 1e-4
    max_iter: int = 300
    seed: int = 0

    words = (
        "trw",
        "upper bound",
        "tree-reweighted belief propagation",
        "the log Z is still an upper bound; raise `damping` or `max_iter` for a tighter one",
    )

    def init(self, layout: Layout) -> MessageState:
        """Return uniform messages and the spanning forests of the graph."""
        wiring = wire(layout)
        return cold_state(layout, wiring, cover(layout, wiring, self.seed))

    def _settle(self, given: Floored, state: MessageState) -> Passed:
        """Pass messages in stages, with more damping when a stage did not help."""
        n_iter = n_updates = 0
        damping, before = self.damping, np.inf
        stage = -(-self.max_iter // _RULE.stages)
        while True:
            length = min(stage, self.max_iter - n_iter)
            passed = pass_messages(given, state, damping, self.tol, length)
            n_iter += passed.n_iter
            n_updates += passed.n_updates
            if passed.converged or n_iter >= self.max_iter:
                return passed._replace(n_iter=n_iter, n_updates=n_updates)
            if passed.residual > _RULE.stuck * before:
                damping = max(damping, 0.5 + 0.5 * damping)
            before, state = passed.residual, passed.state

    def _log_partition(self, passed: Passed, free_energy: float) -> tuple[float, bool]:
        """Return the mean over the forests, which is a bound whatever the messages are."""
        state, forests = passed.state, passed.state.forests
        assert state.potentials is not None  # a run has filled them
        assert forests is not None  # `init` has chosen them
        if state.layout.n_variables == 0:
            return 0.0, True
        # The edges of a forest weigh one, and their messages may be plain.
        bound = forest_log_partition(
            state.wiring, state.potentials, state.logs, forests.order, forests.upward
        )
        return float(bound), True


def cover(layout: Layout, wiring: Wiring, seed: int = 0) -> Forests:
    """Return spanning forests that together hold every edge.

    >>> triangle = Layout([2, 2, 2], [(0, 1), (0, 2), (1, 2)])
    >>> cover(triangle, wire(triangle)).probability
    array([0.66666667, 0.66666667, 0.66666667])
    """
    m, n = layout.n_edges, layout.n_variables
    rng = np.random.default_rng(seed)
    taken = np.zeros(m, np.int64)
    rooted: list[tuple[Integers, Integers]] = []
    needed = _RULE.min_forests
    while len(rooted) < needed or (taken == 0).any():
        member = _spanning_forest(layout, np.lexsort((rng.random(m), taken)))
        rooted.append(
            root_forest(
                np.arange(n), wiring.start, wiring.links, wiring.reverse, wiring.edge,
                np.ones(n, np.bool_), member,
            )
        )  # fmt: skip
        taken += member
        if member.all():  # the graph is a forest
            needed = 1
    order, upward = (np.stack(parts) for parts in zip(*rooted, strict=True))
    return Forests(order, upward, taken / len(rooted))


def _spanning_forest(layout: Layout, order: Integers) -> Mask:
    """Return which edges join two components when they are taken in `order`."""
    n, m = layout.n_variables, layout.n_edges
    rank = np.empty(m)
    rank[order] = np.arange(1, m + 1)  # zero would be no edge
    forest = minimum_spanning_tree(link_matrix(rank, layout.edges, n))
    member = np.zeros(m, np.bool_)
    member[order[forest.data.astype(np.int64) - 1]] = True
    return member
