"""Power by simulation: tables drawn from networks, and learned from."""

from __future__ import annotations

import warnings

import numpy as np

from edgegraft.conditional.judge import Judge, Network, Verdicts
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.config import Plan
from edgegraft.core import Layout
from edgegraft.core.pairs import pair_ids
from edgegraft.core.types import Floats, Integers
from edgegraft.datasets.graphs import erdos_renyi
from edgegraft.errors import DataError
from edgegraft.learn.discovery import discover
from edgegraft.model import PairwiseMRF
from edgegraft.study.group_rows import features_of
from edgegraft.study.power import FittedEdges, tested_study
from edgegraft.table import PackedTable, Schema

_MANY_ROWS = 20_000  # drawn for the sizes of a model's edges


def random_model(effect: float, n: int, n_edges: int, seed: list[int]) -> PairwiseMRF:
    """Return a random network of binary columns whose edges have this effect."""
    rng = np.random.default_rng(seed)
    edges = erdos_renyi(n, rng, n_edges=n_edges)
    layout, table = Layout(np.full(n, 2), edges), np.array([1.0, -1.0, -1.0, 1.0])
    coupling = np.arctanh(abs(effect)) * rng.choice([-1.0, 1.0], n_edges)
    theta = np.concatenate((np.zeros(2 * n), np.outer(coupling, table).ravel()))
    return PairwiseMRF(Schema.from_states(layout.states), edges, theta)


def drawn_study(model: PairwiseMRF, fdr: float | None, seed: int) -> FittedEdges:
    """Return the edges of a model with the sizes that they have in many rows drawn from it."""
    if not model.n_edges:
        raise DataError("the model has no edges to plan for: give assumptions instead")
    table = _drawn(model, _MANY_ROWS, np.random.default_rng([seed, 0]))
    features = features_of(table, np.ones(_MANY_ROWS))
    n, pairs = model.n_variables, [(i, j) for i, j in model.edges.tolist()]
    judge = Judge(ConditionalRows(table, features=features))
    found = Verdicts.of(judge.ask(Network(n, model.edges), pairs))
    names = [(model.names[i], model.names[j]) for i, j in pairs]
    degree = 2.0 * model.n_edges / n
    study = tested_study(names, found, _MANY_ROWS, n * (n - 1) // 2, fdr, degree)
    return FittedEdges(study, np.ones(model.n_edges, bool), None, model)


def simulated_power(
    models: list[PairwiseMRF], rows: Integers, fdr: float, n: int, seed: int
) -> Floats:
    """Return the share of the models' edges that are found, by numbers of rows."""
    out = np.zeros(len(rows))
    for k, n_rows in enumerate(rows.tolist()):
        for run in range(n):
            model = models[run % len(models)]
            table = _drawn(model, n_rows, np.random.default_rng([seed, n_rows, run]))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = discover(table, Plan(fdr=fdr, random_state=run)).model.edges
            true = pair_ids(model.edges, model.n_variables)
            out[k] += np.isin(true, pair_ids(found, model.n_variables)).mean() / n
    return out


def _drawn(model: PairwiseMRF, n_rows: int, rng: np.random.Generator) -> PackedTable:
    return PackedTable.from_codes(model.sample_codes(n_rows, random_state=rng), model.schema)
