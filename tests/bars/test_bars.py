"""Every case is above its bar; the same seed gives the same answer by any way of running it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import edgegraft
from tests.bars.cases import CASES, THREE
from tests.bars.measures import Bar
from tests.cli.running import edgegraft as command


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, id=c.name, marks=[pytest.mark.slow] if c.slow else []) for c in CASES],
)
def test_the_bar_is_kept(case, tmp_path):
    broken = case.bar.broken(case.measure(case.seed, tmp_path))
    assert not broken, f"{case.name}: {'; '.join(broken)} (today: {case.today})"


def test_cases_differ_in_name():
    assert len({case.name for case in CASES}) == len(CASES) >= 25


@pytest.mark.parametrize(
    ("figures", "n_broken"),
    [
        ({"f1": 0.9, "false": 2, "edges": 5, "exact": True}, 0),
        ({"f1": 1.0, "false": 0, "edges": 8, "exact": True}, 0),
        ({"f1": 0.89, "false": 3, "edges": 9, "exact": False}, 4),
        ({"f1": float("nan"), "false": 0, "edges": 5, "exact": True}, 1),
    ],
)
def test_only_worse_figures_break_a_bar(figures, n_broken):
    bar = Bar(f1=0.9, false=2, edges=(5, 8), exact=True)
    assert len(bar.broken(figures)) == n_broken


def test_threads_change_nothing_and_a_larger_budget_hardly_anything(tmp_path):
    codes = THREE(0, tmp_path).X
    rows = tmp_path / "rows.csv"
    pd.DataFrame(codes).add_prefix("v").to_csv(rows, index=False)
    models = [tmp_path / f"{name}.edgegraft" for name in ("one", "two", "resumed")]
    for n, model in enumerate(models[:2], start=1):
        assert command("learn", rows, "-o", model, "--jobs", n, "--quiet").returncode == 0
    run = tmp_path / "run"
    stopped = ("--max-edges", 5, "--checkpoint", run, "--quiet")
    assert command("learn", rows, "-o", models[2], *stopped).returncode == 0
    first = edgegraft.load(models[2])
    assert command("resume", run, "--force", "--max-edges", 500, "--quiet").returncode == 0
    one, two, resumed = map(edgegraft.load, models)
    assert first.n_edges < one.n_edges
    assert one == two
    edges = [set(map(tuple, model.edges.tolist())) for model in (one, resumed)]
    assert len(edges[0] ^ edges[1]) <= 1


def test_a_bootstrap_tells_certain_edges_from_chance():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 3, (600, 8))
    for i in (1, 2, 3):
        rows[:, i] = np.where(rng.random(600) < 0.5, rows[:, i - 1], rows[:, i])
    fitted = edgegraft.GraftedMRF(random_state=0).fit(rows)
    found = fitted.bootstrap(rows, 20, random_state=0)
    n = len(fitted.edges_)
    assert n == 3
    assert (found["frequency"][:n] > 0.9).all()
    assert (found["frequency"][n:] < 0.5).all()
    assert (found["lower"][:n] <= found["strength"][:n]).all()
    assert (found["strength"][:n] <= found["upper"][:n]).all()
