"""
Export, and loading again
=========================

.. list-table::
   :header-rows: 1
   :widths: 18 44 38

   * - format
     - content
     - how to read it
   * - ``.edgegraft``
     - everything: names, categories, potentials, statistics of edges, details of the fit
     - :func:`edgegraft.load`, :func:`edgegraft.read_details`
   * - CSV, Parquet
     - the edges, strongest first, with additional columns of your own
     - any program that reads tables
   * - GraphML, GEXF
     - the network, for Gephi, Cytoscape, igraph
     - these programs
   * - UAI
     - the potentials, for solvers of the UAI competitions; no names
     - :func:`~edgegraft.io.model_from_uai`
   * - networkx
     - the network as a graph object
     -
   * - pgmpy
     - the model as a Markov network, with names and categories
     - :func:`~edgegraft.io.from_pgmpy`

Files are written under a temporary name and then renamed, so that they are complete or absent.
"""

import tempfile
from pathlib import Path

import pandas as pd

from edgegraft import GraftedMRF
from edgegraft.datasets import make_chain

folder = Path(tempfile.mkdtemp())
frame = pd.DataFrame(
    make_chain(6, n_states=3, n_rows=4000, random_state=0).X,
    columns=["age", "income", "tenure", "plan", "usage", "churn"],
)
network = GraftedMRF(random_state=0).fit(frame)
model = network.model_
model

# %%
# The library's own file
# ----------------------
# This is a safetensors file with a checksum. Loading it never runs code from the file. It can also
# hold numbers for each edge and notes about the fit.

import edgegraft

edges = pd.DataFrame(network.edge_table_).query("kept").set_index(["first", "second"])
order = [(model.names[i], model.names[j]) for i, j in model.edges]  # the model's own order
q_values = edges.loc[order, "q_value"].to_numpy()

model.save(
    folder / "survey.edgegraft",
    details={"source": "survey of 2024, wave 2", "rows": len(frame)},
    edge_columns={"q_value": q_values},
)
again = edgegraft.load(folder / "survey.edgegraft")
stored = edgegraft.read_details(folder / "survey.edgegraft")
print(again == model)
print(stored.details)
print(stored.edge_columns["q_value"])

# %%
# Tables and graph files
# ----------------------
# ``export`` chooses the format by suffix; ``.gz`` compresses. From a shell:
# ``edgegraft export survey.edgegraft survey.graphml``.

from edgegraft.io import FORMATS, export

print(FORMATS)
for suffix in FORMATS:
    export(model, folder / f"survey.{suffix}", edge_columns={"q_value": q_values})
pd.read_csv(folder / "survey.csv")

# %%
pd.read_parquet(folder / "survey.parquet").head(2)

# %%
# Programs that draw graphs read GraphML or GEXF, with strengths as edge attributes. So does
# networkx:

import networkx

graph = networkx.read_graphml(folder / "survey.graphml")
print(graph)

# %%
# UAI files contain no names: variables are called ``x0``, ``x1`` and so on. The distribution is the
# same.

from edgegraft.io import model_from_uai

bare = model_from_uai(folder / "survey.uai")
print(bare.names)
print(f"{float(model.log_partition()):.9f} {float(bare.log_partition()):.9f}")

# %%
# Objects of other libraries
# --------------------------
# A networkx graph, for graph algorithms:

from edgegraft.io import to_networkx

graph = to_networkx(model, {"q_value": q_values})
print(networkx.shortest_path(graph, "age", "churn"))
print(networkx.degree_centrality(graph)["plan"])

# %%
# A Markov network of pgmpy, and back. pgmpy stores potentials, not their logarithms, so each factor
# is scaled: the distribution is the same, the partition function is not.

from edgegraft.io import from_pgmpy, to_pgmpy

markov = to_pgmpy(model)
print(type(markov).__name__, len(markov.nodes()), "nodes", len(markov.edges()), "edges")

back = from_pgmpy(markov)
given = {"age": 0}
print(model.marginals(given).array("income").round(6))
print(back.marginals(given).array("income").round(6))

# %%
# An HTML report
# --------------
# ``write_report`` writes one HTML file with an interactive network, the strongest edges and the
# variables. It works offline and makes no network requests.

import matplotlib.pyplot as plt

from edgegraft.report import plot_network, write_report

write_report(folder / "survey.html", model, edge_columns={"q_value": q_values}, title="Survey")
print(f"{(folder / 'survey.html').stat().st_size:,} bytes")

_, ax = plt.subplots(figsize=(6, 1.6), layout="constrained")
plot_network(model, ax, colour_by=None)
