"""pxpy: a Chow-Liu tree with closed-form parameters."""

from __future__ import annotations

import numpy as np
import pxpy

from benchmarks.rivals.outcome import Codes, Outcome, Potentials, mutual_information_of


def fit(codes: Codes, states: Codes, seed: int, threads: int) -> list[Outcome]:
    rows = np.ascontiguousarray(codes, dtype=np.uint16)
    model = pxpy.train(data=rows, graph=pxpy.GraphType.auto_tree, iters=0)
    pairs = np.array(model.graph.edgelist, dtype=np.int64)
    weights, first = np.array(model.weights), 0
    strengths = np.zeros((len(states), len(states)))
    tables = {}
    for i, j in pairs.tolist():
        shape = states[[i, j]]
        table = weights[first : first + shape.prod()].reshape(shape)
        first += int(shape.prod())
        tables[min(i, j), max(i, j)] = table if i < j else table.T
        strengths[i, j] = strengths[j, i] = mutual_information_of(codes[:, i], codes[:, j], shape)
    nodes = [np.zeros(s) for s in states.tolist()]  # pxpy has no node vectors
    edges = np.array(sorted(tables), np.int64).reshape(-1, 2)
    return [Outcome(strengths, edges, Potentials(nodes, tables))]
