"""
Start in five minutes
=====================

You give the library a table of categorical columns; it returns a network of direct dependencies and
a model that you can query. Install with ``pip install "edgegraft[cli,plot,report]"``, or run ``make
demo`` in a checkout.

The table on this page is simulated, so that the correct network is known. Your own table may be a
pandas or polars frame, an Arrow table, a NumPy array, or the path of a CSV or Parquet file.
"""

from edgegraft import PairwiseMRF

level = ["low", "middle", "high"]
truth = PairwiseMRF.from_potentials(
    {
        "age": ["young", "middle", "old"],
        "education": level,
        "income": level,
        "smoker": ["no", "yes"],
        "exercise": ["rarely", "weekly", "daily"],
        "health": ["poor", "fair", "good"],
        "pet": ["none", "cat", "dog"],
    },
    edges={
        ("education", "income"): [[1.0, 0.0, -1.0], [0.0, 0.5, 0.0], [-1.0, 0.0, 1.0]],
        ("age", "income"): [[0.8, 0.0, -0.8], [0.0, 0.3, 0.0], [-0.4, 0.0, 0.4]],
        ("education", "smoker"): [[-0.4, 0.4], [0.0, 0.0], [0.5, -0.5]],
        ("smoker", "health"): [[-0.6, 0.0, 0.6], [0.6, 0.0, -0.6]],
        ("exercise", "health"): [[0.7, 0.0, -0.7], [0.0, 0.2, 0.0], [-0.7, 0.0, 0.7]],
        ("age", "exercise"): [[-0.5, 0.0, 0.5], [0.0, 0.0, 0.0], [0.5, 0.0, -0.5]],
    },
)
frame = truth.sample(3000, random_state=0).to_pandas()
frame.head()

# %%
# Learn
# -----
# Nothing needs tuning. The search adds edges until no pair of columns shows a dependence that the
# model does not explain; each edge is then tested, and those below the false discovery rate stay.

from edgegraft import GraftedMRF

network = GraftedMRF(random_state=0).fit(frame)
print(network.reason_)
for (i, j), strength in zip(network.edges_, network.edge_strengths_, strict=True):
    print(f"{frame.columns[i]} - {frame.columns[j]}: {strength:.2f}")

# %%
# These are the six edges of the true model, strongest first. ``pet`` correctly has none.
# ``edge_table_`` holds the test of each edge.

import pandas as pd

table = pd.DataFrame(network.edge_table_)
table[["first", "second", "strength", "statistic", "dof", "q_value", "kept"]].round(4)

# %%
# Look
# ----
# Thicker lines are stronger edges; colours mark groups of closely connected variables. The second
# picture shows one edge in detail: blue pairs of categories occur together more often than the rest
# of the model predicts, vermillion ones less often.

import matplotlib.pyplot as plt

from edgegraft.report import plot_edge, plot_network

_, ax = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
plot_network(network.model_, ax)

# %%
plot_edge(network.model_, "education", "income")

# %%
# Query
# -----
# The model is a joint distribution over all columns: you can condition on any of them and query any
# of the others. The answer names the inference engine that computed it.

answer = network.model_.marginals(given={"smoker": "yes", "exercise": "rarely"})
print({state: round(p, 2) for state, p in answer["health"].items()}, answer.engine.name)

# %%
# Dark ticks are the probabilities without the evidence.

from edgegraft.report import plot_marginals

plot_marginals(network.model_, ["health", "education"], given={"smoker": "yes"})

# %%
# Missing cells can be filled with the most likely completion of their row, and rows can be scored.

gaps = frame.head(3).astype(object)
gaps.loc[0, "income"] = gaps.loc[2, "health"] = None
network.impute(gaps)

# %%
print(f"mean log-pseudolikelihood per row: {network.score(frame):.3f} nats")

# %%
# Save
# ----
# A model is saved as one file with names and categories; it is never a pickle.

import tempfile
from pathlib import Path

from edgegraft import load

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "survey.edgegraft"
    network.save(path)
    print(load(path) == network.model_)

# %%
# The same from a shell, with a report that opens in any browser and works offline:
#
# .. code-block:: shell
#
#    edgegraft learn survey.csv -o survey.edgegraft --report survey.html
#    edgegraft query survey.edgegraft --given smoker=yes --of health
#
# Read next: :ref:`how the method works <sphx_glr_tutorials_guide_how_it_works.py>`, and, before you
# present a network to others, :ref:`what an edge means <sphx_glr_tutorials_guide_reading.py>`.
