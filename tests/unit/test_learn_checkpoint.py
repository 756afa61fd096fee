"""A resumed run is the uninterrupted one, bit for bit."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap
import time
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest

from edgegraft.counts import PairCounts
from edgegraft.errors import ConvergenceWarning, FileFormatError
from edgegraft.grafting.loop import run_search
from edgegraft.grafting.policies import choose_policy
from edgegraft.inference import BeliefPropagation
from edgegraft.learn import Checkpoints, Problem, SearchState, grow, resume
from edgegraft.objective.likelihood import Likelihood
from edgegraft.objective.penalties import make_penalty
from edgegraft.objective.penalty import Penalty
from edgegraft.table import PackedTable
from tests.learn_cases import PENALTY, Log, make_loss, make_table, penalised


@pytest.fixture(scope="module")
def table():
    return make_table()[0]


def small_steps(**more):
    return penalised(
        **{"max_touching": 1, "selectivity": 0.5, "max_tests": 4, "reservoir_size": 6,
           "checkpoint_every": 3} | more
    )  # fmt: skip


def assert_same(one, other):
    assert one.graph.layout.edges.tolist() == other.graph.layout.edges.tolist()
    assert one.theta().tobytes() == other.theta().tobytes()
    assert one.reason == other.reason
    assert (one.n_tests, one.n_tables) == (other.n_tests, other.n_tables)
    assert one.n_activations == other.n_activations


CASES = {
    "uniform": {"priority": "uniform"},
    "auto": {},
    "frozen": {"requeue": False, "full_queue": True, "hub_threshold": 0.1},
    "first-hit": {"strategy": "first-hit"},
    "exhaustive": {"strategy": "exhaustive", "max_edges": 9},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("loss", ["pseudolikelihood", "bp", "noise"])
def test_resuming_gives_the_same_bits(table, tmp_path, case, loss):
    if loss == "bp":
        objective = Likelihood(PairCounts(table), BeliefPropagation(tol=1e-8))
    else:
        objective = make_loss(table)
    penalty = make_penalty(0.01, 1e-4, group_weight="noise" if loss == "noise" else "sqrt")
    settings, counts = small_steps(**CASES[case]), PairCounts(table)
    path = tmp_path / "run.checkpoint"
    whole = grow(objective, penalty, settings, counts=counts)
    assert whole.n_activations > 3
    stop = Log(stop_after=5)
    grow(objective, penalty, settings, counts=counts, observers=[Checkpoints(path), stop])
    resumed = resume(path, objective)
    assert_same(whole, resumed)
    assert resumed.events[0].kind == "start"
    assert resumed.seconds > 0


def test_resuming_twice_gives_the_same_bits(table, tmp_path):
    objective, path = make_loss(table), tmp_path / "run"
    settings = small_steps()
    whole = grow(objective, PENALTY, settings)
    grow(objective, PENALTY, settings, observers=[Checkpoints(path), Log(stop_after=3)])
    resume(path, objective, [Checkpoints(path), Log(stop_after=7)])
    assert_same(whole, resume(path, objective))


SCRIPT = """
    import sys
    from pathlib import Path
    from edgegraft.learn import Checkpoints, grow, resume
    from tests.learn_cases import PENALTY, make_loss, make_table
    from tests.unit.test_learn_checkpoint import small_steps

    path, done = sys.argv[1:]
    loss, keep = make_loss(make_table()[0]), [Checkpoints(path)]
    sys.stdout.write("ready\\n")
    sys.stdout.flush()
    if Path(path).exists():
        growth = resume(path, loss, keep)
    else:
        growth = grow(loss, PENALTY, small_steps(checkpoint_every=1), observers=keep)
    Path(done).write_bytes(growth.graph.layout.edges.tobytes() + growth.theta().tobytes())
"""


def test_killed_at_random_moments_a_run_ends_as_if_it_had_not_been(table, tmp_path):
    whole = grow(make_loss(table), PENALTY, small_steps(checkpoint_every=1))
    path, done = tmp_path / "run", tmp_path / "done"
    moments = random.Random(0)
    kills = 0
    while not done.exists():
        command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(path), str(done)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"ready\n"
            if kills < 3:
                time.sleep(moments.uniform(0.02, 0.3))
                process.kill()
                kills += 1
            assert process.wait(timeout=60) in (0, -9)
    expected = whole.graph.layout.edges.tobytes() + whole.theta().tobytes()
    assert done.read_bytes() == expected


@pytest.fixture(scope="module")
def written(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("written") / "run"
    grow(make_loss(table), PENALTY, small_steps(), observers=[Checkpoints(path)])
    return path.read_bytes()


@pytest.mark.parametrize("place", [0, 25, 60, 500, -400, -1])
def test_one_changed_byte_is_noticed(table, written, tmp_path, place):
    damaged = bytearray(written)
    damaged[place] ^= 1
    path = tmp_path / "damaged"
    path.write_bytes(damaged)
    with pytest.raises(FileFormatError, match=r"not a checkpoint|damaged"):
        resume(path, make_loss(table))


@pytest.mark.parametrize("length", [0, 10, 40, 1000])
def test_truncated_files_are_refused(table, written, tmp_path, length):
    path = tmp_path / "short"
    path.write_bytes(written[:length])
    with pytest.raises(FileFormatError, match=r"not a checkpoint|damaged"):
        resume(path, make_loss(table))


def test_foreign_files_are_refused(table, tmp_path):
    path = tmp_path / "foreign"
    path.write_bytes(b"PK\x03\x04" + bytes(500))
    with pytest.raises(FileFormatError, match="is not a checkpoint of edgegraft"):
        resume(path, make_loss(table))
    with pytest.raises(FileNotFoundError):
        resume(tmp_path / "absent", make_loss(table))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"n": 11}, "other data"),
        ({"seed": 5}, "other rows or another objective"),
        ({"n_rows": 1999}, "other rows or another objective"),
    ],
)
def test_checkpoints_of_other_data_are_refused(written, tmp_path, other, message):
    path = tmp_path / "run"
    path.write_bytes(written)
    with pytest.raises(FileFormatError, match=message):
        resume(path, make_loss(make_table(**other)[0]))


@dataclass(frozen=True)
class TwiceAsHard(Penalty):
    """A penalty of the caller's own."""

    def edge_weights(self, edges, cells):
        return 2.0 * super().edge_weights(edges, cells)


class First:
    """An activation rule of the caller's own."""

    def select(self, edges, scores):
        return np.arange(min(1, len(edges)))


def test_penalties_that_a_file_cannot_hold_are_refused_at_the_start(table, tmp_path):
    loss, path, log = make_loss(table), tmp_path / "run", Log()
    with pytest.raises(ValueError, match="cannot hold the penalty TwiceAsHard"):
        grow(loss, TwiceAsHard(0.01), small_steps(), observers=[Checkpoints(path), log])
    assert log.kinds == []
    assert not path.exists()
    assert grow(loss, TwiceAsHard(0.01), small_steps(max_edges=2)).reason  # without, as before


def test_rules_that_a_file_cannot_hold_are_refused_at_the_start(table, tmp_path):
    policy = choose_policy(small_steps(), 12)
    policy = replace(policy, strategy=policy.strategy._replace(rule=First()))
    growth = SearchState.begin(Problem.of(make_loss(table), PENALTY, small_steps(), policy))
    with pytest.raises(ValueError, match="cannot hold the policy, which has parts"):
        run_search(growth, [Checkpoints(tmp_path / "run")])
    assert growth.n_activations == 0


def test_a_fallback_lasts_and_is_resumed(tmp_path):
    """Once belief propagation has been left, no later step and no resumed run goes back to it."""
    rng = np.random.default_rng(0)
    hidden = rng.random((3000, 1)) < 0.5
    codes = (hidden ^ (rng.random((3000, 8)) < 0.12)).astype(np.int32)
    counts = PairCounts(PackedTable.from_codes(codes))
    objective = Likelihood(counts, BeliefPropagation(tol=1e-8))
    settings, path = small_steps(checkpoint_every=1, max_edges=24), tmp_path / "run"
    with pytest.warns(ConvergenceWarning, match="continuing with the engine 'trw'") as said:
        whole = grow(objective, Penalty(0.002, 1e-3), settings)
    assert len(said) == 1
    assert whole.solution.info.engine == "trw"
    engines = []

    class Stop:
        def on_event(self, event, growth):
            engines.append(growth.solution.info.engine)
            return engines[-1] == "trw" and event.kind == "checkpoint"

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        stopped = grow(
            objective, Penalty(0.002, 1e-3), settings, observers=[Checkpoints(path), Stop()]
        )
    assert "bp" in engines
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resumed = resume(path, Likelihood(counts, BeliefPropagation(tol=1e-8)))
    assert resumed.n_activations > stopped.n_activations
    assert_same(whole, resumed)
