"""An inference engine: copy this file, and replace what `run` and `pair_marginals` do.

This one sums over all states of all variables, so its answers are exact and its graphs tiny. It
takes part in ``tests/protocol/test_engines.py``, as yours should.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgegraft.core import Layout, PairTables
from edgegraft.core.checks import check_edges, check_theta
from edgegraft.core.pairs import table_offsets
from edgegraft.core.types import Edges, Floats
from edgegraft.errors import ModelError, TreewidthError
from edgegraft.inference import Capabilities, Info, Marginals

MAX_STATES = 1 << 16  # of the whole model: a budget of memory


class EnumerationState(NamedTuple):
    """What is carried from run to run; `run` returns a new one and changes none."""

    layout: Layout
    codes: np.ndarray  # every state of the model, a row each
    p: Floats  # their probabilities under the last parameters


class Enumeration:
    """Exact answers for tiny models."""

    capabilities = Capabilities("enumeration", True, "exact", "exact")

    def init(self, layout: Layout) -> EnumerationState:
        """Return a cold state for a graph; refuse one that is too large."""
        size = int(np.prod(layout.states, dtype=float))
        if size > MAX_STATES:
            raise TreewidthError(f"{size:,} states; enumeration takes {MAX_STATES:,} at most")
        codes = np.indices(tuple(layout.states)).reshape(layout.n_variables, size).T
        return EnumerationState(layout, codes, np.full(size, 1.0 / size))

    def grow(self, state: EnumerationState, layout: Layout) -> EnumerationState:
        """Return a state for another graph over the same variables."""
        return state._replace(layout=layout)

    def run(
        self, theta: Floats, state: EnumerationState, rng: np.random.Generator | None = None
    ) -> tuple[Marginals, EnumerationState, Info]:
        """Return the marginals, the state for the next run, and how the run went."""
        layout, codes = state.layout, state.codes
        theta = check_theta(theta, layout)
        scores = np.zeros(len(codes))
        for i in range(layout.n_variables):
            scores += layout.node(theta, i)[codes[:, i]]
        for k, (i, j) in enumerate(layout.edges):
            scores += layout.edge(theta, k)[codes[:, i], codes[:, j]]
        largest = scores.max()
        if largest == -np.inf:
            raise ModelError("no state of the model is possible")
        log_z = float(largest + np.log(np.exp(scores - largest).sum()))
        after = state._replace(p=np.exp(scores - log_z))
        nodes = [
            np.bincount(codes[:, i], after.p, layout.states[i]) for i in range(layout.n_variables)
        ]
        pairs = self.pair_marginals(theta, after, layout.edges).values
        marginals = Marginals(np.concatenate([*nodes, pairs]), log_z)
        return marginals, after, Info(True, 1, 0.0)

    def pair_marginals(self, theta: Floats, state: EnumerationState, edges: Edges) -> PairTables:
        """Return the joint tables of any pairs, edges of the graph or not."""
        edges = check_edges(edges, state.layout.n_variables)
        shapes = state.layout.states[edges]
        tables = [np.zeros(0)]
        for (i, j), (s, t) in zip(edges, shapes, strict=True):
            cells = state.codes[:, i] * t + state.codes[:, j]
            tables.append(np.bincount(cells, state.p, s * t))
        return PairTables(edges, shapes, np.concatenate(tables), table_offsets(shapes))
