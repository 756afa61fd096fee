"""A penalised fit of all pairs at once: what a forward search cannot see.

Edges that matter only together (two near-copies with opposite effects), and those of columns that
their neighbours nearly determine, have small scores until the others are in the model. A fit of all
pairs under a small group-l1 penalty, ended early, ranks them. It costs as much as all pairs do, so
it is for tables of moderate size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgegraft.core.pairs import all_pairs, pair_ids
from edgegraft.core.types import Edges, Floats
from edgegraft.learn.journal import Journal
from edgegraft.model import PairwiseMRF
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import Penalty
from edgegraft.optimize.solver import Stopping, minimize

_LEVEL = 0.2  # penalty per cell, in units of 1 / sqrt(rows)
_RIDGE = 1e-6
_STOPPING = Stopping(tol=1e-3, max_iter=200)  # the early end is part of the method
_MAX_WORK = 4e8  # cells of all pairs times rows: a few seconds


class JointStrengths(NamedTuple):
    """All pairs with their strengths in the fit of all pairs."""

    pairs: Edges
    strengths: Floats

    def of(self, edges: Edges) -> Floats:
        """Return the strengths of some pairs."""
        n = int(self.pairs.max()) + 1
        place = np.searchsorted(pair_ids(self.pairs, n), pair_ids(edges, n))
        return self.strengths[place]

    def strongest(self, count: int) -> Edges:
        """Return the strongest pairs; fewer if others are zero."""
        order = np.argsort(-self.strengths, kind="stable")[:count]
        return self.pairs[order[self.strengths[order] > 0]]


def is_affordable(objective: Objective) -> bool:
    """Return whether a fit of all pairs takes no more than a few seconds; a likelihood's does."""
    if objective.terms != 2:
        return False
    states = objective.schema.n_states.astype(float)
    cells = (states.sum() ** 2 - (states**2).sum()) / 2
    return bool(cells * objective.n_rows <= _MAX_WORK)


def fit_jointly(objective: Objective, journal: Journal) -> JointStrengths:
    """Fit all pairs at once."""
    schema = objective.schema
    layout = objective.layout(all_pairs(len(schema)))
    rule = Penalty(_LEVEL / float(np.sqrt(objective.n_rows)), _RIDGE)

    def strengths() -> Floats:
        found = minimize(
            objective, rule, layout, stopping=_STOPPING, quiet=True, watch=journal.watch
        )
        theta = objective.expand(found.theta, layout)
        return PairwiseMRF(schema, layout.edges, theta).edge_strengths()

    return JointStrengths(layout.edges, journal.step(strengths))
