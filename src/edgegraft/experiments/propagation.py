"""Belief propagation as the experiments need it: counted, and quick for very many pairs.

Exhaustive grafting asks for the product of beliefs of all pairs at every step. The engine of the
library answers a pair at a time, which suits the few hundred pairs of a best-choice step but would
make an exhaustive one look slower than the method is; here all pairs of a request are multiplied
at once. Answers are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from edgegraft.inference import BeliefPropagation
from edgegraft.inference.bp import is_current
from edgegraft.inference.engine import Info, Marginals
from edgegraft.inference.messages import MessageState
from edgegraft.inference.wiring import common_pairs
from edgegraft.objective.objective import Floats
from edgegraft.stats.tables import Edges, PairTables, table_offsets


@dataclass(frozen=True)
class CountedPropagation(BeliefPropagation):
    """Belief propagation that notes the messages of every run, with products of beliefs.

    Attributes
    ----------
    updates : list of int
        Messages computed in each run so far.

    Examples
    --------
    >>> from edgegraft.graph import Layout
    >>> layout = Layout([2, 2, 2], [(0, 1), (1, 2)])
    >>> engine = CountedPropagation()
    >>> theta = np.zeros(layout.n_parameters)
    >>> _, state, _ = engine.run(theta, engine.init(layout))
    >>> engine.pair_marginals(theta, state, np.array([(0, 2)]))[0]
    array([[0.25, 0.25],
           [0.25, 0.25]])
    >>> len(engine.updates)
    1
    """

    updates: list[int] = field(default_factory=list, compare=False, repr=False)

    def run(
        self, theta: Floats, state: MessageState, rng: np.random.Generator | None = None
    ) -> tuple[Marginals, MessageState, Info]:
        """Run, and note how many messages that took."""
        answer = super().run(theta, state, rng)
        self.updates.append(int((answer[2].diagnostics or {})["message_updates"]))
        return answer

    def pair_marginals(self, theta: Floats, state: MessageState, edges: Edges) -> PairTables:
        """Return joint marginals of any pairs."""
        pairs = np.asarray(edges, np.int64).reshape(-1, 2)
        layout = state.layout
        active = len(common_pairs(layout, np.sort(pairs, axis=1))[0]) > 0
        if self.pair_method != "product" or active or not len(pairs):
            return super().pair_marginals(theta, state, edges)
        if not is_current(state, theta):
            _, state, _ = self.run(theta, state)
        shapes = layout.states[pairs]
        offsets = table_offsets(shapes)
        sizes = np.diff(offsets)
        within = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], sizes)
        row, column = np.divmod(within, np.repeat(shapes[:, 1], sizes))
        first, second = np.repeat(layout.node_offset[pairs], sizes, axis=0).T
        values = state.beliefs[first + row] * state.beliefs[second + column]
        return PairTables(pairs, shapes, values, offsets)
