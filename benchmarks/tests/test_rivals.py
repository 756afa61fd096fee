"""The harness that sets other tools beside ours: figures, limits, resuming."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from benchmarks.rivals import problems
from benchmarks.rivals.__main__ import main
from benchmarks.rivals.figures import f1, held_out, judge, ranking_figures
from benchmarks.rivals.harness import Bench, Limits, measure
from benchmarks.rivals.outcome import Outcome, Potentials, tree_potentials
from benchmarks.rivals.problems import Problem, recoded
from benchmarks.rivals.registry import RIVALS, Rival
from benchmarks.rivals.regressions import Regressions
from benchmarks.rivals.tools.grafted import fit_dense, fit_rank
from edgegraft.datasets import make_chain, make_scale_free

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits are those of Unix")
DATA, SEED = "scale-free-30", 7
#: Compiles everything; tested below; activates a thousandth of the couplings at a time, none of a
#: small table's.
TOO_MUCH = ("edgegraft-cold", "edgegraft-rank", "edgegraft-dense", "eaDCA", "eaDCA-gpu")


@pytest.fixture(scope="module")
def chain():
    data = make_chain(6, n_states=3, n_rows=1200, random_state=0)
    return recoded(data.X[:1000], data.X[1000:], data.edges)


@pytest.fixture
def bench(tmp_path, chain):
    """A folder in which the problem of one name is a small chain."""
    found = Bench(tmp_path, limits=Limits(cpu_seconds=60, memory_gib=16, wall_seconds=120))
    problems.write(chain, tmp_path / "data" / f"{DATA}-{SEED}.npz")
    return found


def fake(name):
    return Rival(name, f"benchmarks.tests.fake_rivals:{name}", (), "")


def ring(strengths):
    matrix = np.zeros((4, 4))
    for (i, j), value in strengths.items():
        matrix[i, j] = matrix[j, i] = value
    return matrix


TRUTH = np.array([(0, 1), (1, 2), (2, 3)])


class TestFigures:
    def test_average_precision_counts_what_is_not_ranked_as_missed(self):
        strengths = ring({(0, 1): 3.0, (0, 2): 2.0, (1, 2): 1.0})
        found = ranking_figures(strengths, TRUTH)
        assert found["average_precision"] == pytest.approx((1 + 2 / 3) / 3)
        assert found["f1_true_number"] == pytest.approx(2 / 3)

    def test_a_perfect_ranking_is_one_and_an_empty_one_zero(self):
        best = ring(dict.fromkeys(map(tuple, TRUTH.tolist()), 1.0))
        assert ranking_figures(best, TRUTH)["average_precision"] == 1.0
        assert ranking_figures(np.zeros((4, 4)), TRUTH)["average_precision"] == 0.0

    def test_f1_takes_edges_either_way_round(self):
        assert f1(np.array([(1, 0), (3, 2)]), TRUTH) == pytest.approx(0.8)
        assert f1(np.empty((0, 2), int), TRUTH) == 0.0

    def test_only_what_a_tool_gives_is_judged(self):
        found = judge(Outcome(np.zeros((4, 4))), np.zeros((2, 4), int), np.full(4, 2), None)
        assert found == {"variant": ""}

    def test_held_out_is_the_pseudolikelihood_of_the_model(self):
        data = make_scale_free(8, 3, 300, random_state=1)
        nodes = [data.layout.node(data.theta, i) for i in range(8)]
        tables = {
            (i, j): data.layout.edge(data.theta, k) for k, (i, j) in enumerate(data.edges.tolist())
        }
        mine = held_out(Potentials(nodes, tables), data.X, data.layout.states)
        assert mine == pytest.approx(-data.model.pseudo_log_likelihood(data.X).mean())


class TestRegressions:
    @pytest.mark.parametrize("states", [2, 4])
    def test_conditionals_and_joint_model_of_exact_regressions_are_the_models_own(self, states):
        data = make_scale_free(7, states, 200, random_state=2)
        rng = np.random.default_rng(0)
        found = Regressions(data.layout.states, softmax=True)
        tables = {
            (i, j): data.layout.edge(data.theta, k) for k, (i, j) in enumerate(data.edges.tolist())
        }
        for i in range(7):
            blocks = []
            for j in range(7):
                if j != i:
                    block = tables.get((i, j), tables.get((j, i), np.zeros((states, states))).T)
                    # A regression does not know its own gauge: columns may have any offset.
                    blocks.append(block + rng.normal(size=states))
            found.put(i, data.layout.node(data.theta, i), np.concatenate(blocks, axis=1))
        truth = data.model.pseudo_log_likelihood(data.X)
        np.testing.assert_allclose(found.log_conditionals(data.X).sum(axis=1), truth, rtol=1e-9)
        outcome = found.outcome(joint=True, rule=np.minimum)
        assert outcome.edges.tolist() == data.edges.tolist()
        assert held_out(outcome.model, data.X, data.layout.states) == pytest.approx(-truth.mean())

    def test_directions_that_disagree_are_joined_by_and_and_or(self):
        found = Regressions(np.array([2, 2, 2]), softmax=True)
        found.put(0, np.zeros(2), np.array([[1.0, -1.0, 0.0, 0.0], [-1.0, 1.0, 0.0, 0.0]]))
        found.put(1, np.zeros(2), np.array([[2.0, -2.0, 1.0, -1.0], [-2.0, 2.0, -1.0, 1.0]]))
        both = found.outcome(joint=True, rule=np.minimum)
        either = found.outcome(joint=True, rule=np.maximum)
        assert both.edges.tolist() == [[0, 1]]
        assert either.edges.tolist() == [[0, 1], [1, 2]]
        np.testing.assert_allclose(both.model.tables[0, 1], [[1.5, -1.5], [-1.5, 1.5]])


def test_a_directed_tree_is_one_pairwise_model():
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, 2, 500)] * 3, axis=1)
    codes[:, 0] ^= rng.random(500) < 0.1
    codes[:, 2] ^= rng.random(500) < 0.2
    given = [np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([0.4, 0.6]), np.eye(2)]
    outcome = tree_potentials([1, None, 1], given, codes, np.array([2, 2, 2]))
    assert outcome.edges.tolist() == [[0, 1], [1, 2]]
    np.testing.assert_allclose(np.exp(outcome.model.tables[0, 1]), given[0].T)
    assert outcome.strengths[0, 1] > outcome.strengths[1, 2] > outcome.strengths[0, 2] == 0
    assert np.isfinite(outcome.model.tables[1, 2]).all()  # chances of zero are raised


class TestProblems:
    def test_columns_are_coded_by_what_the_fitted_rows_have(self):
        train = np.array([[0, 4, 1, 0], [3, 4, 2, 1], [0, 4, 1, 1]])
        test = np.array([[3, 4, 2, 0], [1, 4, 2, 0]])
        problem = recoded(train, test, np.array([(0, 1), (0, 3)]))
        assert problem.train.tolist() == [[0, 0, 0], [1, 1, 1], [0, 0, 1]]
        assert problem.test.tolist() == [[1, 1, 0]]
        assert problem.states.tolist() == [2, 2, 2]
        assert problem.truth.tolist() == [[0, 2]]
        assert (problem.dropped_columns, problem.dropped_rows) == (1, 1)

    def test_a_written_problem_is_read_as_it_was(self, tmp_path, chain):
        for problem in (chain, chain._replace(truth=None)):
            problems.write(problem, tmp_path / "x.npz")
            found = problems.read(tmp_path / "x.npz")
            assert list(found._fields) == list(Problem._fields)
            for before, after in zip(problem, found, strict=True):
                np.testing.assert_array_equal(before, after)

    def test_real_splits_hold_out_rows_by_the_seed(self, shared_data):
        first, again, other = (problems.prepare("jester", seed) for seed in (0, 0, 1))
        assert len(first.train) == 6200
        assert len(first.test) + first.dropped_rows == problems.HELD_OUT
        np.testing.assert_array_equal(first.train, again.train)
        assert not np.array_equal(first.train, other.train)


class TestHarness:
    def test_baselines_find_a_chain_and_say_what_it_cost(self, bench):
        for name in ("mean-field", "mutual-information"):
            result = measure(bench, RIVALS[name], DATA, SEED)
            assert result["status"] == "done"
            assert result["outcomes"][0]["average_precision"] == 1.0
            assert result["peak_mb"] > 10
            assert result["cpu_s"] >= 0
            assert result["versions"]["numpy"] == np.__version__

    def test_a_result_is_kept_and_measured_again_only_on_demand(self, bench):
        path = bench.result_path("mean-field", DATA, SEED)
        path.parent.mkdir()
        stored = {"status": "done", "kept": True}
        path.write_text(json.dumps(stored))
        assert measure(bench, RIVALS["mean-field"], DATA, SEED) == stored
        assert "kept" not in measure(bench, RIVALS["mean-field"], DATA, SEED, again=True)
        assert json.loads(path.read_text())["outcomes"]

    def test_a_fit_that_computes_too_long_is_ended(self, bench):
        limits = Limits(cpu_seconds=1, memory_gib=16, wall_seconds=120)
        result = measure(bench._replace(limits=limits), fake("loop"), DATA, SEED)
        assert (result["status"], result["limit_s"]) == ("timed out", 1)

    def test_a_fit_that_waits_too_long_is_ended(self, bench):
        limits = Limits(cpu_seconds=60, memory_gib=16, wall_seconds=3)
        result = measure(bench._replace(limits=limits), fake("wait"), DATA, SEED)
        assert (result["status"], result["limit_s"]) == ("timed out", 3)

    def test_a_fit_that_fails_says_why(self, bench):
        result = measure(bench, fake("crash"), DATA, SEED)
        assert (result["status"], result["message"]) == ("failed", "RuntimeError: singular matrix")
        assert "SIGSEGV" in measure(bench, fake("die"), DATA, SEED)["message"]
        assert "MemoryError" in measure(bench, fake("take_all_memory"), DATA, SEED)["message"]

    def test_what_is_not_installed_is_absent_and_tried_again(self, bench):
        missing = Rival("missing", "no_such_tool:fit", (), "")
        result = measure(bench, missing, DATA, SEED)
        assert result["status"] == "absent"
        assert "no_such_tool" in result["message"]
        here = missing._replace(function=RIVALS["mean-field"].function)
        assert measure(bench, here, DATA, SEED)["status"] == "done"

    def test_tools_for_two_states_are_not_given_more(self, bench):
        assert measure(bench, RIVALS["pyGMs-l1"], DATA, SEED)["status"] == "binary only"

    def test_an_unknown_name_is_refused_before_any_work(self, capsys):
        with pytest.raises(SystemExit):
            main(["run", "--rivals", "nobody"])
        assert "nobody" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in RIVALS if name not in TOO_MUCH])
def test_every_tool_that_is_installed_learns_a_chain(tmp_path, name):
    states = 2 if RIVALS[name].binary_only else 3
    data = make_chain(6, n_states=states, n_rows=2200, random_state=3)
    problems.write(
        recoded(data.X[:2000], data.X[2000:], data.edges), tmp_path / "data" / f"{DATA}-0.npz"
    )
    bench = Bench(tmp_path, limits=Limits(120, 16, 400))
    result = measure(bench, RIVALS[name], DATA, 0)
    if result["status"] in ("absent", "binary only"):
        pytest.skip(f"{name}: {result.get('message', result['status'])}")
    assert result["status"] == "done", result
    uniform = 6 * np.log(states)
    for outcome in result["outcomes"]:
        assert outcome["average_precision"] > 0.75
        for key in ("held_out", "held_out_conditionals"):
            assert outcome.get(key, 0.0) < uniform


@pytest.mark.parametrize("fit", [fit_rank, fit_dense])
def test_our_own_lines_beside_the_network_rank_a_chain(chain, fit):
    (outcome,) = fit(chain.train, chain.states, 0, 1)
    found = judge(outcome, chain.test, chain.states, chain.truth)
    assert found["average_precision"] == 1.0
    assert found.get("held_out", 0.0) < 6 * np.log(3)
