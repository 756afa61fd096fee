"""
Start in five minutes
=====================

You give the library a table of categorical columns; it returns a network of direct dependencies and
a model that you can query. Install with ``pip install "edgegraft[all]"``.

The table on this page is the survey that comes with the library: 2,000 people answer 21 questions
about work, sleep, health and company. It is simulated, so that the correct network is known. Your
own table may be a pandas or polars frame, an Arrow table, a NumPy array, or the path of a CSV,
Parquet, Excel or SPSS file.
"""

import pandas as pd

from edgegraft.datasets import load_survey

frame = pd.DataFrame(load_survey())
weights = frame.pop("weight")
frame.head()

# %%
# Learn
# -----
# Nothing needs tuning. The search adds edges until no pair of columns shows a dependence that the
# model does not explain; each edge is then tested, and those below the false discovery rate stay.

from edgegraft import GraftedMRF

network = GraftedMRF(random_state=0).fit(frame, sample_weight=weights)
print(network.reason_)
network.edges_frame().head(10).round(3)

# %%
# These are the strongest of 28 edges, with their tests. The survey was drawn from a model with the
# same 28; ``region`` correctly has none. Edges that were found and then cut are in
# ``edges_frame(kept=False)``.

# %%
# Look
# ----
# Thicker lines are stronger edges; colours mark groups of closely connected variables. The second
# picture shows one edge in detail: blue pairs of categories occur together more often than the rest
# of the model predicts, vermillion ones less often.

import matplotlib.pyplot as plt

from edgegraft.report import plot_edge, plot_network

_, ax = plt.subplots(figsize=(8, 5.2), layout="constrained")
plot_network(network.model_, ax)

# %%
plot_edge(network.model_, "stress", "sleep")

# %%
# Query
# -----
# The model is a joint distribution over all columns: you can condition on any of them and query any
# of the others. The answer names the inference engine that computed it.

answer = network.model_.marginals(given={"stress": 5, "screens": 5})
print({state: round(p, 2) for state, p in answer["sleep"].items()}, answer.engine.name)

# %%
# The evidence is grey; dark ticks are the probabilities without it.

from edgegraft.report import plot_marginals

plot_marginals(network.model_, ["sleep", "tired"], given={"stress": 5})

# %%
# Missing cells can be filled with the most likely completion of their row, and rows can be scored.

complete = network.impute(frame)
print(frame.isna().sum().sum(), "missing cells before,", complete.isna().sum().sum(), "after")

# %%
print(f"mean log-pseudolikelihood per row: {network.score(frame, sample_weight=weights):.3f} nats")

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
# The same from a shell: ``demo`` writes the survey to ``survey.csv``, learns from it, and writes a
# report that opens in any browser and works offline.
#
# .. code-block:: shell
#
#    edgegraft demo
#    edgegraft learn survey.csv --weights weight -o survey.edgegraft --report survey.html --force
#    edgegraft query survey.edgegraft --given stress=5 --of sleep
#
# Read next: :ref:`how the method works <sphx_glr_tutorials_guide_how_it_works.py>`, and, before you
# present a network to others, :ref:`what an edge means <sphx_glr_tutorials_guide_reading.py>`.
