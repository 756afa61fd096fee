"""Compare old and new code in one run.

    python -m benchmarks.side_by_side --old PATH/src --new PATH/src [--only NAME ...]

Each side of a task is a separate process with the same tables. The two take turns, so that other
work on the machine affects both equally. Figures are medians: CPU seconds of all threads, wall
seconds, and the peak memory of a process that did the task. The first fit of a fresh process is
timed from the start of the interpreter to its end, with compiled kernels (warm) and without (cold,
with an empty numba cache). Names that differ between the two sides are resolved in
`benchmarks/side_by_side_worker.py`.

The exit status is 1 if any CPU time or peak memory of the new side exceeds `--limit` times that of
the old.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

WORKER = Path(__file__).with_name("side_by_side_worker.py")
TASKS = (
    "pair_counts_5_states",
    "pair_counts_2_states",
    "pair_counts_21_states",
    "pseudolikelihood_600_edges",
    "pseudolikelihood_all_pairs",
    "pseudolikelihood_scores",
    "parameters_group_penalty",
    "parameters_ridge_all_pairs",
    "parameters_likelihood_bp",
    "networks_5_states",
    "networks_ising",
    "out_of_memory",
    "first_fit_warm",
    "first_fit_cold",
)


class Figures(NamedTuple):
    """Seconds and MiB of one side."""

    cpu: float
    wall: float
    peak: float


class Run(NamedTuple):
    """Arguments that all processes share."""

    folder: Path
    scale: float

    def command(self, task: str) -> list[str]:
        """Return the command line of a process."""
        return [sys.executable, str(WORKER), task, str(self.folder), str(self.scale)]


class Side:
    """A process that does one task with one version of the code."""

    def __init__(self, run: Run, task: str, source: Path) -> None:
        self._process = subprocess.Popen(
            run.command(task),
            env=environment(source),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._turns: list[dict[str, float]] = []

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    def wait(self) -> dict[str, Any]:
        """Return the next line of the process."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args} ended with {self._process.wait()}")
        return dict(json.loads(line))

    def turn(self) -> None:
        """Do the task once."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        self._turns.append(self.wait())

    def end(self) -> Figures:
        """Return the medians and the peak memory."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        peak = self.wait()["peak"]
        self._process.stdin = None
        return Figures(*(median(t[name] for t in self._turns) for name in ("cpu", "wall")), peak)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.side_by_side", description=__doc__)
    parser.add_argument("--old", type=Path, required=True, help="the folder src of the old code")
    parser.add_argument("--new", type=Path, required=True, help="the folder src of the new code")
    parser.add_argument("--only", nargs="+", choices=TASKS, default=TASKS, metavar="NAME")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--cold-repeats", type=int, default=2, help="repeats of the cold first fit")
    parser.add_argument("--scale", type=float, default=1.0, help="shrinks the tables")
    parser.add_argument("--limit", type=float, default=1.05)
    options = parser.parse_args(arguments)
    sources = [options.old.resolve(), options.new.resolve()]
    for source in sources:
        if not (source / "edgegraft").is_dir():
            parser.error(f"{source} does not contain the package 'edgegraft': give the folder src")
    worse = []
    with tempfile.TemporaryDirectory(prefix="side-by-side-") as folder:
        run = Run(Path(folder), options.scale)
        env = environment(sources[0])
        subprocess.run(run.command("prepare"), env=env, check=True)
        print("\n".join(header()), flush=True)
        for task in options.only:
            repeats = options.cold_repeats if task == "first_fit_cold" else options.repeats
            old, new = measure(run, task, sources, repeats)
            print(row(task, old, new, options.limit), flush=True)
            if max(new.cpu / old.cpu, new.peak / old.peak) > options.limit:
                worse.append(task)
    print(f"\nWorse by more than {options.limit - 1:.0%}: {', '.join(worse) or 'none'}.")
    return 1 if worse else 0


def environment(source: Path, cache: Path | None = None) -> dict[str, str]:
    """Return the environment of a process that runs the code of `source` on one BLAS thread."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    found = {**os.environ, **one, "PYTHONPATH": str(source)}
    return found if cache is None else {**found, "NUMBA_CACHE_DIR": str(cache)}


def measure(run: Run, task: str, sources: list[Path], repeats: int) -> list[Figures]:
    """Return the figures of both sides, measured in turns."""
    if task.startswith("first_fit"):
        return first_fits(run, sources, repeats, cold=task.endswith("cold"))
    with ExitStack() as stack:
        sides = [stack.enter_context(Side(run, task, source)) for source in sources]
        for side in sides:
            side.wait()
        for k in range(repeats):
            for side in sides[:: 1 if k % 2 == 0 else -1]:
                side.turn()
        return [side.end() for side in sides]


def first_fits(run: Run, sources: list[Path], repeats: int, *, cold: bool) -> list[Figures]:
    """Time whole processes; the first warm pair fills the caches and does not count."""
    turns: list[list[Figures]] = [[], []]
    for k in range(repeats if cold else repeats + 1):
        for side in (0, 1) if k % 2 == 0 else (1, 0):
            turns[side].append(whole_process(run, sources[side], cold))
    counted = [each if cold else each[1:] for each in turns]
    return [Figures(*map(median, zip(*each, strict=True))) for each in counted]


def whole_process(run: Run, source: Path, cold: bool) -> Figures:
    with tempfile.TemporaryDirectory() as cache:
        env = environment(source, Path(cache) if cold else None)
        started = perf_counter()
        process = subprocess.Popen(run.command("first_fit"), env=env, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{process.args} ended with {process.returncode}")
        wall = perf_counter() - started
    return Figures(used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1024)


def header() -> Iterator[str]:
    yield (
        "| work | old CPU s | new CPU s | ratio | old wall s | new wall s | ratio "
        "| old peak MiB | new peak MiB | ratio |"
    )
    yield "| --- " + "| ---: " * 9 + "|"


def row(task: str, old: Figures, new: Figures, limit: float) -> str:
    """Return a line of the table; ratios of CPU time and memory above the limit are bold."""
    cells = [task.replace("_", " ")]
    for name, before, after in zip(Figures._fields, old, new, strict=True):
        ratio = f"{after / before:.3f}"
        bold = name != "wall" and after / before > limit
        cells += [f"{before:.3g}", f"{after:.3g}", f"**{ratio}**" if bold else ratio]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
