"""The course of a run as a table."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.errors import DataError
from edgegraft.learn import Monitor, grow, refit
from tests.learn_cases import PENALTY, make_loss, make_table, penalised


def test_trace_has_one_entry_an_event():
    growth = grow(make_loss(make_table()[0]), PENALTY, penalised(max_touching=1))
    trace = growth.trace()
    assert {len(column) for column in trace.values()} == {len(growth.events)}
    assert trace["n_edges"][-1] == len(growth.graph)
    assert trace["reason"][-1] == growth.reason
    for name in ("seconds", "n_activations", "n_tests", "n_tables"):
        assert (np.diff(trace[name]) >= 0).all()
    assert (trace["n_tables"] <= trace["n_tests"]).all()
    assert trace["n_tables"][-1] == 66
    assert trace["objective"][-1] < trace["objective"][0]


def test_monitor_measures_rows_held_out_and_true_edges():
    table, truth = make_table()
    other, _ = make_table(seed=1, n_rows=500)
    monitor = Monitor(other, truth, every=3)
    growth = grow(make_loss(table), PENALTY, penalised(max_touching=1), observers=[monitor])
    columns = monitor.columns()
    assert (np.diff(columns["recall"]) >= 0).sum() > len(columns["recall"]) / 2
    assert columns["recall"][-1] == growth.graph.contains(truth).mean()
    loss = make_loss(other)
    expected = loss.evaluate(growth.theta(), loss.init(growth.graph.layout)).value
    assert columns["held_out"][-1] == pytest.approx(expected, abs=1e-12)
    between = columns["n_activations"][columns["kind"] == "activation"]
    assert (between % 3 == 0).all()


def test_monitor_refuses_rows_of_other_variables():
    table, _ = make_table()
    other, _ = make_table(8, 100)
    with pytest.raises(DataError, match="other columns"):
        grow(make_loss(table), PENALTY, penalised(), observers=[Monitor(other)])


def test_refit_takes_the_shrinkage_away():
    growth = grow(make_loss(make_table()[0]), PENALTY, penalised())
    model = refit(growth, 1e-4)
    assert model.edges.tolist() == growth.model().edges.tolist()
    assert model.edge_strengths().sum() > growth.model().edge_strengths().sum()
