"""Quality of an outcome: its ranking, its cut, and its model on held-out rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.rivals.outcome import Codes, Outcome, Potentials

Figures = dict[str, Any]


def judge(outcome: Outcome, test: Codes, states: Codes, truth: NDArray[np.int64] | None) -> Figures:
    """Return every figure that the outcome allows."""
    found: Figures = {"variant": outcome.variant}
    if outcome.edges is not None:
        found["own_edges"] = len(outcome.edges)
    if truth is not None:
        found |= ranking_figures(outcome.strengths, truth)
        if outcome.edges is not None:
            found["f1_own_cut"] = f1(outcome.edges, truth)
    if outcome.model is not None:
        found["held_out"] = held_out(outcome.model, test, states)
    if outcome.conditionals is not None:
        logs = np.asarray(outcome.conditionals(test))
        found["held_out_conditionals"] = -float(logs.sum(axis=1).mean())
    return found


def ranking_figures(
    strengths: NDArray[np.floating[Any]], truth: NDArray[np.int64]
) -> dict[str, float]:
    """Return average precision and F1 at the true number of edges; unranked pairs are missed."""
    first, second = np.triu_indices(len(strengths), 1)
    values = strengths[first, second]
    order = np.argsort(-values, kind="stable")
    order = order[values[order] != 0.0]
    ranked = np.stack((first[order], second[order]), axis=1)
    hits = np.isin(keys(ranked), keys(truth))
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return {
        "average_precision": float((precision * hits).sum() / len(truth)),
        "f1_true_number": f1(ranked[: len(truth)], truth),
    }


def f1(edges: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    """Return the harmonic mean of precision and recall of a set of edges."""
    shared = len(np.intersect1d(keys(np.asarray(edges)), keys(truth)))
    return 2 * shared / max(len(edges) + len(truth), 1)


def keys(edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one number per edge, independent of its orientation."""
    ordered = np.sort(np.asarray(edges, np.int64).reshape(-1, 2), axis=1)
    return ordered[:, 0] * (1 << 32) + ordered[:, 1]


def held_out(model: Potentials, test: Codes, states: Codes) -> float:
    """Return the mean negative log-pseudolikelihood per row, in nats."""
    from edgegraft.core import Layout
    from edgegraft.model import PairwiseMRF
    from edgegraft.table import Schema

    edges = np.array(sorted(model.tables), np.int64).reshape(-1, 2)
    layout = Layout(states, edges)
    theta = np.zeros(layout.n_parameters)
    for i, vector in enumerate(model.nodes):
        layout.node(theta, i)[:] = vector
    for k, (i, j) in enumerate(edges.tolist()):
        layout.edge(theta, k)[:] = model.tables[i, j]
    mrf = PairwiseMRF(Schema.from_states(layout.states), edges, theta)
    return -float(mrf.pseudo_log_likelihood(codes=test).mean())
