"""pyGMs: Chow-Liu trees for any states, and l1 regressions for binary variables."""

from __future__ import annotations

import numpy as np

from benchmarks.rivals.outcome import Codes, Outcome, Potentials, mutual_information_of, pairs_of


def fit_tree(codes: Codes, states: Codes, seed: int, threads: int) -> list[Outcome]:
    from pygms.misc import fit_chowliu

    model = fit_chowliu(codes.astype(np.int64))
    floor = 0.5 / len(codes)  # as in `tree_potentials`
    nodes = [np.zeros(s) for s in states.tolist()]
    tables = {}
    strengths = np.zeros((len(states), len(states)))
    for factor in model.factors:
        scope = [int(v) for v in factor.vars]
        logs = np.log(np.maximum(np.asarray(factor.table, dtype=np.float64), floor))
        if len(scope) == 1:
            nodes[scope[0]] += logs
        elif len(scope) == 2:
            i, j = scope  # pyGMs keeps the variables of a factor sorted
            tables[i, j] = logs
            shared = mutual_information_of(codes[:, i], codes[:, j], states[[i, j]])
            strengths[i, j] = strengths[j, i] = shared
    edges = np.array(sorted(tables), np.int64).reshape(-1, 2)
    return [Outcome(strengths, edges, Potentials(nodes, tables))]


def fit_l1(codes: Codes, states: Codes, seed: int, threads: int) -> list[Outcome]:
    from pygms.ising import fit_logregL1

    model = fit_logregL1(codes.astype(np.int64))
    # pyGMs adds the factors of both directions, so couplings are twice their mean.
    couplings = np.asarray(model.L.todense()) / 2.0
    fields = np.asarray(model.h)
    adjacent = couplings != 0.0
    spins = np.array([[1.0, -1.0], [-1.0, 1.0]])
    tables = {(int(i), int(j)): couplings[i, j] * spins for i, j in pairs_of(adjacent)}
    nodes = [np.array([-h, h]) for h in fields]
    return [Outcome(np.abs(couplings), pairs_of(adjacent), Potentials(nodes, tables))]
