"""Chow-Liu tree with pgmpy."""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
from pgmpy.estimators import TreeSearch
from pgmpy.models import DiscreteBayesianNetwork
from pgmpy.parameter_estimator import DiscreteBayesianEstimator

from benchmarks.rivals.outcome import Codes, Outcome, tree_potentials


def fit(codes: Codes, states: Codes, seed: int, threads: int) -> list[Outcome]:
    logging.getLogger("pgmpy").setLevel(logging.ERROR)
    frame = pd.DataFrame(codes.astype(np.int64))
    tree = TreeSearch(frame, root_node=0, n_jobs=threads).estimate(show_progress=False)
    network = DiscreteBayesianNetwork(tree.edges())
    network.add_nodes_from(frame.columns)
    names = {i: list(range(s)) for i, s in enumerate(states.tolist())}
    prior = DiscreteBayesianEstimator(names, equivalent_sample_size=1, n_jobs=threads)
    network = network.fit(frame, estimator=prior)
    parents, tables = [], []
    for i in range(len(states)):
        table = network.get_cpds(i)
        parent = next(iter(network.get_parents(i)), None)
        parents.append(parent)
        tables.append(table.get_values().T)
    return [tree_potentials(parents, tables, codes, states)]
