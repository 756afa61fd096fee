"""Missing cells drawn from a model, and tests of edges in rows with drawn cells."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft import GraftedMRF
from edgegraft.config import Plan
from edgegraft.core import Layout
from edgegraft.learn import completion, discover, fit_for_prediction
from edgegraft.learn.completion import Completion
from edgegraft.model import PairwiseMRF
from edgegraft.table import PackedTable, Schema, TableRows
from tests.judge_cases import fit_edges, rows_of, verdicts_of


def chain(n_rows, n=6, missing=0.0, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.empty((n_rows, n), np.int64)
    codes[:, 0] = rng.integers(0, 2, n_rows)
    for v in range(1, n):
        same = rng.random(n_rows) < 0.85
        codes[:, v] = np.where(same, codes[:, v - 1], 1 - codes[:, v - 1])
    codes[rng.random(codes.shape) < missing] = -1
    return codes


def test_drawn_cells_have_the_distribution_of_the_model_and_known_ones_stay():
    schema = Schema.from_states([2, 3, 2])
    layout = Layout(schema.n_states, [(0, 1), (1, 2)])
    rng = np.random.default_rng(0)
    model = PairwiseMRF(schema, layout.edges, rng.normal(size=layout.n_parameters))
    codes = np.tile([1, -1, -1], (20_000, 1))
    table = PackedTable.from_codes(codes, schema)
    filled = Completion(TableRows(table), True, rng).draw(model).table.codes()
    assert (filled[:, 0] == 1).all()
    shown = np.bincount(filled[:, 1] * 2 + filled[:, 2], minlength=6) / len(codes)
    logits = layout.edge(model.theta, 0)[1][:, None] + layout.edge(model.theta, 1)
    logits = logits + layout.node(model.theta, 1)[:, None] + layout.node(model.theta, 2)
    expected = np.exp(logits).ravel() / np.exp(logits).sum()
    np.testing.assert_allclose(shown, expected, atol=0.02)


def test_equal_rows_are_drawn_one_by_one():
    table = PackedTable.from_codes(np.array([[0, -1], [1, 0]]), Schema.from_states([2, 2]))
    completion = Completion(TableRows(table, [500.0, 1.0]), True, np.random.default_rng(0))
    assert len(completion.known) == 501
    model = PairwiseMRF(table.schema, np.empty((0, 2), int), np.zeros(4))
    drawn = completion.draw(model).table.codes()[:500, 1]
    assert 150 < drawn.sum() < 350


def test_without_drawn_cells_tests_are_as_ever_and_steps_lead_to_the_fit():
    codes, edges = chain(800), [(v, v + 1) for v in range(5)]
    told = rows_of(codes, drawn=np.zeros(codes.shape, bool))
    found, same = (verdicts_of(rows, edges) for rows in (rows_of(codes), told))
    np.testing.assert_allclose(found.statistic, same.statistic, rtol=1e-3)
    model = fit_edges(PackedTable.from_codes(codes), edges, ridge=1e-7)
    layout, off = model.layout, model.theta.copy()
    layout.edge(off, 2)[:] *= 0.7
    moved = off + completion._steps(told, layout, off, 1)
    tables = [layout.edge(theta, 2) for theta in (model.theta, off, moved)]
    fitted, before, after = (np.diff(np.diff(table, axis=0)).item() for table in tables)
    assert abs(after - fitted) < 0.2 * abs(before - fitted)


def test_drawn_cells_are_no_evidence():
    codes = chain(4000, n=2)
    drawn = np.zeros(codes.shape, bool)
    drawn[1000:, 1] = True
    found = [
        verdicts_of(rows, [(0, 1)]).statistic[0]
        for rows in (rows_of(codes, drawn=drawn), rows_of(codes[:1000]))
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_most_cells_may_be_missing_whatever_the_number_of_threads():
    table = PackedTable.from_codes(chain(6000, missing=0.75))
    found, same = (discover(table, Plan(n_jobs=n_jobs)) for n_jobs in (1, 3))
    assert np.array_equal(found.model.theta, same.model.theta)
    assert sorted(map(tuple, found.model.edges.tolist())) == [(v, v + 1) for v in range(5)]


def test_a_fit_with_drawn_cells_ends_and_is_resampled_as_any_other():
    rows = np.where((codes := chain(600, missing=0.2)) < 0, np.nan, codes)
    fitted = GraftedMRF(random_state=0).fit(rows)
    assert fitted.converged_
    assert fitted.reason_ == "no pair violates optimality"
    found = fitted.bootstrap(rows, 4)
    assert len(found["frequency"]) >= len(fitted.edges_)


def test_a_model_for_prediction_draws_missing_cells_itself():
    whole = chain(3000, n=8)
    rows = np.where(np.random.default_rng(1).random((1500, 8)) < 0.4, np.nan, whole[:1500])
    fitted = GraftedMRF(aim="prediction", random_state=0).fit(rows)
    alone = fit_for_prediction(
        TableRows(PackedTable.from_codes(np.nan_to_num(rows, nan=-1).astype(int)))
    )
    found, without = (
        each.pseudo_log_likelihood(codes=whole[1500:]).mean()
        for each in (fitted.model_, alone.model)
    )
    assert found > without
