"""The loss of a sample, tilted to have the slope that all rows have at one point.

    f(x) + (G - g)'(x - x0) + (x - x0)' D (x - x0) / 2

with ``f`` and ``g`` the loss and slope of the sample, ``G`` the slope over all rows at ``x0``. Its
minimum is nearly that of the loss over all rows, since the curvatures of both differ by sampling
noise alone: each pass over all rows brings the optimum nearer by a factor of that order, where a
quasi-Newton step spends a pass for a small part of it (Shamir, Srebro and Zhang 2014; Jordan, Lee
and Yang 2019). ``D`` adds what the sample lacks: states of which it has less than half its share,
or none, would otherwise move without bounds. It must not do more, since it holds back directions
of little curvature.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core import Layout
from edgegraft.core.tables import PairTables
from edgegraft.core.types import Edges, Floats
from edgegraft.kernels.solver.penalty import dot
from edgegraft.objective.objective import Evaluation, Objective, State
from edgegraft.table import Schema

#: Curvature added everywhere, as a share of the whole's: a sample may be unlucky in a direction.
CAUTION = 0.001


class Tilted(Objective):
    """The loss of a sample for one graph, with the slope of another loss at one point.

    `gradient` is that of the `whole` loss at ``x0``, here `theta`.

    >>> from edgegraft.table import PackedTable
    >>> from edgegraft.objective.pseudolikelihood import Pseudolikelihood
    >>> whole = Pseudolikelihood(PackedTable.from_codes([[0, 0], [1, 1], [1, 1], [0, 1]]))
    >>> some = Pseudolikelihood(PackedTable.from_codes([[0, 0], [1, 1], [1, 0]]))
    >>> layout = Layout([2, 2], [(0, 1)])
    >>> theta = whole.start(layout)
    >>> slope = whole.evaluate(theta, whole.init(layout)).gradient
    >>> tilted = Tilted(some, whole, layout, theta, slope)
    >>> np.allclose(tilted.evaluate(theta, tilted.init(layout)).gradient, slope)
    True
    """

    def __init__(
        self, sample: Objective, whole: Objective, layout: Layout, theta: Floats, gradient: Floats
    ) -> None:
        self._sample, self._whole, self._at = sample, whole, theta
        self.features = whole.features
        here = sample.evaluate(theta, sample.init(layout))
        self._tilt = gradient - here.gradient
        needed, there = whole.curvature(layout), sample.curvature(layout)
        self._stiff = np.maximum(needed - 2.0 * there, 0.0) + CAUTION * needed

    @property
    def schema(self) -> Schema:
        """Names and categories of the variables."""
        return self._whole.schema

    @property
    def n_rows(self) -> float:
        """Number of all rows."""
        return self._whole.n_rows

    @property
    def terms(self) -> int:
        """As the sample's loss."""
        return self._sample.terms

    def layout(self, edges: ArrayLike | None = None) -> Layout:
        """Return where the parameters of a graph lie."""
        return self._whole.layout(edges)

    def expand(self, theta: Floats, layout: Layout) -> Floats:
        """Return the tables that parameters stand for."""
        return self._whole.expand(theta, layout)

    def init(self, layout: Layout) -> State:
        """Return the sample's state."""
        return self._sample.init(layout)

    def grow(self, state: State, layout: Layout) -> State:
        """Return the sample's state; another graph would need another slope."""
        return self._sample.grow(state, layout)

    def evaluate(self, theta: Floats, state: State) -> Evaluation:
        """Return the tilted loss and its gradient."""
        found = self._sample.evaluate(theta, state)
        move = theta - self._at
        pull = self._stiff * move
        value = found.value + float(dot(self._tilt, move)) + 0.5 * float(dot(pull, move))
        return found._replace(value=value, gradient=found.gradient + self._tilt + pull)

    def edge_gradients(self, theta: Floats, state: State, edges: Edges) -> PairTables:
        """Return those of the sample: the tilt is known for the edges of the graph alone."""
        return self._sample.edge_gradients(theta, state, edges)

    def curvature(self, layout: Layout) -> Floats:
        """Return the curvature over all rows."""
        return self._whole.curvature(layout)

    def start(self, layout: Layout) -> Floats:
        """Return first parameters over all rows."""
        return self._whole.start(layout)
