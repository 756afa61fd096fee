"""Several processes compile the kernels of a first fit."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from edgegraft.core.threads import interruptible
from edgegraft.kernels import compile_workers, plan
from edgegraft.kernels.compile_workers import Helpers

# Fits a table from an empty cache, and lists the kernels that this process compiled.
FIT = """
import json
import numpy as np
from numba.core import event
from edgegraft import GraftedMRF
names = []
class Listener(event.Listener):
    def on_start(self, given):
        names.append(given.data["dispatcher"].py_func.__name__)
    def on_end(self, given):
        pass
event.register("numba:compile", Listener())
codes = np.random.default_rng(0).integers(0, 3, (100, 4))
codes[:, 1] = codes[:, 0]
GraftedMRF(random_state=0).fit(codes)
print(json.dumps(names))
"""


@pytest.fixture
def claims(tmp_path):
    folder = tmp_path / "claims"
    folder.mkdir()
    return folder


class Ended:
    """A process that is over, or not."""

    def __init__(self, code):
        self.code = code

    def poll(self):
        return self.code

    wait = terminate = poll


def test_a_kernel_is_compiled_by_the_process_that_claims_it(tmp_path, claims):
    here, there = Helpers(claims), Helpers(claims)
    path = tmp_path / "kernel.nbc"
    assert not here.bring(path)
    assert there.is_claimed(path)
    path.write_text("")
    assert there.bring(path)


def test_a_kernel_of_this_process_that_was_interrupted_is_not_waited_for(tmp_path, claims):
    here = Helpers(claims)
    here._processes = [Ended(None)]
    assert not here.bring(tmp_path / "kernel.nbc")
    assert not here.bring(tmp_path / "kernel.nbc")


def test_helpers_end_with_the_process_that_started_them_not_with_its_forks(claims):
    here = Helpers(claims)
    waiting = [sys.executable, "-c", "import time; time.sleep(60)"]
    here._processes = [subprocess.Popen(waiting)]
    here._stop(os.getpid() + 1)
    assert claims.is_dir()
    assert here._processes[0].poll() is None
    here._stop(os.getpid())
    assert not claims.is_dir()
    assert here._processes[0].poll() is not None


def test_ctrl_c_ends_the_wait_for_a_kernel_if_there_is_nothing_to_keep(tmp_path, claims):
    path = tmp_path / "kernel.nbc"
    Helpers(claims).bring(path)
    here = Helpers(claims)
    here._processes = [Ended(None)]
    with interruptible() as interruption:
        interruption.asked = True
        with pytest.raises(KeyboardInterrupt):
            here.bring(path)


def test_a_kernel_whose_process_has_ended_or_takes_too_long_is_not_waited_for(
    tmp_path, claims, monkeypatch
):
    path = tmp_path / "kernel.nbc"
    Helpers(claims).bring(path)
    here = Helpers(claims)
    here._processes = [Ended(1)]
    assert not here.bring(path)
    here._processes = [Ended(None)]
    monkeypatch.setattr(compile_workers, "MAX_WAIT", 0.05)
    assert not here.bring(path)


def test_without_the_folder_of_claims_helpers_stop(tmp_path):
    gone = Helpers(tmp_path / "gone")
    assert gone.is_claimed(tmp_path / "kernel.nbc")
    assert not gone.bring(tmp_path / "kernel.nbc")


@pytest.mark.parametrize(
    ("setting", "value"),
    [("MAX_HELPERS", 0), ("MIN_KERNELS", 100), ("_may_start", lambda: False)],
)
def test_no_process_is_started_where_it_is_not_worth_it(tmp_path, monkeypatch, setting, value):
    monkeypatch.setattr(compile_workers, setting, value)
    monkeypatch.setattr(plan, "planned", lambda: [(None, (), tmp_path / f"{k}") for k in range(9)])
    monkeypatch.setattr(
        compile_workers, "_run", lambda claims: pytest.fail("a process was started")
    )
    here = Helpers()
    assert not here.bring(tmp_path / "3")


def test_progress_counts_the_planned_kernels_that_are_there(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "planned", lambda: [(None, (), tmp_path / f"{k}") for k in range(9)])
    monkeypatch.setattr(compile_workers, "_run", lambda claims: Ended(0))
    monkeypatch.setattr(compile_workers, "cores", lambda: 2)
    here = Helpers()
    assert not here.bring(tmp_path / "other")
    assert here.progress() == ""
    assert not here.bring(tmp_path / "3")
    for k in range(4):
        (tmp_path / f"{k}").write_text("")
    assert here.progress() == "4 of 9"


@pytest.mark.slow
def test_what_is_planned_is_what_a_first_fit_needs(tmp_path, claims):
    variables = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "EDGEGRAFT_KERNELS": "none"}
    helper = [sys.executable, "-m", "edgegraft.kernels.plan", str(claims)]
    subprocess.run(helper, env=variables, check=True)
    compiled = {path.name for path in tmp_path.glob("edgegraft/*.nbc")}
    assert {path.name for _, _, path in plan.planned()} <= compiled
    command = [sys.executable, "-W", "ignore", "-c", FIT]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
