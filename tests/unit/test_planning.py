"""Rows that a study needs."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from edgegraft import GraftedMRF
from edgegraft.cli.app import app
from edgegraft.datasets import make_chain
from edgegraft.errors import DataError, SettingError
from edgegraft.model import PairwiseMRF
from edgegraft.study import plan
from edgegraft.study.power import assumed_study


def test_more_rows_are_needed_for_smaller_effects_more_columns_and_more_freedom():
    plain = plan(effect=0.2, n_columns=20).rows
    assert plan(effect=0.1, n_columns=20).rows > 3.5 * plain
    assert plan(effect=0.2, n_columns=60, n_edges=20).rows > plain
    assert plan(effect=0.2, n_columns=20, dof=16).rows > 1.5 * plain
    assert plan(effect=0.2, n_columns=20, power=0.95).rows > plain


def test_one_test_alone_has_the_power_of_a_chi_square():
    found = plan(effect=0.3, n_columns=2, fdr=0.05)
    assert found.rows == pytest.approx((1.96 + 0.8416) ** 2 / np.arctanh(0.3) ** 2, rel=0.06)


def test_the_rows_of_an_edge_are_those_at_which_its_power_is_enough():
    study = assumed_study(0.2, 10, 10, 1, None)
    study = study._replace(size=study.size * np.linspace(0.0, 2.0, 10))
    rows = study.rows_per_edge(0.8)
    assert np.isinf(rows[0])
    assert (np.diff(rows[1:]) < 0).all()
    for k in (1, 5, 9):
        assert study.power(1.02 * rows[k])[k] >= 0.8 > study.power(0.96 * rows[k])[k]


def test_theory_agrees_with_simulation():
    found = plan(effect=0.3, n_columns=10, rows=[250], n_simulations=15)
    assert found.curve["simulated"][0] == pytest.approx(found.curve["power"][0], abs=0.1)


def test_a_fit_says_what_twice_its_rows_would_settle(tmp_path):
    rows = make_chain(8, n_rows=150, couplings="ising", random_state=5).X
    fitted = GraftedMRF(random_state=0).fit(rows)
    found = plan(fitted)
    assert found.now == 150
    assert (found.edges["power_twice"] >= found.edges["power_now"]).all()
    kept = set(zip(found.edges["first"], found.edges["second"], strict=True))
    assert set(found.settled_by_twice()) <= kept
    path = tmp_path / "m.edgegraft"
    fitted.save(path)
    again = plan(path)
    assert again.rows == found.rows
    assert again.settled_by_twice() == found.settled_by_twice()
    done = CliRunner().invoke(app, ["plan", str(path), "--plot", str(tmp_path / "p.png")])
    assert done.exit_code == 0, done.output
    assert "Rows needed per edge" in done.stdout
    assert (tmp_path / "p.png").exists()


def test_pairs_that_were_cut_are_planned_from_a_file_and_rules_leave_fewer_pairs(tmp_path):
    z = np.random.default_rng(0).normal(size=(250, 6))
    z[:, 1:] += 0.35 * z[:, :-1]
    fitted = GraftedMRF(random_state=0, rules=["forbid x0 -- x5"]).fit(z > 0)
    found = plan(fitted)
    assert found.n_pairs == 14
    assert found.n_edges == fitted.model_.n_edges < len(found.edges["first"])
    assert f"of {found.n_edges} edges" in repr(found)
    settled = found.settled_by_twice()
    assert settled
    fitted.save(tmp_path / "m.edgegraft")
    again = CliRunner().invoke(app, ["plan", str(tmp_path / "m.edgegraft"), "--json"])
    assert len(json.loads(again.stdout)["edges"]) == len(found.edges["first"])
    shown = CliRunner().invoke(app, ["plan", str(tmp_path / "m.edgegraft")]).stdout
    assert f"{settled[0][0]} -- {settled[0][1]}" in shown


def test_power_planned_from_estimates_has_an_interval_that_rows_narrow():
    rows = make_chain(8, n_rows=4000, couplings="ising", coupling_range=(0.1, 0.2), random_state=1)
    few, many = (plan(GraftedMRF(random_state=0).fit(rows.X[:n]), rows=[300]) for n in (800, 4000))
    few, many = ((f.curve["power_high"] - f.curve["power_low"])[0] for f in (few, many))
    assert 0.02 < many < few < 0.6
    assert "power_low" not in plan(effect=0.3, rows=[300]).curve


def test_a_model_alone_is_planned_by_rows_drawn_from_it():
    model = make_chain(8, n_rows=10, couplings="ising", random_state=1).model
    found = plan(model, rows=[60], n_simulations=30)
    assert found.now is None
    # Few rows find more in a tree: an edge whose ends are apart is judged by its marginal.
    assert -0.2 < found.curve["power"][0] - found.curve["simulated"][0] < 0.08
    with pytest.raises(DataError, match="no edges to plan for"):
        plan(PairwiseMRF.from_potentials({"a": [0.0, 1.0]}))


def test_the_command_plans_from_assumptions():
    done = CliRunner().invoke(app, ["plan", "--effect", "0.3", "--rows", "100", "--json"])
    found = json.loads(done.stdout)
    assert found["curve"][0]["rows"] == 100
    assert found["rows"] > 100


def test_what_cannot_be_planned_is_refused():
    with pytest.raises(SettingError, match="effect"):
        plan(effect=1.5)
    with pytest.raises(SettingError, match="n_edges"):
        plan(n_columns=3, n_edges=4)
    for name, value in {"n_columns": 1, "fdr": 3.0, "rows": [-5]}.items():
        with pytest.raises(SettingError, match=name):
            plan(**{name: value})
    with pytest.raises(SettingError, match="draws binary columns"):
        plan(dof=4, n_simulations=2)
    for typed in (["--edges", "999"], ["--plot", "power.xyz"]):
        assert CliRunner().invoke(app, ["plan", *typed]).exit_code == 2
    with pytest.raises(DataError, match="expected a model, a fitted GraftedMRF or a file"):
        plan(3)
