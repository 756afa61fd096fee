"""Which pairs are tested next, and where they go: the reservoir, or until later.

Algorithm 3 of Chaabene and Huang (2018), with candidates scored in batches. A refill happens when
queue and unseen pairs are both exhausted and some frozen pair was last scored at older parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edgegraft.core.types import Edges, Floats
from edgegraft.grafting.problem import chance_level
from edgegraft.grafting.state import SearchState
from edgegraft.rank import closing_pairs, find_hubs
from edgegraft.rank.ranking import Ranking


@dataclass(frozen=True)
class _Test:
    """How many pairs are scored together, and which come before others."""

    pairs: int = 4096  # budget: pairs scored together at most, of two states each
    cells: int = 1 << 20  # budget: of their tables, if columns have many states
    few_hits: float = 0.1  # share of a batch: if less violates, larger batches cost less per pair
    growth: float = 1.05  # of the graph between two looks at its triangles, which are of all wedges
    next_priority: float = -(2.0**40)  # below any other, and exact with whole numbers added


_TEST = _Test()


def queue(state: SearchState, ranking: Ranking) -> None:
    """Queue ranked pairs that are not active, in bulk the significant ones first.

    A ranking conditions on all variables at once, so pairs that touch can all be significant.
    """
    open_ = state.problem.rules.allows(ranking.edges) & ~state.graph.contains(ranking.edges)
    ranking = ranking.of(open_)
    if state.policy.bulk:
        ranking = ranking.of(np.argsort(~ranking.significant, kind="stable"))
        state.n_significant = int(ranking.significant.sum())
    state.ranked = True
    state.stream.prioritise(ranking.edges, ranking.priorities())


def significant(state: SearchState) -> Edges:
    """Draw the significant pairs; return those to activate, as many as have room.

    Pairs that matter only together do not violate optimality alone, so they need not. A threshold
    above the level of chance was asked for: it holds for each of them.
    """
    edges = state.stream.draw(state.n_significant)
    state.n_significant = 0
    most, judged = _largest_batch(state), [np.zeros(0, bool)]
    judged += [state.judge(edges[k : k + most]).violates for k in range(0, len(edges), most)]
    if state.penalty.penalty > chance_level(state.objective):
        violates = np.concatenate(judged)
        freeze(state, edges[~violates], state.penalty.penalty)
        edges = edges[violates]
    later = edges[len(edges[: state.room]) :]
    state.stream.restore(later, np.arange(len(later)) + _TEST.next_priority)
    return edges[: state.room]


def boost_hubs(state: SearchState) -> None:
    """Bring the untested edges of hubs forward."""
    threshold = state.settings.hub_threshold
    if threshold == "auto":
        threshold = None if state.ranked else "mean"
    if threshold is not None and len(state.graph):
        state.stream.boost(find_hubs(state.graph.degree, threshold))


def fill(state: SearchState) -> None:
    """Test candidates until enough were, and keep the violating ones in the reservoir.

    Before the first activation the reservoir is filled to its capacity.
    """
    policy, stream = state.policy, state.stream
    _close_triangles(state)
    all_scored, largest = state.objective.scores_all, _largest_batch(state)
    tests, batch = 0, largest if all_scored and not policy.first_hit else policy.batch
    while not state.spent:
        n_waiting, n_edges = len(state.reservoir), len(state.graph)
        if not state.filled:
            if state.reservoir.full:
                break
        elif policy.enough(tests, n_waiting, n_edges, all_scored=all_scored):
            break
        edges = stream.draw(min(batch, largest))
        if len(edges):
            edges = edges[state.problem.rules.allows(edges)]
            tests += len(edges)
            if _test(state, edges) < _TEST.few_hits * len(edges) and not policy.first_hit:
                batch *= 2  # if little violates, large batches cost a fraction per pair
        elif state.n_fresh < stream.n_frozen:
            stream.refill()
            state.n_fresh = 0
        else:
            break
    state.filled = True


def _test(state: SearchState, edges: Edges) -> int:
    """Score a batch: what violates goes to the reservoir, the rest freezes; return how many do."""
    if not len(edges):
        return 0
    scores, violates = state.judge(edges)
    if state.policy.first_hit and violates.any():
        # What follows the first hit counts as not yet drawn: it comes next, in the same order.
        hit = int(np.argmax(violates)) + 1
        state.stream.restore(edges[hit:], _TEST.next_priority + np.arange(len(edges) - hit))
        edges, scores, violates = edges[:hit], scores[:hit], violates[:hit]
    freeze(state, edges[~violates], scores[~violates])
    out = state.reservoir.offer(edges[violates], scores[violates])
    # What violates but found no room: frozen, as in the paper, it is seen again when all other
    # pairs have been tested, which for many variables is never; queued by its offset, it is among
    # the next to be drawn.
    if state.settings.requeue:
        state.stream.restore(out.edges, state.offsets(out.scores))
    else:
        freeze(state, *out)
    return int(violates.sum())


def freeze(state: SearchState, edges: Edges, scores: Floats | float) -> None:
    """Set pairs of these scores aside until the next refill."""
    state.stream.freeze(edges, state.offsets(scores))
    state.n_fresh += len(edges)


def _close_triangles(state: SearchState) -> None:
    """Once the ranked pairs are tested, put neighbours of neighbours before strangers."""
    stream, layout = state.stream, state.graph.layout
    due = len(state.graph) > _TEST.growth * state.n_closed  # all wedges are looked through
    if state.ranked and due and stream.n_unseen and not stream.n_prioritised:
        state.n_closed = len(state.graph)
        pairs = closing_pairs(layout.edges, layout.n_variables)
        pairs = pairs[state.problem.rules.allows(pairs)]
        stream.prioritise(pairs, np.linspace(-1.0, 0.0, len(pairs), endpoint=False))


def _largest_batch(state: SearchState) -> int:
    return max(_TEST.pairs, int(_TEST.cells // state.graph.layout.widths.max() ** 2))
