"""The steps of the loop: fill the reservoir, activate, fit, clear up.

Algorithms 3 and 4 of Chaabene and Huang (2018), with candidates scored in batches. A refill
happens when queue and unseen pairs are both exhausted and some frozen pair was last scored at older
parameters; a step that ends with an empty reservoir has therefore tested every inactive pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from edgegraft.core.pairs import pair_ids, pairs_of_ids
from edgegraft.core.types import Edges, Floats
from edgegraft.grafting.problem import chance_level
from edgegraft.grafting.state import SearchState
from edgegraft.objective.penalty import norms_of
from edgegraft.rank import closing_pairs, find_hubs
from edgegraft.rank.ranking import Ranking


@dataclass(frozen=True)
class _Step:
    """Sizes of a step, and what counts as none."""

    pairs: int = 4096  # budget: pairs scored together at most, of two states each
    cells: int = 1 << 20  # budget: of their tables, if columns have many states
    first_iterations: int = 20  # with many edges at once: scores must see what they explain
    last_iterations: int = 500  # budget: of a fit to the tolerance
    few_hits: float = 0.1  # share of a batch: if less violates, larger batches cost less per pair
    growth: float = 1.05  # of the graph between two looks at its triangles, which are of all wedges
    still: float = 1e-12  # of the objective: rounding; a fit that gains less has moved nothing
    above_chance: float = 1.0 + 1e-9  # rounding
    next_priority: float = -(2.0**40)  # below any other, and exact with whole numbers added


_STEP = _Step()


def queue(state: SearchState, ranking: Ranking) -> None:
    """Queue ranked pairs that are not active in the order of the policy."""
    open_ = state.problem.rules.allows(ranking.edges) & ~state.graph.contains(ranking.edges)
    if not open_.all():
        ranking = ranking.of(open_)
    edges, state.n_significant = state.policy.first_pairs(ranking)
    state.ranked = True
    state.stream.prioritise(edges, ranking.priorities())


def begin(state: SearchState) -> bool:
    """Activate the significant pairs; return whether there are any.

    Pairs that matter only together do not violate optimality alone, so they need not. A threshold
    above that of chance was asked for: it holds for each of them.
    """
    edges = state.stream.draw(state.n_significant, state.rng)
    state.n_significant = 0
    most, judged = _largest_batch(state), [np.zeros(0, bool)]
    judged += [state.judge(edges[k : k + most]).violates for k in range(0, len(edges), most)]
    if state.penalty.penalty > _STEP.above_chance * chance_level(state.objective):
        violates = np.concatenate(judged)
        _freeze(state, edges[~violates], np.zeros(int((~violates).sum())))
        edges = edges[violates]
    later = edges[len(edges[: state.room]) :]
    state.stream.restore(later, np.arange(len(later)) + _STEP.next_priority)
    if not len(edges):
        return False
    state.graph.add(edges[: state.room])
    state.n_activations += 1
    state.filled = True
    fit(state, _STEP.first_iterations)
    return True


def activate(state: SearchState) -> bool:
    """Move the chosen candidates into the graph; return whether there were any."""
    chosen = state.policy.choose(state.reservoir, len(state.graph))[: state.room]
    if not len(chosen):
        return False
    state.graph.add(state.reservoir.take(chosen).edges)
    state.n_activations += 1
    return True


def fill(state: SearchState) -> None:
    """Test candidates until enough were, and keep the violating ones in the reservoir.

    Before the first activation the reservoir is filled to its capacity.
    """
    policy, stream = state.policy, state.stream
    if policy.exhaustive:
        _refill(state)
    _close_triangles(state)
    largest = _largest_batch(state)
    whole = state.objective.scores_all and not policy.first_hit
    tests, batch = 0, largest if whole else policy.batch
    while not _enough(state, tests):
        edges = stream.draw(min(batch, largest), state.rng)
        if len(edges):
            edges = edges[state.problem.rules.allows(edges)]
            if not len(edges):
                continue
            tests += len(edges)
            hits = _test(state, edges)
            if hits < _STEP.few_hits * len(edges) and not policy.first_hit:
                batch *= 2  # if little violates, large batches cost a fraction per pair
        elif state.n_fresh < stream.n_frozen:
            _refill(state)
        else:
            break
    state.filled = True


def _largest_batch(state: SearchState) -> int:
    return max(_STEP.pairs, int(_STEP.cells // state.graph.layout.widths.max() ** 2))


def _enough(state: SearchState, tests: int) -> bool:
    policy = state.policy
    if state.spent or policy.exhaustive:
        return state.spent is not None
    if not state.filled:
        return state.reservoir.full
    if tests < policy.max_tests or not len(state.reservoir):
        return False
    return policy.enough(
        tests, len(state.reservoir), len(state.graph), all_scored=state.objective.scores_all
    )


def _close_triangles(state: SearchState) -> None:
    """Once the ranked pairs are tested, put neighbours of neighbours before strangers."""
    stream, layout = state.stream, state.graph.layout
    due = len(state.graph) > _STEP.growth * state.n_closed  # all wedges are looked through
    if state.ranked and due and stream.n_unseen and not stream.n_prioritised:
        state.n_closed = len(state.graph)
        pairs = closing_pairs(layout.edges, layout.n_variables)
        pairs = pairs[state.problem.rules.allows(pairs)]
        stream.prioritise(pairs, np.linspace(-1.0, 0.0, len(pairs), endpoint=False))


def _refill(state: SearchState) -> None:
    state.stream.refill()
    state.n_fresh = 0


def _freeze(state: SearchState, edges: Edges, offsets: Floats) -> None:
    state.stream.freeze(edges, offsets)
    state.n_fresh += len(edges)


def _test(state: SearchState, edges: Edges) -> int:
    """Score a batch: what violates goes to the reservoir, the rest freezes; return how many do."""
    scores, violates = state.judge(edges)
    if state.policy.first_hit and violates.any():
        # What follows the first hit counts as not yet drawn: it comes next, in the same order.
        hit = int(np.argmax(violates)) + 1
        state.stream.restore(edges[hit:], _STEP.next_priority + np.arange(len(edges) - hit))
        edges, scores, violates = edges[:hit], scores[:hit], violates[:hit]
    _freeze(state, edges[~violates], state.offsets(scores[~violates]))
    out = state.reservoir.offer(edges[violates], scores[violates])
    # What violates but found no room: frozen, as in the paper, it is seen again when all other
    # pairs have been tested, which for many variables is never; queued by its offset, it is among
    # the next to be drawn.
    put_back = state.stream.restore if state.settings.requeue else partial(_freeze, state)
    put_back(out.edges, state.offsets(out.scores))
    return int(violates.sum())


def fit(state: SearchState, max_iter: int | None = None, *, quiet: bool = True) -> bool:
    """Fit the parameters of the graph from where they are; return whether they moved.

    By default with as many iterations as the policy allows after an activation.
    """
    before, layout = state.solution.info.objective, state.graph.layout
    n_iter = max_iter or state.policy.iterations
    state.solution = state.problem.solve(layout, state.solution, n_iter, quiet=quiet)
    state.n_fresh = 0
    return bool(before - state.solution.info.objective > _STEP.still * max(1.0, abs(before)))


def fit_fully(state: SearchState) -> None:
    """Fit to the tolerance; a fit that does not reach it warns."""
    fit(state, _STEP.last_iterations, quiet=False)


def restart(state: SearchState) -> None:
    """Forget messages and curvature, keep the parameters, for a graph that others have changed.

    An objective whose inference failed has been left for its fallback, and stays left.
    """
    state.n_fresh = 0
    state.solution = state.problem.solve(
        state.graph.layout, state.theta(), objective=state.solution.objective
    )


def adopt(state: SearchState, edges: Edges) -> None:
    """Add edges to the graph, whatever their scores; those that are in it already are left.

    Pairs that rules exclude are passed over.
    """
    n = state.graph.layout.n_variables
    ids = np.unique(pair_ids(edges[state.problem.rules.allows(edges)], n))
    ids = np.setdiff1d(ids, pair_ids(state.graph.layout.edges, n))
    if not len(ids):
        return
    waiting = np.isin(pair_ids(state.reservoir.edges, n), ids)
    elsewhere = np.setdiff1d(ids, pair_ids(state.reservoir.edges[waiting], n))
    state.reservoir.drop(waiting)
    state.stream.remove(pairs_of_ids(elsewhere, n))
    state.graph.add(pairs_of_ids(ids, n))
    restart(state)


def drop_zeros(state: SearchState, *, moved: bool = True) -> None:
    """Take edges that the penalty set to zero out of the graph; they may come back.

    If the fit moved nothing that is counted: nothing keeps such an edge from violating again.
    """
    if not state.policy.drops_zeros:
        return
    layout = state.solution.layout
    norms = norms_of(state.solution.theta, layout.edge_offset)
    gone = layout.edges[norms == 0]
    if len(gone):
        state.graph.remove(gone)
        if not moved:
            state.returned.update(pair_ids(gone, layout.n_variables).tolist())
        scores = state.penalty.score(state.solution.gradient, layout)[norms == 0]
        _freeze(state, gone, state.offsets(scores))


def given_up(state: SearchState) -> Edges:
    """Return the pairs that violate optimality and that the fit sets back to zero every time."""
    ids = np.array(list(state.returned), np.int64)
    pairs = pairs_of_ids(ids, state.graph.layout.n_variables)
    pairs = pairs[state.gave_up(pairs) & ~state.graph.contains(pairs)]
    return pairs[state.exceeds(state.judge(pairs).scores, pairs)] if len(pairs) else pairs


def rescore(state: SearchState) -> None:
    """Score the reservoir at the new parameters; what no longer violates freezes."""
    if not len(state.reservoir):
        return
    scores, violates = state.judge(state.reservoir.edges)
    state.reservoir.rescore(scores)
    out = state.reservoir.drop(~violates)
    _freeze(state, out.edges, state.offsets(scores[~violates]))


def boost_hubs(state: SearchState) -> None:
    """Bring the untested edges of hubs forward."""
    threshold = state.settings.hub_threshold
    if threshold == "auto":
        threshold = None if state.ranked else "mean"
    if threshold is not None and len(state.graph):
        state.stream.boost(find_hubs(state.graph.degree, threshold))
