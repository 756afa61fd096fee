"""
How the method works
====================

The model is a discrete pairwise Markov random field. Column ``i`` has a vector ``u_i`` over its
states, an edge ``(i, j)`` a table ``w_ij`` over the states of both::

    log p(x) = sum_i u_i(x_i) + sum_{(i,j) in E} w_ij(x_i, x_j) - log Z

Two columns without an edge are independent once all other columns are known. Learning means
finding the edges ``E`` and their tables. With ``n`` columns there are ``n (n - 1) / 2`` pairs; most
have no edge, so most of the work of fitting them all would be wasted.

The test
--------
Best-choice edge grafting (Chaabene and Huang, 2018) grows ``E`` from nothing. What it minimises is
a loss (here the negative log-pseudolikelihood of a row) with a penalty on whole tables::

    F = L + penalty * sum_e d_e ||w_e|| + ridge * ||w||^2

At the minimum, a pair outside the model satisfies ``s_e <= penalty``, where the *score* is the size
of the loss's gradient at a table of zeros, ``s_e = ||grad_e L|| / d_e``. A pair with
``s_e > penalty`` *violates* optimality: giving it a table would lower ``F``. So the test of a pair
needs its gradient alone, and nothing about the pairs that were never looked at.

The search
----------
::

    queue -- draw --> s_e > penalty? -- yes --> reservoir -- best --> active edges -- fit --+
      ^                     |                       |                                       |
      |                     no                 least, if full                               |
      |                     v                       |                                       |
      +---- refill ---- frozen pairs <--------------+            all scores change <--------+

Pairs are drawn in the order of their priorities. Those that pass the test wait in a *reservoir* of
bounded size, those that fail are *frozen* and come back when the queue is dry. After ``max_tests``
tests, the best of the reservoir become active, the model is fitted, and the scores of the
reservoir are taken again. No step costs time quadratic in the number of columns.
"""

import numpy as np

from edgegraft import PairCounts, pack
from edgegraft.datasets import make_scale_free
from edgegraft.learn import Settings, certify, grow
from edgegraft.objective import Penalty, Pseudolikelihood

data = make_scale_free(40, n_states=3, n_rows=5000, random_state=2)
table = pack(data.X)
n_pairs = 40 * 39 // 2
print(data)

# %%
# An *observer* is told of every step. This one notes in which state the pairs are, and takes a
# picture of the scores of all pairs at the start and at the end (for this page: a run never does).

every_pair = np.stack(np.triu_indices(40, 1), axis=1)


class PairStates:
    def __init__(self):
        self.rows, self.scores = [], {}

    def on_event(self, event, growth):
        stream = growth.stream
        self.rows.append(
            (
                len(growth.graph),
                len(growth.reservoir),
                stream.n_frozen,
                stream.n_prioritised,
                stream.n_unseen,
            )
        )
        if event.kind in ("start", "end"):
            at = growth.solution
            gradients = at.objective.edge_gradients(at.theta, at.state, every_pair)
            self.scores[event.kind] = growth.penalty.score(gradients)


watch = PairStates()
loss = Pseudolikelihood(table)
paper = Settings(
    relaxed=False,
    tol=1e-4,
    selectivity=0.5,
    max_touching=1,
    priority="uniform",
    requeue=False,
)
growth = grow(
    loss,
    Penalty(0.02, ridge=1e-3),
    paper,
    observers=[watch],
)
print(growth.reason)
print(f"{len(growth.graph)} active edges of {n_pairs} pairs, {growth.n_activations} activations")
print(certify(growth))

# %%
# The active set
# --------------
# Every pair is in one of five states. Unseen pairs are never stored; the run starts by filling its
# reservoir, then activates a few edges at a time, none of which touch each other.

import matplotlib.pyplot as plt

names = ("active", "reservoir", "frozen", "queued", "unseen")
colours = ("#0072b2", "#e69f00", "#b0b7bf", "#d9dee3", "#eef1f4")
states = np.array(watch.rows).T

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.stackplot(np.arange(states.shape[1]), states, labels=names, colors=colours)
ax.set(xlabel="event (start, then one an activation)", ylabel="pairs", ylim=(0, n_pairs))
ax.margins(x=0)
figure.legend(loc="outside right center", reverse=True, frameon=False)

# %%
# Why fitting between activations matters
# ---------------------------------------
# At the start the model has no edges, and every dependence counts as unexplained: pairs that only
# depend *through* others score high as well. Once the edges on the path between them are fitted,
# their scores fall below the penalty, and they never enter. A ranking made once, before anything
# is fitted, cannot tell the two apart. (Active edges end at the horizontal line or, with a ridge, a
# little above it: there the gradient balances the penalty.)

true = (every_pair[:, None] == data.edges).all(axis=2).any(axis=1)
start, end = watch.scores["start"], watch.scores["end"]

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.scatter(start[~true], end[~true], s=12, color="#d55e00", label="no true edge")
ax.scatter(start[true], end[true], s=12, color="#0072b2", label="true edge")
ax.axhline(growth.penalty.penalty, color="#444c54", linewidth=1)
ax.axvline(growth.penalty.penalty, color="#444c54", linewidth=1)
ax.set(xscale="log", xlabel="score at the start", ylabel="score at the end", ylim=(0, None))
ax.legend(frameon=False)

passed = (start > growth.penalty.penalty) & ~true
print(f"{passed.sum()} pairs without a true edge violate at the start,")
print(
    f"{(growth.graph.contains(every_pair) & ~true).sum()} of all such pairs are active at the end"
)

# %%
# Why a small reservoir is enough
# -------------------------------
# The reservoir stands in for the search over all pairs that pass the test. If ``|R|`` pairs are
# taken at random from ``C``, the best of them has the expected rank ``(C + 1) / (|R| + 1)``. This
# is the paper's simulation, drawn again: 400 variables, so ``C`` is 79,800, and 100 trials a size.

C, trials = 400 * 399 // 2, 100
sizes = np.arange(1, 501)
rng = np.random.default_rng(0)
best = np.array(
    [
        [rng.choice(C, size, replace=False, shuffle=False).min() + 1 for _ in range(trials)]
        for size in sizes
    ]
)
expected = (C + 1) / (sizes + 1)

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
ax.fill_between(sizes, best.min(axis=1), best.max(axis=1), color="#d9e8f3", label="range")
ax.plot(sizes, best.mean(axis=1), color="#0072b2", linewidth=1, label=f"average of {trials} trials")
ax.plot(sizes, expected, color="#d55e00", linestyle="--", label="(C + 1) / (|R| + 1)")
ax.set(yscale="log", xlabel="size of the reservoir", ylabel="rank of its best pair", xlim=(1, 500))
ax.legend(frameon=False)

for size in (1, 10, 100, 500):
    found = best[size - 1].mean()
    print(f"|R| = {size}: average {found:,.0f}, expected {expected[size - 1]:,.0f} of {C:,}")

# %%
# A hundred candidates already put the best of them among the first percent; beyond, little is
# gained. The formula says nothing of *how good* that pair is, and nothing of the pairs that the
# reservoir never sees. So a run ends with a certificate, above: the pairs outside the model are
# scored once more at the fitted parameters, and it is counted how many still violate.
#
# What is different here
# ----------------------
# The run above follows the paper. By default the library does some things differently, each with
# its reason in :doc:`Design </design>`:
#
# - Priorities come from the data (one regularised inverse of correlations) instead of at random.
# - Node vectors are not penalised, and the weights ``d_e`` make chance equal for all pairs.
# - The search is *relaxed*: the penalty decides what may enter, and does not shrink what has.
# - Every edge is tested at the end, and those above the false discovery rate are cut.

from edgegraft.learn import discover

found = discover(table)
kept = set(map(tuple, found.model.edges.tolist()))
true_edges = set(map(tuple, data.edges.tolist()))
print(f"{len(kept & true_edges)} of {len(true_edges)} true edges, {len(kept - true_edges)} false")
print("pairs tested before the first 50 edges were in, by random order and by the data's order:")
ranked = Settings(relaxed=False, tol=1e-4)
for run in (growth, grow(loss, Penalty(0.02, ridge=1e-3), ranked, counts=PairCounts(table))):
    trace = run.trace()
    print(trace["n_tables"][np.argmax(trace["n_edges"] >= 50)])
