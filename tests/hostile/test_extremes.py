"""Extremes of weights, of rows beside columns, of missing cells, of equal rows and of locales."""

from __future__ import annotations

import os
import subprocess
import warnings

import numpy as np
import pytest

import edgegraft.learn.stages as stages_module
from edgegraft.core.checks import MAX_WEIGHT, MIN_WEIGHT
from edgegraft.errors import DataError, TooFewRowsWarning
from edgegraft.grafting.problem import losses
from edgegraft.learn import Plan, discover
from edgegraft.model import PairwiseMRF
from edgegraft.table import PackedTable, Schema, TableRows, Variable
from edgegraft.table.blocks import distinct_rows
from tests.cli.running import COMMAND
from tests.explorer_cases import HOST, TOKEN, client_of, grid_model


def dependent(n_rows=2000, n=6, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, (n_rows, n))
    codes[:, 1] = np.where(rng.random(n_rows) < 0.7, codes[:, 0], codes[:, 1])
    return codes


@pytest.mark.parametrize("weight", [1e-300, 1e300, 5e-324, 1e-310, 1e17])
def test_weights_that_no_rows_add_up_to_are_refused(weight):
    weights = np.ones(2000) if weight > 1 else np.full(2000, weight)
    weights[7] = weight
    row = 7 if weight > 1 else 0
    with pytest.raises(DataError, match=rf"the largest is .*, in row {row}"):
        discover(PackedTable.from_codes(dependent()), weights=weights)


@pytest.mark.parametrize("objective", ["pseudolikelihood", "likelihood"])
@pytest.mark.parametrize("least", [0.0, 5e-324, 1e-300, 1e-30])
def test_rows_of_next_to_no_weight_count_as_none(objective, least):
    codes, weights = dependent(), np.ones(2000)
    codes[::2, 2] = 2  # a state of rows without weight alone
    weights[::2] = least
    found = discover(PackedTable.from_codes(codes), Plan(objective=objective), weights=weights)
    assert found.model.edges.tolist() == [[0, 1]]
    assert np.isfinite(found.model.theta).all()


@pytest.mark.parametrize("total", [2 * MIN_WEIGHT, 0.5, 0.99 * MAX_WEIGHT])
def test_the_ends_of_what_weights_may_add_up_to(total):
    weights = np.full(2000, total / 2000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TooFewRowsWarning)
        found = discover(PackedTable.from_codes(dependent()), weights=weights)
    assert np.isfinite(found.model.theta).all()


@pytest.mark.parametrize("n_rows", [3, 17])
def test_so_few_rows_that_nothing_can_be_found(n_rows):
    codes = np.random.default_rng(0).integers(0, 2, (n_rows, 2000))
    with pytest.warns(TooFewRowsWarning, match=f"{n_rows} rows are too few .* 2,000 columns"):
        found = discover(PackedTable.from_codes(codes))
    assert found.search.n_tests == found.model.n_edges == 0
    assert str(found.search.reason) == "so few rows cannot show an edge"


@pytest.mark.filterwarnings("ignore::edgegraft.errors.IdentificationWarning")
@pytest.mark.parametrize(
    ("n", "states", "fdr"), [(2, 2, 0.005), (10, 2, 0.005), (10, 3, 0.05), (60, 2, 0.005)]
)
def test_rows_are_too_few_only_if_nothing_is_found_without_that_check(n, states, fdr, monkeypatch):
    """Columns equal in pairs, and as many rows as are just too few."""
    real, answers = stages_module.too_few_rows, []

    def ask(*arguments):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TooFewRowsWarning)
            answers.append(real(*arguments))
        return False

    monkeypatch.setattr(stages_module, "too_few_rows", ask)
    for n_rows in range(4, 40):
        column = np.arange(n_rows)[:, None] + np.arange(n // 2) * (np.arange(n_rows) // 7)[:, None]
        codes = np.repeat(column % states, 2, axis=1)
        found = discover(PackedTable.from_codes(codes), Plan(fdr=fdr))
        if not answers[-1]:
            break
        assert found.model.n_edges == 0
    assert answers[0]
    assert not answers[-1]


@pytest.mark.filterwarnings("ignore::edgegraft.errors.IdentificationWarning")
def test_pairs_that_hardly_any_row_knows_are_named():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (20_000, 6))
    codes[:, 1:] = codes[:, :1]
    codes[rng.random(codes.shape) < 0.95] = -1
    with pytest.warns(TooFewRowsWarning, match="15 of 15 pairs of columns are known together in f"):
        discover(PackedTable.from_codes(codes))


@pytest.mark.parametrize("objective", ["pseudolikelihood", "likelihood"])
def test_distinct_rows_give_what_all_rows_give(objective, monkeypatch):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (200_000, 4))
    codes[:, 1] = np.where(rng.random(200_000) < 0.1, codes[:, 0], codes[:, 1])
    codes[:, 3] = np.where(rng.random(200_000) < 0.01, codes[:, 2], codes[:, 3])
    table, plan = PackedTable.from_codes(codes), Plan(objective=objective)
    few = discover(table, plan)
    assert losses(table, plan)[0].n_rows == 200_000
    monkeypatch.setattr(stages_module, "distinct_rows", lambda rows: rows)
    monkeypatch.setattr("edgegraft.grafting.problem.distinct_rows", lambda rows: rows)
    many = discover(table, plan)
    assert few.model.edges.tolist() == many.model.edges.tolist() == [[0, 1], [2, 3]]
    np.testing.assert_allclose(few.model.theta, many.model.theta, atol=1e-5)
    np.testing.assert_allclose(few.tests.statistic, many.tests.statistic, rtol=1e-4)
    assert few.tests.dof.tolist() == many.tests.dof.tolist()


@pytest.mark.parametrize("change", ["missing", "weights", "many"])
def test_rows_that_are_not_replaced_by_distinct_ones(change):
    codes = np.random.default_rng(0).integers(0, 30 if change == "many" else 2, (300_000, 4))
    codes[0, 0] = -1 if change == "missing" else 0
    weights = np.ones(300_000) if change == "weights" else None
    rows = TableRows(PackedTable.from_codes(codes), weights)
    assert distinct_rows(rows) is rows


BODIES = {
    "nested lists": (b"[" * 100_000, 400),
    "nested objects": (b'{"a":' * 100_000, 400),
    "no text": (b"\xff\xfe", 400),
    "long number": (b"9" * 50_000, 400),
    "quotes": (b'"' + b'\\"' * 400_000, 400),
    "too long": (b" " * (2 << 20), 413),
    "nested link": (b'{"link":"' + b"[" * 5000 + b'"}', 422),
    "nested evidence": (b'{"given":' + b"[" * 7 + b"]" * 7 + b"}", 422),
}


@pytest.mark.parametrize("name", BODIES)
def test_questions_to_the_explorer_are_bounded(name):
    from edgegraft.report.explorer import Explorer

    body, status = BODIES[name]
    client = client_of(Explorer(grid_model()))
    headers, kind = {"Host": HOST}, "application/json"
    found = client.post(f"/{TOKEN}/marginals", data=body, headers=headers, content_type=kind)
    assert found.status_code == status


@pytest.mark.parametrize(("locale", "shown"), [("", "日本"), ("cp1252", "\\u65e5")])
def test_names_beyond_the_locale_are_written_all_the_same(tmp_path, locale, shown):
    path, states = tmp_path / "m.edgegraft", ("はい", "x")
    schema = Schema([Variable(name, states, "string") for name in ("日本", "b")])
    PairwiseMRF(schema, [(0, 1)], np.zeros(8)).save(path)
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    environment = os.environ | plain | {"PYTHONIOENCODING": locale}
    command = [COMMAND, "info", path, "--json"]
    done = subprocess.run(
        command, capture_output=True, env=environment, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout
