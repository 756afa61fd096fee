"""Grow a graph until nothing violates optimality, or a budget is spent.

    boost hubs -> fill the reservoir -> activate -> fit -> drop zeros -> rescore -> again

Algorithm 4 of Chaabene and Huang (2018). A step that ends with an empty reservoir has tested every
inactive pair. The same loop runs every search; :mod:`edgegraft.grafting.policies` has what differs.
Budgets, observers and Ctrl-C are asked once per step.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgegraft.config import Settings
from edgegraft.core.pairs import pair_ids, pairs_of_ids
from edgegraft.core.threads import interruptible
from edgegraft.core.types import Edges
from edgegraft.counts import PairCounts
from edgegraft.errors import ConvergenceWarning
from edgegraft.grafting import candidates
from edgegraft.grafting.events import Observer, StopReason
from edgegraft.grafting.problem import Problem
from edgegraft.grafting.reservoir import BestChoice
from edgegraft.grafting.state import SearchState
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import Penalty, norms_of
from edgegraft.rank.mean_fields import rank_pairs

_SHOWN = 3  # pairs in a warning


@dataclass(frozen=True)
class _Fit:
    """Iterations of the fits that no policy sets, and what counts as no progress."""

    first_iterations: int = 20  # with many edges at once: scores must see what they explain
    last_iterations: int = 500  # budget: of a fit to the tolerance
    still: float = 1e-12  # of the objective: rounding; a fit that gains less has moved nothing


_FIT = _Fit()


def grow(
    objective: Objective,
    penalty: Penalty,
    settings: Settings | None = None,
    *,
    counts: PairCounts | None = None,
    observers: Sequence[Observer] = (),
    rule: BestChoice | None = None,
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
    rule : BestChoice, optional
        Of your own: which candidates are activated.

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
    problem = Problem(objective, penalty, settings or Settings(), rule)
    return run_search(SearchState.begin(problem), observers, counts=counts)


def run_search(
    state: SearchState, observers: Sequence[Observer] = (), *, counts: PairCounts | None = None
) -> SearchState:
    """Run the loop from wherever `state` is to its end; `counts` rank the pairs as in `grow`."""
    if state.settings.priority == "auto" and counts is not None and len(counts.schema) > 1:
        # The fit of all pairs on a device is by pseudolikelihood, which counts a pair twice.
        rule = state.penalty if state.objective.terms == 2 else None
        rng = np.random.default_rng(state.settings.random_state)
        candidates.queue(state, rank_pairs(counts, rng, penalty=rule))
    adopt(state, state.problem.rules.required)
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
            fit_fully(state)
    _notify(state, observers, "end")
    return state


def adopt(state: SearchState, edges: Edges) -> None:
    """Add edges to the graph, whatever their scores, and forget what earlier fits have learned.

    Edges that are in it already are left, pairs that rules exclude passed over. An objective whose
    inference failed has been left for its fallback, and stays left.
    """
    n, held = state.graph.layout.n_variables, state.reservoir.edges
    ids = np.unique(pair_ids(edges[state.problem.rules.allows(edges)], n))
    ids = np.setdiff1d(ids, pair_ids(state.graph.layout.edges, n))
    if not len(ids):
        return
    state.reservoir.take(np.flatnonzero(np.isin(pair_ids(held, n), ids)))
    state.stream.remove(pairs_of_ids(np.setdiff1d(ids, pair_ids(held, n)), n))
    state.graph.add(pairs_of_ids(ids, n))
    state.n_fresh, objective = 0, state.solution.objective
    state.solution = state.problem.solve(state.graph.layout, state.theta(), objective=objective)


def fit_fully(state: SearchState) -> None:
    """Fit to the tolerance; a fit that does not reach it warns. Edges at zero leave the graph."""
    _fit(state, _FIT.last_iterations, quiet=False)
    _drop_zeros(state)


def _step(state: SearchState) -> StopReason | None:
    """Take one step; return why there is none to take, or None."""
    if state.full:
        return state.full
    if not (state.n_significant and _begin(state)):
        candidates.boost_hubs(state)
        candidates.fill(state)
        if not _activate(state) and (state.settled or not _look_again(state)):
            return state.full or state.spent or _conclude(state)
        _drop_zeros(state, moved=_fit(state))
    if len(state.reservoir):
        scores, violates = state.judge(state.reservoir.edges)
        state.reservoir.rescore(scores)
        candidates.freeze(state, *state.reservoir.take(np.flatnonzero(~violates)))
    return None


def _look_again(state: SearchState) -> bool:
    """Fit to the tolerance, since scores were those of a fit in a hurry; try to activate again."""
    fit_fully(state)
    candidates.fill(state)
    return _activate(state)


def _conclude(state: SearchState) -> StopReason:
    """Return why nothing is left to activate, with a warning if that is not optimality."""
    pairs = _given_up(state)
    if not len(pairs):
        return StopReason.OPTIMAL
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


def _begin(state: SearchState) -> bool:
    """Activate the significant pairs; return whether there are any."""
    chosen = candidates.significant(state)
    if not len(chosen):
        return False
    state.graph.add(chosen)
    state.n_activations += 1
    state.filled = True
    _fit(state, _FIT.first_iterations)
    return True


def _activate(state: SearchState) -> bool:
    """Move the chosen candidates into the graph; return whether there were any."""
    chosen = state.policy.choose(state.reservoir, len(state.graph))[: state.room]
    if not len(chosen):
        return False
    state.graph.add(state.reservoir.take(chosen).edges)
    state.n_activations += 1
    return True


def _fit(state: SearchState, max_iter: int | None = None, *, quiet: bool = True) -> bool:
    """Fit the parameters of the graph from where they are; return whether they moved.

    By default with as many iterations as the policy allows after an activation.
    """
    before, layout = state.solution.info.objective, state.graph.layout
    n_iter = max_iter or state.policy.iterations
    state.solution = state.problem.solve(layout, state.solution, n_iter, quiet=quiet)
    state.n_fresh = 0
    return bool(before - state.solution.info.objective > _FIT.still * max(1.0, abs(before)))


def _drop_zeros(state: SearchState, *, moved: bool = True) -> None:
    """Take edges that the penalty set to zero out of the graph; they may come back.

    If the fit moved nothing that is counted: nothing keeps such an edge from violating again.
    """
    if not state.policy.drops_zeros:
        return
    layout = state.solution.layout
    zero = norms_of(state.solution.theta, layout.edge_offset) == 0
    gone = layout.edges[zero]
    if len(gone):
        state.graph.remove(gone)
        if not moved:
            state.returned.update(pair_ids(gone, layout.n_variables).tolist())
        candidates.freeze(state, gone, state.penalty.score(state.solution.gradient, layout)[zero])


def _given_up(state: SearchState) -> Edges:
    """Return the pairs that violate optimality and that the fit sets back to zero every time."""
    pairs = pairs_of_ids(np.array(list(state.returned), np.int64), state.graph.layout.n_variables)
    pairs = pairs[state.gave_up(pairs) & ~state.graph.contains(pairs)]
    return pairs[state.exceeds(state.judge(pairs).scores, pairs)] if len(pairs) else pairs
