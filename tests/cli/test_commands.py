"""The commands through their real entry point: good input, bad input, exit codes, streams."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from edgegraft.core import Layout
from edgegraft.io import write_evidence, write_uai
from edgegraft.model import PairwiseMRF
from edgegraft.model import load as edgegraft_load
from tests import uai_results
from tests.cli.running import edgegraft, refused, separately


@pytest.fixture
def chain(tmp_path):
    layout = Layout([2, 3, 2], [(0, 1), (1, 2)])
    theta = np.random.default_rng(0).normal(size=layout.n_parameters)
    write_uai(tmp_path / "chain.uai", layout, theta)
    return tmp_path / "chain.uai"


@pytest.fixture
def model():
    from edgegraft.table import Schema

    layout = Layout([2, 3, 2], [(0, 1), (1, 2)])
    theta = np.random.default_rng(0).normal(size=layout.n_parameters)
    return PairwiseMRF(Schema.from_states([2, 3, 2]), layout.edges, theta)


def result(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("engine", ["auto", "exact", "bp", "trw"])
def test_infer_answers_in_the_competitions_format(inside, chain, model, engine):
    run = edgegraft if engine == "auto" else inside
    done = run("infer", chain, "--task", "PR", "--engine", engine)
    np.testing.assert_allclose(uai_results.pr(result(done)), model.log_partition().value)
    done = run("infer", chain, "--task", "mar", "--engine", engine)
    for found, name in zip(uai_results.mar(result(done)), model.names, strict=True):
        np.testing.assert_allclose(found, model.marginals().array(name), atol=1e-6)


@pytest.mark.parametrize(
    ("task", "engine", "word"),
    [("PR", "bp", "Bethe"), ("MAR", "trw", "tree-reweighted"), ("MAP", "bp", "belief propagation")],
)
def test_infer_names_its_approximation(inside, chain, task, engine, word):
    done = inside("infer", chain, "--task", task, "--engine", engine)
    assert done.returncode == 0
    assert "The answer is an approximation: " in done.stderr
    assert word in done.stderr
    assert inside("infer", chain, "--task", task).stderr == ""


def test_infer_with_evidence(chain, model, tmp_path):
    write_evidence(tmp_path / "evidence", {1: 2})
    done = edgegraft("infer", chain, "--task", "MAR", "--evidence", tmp_path / "evidence")
    found = uai_results.mar(result(done))
    assert found[1].tolist() == [0, 0, 1]
    np.testing.assert_allclose(found[0], model.marginals({"x1": 2}).array("x0"), atol=1e-12)
    done = edgegraft("infer", chain, "--task", "MAP", "--evidence", tmp_path / "evidence")
    codes = " ".join(map(str, model.map({"x1": 2}).codes))
    assert done.stdout.split("\n")[1] == f"3 {codes}"


def test_tracebacks_are_shown_on_request(tmp_path):
    path = tmp_path / "bad.uai"
    path.write_text("hello\n")
    refused(edgegraft("infer", path, "--task", "PR"), "token 'hello'")
    assert "Traceback" in separately("--debug", "infer", path, "--task", "PR").stderr


def test_infer_refuses_evidence_that_does_not_fit(inside, chain, tmp_path):
    for evidence, message in (({7: 0}, "variable 7"), ({1: 9}, "'x1' has no category 9")):
        write_evidence(tmp_path / "evidence", evidence)
        done = inside("infer", chain, "--task", "PR", "--evidence", tmp_path / "evidence")
        refused(done, message)


def test_infer_says_when_an_answer_did_not_converge(tmp_path):
    rng = np.random.default_rng(4)
    layout = Layout(np.full(8, 2), np.stack(np.triu_indices(8, 1), axis=1))
    theta = rng.normal(size=layout.n_parameters)
    for k in range(layout.n_edges):
        layout.edge(theta, k)[:] = rng.choice([-3, 3]) * np.array([[1, -1], [-1, 1]])
    write_uai(tmp_path / "hard.uai", layout, theta)
    done = edgegraft("infer", tmp_path / "hard.uai", "--task", "MAR", "--engine", "bp")
    assert done.returncode == 0
    assert "did not converge" in done.stderr


def test_bad_usage_is_told_from_bad_work():
    assert edgegraft("infer").returncode == 2
    assert edgegraft("nonsense").returncode == 2
    assert edgegraft("infer", "nowhere.uai", "--task", "PR").returncode == 2
    assert separately("--version").stdout.startswith("edgegraft ")
    assert edgegraft("--help").returncode == 0


def test_demo_learns_the_true_network_of_the_survey(tmp_path, inside):
    folder = tmp_path / "demo"
    done = edgegraft("demo", folder)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in folder.iterdir()} == {
        f"survey.{suffix}" for suffix in ("csv", "edgegraft", "html", "png")
    }
    assert "28 edges" in done.stdout
    assert "survey.html" in done.stderr
    made = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "make_survey.py"))
    found = edgegraft_load(folder / "survey.edgegraft")
    pairs = {frozenset(found.names[v] for v in edge) for edge in found.edges}
    assert pairs == {frozenset(pair) for pair in (*made["SLOPES"], *made["TABLES"])}
    asked = done.stderr.strip().splitlines()[-1].split()
    assert inside(*asked[1:]).returncode == 0
    refused(inside("demo", folder), "survey.csv", "--force")


def test_the_command_needs_its_extra(tmp_path):
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError('no typer', name='typer')")
    done = separately("demo", env={"PYTHONPATH": str(tmp_path), "PATH": ""})
    assert done.returncode == 1
    assert "pip install 'edgegraft[cli]'" in done.stderr
