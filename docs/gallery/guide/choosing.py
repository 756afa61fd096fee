"""
Choosing objective and engine
=============================

Two choices deserve attention: what is fitted (the *objective*), and how queries are answered (the
*inference engine*). The defaults, pseudolikelihood and ``"auto"``, suit nearly all tables.

The objective
-------------

.. list-table::
   :header-rows: 1
   :widths: 16 42 42

   * -
     - pseudolikelihood (default)
     - likelihood
   * - what it is
     - the sum of the losses of predicting each column from all others
     - the probability of whole rows
   * - needs
     - the rows
     - pair counts and an engine that computes ``log Z``
   * - cost of a fit
     - grows with rows and edges
     - independent of the rows; one run of the engine per evaluation
   * - reliable
     - always convex, never approximate; consistent for the true graph
     - exact with ``exact``, approximate with ``bp``, a bound with ``trw``
   * - weak point
     - many missing cells: a missing neighbour is omitted from the prediction
     - dense graphs, for which no engine is both exact and affordable
   * - use it for
     - networks, large tables, dense graphs
     - small or tree-like networks, very many rows, many missing cells

On a table that suits both, they find the same edges and predict rows equally well.
"""

from time import perf_counter

import numpy as np

from edgegraft import GraftedMRF, GraftingSettings
from edgegraft.datasets import make_chain

data = make_chain(12, n_states=3, n_rows=6000, random_state=1)
train, test = data.X[:4000], data.X[4000:]
for objective in ("pseudolikelihood", "likelihood"):
    began = perf_counter()
    network = GraftedMRF(search=GraftingSettings(objective=objective), random_state=0).fit(train)
    seconds = perf_counter() - began
    right = sorted(network.edges_.tolist()) == data.edges.tolist()
    likelihood = network.model_.log_likelihood(test).rows.mean()
    print(f"{objective}: true edges {right}, {likelihood:.4f} nats per new row, {seconds:.2f} s")

# %%
# A network, or predictions
# -------------------------
#
# A network omits every edge for which the rows give no proof. That makes predictions worse if each
# column depends a little on most others, as the pixels of handwritten digits do. With ``fdr=None``
# the model keeps all edges that the search found. With ``aim="prediction"`` it has all pairs that
# help to predict rows held out for the purpose, and ``edges_`` is still the network.

from edgegraft.datasets import load_digits

pixels = (load_digits().X > 7).astype(int)
pixels = pixels[:, (pixels.mean(axis=0) > 0.01) & (pixels.mean(axis=0) < 0.99)]
known, new = pixels[:1300], pixels[1300:]
models = {
    "the network": GraftedMRF(random_state=0).fit(known).model_,
    "all edges of the search": GraftedMRF(fdr=None, random_state=0).fit(known).model_,
    "for prediction": GraftedMRF(aim="prediction", random_state=0).fit(known).model_,
}
for name, model in models.items():
    score = -model.pseudo_log_likelihood(new).mean()
    print(f"{name}: {model.n_edges} edges, {score:.2f} nats per new row")

# %%
# Fewer nats are better. Use the network to understand a table, and the model for prediction to
# impute and score its rows. Both answer the same queries, but exact inference is not possible with
# thousands of edges.
# :doc:`/rivals` has the same comparison on fourteen tables.
#
# The engine
# ----------
#
# .. list-table::
#    :header-rows: 1
#    :widths: 12 30 30 28
#
#    * - name
#      - what it does
#      - what the answers are
#      - cost
#    * - ``exact``
#      - eliminates variables, one table each
#      - exact
#      - ``states ** (treewidth + 1)``: negligible on trees, refused on dense graphs
#    * - ``bp``
#      - passes messages along edges until they converge
#      - exact on trees; good if couplings are weak or loops are long; ``log Z`` is the Bethe
#        approximation, which is not a bound
#      - a few sweeps over the edges
#    * - ``trw``
#      - passes messages with edge weights from random spanning trees
#      - has a single optimum, so it converges when ``bp`` does not; ``log Z`` is an upper bound;
#        marginals are too uniform if couplings are strong
#      - several times ``bp``
#    * - ``gibbs``
#      - samples with parallel chains
#      - correct in the limit, noisy; reports R-hat and effective sample size; no ``log Z``
#      - chains times sweeps, the most expensive
#    * - ``auto``
#      - ``exact`` if a run takes less than about 30 s and fits in memory, otherwise ``bp``, and
#        ``trw`` if that does not converge; ``gibbs`` if its chains contradict them
#      - the answer names the engine
#      -
#
# Every engine, and every answer, carries this description.

from edgegraft.inference import make_engine

for name in ("exact", "bp", "trw", "gibbs"):
    print(make_engine(name).capabilities)

# %%
# How large are the errors? A grid of 8 x 8 binary variables with couplings of random sign is small
# enough for exact inference and has the short loops that are difficult for message passing. The
# plot shows the largest error of a marginal as the couplings grow:

import warnings

import matplotlib.pyplot as plt

from edgegraft import PairwiseMRF
from edgegraft.datasets import make_grid
from edgegraft.errors import ConvergenceWarning

grid = make_grid(8, 8, n_rows=1, couplings="ising", coupling_range=(1.0, 1.0), random_state=3).model
n_node_values = int(grid.layout.node_offset[-1])
scales = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0])
errors = {name: [] for name in ("bp", "trw", "gibbs")}
gaps = {name: [] for name in ("bp", "trw")}
failed = []

for scale in scales:
    theta = grid.theta.copy()
    theta[n_node_values:] *= scale
    model = PairwiseMRF(grid.schema, grid.edges, theta)
    exact, log_z = model.marginals(engine="exact"), float(model.log_partition(engine="exact"))
    for name, found in errors.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            answer = model.marginals(engine=name)
            if name in gaps:
                gaps[name].append(float(model.log_partition(engine=name)) - log_z)
        found.append(max(abs(answer.array(v) - exact.array(v)).max() for v in model.names))
        if caught:
            failed.append((name, scale, found[-1]))

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
colours = {"bp": "#0072b2", "trw": "#d55e00", "gibbs": "#009e73"}
for name, found in errors.items():
    left.plot(scales, found, marker="o", color=colours[name], label=name)
for _, scale, error in failed:
    left.plot(scale, error, "x", color="#222222", markersize=10, zorder=3)
left.set(xlabel="coupling", ylabel="largest error of a marginal", yscale="log")
left.set_title("crosses: the answer warned that it had not converged", fontsize=9)
left.legend(frameon=False)
for name, found in gaps.items():
    right.plot(scales, found, marker="o", color=colours[name], label=name)
right.axhline(0, color="#222222", linewidth=1)
right.set(xlabel="coupling", ylabel="log Z minus the exact one")
right.set_title("trw bounds from above, bp is on either side", fontsize=9)
right.legend(frameon=False)

# %%
# With weak couplings all engines are good, and ``bp`` is the best of the fast ones. With strong
# couplings ``bp`` may converge far from the truth, as it did here without a warning: convergence is
# not correctness. If accuracy matters, query a second engine. Sampling is then the better check,
# and it warns if its chains mix too slowly to be trusted.
#
# A request that cannot be fulfilled is refused before any work, with the reason and a remedy. The
# memory of exact inference follows from the graph alone:

from edgegraft.datasets import make_scale_free
from edgegraft.errors import TreewidthError
from edgegraft.inference import ExactEngine

dense = make_scale_free(120, n_states=5, n_rows=1, burn_in=1, random_state=0)
print(ExactEngine().estimate(grid.layout).nbytes, "bytes for the grid")
try:
    ExactEngine().init(dense.layout)
except TreewidthError as error:
    print(error)

# %%
# The likelihood needs ``log Z``, which Gibbs sampling does not compute:

try:
    GraftingSettings(objective="likelihood", inference="gibbs")
except ValueError as error:
    print(error)

# %%
# If a model is too dense for exact inference, ``log_partition()`` estimates ``log Z`` by annealed
# importance sampling, with a standard error and the tree-reweighted upper bound.

model = dense.model
print(model.log_partition(random_state=0))
