"""The file of a run: what it keeps, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from edgegraft.conditional.survey_design import SurveyDesign
from edgegraft.counts import PairCounts
from edgegraft.errors import ConvergenceWarning, FileFormatError
from edgegraft.inference import BeliefPropagation
from edgegraft.learn import Plan, SearchState, checkpoint, discover, grow, resume_discovery
from edgegraft.learn.checkpoint import StageFile
from edgegraft.objective import Likelihood, Penalty
from edgegraft.table import PackedTable, Schema, TableRows
from tests.learn_cases import PENALTY, Log, make_loss, make_table, penalised
from tests.unit.test_row_blocks import as_blocks, network_rows

TREE = {"theta": np.arange(3.0), "kept": np.array([True, False]), "inner": {"n": 3, "none": None}}


@pytest.fixture(scope="module")
def table():
    return make_table()[0]


@pytest.fixture(scope="module")
def written(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("written") / "run"
    discover(table, checkpoint=path)
    return path.read_bytes()


def begun(path, table, plan=None):
    file = StageFile(path)
    file.begin(plan or Plan(), TableRows(table))
    return file


def test_results_come_back_as_they_were(table, tmp_path):
    begun(tmp_path / "c", table).stage("a", lambda: TREE)
    found = StageFile.read(tmp_path / "c").stage("a", pytest.fail)
    assert found["inner"] == TREE["inner"]
    for name in ("theta", "kept"):
        assert found[name].dtype == TREE[name].dtype
        assert found[name].tolist() == TREE[name].tolist()
        assert found[name].flags.writeable


def test_a_stage_that_is_not_complete_is_not_kept(table, tmp_path):
    file = begun(tmp_path / "c", table)
    assert file.stage("a", lambda: TREE, complete=lambda: False) == TREE
    assert file.find("a") is None
    assert not (tmp_path / "c").exists()


def test_what_came_after_a_stage_is_forgotten_with_it(table, tmp_path):
    file = begun(tmp_path / "c", table)
    for name in "abc":
        file.stage(name, lambda: TREE)
    file.forget("b")
    assert [file.find(name) is not None for name in "abc"] == [True, False, False]


def test_without_a_path_nothing_is_kept():
    file = StageFile()
    file.stage("a", lambda: TREE)
    assert file.find("a") is None


def test_foreign_files_are_refused(table, tmp_path):
    path = tmp_path / "foreign"
    path.write_bytes(b"PK\x03\x04" + bytes(500))
    with pytest.raises(FileFormatError, match="is not a checkpoint of edgegraft"):
        resume_discovery(path, table)
    with pytest.raises(FileNotFoundError):
        resume_discovery(tmp_path / "absent", table)


def test_files_of_other_versions_are_refused(table, written, tmp_path, monkeypatch):
    path = tmp_path / "c"
    path.write_bytes(written)
    later = replace(checkpoint.FORMAT, version=checkpoint.FORMAT.version + 1)
    monkeypatch.setattr(checkpoint, "FORMAT", later)
    with pytest.raises(FileFormatError, match="version 9, and this release reads 10"):
        resume_discovery(path, table)


def shuffled(table, column):
    """Return a table whose margins are the same, one column in another order of the rows."""
    codes = table.codes()
    codes[:, column] = np.random.default_rng(0).permutation(codes[:, column])
    return PackedTable.from_codes(codes, table.schema)


@pytest.mark.parametrize("column", range(3))
def test_a_column_in_another_order_is_another_table(table, written, tmp_path, column):
    path = tmp_path / "run"
    path.write_bytes(written)
    other = shuffled(table, column)
    assert (PairCounts(other).margins().values == PairCounts(table).margins().values).all()
    with pytest.raises(FileFormatError, match="other rows"):
        resume_discovery(path, other)


@pytest.mark.parametrize(
    ("other", "message"),
    [({"n": 11}, "other data"), ({"seed": 5}, "other rows"), ({"n_rows": 1999}, "other rows")],
)
def test_other_data_are_refused(written, tmp_path, other, message):
    path = tmp_path / "run"
    path.write_bytes(written)
    with pytest.raises(FileFormatError, match=message):
        resume_discovery(path, make_table(**other)[0])


def test_other_weights_and_designs_are_refused(table, written, tmp_path):
    path, n = tmp_path / "run", table.n_rows
    path.write_bytes(written)
    with pytest.raises(FileFormatError, match="other rows, weights or design"):
        resume_discovery(path, table, weights=np.arange(n) % 2 + 1.0)
    design = SurveyDesign.of(n, clusters=np.arange(n) // 2)
    with pytest.raises(FileFormatError, match="other rows, weights or design"):
        resume_discovery(path, table, design=design)


def test_other_plans_are_refused(table, written, tmp_path):
    path = tmp_path / "run"
    path.write_bytes(written)
    with pytest.raises(FileFormatError, match="another plan: fwer is None there"):
        resume_discovery(path, table, Plan(fwer=1e-9))
    again = resume_discovery(path, table, Plan(n_jobs=2))  # which changes no result
    assert again.model == resume_discovery(path, table).model


def test_other_samples_are_refused(tmp_path):
    rows, path = as_blocks(network_rows()), tmp_path / "run"
    discover(rows, checkpoint=path, sample_rows=2000)
    with pytest.raises(FileFormatError, match="another sample: sample_rows is 2000 there"):
        resume_discovery(path, rows, sample_rows=1500)


def test_names_are_part_of_the_data(table, written, tmp_path):
    path = tmp_path / "run"
    path.write_bytes(written)
    first, *rest = table.schema
    renamed = table.with_schema(Schema([replace(first, name="other"), *rest]))
    with pytest.raises(FileFormatError, match="other data: names or categories differ"):
        resume_discovery(path, renamed)


def test_a_plan_comes_from_the_file(table, tmp_path):
    path, plan = tmp_path / "run", Plan(fdr=0.2, selectivity=0.5, max_edges=3)
    stopped = discover(table, plan, checkpoint=path)
    again = resume_discovery(path, table)
    assert again.plan == replace(plan, n_jobs=again.plan.n_jobs)
    assert again.model == stopped.model


def test_an_interrupted_search_goes_on(table, tmp_path):
    path, plan = tmp_path / "run", Plan(strategy="exhaustive")
    whole = discover(table, plan)
    for steps in (2, 5):
        stopped = discover(table, plan, checkpoint=path, observers=[Log(stop_after=steps)])
        assert stopped.search.reason.requested
    found = resume_discovery(path, table, plan)
    assert found.search.reason == whole.search.reason
    assert found.search.n_activations >= whole.search.n_activations - 1
    assert set(map(tuple, found.model.edges.tolist())) == set(
        map(tuple, whole.model.edges.tolist())
    )
    assert found.search.events[0].kind == "start"


@pytest.mark.parametrize("loss", ["pseudolikelihood", "bp"])
def test_an_ended_search_is_what_its_result_says(table, loss):
    objective = make_loss(table)
    if loss == "bp":
        objective = Likelihood(PairCounts(table), BeliefPropagation(tol=1e-8))
    search = grow(objective, PENALTY, penalised(max_edges=8, max_tests=4))
    again = SearchState.ended(search.problem, search.result())
    assert again.graph.layout.edges.tolist() == search.graph.layout.edges.tolist()
    assert again.theta().tobytes() == search.theta().tobytes()
    assert (again.n_tests, again.n_tables) == (search.n_tests, search.n_tables)
    assert (again.n_activations, again.reason) == (search.n_activations, search.reason)
    assert [event.kind for event in again.events] == [event.kind for event in search.events]


def test_a_fallback_lasts():
    """Once belief propagation has been left, what is made of the result does not go back to it."""
    rng = np.random.default_rng(0)
    hidden = rng.random((3000, 1)) < 0.5
    codes = (hidden ^ (rng.random((3000, 8)) < 0.12)).astype(np.int32)
    objective = Likelihood(PairCounts(PackedTable.from_codes(codes)), BeliefPropagation(tol=1e-8))
    settings = penalised(max_edges=24, max_tests=4, reservoir_size=6, selectivity=0.5)
    with pytest.warns(ConvergenceWarning, match="continuing with the engine 'trw'") as said:
        search = grow(objective, Penalty(0.002, 1e-3), settings)
    assert len(said) == 1
    again = SearchState.ended(search.problem, search.result())
    assert again.fell_back
    assert again.solution.info.engine == "trw"
