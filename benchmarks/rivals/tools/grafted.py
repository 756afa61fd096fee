"""Our own tools: `GraftedMRF()` with defaults, and a model of all pairs for prediction.

The ranking contains only the edges that the search found. The second variant appends the other
pairs in the order of `edgegraft.rank.rank_pairs`. It was added after the first variant had ranked
worse than the mean-field baseline on ``scale-free-100``, so first places are judged without it.
"""

from __future__ import annotations

import numpy as np

from benchmarks.held_out_penalty import choose_penalty
from benchmarks.rivals.outcome import Codes, Floats, Outcome, Potentials
from edgegraft import GraftedMRF
from edgegraft.counts import PairCounts
from edgegraft.model import PairwiseMRF
from edgegraft.optimize import fit_parameters
from edgegraft.rank import rank_pairs
from edgegraft.table import PackedTable


def fit(codes: Codes, states: Codes, seed: int, threads: int) -> list[Outcome]:
    packed = PackedTable.from_codes(codes.astype(np.int64))
    found = GraftedMRF(n_jobs=threads, random_state=seed).fit(packed)
    table = found.edge_table_
    position = {name: i for i, name in enumerate(found.model_.names)}
    strengths = np.zeros((len(states), len(states)))
    for first, second, value in zip(
        table["first"], table["second"], table["search_norm"], strict=True
    ):
        i, j = position[first], position[second]
        strengths[i, j] = strengths[j, i] = value
    model = potentials(found.model_)
    edges = np.asarray(found.edges_)
    completed = with_the_rest(strengths, packed, threads)
    return [Outcome(strengths, edges, model), Outcome(completed, edges, model, variant="all pairs")]


def fit_rank(codes: Codes, states: Codes, seed: int, threads: int) -> list[Outcome]:
    """Rank all pairs without fitting, as the search does to order them."""
    packed = PackedTable.from_codes(codes.astype(np.int64))
    return [Outcome(with_the_rest(np.zeros((len(states), len(states))), packed, threads))]


def fit_dense(codes: Codes, states: Codes, seed: int, threads: int) -> list[Outcome]:
    """Fit all pairs with the penalty or ridge that predicts held-out rows best; there is no cut."""
    packed = PackedTable.from_codes(codes.astype(np.int64))
    chosen = choose_penalty(packed, n_jobs=threads, random_state=seed)
    model, _ = fit_parameters(
        packed, penalty=chosen.penalty, ridge=chosen.ridge, tol=1e-3, n_jobs=threads
    )
    strengths = np.zeros((len(states), len(states)))
    i, j = model.edges.T
    strengths[i, j] = strengths[j, i] = model.edge_strengths()
    return [Outcome(strengths, None, potentials(model))]


def potentials(model: PairwiseMRF) -> Potentials:
    layout, theta = model.layout, model.theta
    return Potentials(
        [layout.node(theta, i) for i in range(layout.n_variables)],
        {(i, j): layout.edge(theta, k) for k, (i, j) in enumerate(layout.edges.tolist())},
    )


def with_the_rest(strengths: Floats, packed: PackedTable, threads: int) -> Floats:
    """Return the ranking with all other pairs appended below the ranked ones."""
    n = len(strengths)
    rest = rank_pairs(PairCounts(packed, threads), np.random.default_rng(0), n * (n - 1) // 2)
    i, j = rest.edges.T
    ranked = strengths[strengths > 0.0]
    scale = 0.5 * (ranked.min() if len(ranked) else 1.0) / max(rest.strengths.max(), 1e-300)
    values = np.where(strengths[i, j] > 0.0, strengths[i, j], scale * rest.strengths)
    completed = np.zeros_like(strengths)
    completed[i, j] = completed[j, i] = values
    return completed
