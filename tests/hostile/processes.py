"""Attacks on processes in the middle of their work; each returns what came of every try."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from threading import Timer

import numpy as np
import psutil

import edgegraft as eg
from edgegraft.datasets import make_chain
from tests.cli.running import COMMAND

#: Runs that are killed, by their options.
RUNS = {
    "in memory": [],
    "ordered": ["--order", "a<b<c"],
    "out of memory": ["--max-memory", "1066 MB"],
    "first hit": ["--strategy", "first-hit"],
    "likelihood": ["--objective", "likelihood"],
    "bootstrap": ["--bootstrap", "20"],
    "prediction": ["--aim", "prediction"],
}
_MAX_LIVES = 20

#: What is entered when a stage begins.
STAGES = {
    "reading": "edgegraft.cli.learn_rows:open_rows",
    "ranking": "edgegraft.grafting.loop:rank_pairs",
    "first fit": "edgegraft.grafting.steps:begin",
    "search": "edgegraft.grafting.steps:rescore",
    "tests": "edgegraft.learn.discovery:decide",
    "last fit": "edgegraft.learn.discovery:last_fit",
    "shares": "edgegraft.learn.discovery:match_margins",
    "certificate": "edgegraft.learn.discovery:score_inactive",
    "prediction": "edgegraft.learn.aims:fit_for_prediction",
    "bootstrap": "edgegraft.learn.bootstrap:_p_values",
    "model": "edgegraft.cli.learn_run:data_quality",
    "report": "edgegraft.report:write_report",
}

_PRESS = """
import importlib, os, signal, sys, threading
place, delay, twice, *arguments = sys.argv[1:]
module, name = place.split(":")
home = importlib.import_module(module)
real = getattr(home, name)

def press():
    os.kill(os.getpid(), signal.SIGINT)

def entered(*given, **options):
    setattr(home, name, real)
    wait = float(delay)
    for k in range(1 + int(twice)):
        threading.Timer(wait + 0.02 * k, press).start() if wait or k else press()
    return real(*given, **options)

setattr(home, name, entered)
sys.argv = ["edgegraft", *arguments]
from edgegraft.cli import main
main()
"""


def table_file(folder: Path, n_rows: int = 3000, n: int = 12) -> Path:
    """Write a table of letters."""
    codes = make_chain(n, n_states=3, n_rows=n_rows, random_state=0).X.astype(int)
    names = ",".join(f"c{k}" for k in range(n))
    np.savetxt(
        folder / "rows.csv", np.array(list("abc"))[codes], "%s", ",", header=names, comments=""
    )
    return folder / "rows.csv"


def learn(folder: Path, *more: str) -> subprocess.Popen[bytes]:
    """Start a command."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    cache = {"EDGEGRAFT_CACHE": str(folder / "cache")}
    return subprocess.Popen([COMMAND, *more, "--quiet"], env=os.environ | cache, **quiet)


def same_model(one: Path, other: Path) -> bool:
    """Return whether two models have the same bits."""
    if not one.exists():
        return False
    first, second = eg.read_details(one), eg.read_details(other)
    same = first.theta.tobytes() == second.theta.tobytes()
    return same and all(
        np.array_equal(values, second.edge_columns[name], equal_nan=True)
        for name, values in first.edge_columns.items()
    )


def live(
    process: subprocess.Popen[bytes], seconds: float = np.inf, until: Path | None = None
) -> float:
    """Wait until a process ends, or kill it after so many CPU seconds; return those it took.

    By its CPU time a life is as long on a busy machine as on a quiet one. It may also end when a
    file is there.
    """
    took, own = 0.0, psutil.Process(process.pid)
    while process.poll() is None:
        with contextlib.suppress(psutil.Error):
            took = sum(own.cpu_times()[:2])
        if took > seconds or (until and until.exists()):
            process.kill()
            process.wait()
        time.sleep(0.02)
    return took


def run_lives(folder: Path, name: str, start: list[str], lives: Iterable[float]) -> Path:
    """Run a command in lives of so many CPU seconds each; return its model."""
    model, kept = folder / name, folder / f"{name}.checkpoint"
    for seconds in lives:
        command = ["resume", str(kept), "--force"]
        if not kept.exists():
            command = [*start, "-o", str(model), "--checkpoint", str(kept), "--force"]
        process = learn(folder, *command)
        live(process, seconds)
        if process.returncode == 0:
            break
    return model


def whole_run(folder: Path, kind: str, rows: Path) -> tuple[list[str], Path, float]:
    """Run a kind of run without faults; return its command, its model and its CPU seconds."""
    start, whole = ["learn", str(rows), *RUNS[kind]], folder / f"{kind}.whole"
    return start, whole, live(learn(folder, *start, "-o", str(whole)))


def kill_runs(folder: Path, n: int) -> list[str]:
    """Kill runs of every kind at random moments, resume them, and compare with one left alone."""
    rows, chance, outcomes = table_file(folder, 30_000, 30), random.Random(0), []
    for kind in RUNS:
        start, whole, seconds = whole_run(folder, kind, rows)
        for k in range(n):
            lives = [chance.uniform(0.2, 1.0) * seconds for _ in range(3)]
            model = run_lives(folder, f"{kind}.{k}", start, [*lives, np.inf])
            outcomes.append("survived" if same_model(model, whole) else "lost")
    return outcomes


def live_shortly(folder: Path, n: int) -> list[str]:
    """Kill every life of a run, the first after a third of its work, until one ends.

    A stage is repeated from its beginning, so each life is a half longer than the one before.
    """
    rows, outcomes = table_file(folder, 60_000, 60), []
    for kind in ("in memory", "ordered", "bootstrap", "prediction"):
        start, whole, seconds = whole_run(folder, kind, rows)
        first = folder / f"{kind}.first"  # to start, to read the rows and to rank the pairs
        command = [*start, "-o", str(folder / "m"), "--checkpoint", str(first)]
        idle = live(learn(folder, *command), until=first)
        work = (seconds - idle) / 3
        for k in range(n):
            lives = [idle + work * 1.5**k for k in range(_MAX_LIVES)]
            model = run_lives(folder, f"{kind}.{k}", start, lives)
            outcomes.append("survived" if same_model(model, whole) else "lost")
    return outcomes


def interrupt_runs(folder: Path, n: int) -> list[str]:
    """Press Ctrl-C at random moments: a model that loads, or none, and no traceback."""
    rows, chance, outcomes = table_file(folder), random.Random(0), []
    for _ in range(n):
        command = [COMMAND, "learn", str(rows), "-o", str(folder / "m"), "--quiet"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(chance.uniform(0.3, 6.0))
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
        outcomes.append(_left_by(process.returncode, said, folder))
    return outcomes


def share_files(folder: Path, n: int) -> list[str]:
    """Run two processes at once with the same store and the same output."""
    rows, outcomes, model = table_file(folder, 30_000, 30), [], folder / "m"
    for _ in range(n):
        command = ["learn", str(rows), "-o", str(model), "--force", *RUNS["out of memory"]]
        both = [learn(folder, *command) for _ in range(2)]
        fine = [process.wait() == 0 for process in both]
        left = [p for p in folder.iterdir() if p.name.startswith(".")]
        whole = eg.load(model).n_variables == 30 and not left
        outcomes += ["survived" if good and whole else "lost" for good in fine]
    return outcomes


def interrupt_stages(folder: Path, n: int) -> list[str]:
    """Press Ctrl-C once or twice as a stage begins or soon after: a whole model or none."""
    rows, chance, outcomes = table_file(folder), random.Random(0), []
    for place in STAGES.values():
        for k in range(n):
            more = ["--bootstrap", "20", "--report", str(folder / "m.html")]
            more += ["--checkpoint", str(folder / "c"), "--aim", "prediction"]
            delay = 0.0 if k == 0 else chance.uniform(0.0, 0.3)
            pressed = [place, str(delay), str(chance.randrange(2))]
            command = ["learn", str(rows), "-o", str(folder / "m"), "--quiet", *more]
            done = subprocess.run(
                [sys.executable, "-c", _PRESS, *pressed, *command],
                capture_output=True,
                check=False,
            )
            outcomes.append(_left_by(done.returncode, done.stderr, folder))
    return outcomes


def _left_by(code: int, said: bytes, folder: Path) -> str:
    """Return what came of an interrupted run, and remove what it left."""
    model = folder / "m"
    left = {path.name for path in folder.iterdir()} - {"rows.csv"}
    good = not model.exists() or eg.load(model).n_variables == 12
    good &= b"Traceback" not in said and code in (0, 1, -signal.SIGINT)
    good &= not any(name.startswith(".") for name in left)  # half-written
    for name in left:
        (folder / name).unlink()
    return "survived" if good else "lost"


def lose_machines(folder: Path, n: int) -> list[str]:
    """Kill workers while a network is learned on a cluster, or its scheduler, and resume."""
    import pandas as pd

    from edgegraft.errors import ClusterError
    from edgegraft.learn import Plan, discover, resume_discovery
    from tests.cluster.conftest import cut
    from tests.cluster.machines import machines

    codes = make_chain(12, n_states=3, n_rows=6000, random_state=0).X.astype(int)
    parts = cut(pd.DataFrame(codes, columns=[f"v{k}" for k in range(12)]), 4)
    plan, chance, outcomes = Plan(max_tests=16), random.Random(0), []
    with machines(2) as (_, client):
        expected = discover(eg.ClusterRows(client, parts), plan, sample_rows=1500).model
    for k in range(n):
        path = folder / f"c{k}"
        with machines(3) as (cluster, client):
            rows = eg.ClusterRows(client, parts)
            victims = ["scheduler"] if k % 2 else ["w1", "w2"]
            killers = [Timer(chance.uniform(0.0, 2.0), cluster.kill, [name]) for name in victims]
            for killer in killers:
                killer.start()
            try:
                found = discover(rows, plan, checkpoint=path, sample_rows=1500).model
            except ClusterError:
                found = None
            for killer in killers:
                killer.join()
        if found is None:
            with machines(2) as (_, client):
                rows = eg.ClusterRows(client, parts)
                again = resume_discovery if path.exists() else discover
                first = (path, rows, plan) if path.exists() else (rows, plan)
                found = again(*first, sample_rows=1500).model
        same = found.theta.tobytes() == expected.theta.tobytes()
        outcomes.append("survived" if same else "lost")
    return outcomes
