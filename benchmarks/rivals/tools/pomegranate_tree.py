"""Chow-Liu tree with pomegranate."""

from __future__ import annotations

import numpy as np
import torch
from pomegranate.bayesian_network import BayesianNetwork

from benchmarks.rivals.outcome import Codes, Outcome, tree_potentials


def fit(codes: Codes, states: Codes, seed: int, threads: int) -> list[Outcome]:
    torch.set_num_threads(threads)
    model = BayesianNetwork(algorithm="chow-liu", pseudocount=1.0)
    model.fit(torch.from_numpy(codes.astype(np.int64)))
    parents = [next(iter(above), None) for above in model.structure]
    tables = []
    for i, (parent, part) in enumerate(zip(parents, model.distributions, strict=True)):
        chances = np.asarray(part.probs[0].detach(), dtype=np.float64)
        tables.append(chances if parent is None else chances[: states[parent], : states[i]])
    return [tree_potentials(parents, tables, codes, states)]
