"""Rows, networks and verdicts for the tests of the judge."""

from __future__ import annotations

import numpy as np

from edgegraft.conditional.features import Features
from edgegraft.conditional.judge import Judge, Network, Verdicts
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.core import Layout
from edgegraft.model import PairwiseMRF
from edgegraft.objective import Penalty, Pseudolikelihood
from edgegraft.optimize import Stopping, minimize
from edgegraft.table import PackedTable, Schema, Variable

TRIANGLE = [(0, 1), (0, 2), (1, 2)]


def schema_of(states, kinds=None):
    """Return a schema; all columns are nominal by default."""
    return Schema(
        Variable(f"x{i}", tuple(range(s)), kind=kind)
        for i, (s, kind) in enumerate(zip(states, kinds or ["nominal"] * len(states), strict=True))
    )


def rows_of(codes, states=None, kinds=None, weights=None, **options):
    """Return rows of codes, -1 for missing cells; ordered columns have scores."""
    states = codes.max(axis=0) + 1 if states is None else states
    table = PackedTable.from_codes(codes, schema_of(np.asarray(states).tolist(), kinds))
    rows = ConditionalRows(table, weights, **options)
    if kinds is None:
        return rows
    margins = np.concatenate([column.margin for column in rows.columns])
    return ConditionalRows(table, weights, Features.of(table.schema, margins), **options)


def network_of(n, edges):
    """Return a network of edges."""
    return Network(n, np.asarray(edges, np.int64).reshape(-1, 2))


def verdicts_of(rows, edges, **options):
    """Return verdicts on the edges of a network, each beside the others."""
    network = network_of(len(rows.columns), edges)
    return Verdicts.of(Judge(rows, **options).ask(network, [(i, j) for i, j in edges]))


def side_by_side(draw, n_blocks, edges=TRIANGLE):
    """Return tables of as many columns next to each other, and edges within each."""
    tables = [draw() for _ in range(n_blocks)]
    size = tables[0].shape[1]
    every = [(k * size + i, k * size + j) for k in range(n_blocks) for i, j in edges]
    return np.concatenate(tables, axis=1), every


def fit_edges(table, edges, ridge=1e-3, weights=None):
    """Return the model of some edges."""
    layout = Layout(table.schema.n_states, edges)
    loss = Pseudolikelihood(table, weights=weights)
    found = minimize(loss, Penalty(0.0, ridge), layout, stopping=Stopping(1e-5, 500))
    return PairwiseMRF(table.schema, layout.edges, found.theta)
