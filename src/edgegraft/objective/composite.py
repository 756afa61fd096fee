"""What every pseudolikelihood knows from the margins alone, wherever its rows are."""

from __future__ import annotations

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.types import Floats
from edgegraft.objective.objective import Objective
from edgegraft.table import Schema


class CompositeLoss(Objective):
    """Curvature and first parameters of a composite pseudolikelihood.

    Parameters
    ----------
    schema : Schema
    margins : array of float, shape (sum of states,)
        Weight of the rows in each state of each variable.
    total : float
        Weight of all rows.
    count : int
        Number of rows.
    """

    def __init__(self, schema: Schema, margins: Floats, total: float, count: int) -> None:
        self._schema = schema
        self._margins = margins
        self._total = total
        self._count = count

    @property
    def schema(self) -> Schema:
        """Names and categories of the variables."""
        return self._schema

    @property
    def n_rows(self) -> float:
        """Number of rows, or the sum of their weights: ``W``."""
        return self._total

    @property
    def terms(self) -> int:
        """A pair counts in the conditionals of both its ends."""
        return 2

    def curvature(self, layout: Layout) -> Floats:
        """Return the diagonal of the Hessian at the independent model.

            u_i(a):      p_i(a) (1 - p_i(a))
            w_ij(a, b):  p_i(a) p_j(b) (2 - p_i(a) - p_j(b))

        with margins ``p``, half a row added to states that never occur. An estimate, not a
        bound: `curvature_bound` is one.
        """
        p = np.maximum(self._margins, 0.5 * self._unit) / self._total
        row, column = (p[at] for at in layout.cell_ends())
        # A constant variable has no curvature: half a row keeps steps along it finite.
        least = 0.5 / self._count
        nodes = p * np.maximum(1 - p, least)
        return np.concatenate((nodes, row * column * np.maximum(2 - row - column, least)))

    def curvature_bound(self, layout: Layout) -> Floats:
        """Return an upper bound of the Hessian of each node vector and of each edge's table.

            u_i(a):      known_i / (2 W)
            w_ij(a, b):  (p_i(a) + p_j(b)) / 2

        The Hessian of a softmax is at most 1/2 and the columns of a one-hot matrix are disjoint,
        so the diagonal matrix of these numbers exceeds each block's Hessian at any parameters.
        Blocks interact: it is no bound of the whole Hessian.
        """
        p = self._margins / self._total
        known = np.add.reduceat(p, layout.node_offset[:-1])
        row, column = (p[at] for at in layout.cell_ends())
        return np.concatenate((np.repeat(0.5 * known, layout.states), 0.5 * (row + column)))

    def start(self, layout: Layout) -> Floats:
        """Return log-margins for nodes, half a row for a state that never occurs, edges zero."""
        counts = np.maximum(self._margins, 0.5 * self._unit)
        theta = np.zeros(layout.n_parameters)
        known = np.add.reduceat(counts, layout.node_offset[:-1])
        theta[: len(counts)] = np.log(counts / np.repeat(known, layout.states))
        return theta

    @property
    def _unit(self) -> float:
        """The mean weight of a row."""
        return self._total / self._count
