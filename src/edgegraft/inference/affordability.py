"""Whether exact inference on a graph is affordable: decided in one place, before any table exists.

The elimination order determines what a run takes, in seconds and bytes. Orders are searched once
per graph: those of the last graphs are kept, so rows with the same missing cells, repeated
questions and repeated estimates share one search.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.threads import physical_memory
from edgegraft.inference.elimination import (
    CELL_BYTES,
    CELL_SECONDS,
    Elimination,
    ExactCost,
    build_tree,
    cost_of,
    order_variables,
)
from edgegraft.kernels.elimination.buckets import JunctionTree


class ExactBudget(NamedTuple):
    """What one run of exact inference may take.

    Attributes
    ----------
    seconds : float, default 30
        Estimated time on a usual core.
    nbytes : int, optional
        Memory; by default half of what the machine has.
    """

    seconds: float = 30.0
    nbytes: int | None = None

    @property
    def max_bytes(self) -> int:
        """Memory that a run may take; 2 GiB if nobody knows what the machine has."""
        return (physical_memory() or 1 << 32) // 2 if self.nbytes is None else self.nbytes


class ExactState(NamedTuple):
    """The bucket tree of a graph; it depends on the graph alone and is never changed."""

    layout: Layout
    elimination: Elimination
    tree: JunctionTree
    cost: ExactCost


#: For one answer, which somebody waits for.
ONE_ANSWER = ExactBudget()
#: For learners, which run inference hundreds of times.
REPEATED = ExactBudget(seconds=1.5)


def affordable(layout: Layout, budget: ExactBudget = ONE_ANSWER) -> ExactState | None:
    """Return the prepared state of exact inference, or None if a run would exceed the budget.

    Examples
    --------
    >>> chain = Layout([2, 2, 2], [(0, 1), (1, 2)])
    >>> affordable(chain).cost.treewidth
    1
    >>> affordable(chain, ExactBudget(seconds=0.0)) is None
    True
    """
    cost, found, tree = _prepared(layout, budget)
    return None if tree is None else ExactState(layout, found, tree, cost)


def exact_cost(layout: Layout, budget: ExactBudget = ONE_ANSWER) -> ExactCost:
    """Return what exact inference would take, by an order searched within the budget."""
    return _prepared(layout, budget)[0]


def describe_cost(cost: ExactCost) -> str:
    """Return the time and memory of an estimate in words.

    >>> describe_cost(ExactCost(20, 9, 1 << 21, nbytes=1 << 26, seconds=90.0, complete=False))
    'at least 1.5 minutes and 64 MiB'
    """
    time = f"{cost.seconds:.2g} seconds"
    for unit, seconds in (("minutes", 60.0), ("hours", 3600.0), ("years", 3.15e7)):
        if cost.seconds >= seconds:
            time = f"{cost.seconds / seconds:.2g} {unit}"
    return f"{'' if cost.complete else 'at least '}{time} and {readable_bytes(cost.nbytes)}"


def readable_bytes(nbytes: int) -> str:
    """Return a number of bytes with its unit, or as a power of ten.

    >>> readable_bytes(1 << 30), readable_bytes(10**30)
    ('1.0 GiB', '10^30 bytes')
    """
    if nbytes >= 1 << 60:
        return f"10^{math.log10(nbytes):.0f} bytes"
    size = float(nbytes)
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:,.1f} GiB"


def _prepared(
    layout: Layout, budget: ExactBudget
) -> tuple[ExactCost, Elimination, JunctionTree | None]:
    states, edges = layout.states.tobytes(), layout.edges.tobytes()
    return _search(states, edges, budget.seconds, budget.max_bytes)


@lru_cache
def _search(
    states: bytes, edges: bytes, seconds: float, nbytes: int
) -> tuple[ExactCost, Elimination, JunctionTree | None]:
    """Return what a run takes, the elimination order, and the bucket tree if it is affordable."""
    layout = Layout(np.frombuffer(states, np.int64), np.frombuffer(edges, np.int64).reshape(-1, 2))
    found = order_variables(layout, min(nbytes / CELL_BYTES, seconds / CELL_SECONDS))
    cost = cost_of(layout, found)
    fits = cost.complete and cost.nbytes <= nbytes and cost.seconds <= seconds
    return cost, found, build_tree(layout, found) if fits else None
