"""
Reading a network honestly
==========================

An edge means that two columns depend on each other, **given all other columns of the table**. No
edge means that the other columns explain their dependence, or that there are too few rows to show
it. This page uses data with a known truth to show what you can and cannot conclude from that.

Direct and indirect
-------------------
In a chain ``a - b - c - d - e``, neighbours depend on each other directly, and all other pairs
through them. Measures of one pair at a time, such as mutual information, cannot distinguish the two
kinds. The network can.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from edgegraft import GraftedMRF, GraftingSettings, PairCounts, pack
from edgegraft.counts import mutual_information
from edgegraft.datasets import make_chain

rows = make_chain(
    5, n_rows=6000, couplings="ising", coupling_range=(0.7, 0.9), node_scale=0.2, random_state=5
).X
frame = pd.DataFrame(rows, columns=list("abcde"))

tables = PairCounts(pack(frame)).pairs(np.stack(np.triu_indices(5, 1), axis=1))
for (i, j), information in zip(tables.edges, mutual_information(tables), strict=True):
    print(f"{frame.columns[i]} {frame.columns[j]}: {2 * len(frame) * information:6.0f}")

# %%
# These are likelihood-ratio statistics of independence; above 3.8, a pair taken alone looks
# dependent at the 5 % level. All ten pairs do. The network has the four true edges:


def edges_of(network, names):
    return [f"{names[i]}-{names[j]}" for i, j in sorted(network.edges_.tolist())]


whole = GraftedMRF(random_state=0).fit(frame)
print(edges_of(whole, frame.columns))

# %%
# What was not measured
# ---------------------
# "All other columns" means those in the table. Without ``c``, the path through it becomes an edge
# ``b - d``. That is a true statement about the remaining columns, but not a direct dependence.

without = frame.drop(columns="c")
hidden = GraftedMRF(random_state=0).fit(without)
print(edges_of(hidden, without.columns))

from edgegraft.report import plot_network

figure, axes = plt.subplots(1, 2, figsize=(8, 1.8), layout="constrained")
for ax, network, title in zip(
    axes, (whole, hidden), ("all five columns", "c was not measured"), strict=True
):
    plot_network(network.model_, ax, colour_by=None, legend=False)
    ax.set_title(title, fontsize=10)

# %%
# A hidden cause of many columns is worse: each pair of its effects gets an edge, although none acts
# on another. A dense region of a network is a reason to look for a common cause.

from edgegraft.datasets import make_star

star = make_star(
    6, n_rows=6000, couplings="ising", coupling_range=(0.6, 0.8), node_scale=0.2, random_state=0
).X
effects = GraftedMRF(random_state=0).fit(star[:, 1:])
print(f"{len(effects.edges_)} edges among the 5 effects of a cause that was left out")

# %%
# Edges have no direction. The table does not contain which of two columns acts on the other, if
# either does.
#
# Which rows were kept
# --------------------
# Selection creates edges as well. Two columns that are independent in the population become
# dependent if rows were selected *because of* their values (respondents, admitted patients, users
# who stayed).

rng = np.random.default_rng(0)
people = pd.DataFrame(rng.integers(0, 3, (8000, 2)), columns=["talent", "looks"])
admitted = people[people["talent"] + people["looks"] >= 2]
for name, kept in (("all", people), ("admitted", admitted)):
    print(name, edges_of(GraftedMRF(random_state=0).fit(kept), people.columns))

# %%
# Strength is not certainty
# -------------------------
# The *strength* of an edge is how much its table makes the two columns depend on each other, on the
# scale of a correlation. The *p-value* states how surprising the data would be without the edge.
# With more rows the strength converges, and the p-value keeps falling. A weak edge in a large table
# can be certain but irrelevant; a strong one in a small table may be due to chance.

many = make_chain(3, n_rows=64000, couplings="ising", coupling_range=(0.08, 0.08), random_state=1).X
sizes = (250, 1000, 4000, 16000, 64000)
measured = []
for size in sizes:
    network = GraftedMRF(fdr=None, search=GraftingSettings(penalty=0.0), random_state=0).fit(
        many[:size]
    )
    found = pd.DataFrame(network.edge_table_)
    edge = found[(found["first"] == "x0") & (found["second"] == "x1")].iloc[0]
    measured.append((edge["strength"], edge["p_value"]))
strengths, p_values = np.array(measured).T

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
left.plot(sizes, strengths, marker="o", color="#0072b2")
left.set(xscale="log", xlabel="rows", ylabel="strength", ylim=(0, None))
right.plot(sizes, p_values, marker="o", color="#d55e00")
right.set(xscale="log", yscale="log", xlabel="rows", ylabel="p-value")

# %%
# How many are false
# ------------------
# ``edge_table_`` has a q-value for each edge, and ``fdr`` (0.005 by default) is the expected share
# of false edges among those kept, with every pair of columns counted as a test. It is an average,
# not a guarantee for your table, and it concerns the columns *of the table*: an edge from a hidden
# cause is not false in this sense. Tables of independent columns show what chance alone produces:

false = [
    len(GraftedMRF(random_state=0).fit(rng.integers(0, 3, (1000, 20))).edges_) for _ in range(10)
]
print(f"edges found in ten tables of 20 independent columns: {false}")

# %%
# Would it be found again?
# ------------------------
# A bootstrap tests the pairs on resampled rows. *Frequency* is the share of replicates that have
# the edge: how often another sample of as many rows would show it. An edge that just passed its
# test has a frequency of about one half, one with a q-value of 1e-6 one near 1. The interval is
# that of the strength.

small = make_chain(6, n_rows=400, couplings="ising", coupling_range=(0.15, 0.5), random_state=1).X
network = GraftedMRF(random_state=0).fit(small)
replicated = pd.DataFrame(network.bootstrap(small, 100))
replicated.round(2)

# %%
# Grey bars are pairs that occur in some replicates but not in the network. The longest is a true
# edge that is too weak to be found with 400 rows.

named = replicated["first"] + " - " + replicated["second"]
own = replicated["strength"].notna()
figure, (left, right) = plt.subplots(
    1, 2, figsize=(8, 0.9 + 0.35 * len(replicated)), sharey=True, layout="constrained"
)
left.barh(named, replicated["frequency"], color=np.where(own, "#0072b2", "#b0b7bf"))
left.set(xlabel="frequency in 100 replicates", xlim=(0, 1))
left.invert_yaxis()
right.errorbar(
    replicated["strength"][own],
    named[own],
    xerr=abs(replicated[["lower", "upper"]].sub(replicated["strength"], axis=0)[own]).to_numpy().T,
    fmt="o",
    color="#0072b2",
)
right.set(xlabel="strength, 95 % interval")

# %%
# Strengths are shrunk
# --------------------
# The last fit has a ridge, which pulls strengths towards zero. The automatic ridge has the weight
# of two rows and hardly matters. A large one does, and because a shrunken model leaves part of each
# dependence unexplained, an indirect edge may enter. Compare strengths within one fit, not across
# fits with different ridges.

for ridge in ("auto", 0.01, 0.1):
    strength = (
        GraftedMRF(search=GraftingSettings(ridge=ridge), random_state=0).fit(frame).edge_strengths_
    )
    print(f"ridge {ridge}: {np.round(strength, 2)}")

# %%
# Cells that are missing
# ----------------------
# The known cells of a row with missing cells are used. This is sound if cells are missing for
# reasons unrelated to their values. If a cell is missing because of its value (people with a high
# income do not report it), estimates are biased; if it is missing because of the values of two
# columns, spurious edges appear, as with selection. No method can detect this from the table alone.

independent = pd.DataFrame(rng.integers(0, 3, (8000, 2)), columns=["income", "debt"])
at_random = independent.mask(rng.random(independent.shape) < 0.2)
shy = independent.astype(float)
shy.loc[(shy["income"] == 2) & (shy["debt"] == 2), "debt"] = np.nan
for name, kept in (("missing at random", at_random), ("missing where both are high", shy)):
    print(name, edges_of(GraftedMRF(random_state=0).fit(kept), independent.columns))

# %%
# In short
# --------
# - An edge: dependence given the other columns of this table, in rows selected as these were.
# - No edge: explained by other columns, or not enough rows.
# - The strength measures how large a dependence is, the q-value whether there is one, the frequency
#   whether it would be found again.
# - Hidden causes, selection, and cells missing because of their values create edges that no
#   statistic reveals.
# - Report the number of rows, the omitted columns, ``fdr`` and the certificate.
