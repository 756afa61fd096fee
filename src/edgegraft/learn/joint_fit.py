"""A fit of all pairs, which orders them where an edge alone cannot be judged.

In a cold model columns nearly agree. Dependences of single pairs then say little about which of
them are linked: a spanning tree of them is one of chance, and beside the neighbours that a column
has there are few rows left to judge another. A fit of all pairs under a small group-l1 penalty
weighs all of them at once. It costs as much as all pairs do, so it is for tables of moderate size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from edgegraft.core.pairs import all_pairs
from edgegraft.core.types import Edges, Floats
from edgegraft.model import PairwiseMRF
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import Penalty
from edgegraft.optimize.solver import Stopping, minimize


@dataclass(frozen=True)
class _Rule:
    """How all pairs are fitted."""

    #: penalty of a cell in units of ``1 / sqrt(rows)``, the noise of its gradient: from .1 to 1 the
    #: average precision of cold models moves by .04 at most (docs/decisions/015-cold-models.md)
    level: float = 0.2
    ridge: float = 1e-6  # a budget: pairs without a finite optimum stay finite
    tol: float = 1e-3  # of a gradient, and steps: a budget, the order settles early
    max_iter: int = 200
    max_work: float = 4e8  # cells of all pairs times rows: a budget of a few seconds


RULE = _Rule()


@dataclass(frozen=True)
class JointFit:
    """Strengths of all pairs in the fit of all pairs."""

    strengths: dict[tuple[int, int], float]

    @classmethod
    def of(cls, objective: Objective) -> Self:
        """Fit all pairs.

        >>> from edgegraft.objective.pseudolikelihood import Pseudolikelihood
        >>> from edgegraft.table import PackedTable
        >>> rows = np.random.default_rng(0).integers(0, 2, (200, 2)).repeat(2, axis=1)
        >>> JointFit.of(Pseudolikelihood(PackedTable.from_codes(rows))).strongest(2).tolist()
        [[0, 1], [2, 3]]
        """
        schema = objective.schema
        layout = objective.layout(all_pairs(len(schema)))
        rule = Penalty(RULE.level / float(np.sqrt(objective.n_rows)), RULE.ridge)
        stopping = Stopping(RULE.tol, RULE.max_iter)
        fitted = minimize(objective, rule, layout, stopping=stopping, quiet=True)
        theta = objective.expand(fitted.theta, layout)
        strengths = PairwiseMRF(schema, layout.edges, theta).edge_strengths()
        return cls.of_vector(strengths, len(schema))

    @classmethod
    def of_vector(cls, strengths: Floats, n: int) -> Self:
        """Return the strengths of all pairs of `n` columns, in their order."""
        pairs = [(i, j) for i, j in all_pairs(n).tolist()]
        return cls(dict(zip(pairs, strengths.tolist(), strict=True)))

    @property
    def vector(self) -> Floats:
        """The strengths in the order of all pairs."""
        return np.array(list(self.strengths.values()), float)

    def strengths_of(self, edges: Edges) -> Floats:
        """Return the strengths of some pairs."""
        return np.array([self.strengths[i, j] for i, j in edges.tolist()], float)

    def strongest(self, count: int) -> Edges:
        """Return the strongest pairs; fewer if others are zero."""
        some = sorted(self.strengths.items(), key=lambda item: (-item[1], item[0]))[:count]
        return np.array([pair for pair, size in some if size > 0], np.int64).reshape(-1, 2)


def is_affordable(objective: Objective) -> bool:
    """Return whether a fit of all pairs takes no more than a few seconds; a likelihood's does."""
    states = objective.schema.n_states.astype(float)
    cells: Floats = (states.sum() ** 2 - (states**2).sum()) / 2
    return objective.terms == 2 and bool(cells * objective.n_rows <= RULE.max_work)
