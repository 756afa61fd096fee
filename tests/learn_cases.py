"""Small learning problems, shared by the tests of the search."""

from __future__ import annotations

import numpy as np

from edgegraft.counts import PairCounts
from edgegraft.datasets import make_scale_free
from edgegraft.inference import ExactEngine
from edgegraft.learn import Settings, grow
from edgegraft.objective import Likelihood, Penalty, Pseudolikelihood
from edgegraft.table import PackedTable

PENALTY = Penalty(0.004, 1e-4)


def penalised(**settings):
    """Return settings of a penalised search with a tight tolerance."""
    return Settings(**{"relaxed": False, "tol": 1e-4} | settings)


def make_table(n=12, n_rows=2000, n_states=3, seed=1):
    """Return the rows of a small scale-free network."""
    data = make_scale_free(n, n_states, n_rows, random_state=seed, burn_in=200)
    return PackedTable.from_codes(data.X.astype(np.int64)), data.edges


def make_loss(table, name="pseudolikelihood", n_jobs=1):
    """Return a convex objective by name."""
    if name == "pseudolikelihood":
        return Pseudolikelihood(table, n_jobs=n_jobs)
    return Likelihood(PairCounts(table), ExactEngine())


class Log:
    """An observer that records the edges after each activation, and can stop the search."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.kinds, self.edges, self.removed = [], [], set()

    def on_event(self, event, growth):
        now = [tuple(e) for e in growth.graph.layout.edges.tolist()]
        if self.edges:
            self.removed |= set(self.edges[-1]) - set(now)
        self.kinds.append(event.kind)
        self.edges.append(now)
        return event.n_activations == self.stop_after

    def order(self):
        """Edges in the order of their first activation."""
        seen = {}
        for edges in self.edges:
            seen |= dict.fromkeys(edges)
        return list(seen)


def grow_logged(loss, penalty=PENALTY, counts=None, **settings):
    """Run a search, and return it with its log."""
    log = Log()
    return grow(loss, penalty, penalised(**settings), counts=counts, observers=[log]), log
