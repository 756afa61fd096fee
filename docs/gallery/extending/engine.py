"""
Add an inference engine
=======================

An engine is any object with the five members of
:class:`~edgegraft.inference.InferenceEngine`:

- ``capabilities``: a description of its answers, which every answer carries;
- ``init(layout)``: returns a cold state for a graph, or refuses the graph;
- ``grow(state, layout)``: returns the state for a graph with more edges, keeping what is still
  valid;
- ``run(theta, state, rng)``: returns marginals, the state for the next run, and how the run went;
- ``pair_marginals(theta, state, edges)``: returns joint tables of any pairs.

Parameters and marginals are flat vectors; a :class:`~edgegraft.core.Layout` holds the position of
each node vector and edge table. Engines have no state of their own, so a learner can work on two
models at once and resume. They do not handle evidence: the model is conditioned first.

Naive mean field
----------------
The example is the oldest variational method: it treats all variables as independent and updates
each in turn to the distribution that the others' means imply. Its ``log Z`` is a *lower* bound,
which no engine of the library computes.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax, xlogy

from edgegraft.core import Layout, PairTables
from edgegraft.errors import ModelError
from edgegraft.inference import Capabilities, Info, Marginals


class MeanFieldState(NamedTuple):
    layout: Layout
    ends: list  # per variable: (edge, other end, whether the variable is the first end)
    beliefs: list  # one vector per variable


@dataclass(frozen=True)
class MeanField:
    tol: float = 1e-8
    max_iter: int = 1000

    @property
    def capabilities(self):
        return Capabilities("mean field", False, "lower bound", "product of beliefs")

    def init(self, layout):
        ends = [[] for _ in range(layout.n_variables)]
        for k, (i, j) in enumerate(layout.edges):
            ends[i].append((k, j, True))
            ends[j].append((k, i, False))
        return MeanFieldState(layout, ends, [np.full(s, 1.0 / s) for s in layout.states])

    def grow(self, state, layout):
        return self.init(layout)._replace(beliefs=state.beliefs)  # same variables: start warm

    def run(self, theta, state, rng=None):
        if not np.isfinite(theta).all():
            raise ModelError("mean field cannot handle forbidden states: use 'exact' or 'gibbs'")
        layout, beliefs = state.layout, list(state.beliefs)
        n_iter, change = 0, np.inf
        while change > self.tol and n_iter < self.max_iter:
            n_iter, change = n_iter + 1, 0.0
            for i, ends in enumerate(state.ends):
                field = layout.node(theta, i).copy()
                for k, j, first in ends:
                    table = layout.edge(theta, k)
                    field += (table if first else table.T) @ beliefs[j]
                updated = np.exp(log_softmax(field))
                change = max(change, float(abs(updated - beliefs[i]).max()))
                beliefs[i] = updated
        pairs = [np.outer(beliefs[i], beliefs[j]).ravel() for i, j in layout.edges]
        values = np.concatenate(beliefs + pairs)
        entropy = -sum(float(xlogy(q, q).sum()) for q in beliefs)
        marginals = Marginals(values, float(theta @ values) + entropy)
        converged = change <= self.tol
        message = "" if converged else f"mean field still changes by {change:.1g}: raise max_iter"
        info = Info(converged, n_iter, change, message)
        return marginals, state._replace(beliefs=beliefs), info

    def pair_marginals(self, theta, state, edges):
        tables = [np.outer(state.beliefs[i], state.beliefs[j]) for i, j in edges]
        shapes = np.array([table.shape for table in tables], np.int64).reshape(-1, 2)
        offsets = np.concatenate(([0], np.cumsum(shapes.prod(axis=1))))
        values = np.concatenate([table.ravel() for table in tables])
        return PairTables(np.asarray(edges), shapes, values, offsets)


# %%
# Query with it
# -------------
# Wherever an engine can be given by name, an engine object can be given too. Answers carry its
# name.

from edgegraft.datasets import make_grid

model = make_grid(
    4, 4, n_rows=1, couplings="ising", coupling_range=(0.1, 0.2), random_state=0
).model
answer = model.marginals(given={"x0": 1}, engine=MeanField())
exact = model.marginals(given={"x0": 1}, engine="exact")
print(answer.engine)
print(max(abs(answer.array(name) - exact.array(name)).max() for name in answer))
print(model.pair_marginal("x0", "x5", engine=MeanField()).method)

# %%
# Together with the tree-reweighted upper bound it brackets ``log Z``, even if exact inference is
# not possible:

import matplotlib.pyplot as plt

from edgegraft import PairwiseMRF

scales = np.linspace(0.0, 4.0, 9)
bounds = {"mean field": MeanField(), "exact": "exact", "trw": "trw"}
found = {name: [] for name in bounds}
for scale in scales:
    theta = model.theta.copy()
    theta[model.layout.edge_offset[0] :] *= scale
    scaled = PairwiseMRF(model.schema, model.edges, theta)
    for name, engine in bounds.items():
        found[name].append(float(scaled.log_partition(engine=engine)))

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.fill_between(
    scales, found["mean field"], found["trw"], color="#d9e8f3", label="between the bounds"
)
ax.plot(scales, found["exact"], color="#222222", label="exact")
ax.set(xlabel="factor on the couplings", ylabel="log Z")
ax.legend(frameon=False)

# %%
# Check it
# --------
# An engine should agree with ``exact`` whenever it claims to be exact. Mean field is exact without
# edges, and its ``log Z`` must never exceed the true value:

bare = PairwiseMRF(model.schema, np.empty((0, 2), int), model.theta[: model.layout.edge_offset[0]])
print(np.isclose(float(bare.log_partition(engine=MeanField())), float(bare.log_partition())))
print(
    all(low <= true + 1e-9 for low, true in zip(found["mean field"], found["exact"], strict=True))
)

# %%
# In the repository, ``tests/protocol`` runs every engine on the same set of graphs. Add yours to
# its list, and its constructor to ``ENGINES`` in ``inference/auto.py`` if it should be available by
# name.
#
# Learn with it
# -------------
# The likelihood takes any engine that computes ``log Z``: pass
# ``Likelihood(PairCounts(table), engine)`` to :func:`~edgegraft.learn.grow`. The fit needs pair
# marginals *of edges* that can match those of the data. Naive mean field cannot provide them: its
# pairs are always independent, so no table that it fits explains a dependence. Learning needs a
# better engine. This one wraps another and counts its runs, which are the cost of learning with the
# likelihood.


class Counted:
    def __init__(self, engine):
        self.engine, self.n_runs = engine, 0

    def __getattr__(self, name):  # capabilities, init, grow, pair_marginals
        return getattr(self.engine, name)

    def run(self, theta, state, rng=None):
        self.n_runs += 1
        return self.engine.run(theta, state, rng)


from edgegraft import PairCounts, pack
from edgegraft.datasets import make_chain
from edgegraft.inference import ExactEngine
from edgegraft.learn import Settings, grow
from edgegraft.objective import Likelihood, Penalty

data = make_chain(8, n_states=3, n_rows=4000, random_state=0)
engine = Counted(ExactEngine())
growth = grow(Likelihood(PairCounts(pack(data.X)), engine), Penalty(0.02), Settings(relaxed=False))
print(f"{growth.reason}; {growth.n_activations} activations, {engine.n_runs} runs of the engine")
print("the true edges:", sorted(growth.model().edges.tolist()) == data.edges.tolist())

# %%
# Current limits: ``GraftedMRF`` takes engines by name only; use ``grow`` for your own. Only
# ``exact`` and ``bp`` answer ``map``.
