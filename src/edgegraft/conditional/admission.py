"""Which pairs become edges: candidates are admitted, and what fails its test is dismissed.

    dismiss  drop what is clearly null together, what else fails weakest first, vertex-disjoint
    admit    ask candidates as additions, add what passes, strongest first and vertex-disjoint
    bridge   a tree edge between components of the network is judged by its marginal dependence

An edge of a spanning tree is spared while the others are judged: without a hub's edges, pairs of
its leaves stand in for them and pass any test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from edgegraft.conditional.judge import Judge, Network, Pair, Verdict
from edgegraft.core.types import Edges, Floats, Mask

#: p-value from which edges that fail are dropped together even if they share a column: no hard case
#: has another F1 if they are dropped one by one, in three times the rounds (python -m benchmarks)
NULL = 0.01
MAX_ROUNDS = 50  # a budget: each round asks only what has changed


class Passes(Protocol):
    """What is kept by p-values, beside others that are."""

    def __call__(self, edges: Edges, p_values: Floats, n_others: int) -> Mask:
        """Return which edges pass."""


def dismiss(
    network: Network,
    judge: Judge,
    passes: Passes,
    spared: frozenset[Pair] = frozenset(),
    strengths: Mapping[Pair, float] | None = None,
) -> dict[Pair, Verdict]:
    """Drop edges until all pass, except for the spared; return the last verdicts on all.

    Those that fail go in the order of some `strengths`, the weakest of a column at a time, or
    without these in the order of their p-values.
    """
    last: dict[Pair, Verdict] = {}
    for _ in range(MAX_ROUNDS):
        asked = sorted(network.edges)
        verdicts = dict(zip(asked, judge.ask(network, asked), strict=True))
        last |= verdicts
        if not asked:
            break
        p = np.array([verdicts[pair].p_value for pair in asked])
        fails = ~passes(np.array(asked), p, 0)
        weakest = -p if strengths is None else np.array([strengths[pair] for pair in asked])
        failing = [asked[k] for k in np.argsort(weakest, kind="stable") if fails[k]]
        failing = [pair for pair in failing if pair not in spared]
        if not failing:
            break
        used: set[int] = set()
        dropped = set()
        for pair in failing:
            together = strengths is None and verdicts[pair].p_value > NULL
            if together or not used.intersection(pair):
                dropped.add(pair)
                used.update(pair)
        network.drop(dropped)
    return last


def admit(
    network: Network, candidates: list[Pair], judge: Judge, passes: Passes
) -> dict[Pair, Verdict]:
    """Add candidates that pass; return the last verdicts on them.

    Of those that pass and share a column, the strongest is added, and the others are asked again
    beside it.
    """
    last: dict[Pair, Verdict] = {}
    waiting = [pair for pair in candidates if pair not in network.edges]
    for _ in range(MAX_ROUNDS):
        if not waiting:
            break
        verdicts = dict(zip(waiting, judge.ask(network, waiting), strict=True))
        last |= verdicts
        p = np.array([verdicts[pair].p_value for pair in waiting])
        able = passes(np.array(waiting), p, len(network.edges))
        order = np.lexsort((-np.array([verdicts[pair].statistic for pair in waiting]), p))
        used: set[int] = set()
        new = []
        for k in order.tolist():
            if able[k] and not used.intersection(waiting[k]):
                new.append(waiting[k])
                used.update(waiting[k])
        if not new:
            break
        network.add(set(new))
        waiting = [
            pair for pair in waiting if pair not in network.edges and used.intersection(pair)
        ]
    return last


def bridge(
    network: Network,
    tree: list[Pair],
    marginal: Callable[[list[Pair]], list[Verdict]],
    passes: Passes,
) -> dict[Pair, Verdict]:
    """Add tree edges whose ends the network leaves unconnected, if their columns depend.

    On a forest the likelihood ratio of an edge is the marginal one, whatever hangs on its ends.
    """
    lacking = [pair for pair in tree if pair not in network.edges]
    if not lacking:
        return {}
    home = list(range(len(network.beside)))

    def root(v: int) -> int:
        while home[v] != v:
            home[v] = home[home[v]]
            v = home[v]
        return v

    for i, j in network.edges:
        home[root(i)] = root(j)
    verdicts = dict(zip(lacking, marginal(lacking), strict=True))
    p = np.array([verdicts[pair].p_value for pair in lacking])
    able = passes(np.array(lacking), p, len(network.edges))
    found: dict[Pair, Verdict] = {}
    for k in np.argsort([-verdicts[pair].statistic for pair in lacking], kind="stable").tolist():
        i, j = lacking[k]
        if able[k] and root(i) != root(j):
            home[root(i)] = root(j)
            found[lacking[k]] = verdicts[lacking[k]]
    network.add(set(found))
    return found
