"""Grow a graph until nothing violates optimality, or a budget is spent.

    boost hubs -> fill the reservoir -> activate -> fit -> drop zeros -> rescore -> again

The same loop runs every search; :mod:`edgegraft.grafting.policies` has what differs. Budgets,
observers and Ctrl-C are asked once per step.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from edgegraft.config import Settings
from edgegraft.core.threads import interruptible
from edgegraft.counts import PairCounts
from edgegraft.errors import ConvergenceWarning
from edgegraft.grafting import steps
from edgegraft.grafting.events import Observer, StopReason
from edgegraft.grafting.policies import Policy
from edgegraft.grafting.problem import Problem
from edgegraft.grafting.state import SearchState
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import Penalty
from edgegraft.rank.mean_fields import rank_pairs

_SHOWN = 3  # pairs in a warning


def grow(
    objective: Objective,
    penalty: Penalty,
    settings: Settings | None = None,
    *,
    counts: PairCounts | None = None,
    observers: Sequence[Observer] = (),
    policy: Policy | None = None,
) -> SearchState:
    """Learn the edges and parameters of a model.

    Parameters
    ----------
    objective : Objective
        The loss, over the rows or counts to learn from.
    penalty : Penalty
        Its `penalty` is the threshold of the activation test; unless the search is relaxed, also
        the weight of the norms in the fits.
    settings : Settings, optional
    counts : PairCounts, optional
        Source of data-driven priorities (``priority="auto"``); without it the order is uniform.
    observers : sequence of Observer
        Notified of every step; each may end the search.
    policy : Policy, optional
        Of your own; by default the one that the settings ask for.

    Returns
    -------
    SearchState
        `model()` is the learned model, `reason` why the search ended, `events` its trajectory.

    Examples
    --------
    >>> from edgegraft.datasets import make_chain
    >>> from edgegraft.table import PackedTable
    >>> from edgegraft.objective.pseudolikelihood import Pseudolikelihood
    >>> data = make_chain(6, n_states=2, n_rows=3000, couplings="ising", random_state=0)
    >>> loss = Pseudolikelihood(PackedTable.from_codes(data.X.astype(int)))
    >>> found = grow(loss, Penalty(0.05))
    >>> sorted(map(tuple, found.model().edges.tolist()))
    [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    >>> str(found.reason)
    'no pair violates optimality'
    """
    state = SearchState.begin(Problem.of(objective, penalty, settings, policy))
    return run_search(state, observers, counts=counts)


def run_search(
    state: SearchState, observers: Sequence[Observer] = (), *, counts: PairCounts | None = None
) -> SearchState:
    """Run the loop from wherever `state` is to its end; `counts` rank the pairs as in `grow`."""
    if state.settings.priority == "auto" and counts is not None and len(counts.schema) > 1:
        # The fit of all pairs on a device is by pseudolikelihood, which counts a pair twice.
        rule = state.penalty if state.objective.terms == 2 else None
        steps.queue(state, rank_pairs(counts, state.rng, penalty=rule))
    steps.adopt(state, state.problem.rules.required)
    with interruptible() as interruption:
        stopped = _notify(state, observers, "start")
        if not state.n_activations:
            interruption.check()  # nothing has been learned that could be kept
        interruption.keeps = True
        if stopped or interruption.asked:
            state.reason = StopReason.OBSERVER if stopped else StopReason.INTERRUPTED
        while not state.reason:
            state.reason = _step(state)
            if state.reason:
                break
            stopped = _notify(state, observers, "activation")
            state.reason = state.spent or (StopReason.OBSERVER if stopped else None)
            if interruption.asked:
                state.reason = StopReason.INTERRUPTED
        if not state.settled:
            steps.fit_fully(state)
            steps.drop_zeros(state)
    _notify(state, observers, "end")
    return state


def _step(state: SearchState) -> StopReason | None:
    """Take one step; return why there is none to take, or None."""
    if state.full:
        return state.full
    if not (state.n_significant and steps.begin(state)):
        steps.boost_hubs(state)
        steps.fill(state)
        if not steps.activate(state) and (state.settled or not _look_again(state)):
            return state.full or state.spent or _conclude(state)
        steps.drop_zeros(state, moved=steps.fit(state))
    steps.rescore(state)
    return None


def _look_again(state: SearchState) -> bool:
    """Fit to the tolerance, since scores were those of a fit in a hurry; try to activate again."""
    steps.fit_fully(state)
    steps.drop_zeros(state)
    steps.fill(state)
    return steps.activate(state)


def _conclude(state: SearchState) -> StopReason:
    """Return why nothing is left to activate, with a warning if that is not optimality."""
    pairs = steps.given_up(state)
    if not len(pairs):
        return StopReason.OPTIMAL
    if state.problem.quiet:
        return StopReason.GIVEN_UP
    names = state.objective.schema.names
    shown = ", ".join(f"('{names[i]}', '{names[j]}')" for i, j in pairs[:_SHOWN].tolist())
    more = f" and {len(pairs) - _SHOWN:,} more" if len(pairs) > _SHOWN else ""
    warnings.warn(
        f"pairs whose scores violate optimality, and whose edges the fit sets back to zero "
        f"whenever they are activated, are left out: {shown}{more}. Their scores and the fit's "
        "gradients are different approximations: prefer exact inference if it is possible",
        ConvergenceWarning,
        stacklevel=4,
    )
    return StopReason.GIVEN_UP


def _notify(state: SearchState, observers: Sequence[Observer], kind: str) -> bool:
    """Show a snapshot to every observer; return whether one of them asks to stop."""
    event = state.event(kind)
    state.events.append(event)
    asked = [bool(observer.on_event(event, state)) for observer in observers]
    return any(asked)
