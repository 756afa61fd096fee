"""One fit in its own process: `python -m benchmarks.rivals.child ORDER.json`.

The order contains the function, the file of the problem and the limits. Only the call is timed:
imports and, if requested, a first fit of a small table that loads compiled code come before it; the
evaluation of the outcome comes after it. Memory is the peak of the process until then, including
imports.
"""

from __future__ import annotations

import importlib
import json
import math
import re
import resource
import sys
import warnings
from importlib import metadata
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.rivals.outcome import Codes, Fit
from benchmarks.rivals.problems import read

ABSENT = 3
GIB = 1 << 30


def main(order: dict[str, Any]) -> None:
    """Fit, evaluate and write the figures."""
    warnings.simplefilter("ignore")
    module, _, name = order["function"].partition(":")
    try:
        fit: Fit = getattr(importlib.import_module(module), name)
        versions = {package: metadata.version(package) for package in order["packages"]}
    except ImportError as missing:  # includes the error for a missing distribution
        print(f"{type(missing).__name__}: {missing}", file=sys.stderr)
        sys.exit(ABSENT)
    problem = read(Path(order["problem"]))
    seed, threads = order["seed"], order["threads"]
    if order["warm"]:
        fit(*small_table(problem.states), seed, threads)
    set_limits(order["cpu_seconds"], order["memory_gib"])
    started, used = perf_counter(), cpu_seconds()
    outcomes = fit(problem.train, problem.states, seed, threads)
    figures = {
        "cpu_s": cpu_seconds() - used,
        "wall_s": perf_counter() - started,
        "peak_mb": peak_mb(),
        "versions": versions,
    }
    set_limits(None, None)
    if order["gpu"]:
        import torch

        figures["gpu"] = torch.cuda.get_device_name()

    from benchmarks.rivals.figures import judge

    figures["outcomes"] = [
        judge(outcome, problem.test, problem.states, problem.truth) for outcome in outcomes
    ]
    Path(order["result"]).write_text(json.dumps(figures), encoding="utf-8")


def small_table(states: Codes) -> tuple[Codes, Codes]:
    """Return a chain of 15 columns, on which every part of a tool runs once."""
    rng = np.random.default_rng(0)
    sizes = np.resize(states, 15)
    codes = rng.integers(0, sizes, (1000, 15))
    for j in range(1, 15):
        same = rng.random(1000) < 0.5
        codes[same, j] = codes[same, j - 1] % sizes[j]
    return codes.astype(np.uint16), sizes


def set_limits(seconds: float | None, gib: float | None) -> None:
    """Limit the remaining CPU seconds and the address space of this process."""
    for kind, limit in (
        (resource.RLIMIT_CPU, None if seconds is None else math.ceil(cpu_seconds() + seconds)),
        (resource.RLIMIT_AS, None if gib is None else int(gib * GIB)),
    ):
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (hard if limit is None else limit, hard))


def cpu_seconds() -> float:
    """Return user and system seconds of this process and of the children it has waited for."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)


def peak_mb() -> float:
    """Return the peak memory of this process."""
    status = Path("/proc/self/status")
    if status.exists():
        # ru_maxrss includes the peak of the parent process; VmHWM does not.
        found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text())
        if found:
            return int(found[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
