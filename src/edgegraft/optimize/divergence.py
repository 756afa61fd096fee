"""Names of the parameters that have no finite best value.

A state that never occurs, and without any penalty a pair of states that never occur together, has
its log-potential best at minus infinity: the loss keeps falling, ever more slowly, and an answer
to any tolerance is finite but says more about the tolerance than about the data. Perfect
prediction by several variables together shows only in the answer: log-potentials out of all
proportion.
"""

from __future__ import annotations

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.types import Edges, Floats
from edgegraft.counts.pair_counts import PairCounts
from edgegraft.kernels.solver.gauge import to_zero_sum
from edgegraft.objective.penalty import Penalty
from edgegraft.table import Schema

#: A table of the answer with an entry beyond this, in zero-sum gauge, is taken to diverge: it
#: changes odds by a factor of more than twenty thousand.
LARGE = 10.0
#: Edges counted at once.
_BLOCK = 4096


def unseen_states(counts: PairCounts) -> tuple[str, ...]:
    """Name the categories that never occur."""
    names = []
    for variable, margin in zip(counts.schema.variables, counts.margins(), strict=True):
        for state in np.flatnonzero(margin == 0):
            label = variable.categories[int(state)]
            names.append(f"variable '{variable.name}': category {label!r} never occurs")
    return tuple(names)


def unseen_pairs(counts: PairCounts, edges: Edges) -> tuple[str, ...]:
    """Name the edges some of whose states occur, but never together."""
    seen = [margin > 0 for margin in counts.margins()]
    names = []
    for first in range(0, len(edges), _BLOCK):
        block = edges[first : first + _BLOCK]
        for (i, j), table in zip(block, counts.pairs(block), strict=True):
            empty = int(((table == 0) & np.outer(seen[i], seen[j])).sum())
            if empty:
                what = (
                    "pair of states never occurs" if empty == 1 else "pairs of states never occur"
                )
                names.append(f"edge {_edge_name(counts.schema, i, j)}: {empty} {what} together")
    return tuple(names)


def steep_edges(theta: Floats, layout: Layout, schema: Schema) -> tuple[str, ...]:
    """Name the edges whose log-potentials are out of all proportion."""
    flat = theta.copy()
    to_zero_sum(flat, layout.states, layout.edges, layout.node_offset, layout.edge_offset)
    tops = [np.abs(layout.edge(flat, k)).max() for k in range(layout.n_edges)]
    return tuple(
        f"edge {_edge_name(schema, *layout.edges[k])}: a log-potential reached {tops[k]:.0f}"
        for k in np.flatnonzero(np.array(tops) > LARGE)
    )


def name_divergence(
    counts: PairCounts, theta: Floats, layout: Layout, penalty: Penalty
) -> tuple[str, ...]:
    """Name everything whose best value is infinite under `penalty`."""
    free = penalty.penalty == 0.0 and penalty.ridge == 0.0
    found: tuple[str, ...] = ()
    if free or not penalty.penalize_nodes:
        found += unseen_states(counts)
    if free:
        empty = unseen_pairs(counts, layout.edges)
        known = {name.split(":")[0] for name in empty}
        steep = steep_edges(theta, layout, counts.schema)
        found += empty + tuple(name for name in steep if name.split(":")[0] not in known)
    return found


def shorten(names: tuple[str, ...], shown: int = 5) -> str:
    """Return a few of the names in one line."""
    rest = f" and {len(names) - shown:,} more" if len(names) > shown else ""
    return "; ".join(names[:shown]) + rest


def _edge_name(schema: Schema, i: int, j: int) -> str:
    return f"('{schema.names[i]}', '{schema.names[j]}')"
