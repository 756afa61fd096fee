"""Gradients of pairs from bit planes, beside those of the residuals of all rows."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.core import Layout
from edgegraft.core.pairs import all_pairs
from edgegraft.objective import block_sums, scoring
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.table import PackedTable
from edgegraft.table.blocks import TableRows

STATES = np.array([2, 2, 3, 5, 2, 1, 4, 2, 3, 2])
EDGES = [(0, 1), (0, 2), (1, 2), (2, 3), (4, 5), (5, 6), (6, 9)]
N_ROWS = 1000  # not a multiple of 64: the last word of a plane is not full


@pytest.fixture
def small_tables(monkeypatch):
    monkeypatch.setattr(block_sums, "MIN_CELLS", 0)


def _codes():
    codes = np.random.default_rng(0).integers(0, STATES, (N_ROWS, len(STATES)))
    codes[0] = STATES - 1
    return codes


def _gradients(edges, n_jobs=1, layout=None):
    layout = layout or Layout(STATES, EDGES)
    theta = np.random.default_rng(1).normal(size=layout.n_parameters)
    loss = Pseudolikelihood(PackedTable.from_codes(_codes()), n_jobs=n_jobs)
    return loss.edge_gradients(theta, loss.init(layout), edges).values


def _asked():
    """Return all pairs, edges among them, in no order, some turned and some twice."""
    pairs = np.random.default_rng(2).permutation(all_pairs(len(STATES)))
    return np.concatenate((pairs[:20, ::-1], pairs[10:]))


def _plain_gradients(edges):
    """Return the same by NumPy, from the residuals of every row."""
    layout, codes = Layout(STATES, EDGES), _codes()
    theta = np.random.default_rng(1).normal(size=layout.n_parameters)
    shown = [np.eye(s)[codes[:, i]] for i, s in enumerate(STATES)]
    logits = [np.tile(layout.node(theta, i), (N_ROWS, 1)) for i in range(len(STATES))]
    for k, (i, j) in enumerate(layout.edges):
        table = layout.edge(theta, k)
        logits[i] += shown[j] @ table.T
        logits[j] += shown[i] @ table
    left = [
        x - np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        for x, z in zip(shown, logits, strict=True)
    ]
    tables = [-(left[i].T @ shown[j] + shown[i].T @ left[j]) / N_ROWS for i, j in edges]
    return np.concatenate([table.ravel() for table in tables])


@pytest.mark.usefixtures("small_tables")
def test_planes_give_what_the_residuals_give():
    np.testing.assert_allclose(_gradients(_asked()), _plain_gradients(_asked()), atol=1e-13)


@pytest.mark.usefixtures("small_tables")
def test_hubs_have_residuals_beside_counts(monkeypatch):
    monkeypatch.setattr(block_sums, "_MAX_JOINT", 6)
    monkeypatch.setattr(block_sums, "_MOSTLY", 0.5)
    rows = TableRows(PackedTable.from_codes(_codes()))
    counted = block_sums.counted_targets(rows, Layout(STATES, EDGES))
    assert not counted[2]  # its neighbours have twenty joint states
    assert counted[[0, 1, 3]].all()
    np.testing.assert_allclose(_gradients(_asked()), _plain_gradients(_asked()), atol=1e-13)


@pytest.mark.usefixtures("small_tables")
def test_threads_do_not_change_a_bit():
    one, three = _gradients(_asked()), _gradients(_asked(), n_jobs=3)
    np.testing.assert_array_equal(one, three)


@pytest.mark.usefixtures("small_tables")
def test_weights_and_missing_cells_need_residuals():
    codes, layout = _codes(), Layout(STATES, EDGES)
    table = PackedTable.from_codes(codes)
    assert block_sums.counted_targets(TableRows(table), layout).all()
    weighted = TableRows(table, np.full(N_ROWS, 2.0))
    assert not block_sums.counted_targets(weighted, layout).any()
    codes[3, 4] = -1
    gaps = TableRows(PackedTable.from_codes(codes))
    assert not block_sums.counted_targets(gaps, layout).any()


def test_small_tables_and_dense_graphs_are_left_alone(monkeypatch):
    def refuse(*_):
        raise AssertionError("counted")

    monkeypatch.setattr(scoring, "add_counted", refuse)
    _gradients(_asked())
    monkeypatch.setattr(block_sums, "MIN_CELLS", 0)
    _gradients(_asked(), layout=Layout(STATES, all_pairs(len(STATES))))
    with pytest.raises(AssertionError, match="counted"):
        _gradients(_asked())
