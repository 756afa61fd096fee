"""What a pseudolikelihood knows at the point of its last evaluation, so that no pass is repeated.

An evaluation at known parameters costs nothing; nor, over blocks, does one that only adds edges of
zeros once the gradients of all pairs are known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.pairs import pair_ids
from edgegraft.core.tables import table_offsets
from edgegraft.core.types import Edges, Floats
from edgegraft.objective.scoring import Residuals, take_tables


class AllGradients(NamedTuple):
    """Gradients of all pairs at one point."""

    layout: Layout  # of the graph of all pairs
    values: Floats  # node vectors, which mean nothing, then tables

    def tables(self, edges: Edges) -> Floats:
        """Return the tables of `edges`, in their order and orientation, one after another."""
        offsets = table_offsets(self.layout.states[edges])
        return take_tables(self.values, self.layout, edges, offsets)


@dataclass(eq=False)
class PairsAt:
    """Gradients of pairs at one point."""

    theta: Floats
    residuals: Residuals | None = None  # of a table in memory
    asked: int = 0  # pairs asked for so far
    whole: AllGradients | None = None  # once known


@dataclass(frozen=True, eq=False)
class Known:
    """The loss at one point."""

    layout: Layout
    theta: Floats
    losses: Floats  # mean loss per row of each variable
    gradient: Floats
    pairs: PairsAt

    def is_at(self, theta: Floats, layout: Layout) -> bool:
        """Return whether this is the loss of the same graph at the same parameters."""
        return np.array_equal(self.layout.edges, layout.edges) and np.array_equal(self.theta, theta)


def reuse(theta: Floats, layout: Layout, known: Known | None) -> Known | None:
    """Return what is known of the same model in the layout of another; None if too little."""
    if known is None:
        return None
    if layout is known.layout:
        return known if np.array_equal(theta, known.theta) else None
    if not _same_model(theta, layout, known):
        return None
    n = layout.n_variables
    new = layout.edges[~np.isin(pair_ids(layout.edges, n), pair_ids(known.layout.edges, n))]
    gradient = layout.carry(known.gradient, known.layout)
    whole = known.pairs.whole
    if len(new):
        if whole is None:
            return None
        nodes, added = np.zeros(int(layout.node_offset[-1])), Layout(layout.states, new)
        gradient += layout.carry(np.concatenate((nodes, whole.tables(new))), added)
    pairs = PairsAt(theta, None, known.pairs.asked, whole)
    return Known(layout, theta, known.losses, gradient, pairs)


def _same_model(theta: Floats, layout: Layout, known: Known) -> bool:
    """Return whether parameters differ from the known ones by edges of zeros at most."""
    return np.array_equal(layout.carry(known.theta, known.layout), theta) and np.array_equal(
        known.layout.carry(theta, layout), known.theta
    )
