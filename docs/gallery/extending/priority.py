"""
Add a priority
==============

Priorities determine which pairs are tested first. They never determine which pairs become edges:
the test does. A good order saves tests and a bad one costs time; if the search runs to its end,
both give a model that satisfies the same conditions.

The order is held by a :class:`~edgegraft.grafting.CandidateStream`. ``grow(..., counts=...)`` fills
it from the data (``priority="auto"``); without counts, pairs are drawn at random, as in the paper.
For your own order, begin a search, fill its stream, and continue it.
"""

import numpy as np

from edgegraft import PairCounts, pack
from edgegraft.datasets import make_scale_free
from edgegraft.grafting import BestChoice
from edgegraft.learn import Monitor, Problem, SearchState, Settings, grow, run_search
from edgegraft.objective import Penalty, Pseudolikelihood
from edgegraft.rank import rank_pairs

data = make_scale_free(60, n_states=3, n_rows=5000, random_state=1)
table = pack(data.X)
loss, counts = Pseudolikelihood(table), PairCounts(table)
settings = Settings(relaxed=False)


def grow_in_order(pairs):
    """Run the search with these pairs first, in their order, and the others at random."""
    growth = SearchState.begin(Problem(loss, Penalty(0.015, ridge=1e-3), settings))
    if pairs is not None:
        growth.stream.prioritise(pairs, np.arange(-len(pairs), 0))  # others have priority 0
        growth.ranked = True  # hubs are then not moved ahead of these pairs
    watch = Monitor(truth=data.edges)
    return run_search(growth, [watch]), watch.columns()


# %%
# Three orders of the first 300 pairs: the library's own ranking; mutual information, the classic
# choice; and domain knowledge, here the assumption that columns with close numbers belong together
# (which is wrong for these data).

from edgegraft.counts import mutual_information

every_pair = np.stack(np.triu_indices(60, 1), axis=1)
information = mutual_information(counts.pairs(every_pair))
closeness = -np.diff(every_pair, axis=1)[:, 0]


orders = {
    "the data (auto)": rank_pairs(counts, np.random.default_rng(0)).edges,
    "mutual information": every_pair[np.argsort(-information, kind="stable")[:300]],
    "closeness (unfounded)": every_pair[np.argsort(-closeness, kind="stable")[:300]],
    "random": None,
}

# %%
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(6.6, 3.8), layout="constrained")
colours = ("#0072b2", "#e69f00", "#d55e00", "#8a8a8a")
ends = {}
for (name, pairs), colour in zip(orders.items(), colours, strict=True):
    growth, trajectory = grow_in_order(pairs)
    ends[name] = growth
    tested, recall = trajectory["n_tables"], trajectory["recall"]
    ax.plot(tested, recall, color=colour, label=name, drawstyle="steps-post")
ax.set(xlabel="pairs tested", ylabel="recall of the true edges", ylim=(0, 1), xlim=(0, 1770))
ax.legend(frameon=False, loc="lower right")

# %%
# All end with (nearly) the same objective and differ only in the amount of work. Edges of nearly
# zero strength may differ within the tolerance.

for name, growth in ends.items():
    print(f"{name}: objective {growth.solution.info.objective:.4f}, {len(growth.graph)} edges")

# %%
# The stream has four more methods: ``freeze`` sets pairs aside until the queue is empty, ``boost``
# moves all pairs of some variables forward, ``remove`` removes pairs permanently (a way to *forbid*
# edges, which the certificate will count as violating), and ``restore`` returns them.

growth = SearchState.begin(Problem(loss, Penalty(0.015, ridge=1e-3), settings))
forbidden = data.edges[data.edges[:, 0] == 0]
growth.stream.remove(forbidden)
run_search(growth)
print(f"{len(forbidden)} true edges of x0 forbidden,", end=" ")
print(f"{growth.graph.contains(forbidden).sum()} of them active at the end")

# %%
# What to activate
# ----------------
# A search can use another rule: a subclass of :class:`~edgegraft.grafting.BestChoice` whose method
# selects from the reservoir. This one takes the best three edges, whether or not they share a
# column.


class BestThree(BestChoice):
    def select(self, edges, scores):
        return np.argsort(-np.asarray(scores), kind="stable")[:3]


growth = grow(loss, Penalty(0.015, ridge=1e-3), settings, rule=BestThree())
print(f"{len(growth.graph)} edges after {growth.n_activations} activations;", growth.reason)

# %%
# Current limits: ``GraftingSettings(priority=...)`` accepts only "auto" and "uniform"; your own
# order goes through ``SearchState`` as above, your own rule through ``grow``. Such a search has
# no checkpoint.
