"""The steps of the loop: fill the reservoir, activate, fit, clear up.

Algorithms 3 and 4 of Chaabene and Huang (2018), with candidates scored in batches. A refill
happens when queue and unseen pairs are both dry and some frozen pair was last scored at older
parameters; a step that ends with an empty reservoir has therefore tested every inactive pair.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.types import Edges, Floats
from edgegraft.kernels.solver.penalty import group_norms
from edgegraft.learn.state import Growth, fit_penalty
from edgegraft.objective.penalties import FeaturePenalty, allowing
from edgegraft.optimize.solver import Stopping, minimize
from edgegraft.search import Scored, closing_pairs, find_hubs
from edgegraft.search.ranking import Ranking

_LARGEST_BATCH = 4096  # pairs scored together: bounds the memory of a step
_ITERATIONS, _RELAXED = 2, 5  # after an activation
_FINAL_ITERATIONS = 500
_FIRST_ITERATIONS = 20  # with many edges at once: scores must see what they explain
_STILL = 1e-12  # of the objective: a fit that lowers it by less has moved nothing
_FEW_HITS = 0.1
_WORTH_A_FIT = 0.05  # candidates an active edge
_TESTED = 0.5  # pairs an active edge, at least, before a relaxed run fits again
_NEW_EDGES = 1.05  # growth of the graph between two looks at its triangles
_NEXT = -(2.0**40)  # a priority below any other


def queue(growth: Growth, ranking: Ranking) -> None:
    """Queue ranked pairs; where the run is relaxed, those that the ranking is sure of come first.

    A ranking conditions on all variables at once, so of pairs that touch each one may be sure.
    """
    edges, growth.ranked = ranking.edges, True
    if growth.settings.relaxed and growth.settings.strategy == "best-choice":
        edges = edges[np.argsort(~ranking.significant, kind="stable")]
        growth.n_sure = int(ranking.significant.sum())
    growth.stream.prioritise(edges, ranking.priorities())


def begin(growth: Growth) -> bool:
    """Activate what the ranking is sure of and violates optimality; tell whether anything does."""
    edges = growth.stream.draw(growth.n_sure, growth.rng)
    growth.n_sure = 0
    judged = [
        growth.judge(edges[first : first + _LARGEST_BATCH])
        for first in range(0, len(edges), _LARGEST_BATCH)
    ]
    scores, violates = (np.concatenate(part) for part in zip(*judged, strict=True))
    _freeze(growth, edges[~violates], growth.offsets(scores[~violates]))
    edges, scores = edges[violates], scores[violates]
    room = len(edges) if growth.room is None else growth.room
    growth.stream.restore(edges[room:], growth.offsets(scores[room:]))
    if not len(edges):
        return False
    growth.graph.add(edges[:room])
    growth.n_activations += 1
    growth.filled = True
    fit(growth, n_iter=_FIRST_ITERATIONS)
    return True


def fill(growth: Growth) -> None:
    """Test candidates until enough were, and keep the violating ones in the reservoir.

    Before the first activation the reservoir is filled to its capacity.
    """
    parts, stream = growth.parts, growth.stream
    if parts.exhaustive:
        _refill(growth)
    _close_triangles(growth)
    tests, batch = 0, parts.batch
    while not _enough(growth, tests):
        edges = stream.draw(min(batch, _LARGEST_BATCH), growth.rng)
        if len(edges):
            tests += len(edges)
            hits = _test(growth, edges)
            if hits < _FEW_HITS * len(edges) and not parts.first_hit:
                batch *= 2  # where little violates, large batches cost a fraction a pair
        elif growth.n_fresh < stream.n_frozen:
            _refill(growth)
        else:
            break
    growth.filled = True


def _enough(growth: Growth, tests: int) -> bool:
    if growth.spent:
        return True
    if growth.parts.exhaustive:
        return False
    if not growth.filled:
        return growth.reservoir.full
    if tests < growth.parts.max_tests or not len(growth.reservoir):
        return False
    if not growth.parts.patience:
        return True
    # A fit passes over all edges several times: not for a handful of new ones, as long as
    # looking for more is cheaper.
    n_edges = len(growth.graph)
    if growth.settings.relaxed and tests < _TESTED * n_edges:
        return False
    return (
        len(growth.reservoir) >= _WORTH_A_FIT * n_edges or tests >= growth.parts.patience * n_edges
    )


def _close_triangles(growth: Growth) -> None:
    """Once the ranked pairs are tested, put neighbours of neighbours before strangers."""
    stream, layout = growth.stream, growth.graph.layout
    due = len(growth.graph) > _NEW_EDGES * growth.n_closed  # all wedges are looked through
    if growth.ranked and due and stream.n_unseen and not stream.n_prioritised:
        growth.n_closed = len(growth.graph)
        pairs = closing_pairs(layout.edges, layout.n_variables)
        stream.prioritise(pairs, np.linspace(-1.0, 0.0, len(pairs), endpoint=False))


def _refill(growth: Growth) -> None:
    growth.stream.refill()
    growth.n_fresh = 0


def _freeze(growth: Growth, edges: Edges, offsets: Floats) -> None:
    growth.stream.freeze(edges, offsets)
    growth.n_fresh += len(edges)


def _test(growth: Growth, edges: Edges) -> int:
    """Score a batch: what violates goes to the reservoir, the rest freezes; return how many do."""
    scores, violates = growth.judge(edges)
    if growth.parts.first_hit and violates.any():
        # What follows the first hit counts as not yet drawn: it comes next, in the same order.
        hit = int(np.argmax(violates)) + 1
        growth.stream.restore(edges[hit:], _NEXT + np.arange(len(edges) - hit))
        edges, scores, violates = edges[:hit], scores[:hit], violates[:hit]
    _freeze(growth, edges[~violates], growth.offsets(scores[~violates]))
    out = growth.reservoir.offer(edges[violates], scores[violates])
    _set_aside(growth, out)
    return int(violates.sum())


def _set_aside(growth: Growth, out: Scored) -> None:
    """Put back what violates but found no room in the reservoir.

    Frozen, as in the paper, it is seen again when all other pairs have been tested, which for
    many variables is never; queued by its offset, it is among the next to be drawn.
    """
    if growth.settings.requeue:
        growth.stream.restore(out.edges, growth.offsets(out.scores))
    else:
        _freeze(growth, out.edges, growth.offsets(out.scores))


def activate(growth: Growth) -> bool:
    """Move the edges that the rule selects into the graph; tell whether there were any."""
    if growth.parts.single_features:
        return _activate_feature(growth)
    chosen = _choose(growth)[: growth.room]
    if not len(chosen):
        return False
    growth.graph.add(growth.reservoir.take(chosen).edges)
    growth.n_activations += 1
    return True


def _choose(growth: Growth) -> NDArray[np.int64]:
    """Return which of the reservoir to activate.

    A relaxed run takes a handful whole: a fit for each of them would cost more than the edges that
    a choice keeps out, and those are for the tests to find.
    """
    waiting = growth.reservoir
    few = len(waiting) <= _WORTH_A_FIT * len(growth.graph)
    if few and growth.settings.relaxed and growth.settings.strategy == "best-choice":
        return np.argsort(-waiting.scores, kind="stable")
    return growth.parts.rule.select(waiting.edges, waiting.scores)


def _activate_feature(growth: Growth) -> bool:
    """Allow the single parameter of the largest gradient, of an active pair or a new one."""
    solution = growth.solution
    first = int(solution.layout.edge_offset[0])
    held = np.where(growth.allowed[first:], 0.0, np.abs(solution.gradient[first:]))
    inside = float(held.max(initial=0.0))
    chosen = growth.parts.rule.select(growth.reservoir.edges, growth.reservoir.scores)
    outside = float(growth.reservoir.scores[chosen[0]]) if len(chosen) else 0.0
    if growth.room == 0:
        outside = 0.0
    if max(inside, outside) <= growth.penalty.penalty + growth.slack:
        return False
    if inside >= outside:
        growth.allowed[first + int(np.argmax(held))] = True
    else:
        _admit(growth, growth.reservoir.take(chosen).edges)
    growth.n_activations += 1
    return True


def _admit(growth: Growth, edges: Edges) -> None:
    """Add a pair to the graph and allow its cell of the largest gradient."""
    solution, graph = growth.solution, growth.graph
    tables = solution.objective.edge_gradients(solution.theta, solution.state, edges)
    cell = int(np.argmax(np.abs(tables.values)))
    graph.add(edges)
    growth.allowed = graph.layout.carry(growth.allowed.astype(float), solution.layout) > 0
    growth.allowed[int(graph.layout.edge_offset[-2]) + cell] = True


def fit(growth: Growth, *, final: bool = False, n_iter: int | None = None) -> bool:
    """Fit the parameters of the graph: a few warm iterations, or to the tolerance at the end.

    Tell whether that lowered the objective.
    """
    before = growth.solution.info.objective
    settings = growth.settings
    n_iter = n_iter or settings.growth_iterations or (_RELAXED if settings.relaxed else _ITERATIONS)
    if final or settings.strategy == "feature":
        n_iter = _FINAL_ITERATIONS
    elif settings.strategy == "feature-light":
        n_iter = 1
    if isinstance(growth.penalty, FeaturePenalty):
        growth.penalty = allowing(growth.penalty, growth.allowed)
    growth.solution = minimize(
        growth.objective,
        fit_penalty(growth.penalty, growth.settings),
        growth.graph.layout,
        growth.solution,
        Stopping(tol=settings.tol, max_iter=n_iter),
        quiet=not final,
    )
    growth.n_fresh = 0
    return bool(before - growth.solution.info.objective > _STILL * max(1.0, abs(before)))


def drop_zeros(growth: Growth, *, moved: bool = True) -> None:
    """Take edges that the penalty set to zero out of the graph; they may come back.

    Where the fit moved nothing that is counted: nothing keeps such an edge from violating again.
    """
    settings = growth.settings
    if settings.keep_zeros or settings.relaxed or growth.parts.single_features:
        return
    layout = growth.solution.layout
    norms = np.empty(layout.n_edges)
    group_norms(growth.solution.theta, layout.edge_offset, norms)
    gone = layout.edges[norms == 0]
    if len(gone):
        growth.graph.remove(gone)
        if not moved:
            growth.returned.add(gone)
        scores = growth.penalty.score(growth.solution.gradient, layout)[norms == 0]
        _freeze(growth, gone, growth.offsets(scores))


def given_up(growth: Growth) -> Edges:
    """Return the pairs that violate optimality and that the fit sets back to zero every time."""
    pairs = growth.returned.pairs()
    pairs = pairs[growth.returned.given_up(pairs) & ~growth.graph.contains(pairs)]
    if not len(pairs):
        return pairs
    return pairs[growth.exceeds(growth.judge(pairs).scores, pairs)]


def rescore(growth: Growth) -> None:
    """Score the reservoir at the new parameters; what no longer violates freezes."""
    if not len(growth.reservoir):
        return
    scores, violates = growth.judge(growth.reservoir.edges)
    growth.reservoir.rescore(scores)
    out = growth.reservoir.drop(~violates)
    _freeze(growth, out.edges, growth.offsets(scores[~violates]))


def boost_hubs(growth: Growth) -> None:
    """Bring the untested edges of hubs forward."""
    threshold = growth.settings.hub_threshold
    if threshold == "auto":
        threshold = None if growth.ranked else "mean"
    if threshold is not None and len(growth.graph):
        growth.stream.boost(find_hubs(growth.graph.degree, threshold))


def restart(growth: Growth) -> None:
    """Forget messages and curvature, keep the parameters: what a resumed run has too.

    An objective whose inference failed has been left for its fallback, and stays left.
    """
    growth.restarted_from = growth.theta()
    growth.solution = minimize(
        growth.solution.objective,
        fit_penalty(growth.penalty, growth.settings),
        growth.graph.layout,
        growth.restarted_from,
        Stopping(tol=growth.settings.tol, max_iter=0),
        quiet=True,
    )
    growth.n_fresh = 0
