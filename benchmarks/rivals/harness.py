"""Run one tool on one problem under a limit, and store the figures in a file."""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.rivals import problems
from benchmarks.rivals.child import ABSENT
from benchmarks.rivals.registry import Rival

ROOT = Path(__file__).resolve().parents[2]
Result = dict[str, Any]
THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS",
)  # fmt: skip


class Limits(NamedTuple):
    """Limits of a fit; `wall_seconds` ends a fit that waits without computing."""

    cpu_seconds: float = 600.0
    memory_gib: float = 16.0
    wall_seconds: float = 2400.0


class Bench(NamedTuple):
    """The folder of the files, and how fits are run."""

    folder: Path
    python: str = sys.executable
    threads: int = 1
    limits: Limits = Limits()

    def problem_path(self, data: str, seed: int) -> Path:
        """Return the file of a problem; write it first if it does not exist."""
        path = self.folder / "data" / f"{data}-{seed}.npz"
        if not path.exists():
            problems.write(problems.prepare(data, seed), path)
        return path

    def result_path(self, rival: str, data: str, seed: int) -> Path:
        """Return the path of the file of one result."""
        return self.folder / "results" / f"{data}--{rival}--{seed}.json"


def measure(bench: Bench, rival: Rival, data: str, seed: int, again: bool = False) -> Result:
    """Return the result of one fit, from its file if it exists."""
    path = bench.result_path(rival.name, data, seed)
    if path.exists() and not again:
        stored: Result = json.loads(path.read_text(encoding="utf-8"))
        if stored["status"] != "absent":
            return stored
    problem = bench.problem_path(data, seed)
    result = {
        "rival": rival.name,
        "data": data,
        "seed": seed,
        "threads": bench.threads,
        "machine": machine(),
    }
    if rival.binary_only and int(problems.read(problem).states.max()) > 2:
        result |= {"status": "binary only"}
    else:
        result |= run_child(bench, rival, problem, seed)
    if "gpu" in result:
        result["machine"] += f"; {result['gpu']}"
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.part")
    unfinished.write_text(json.dumps(result, indent=1), encoding="utf-8")
    unfinished.replace(path)
    return result


def machine() -> str:
    """Return the date, the processor and the Python version of a result."""
    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"model name\s*:\s*(.+)", info.read_text())
        processor = found[1] if found else processor
    day = date.today().isoformat()
    return f"{day}; {processor}, {os.cpu_count()} cores; Python {platform.python_version()}"


def run_child(bench: Bench, rival: Rival, problem: Path, seed: int) -> Result:
    """Fit in a separate process and return how it ended."""
    with tempfile.TemporaryDirectory() as scratch:
        order = {
            "function": rival.function,
            "packages": rival.packages,
            "warm": rival.warm,
            "problem": str(problem.resolve()),
            "seed": seed,
            "threads": bench.threads,
            "cpu_seconds": bench.limits.cpu_seconds,
            "memory_gib": None if rival.gpu else bench.limits.memory_gib,
            "gpu": rival.gpu,
            "result": str(Path(scratch) / "result.json"),
        }
        written = Path(scratch) / "order.json"
        written.write_text(json.dumps(order), encoding="utf-8")
        environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(bench.threads))
        if rival.cold:
            environment["NUMBA_CACHE_DIR"] = str(Path(scratch) / "cache")
        command = [bench.python, "-m", "benchmarks.rivals.child", str(written)]
        limits = bench.limits
        wall_seconds = limits.cpu_seconds if rival.gpu else limits.wall_seconds
        try:
            ended = subprocess.run(
                command,
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=wall_seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"status": "timed out", "limit_s": wall_seconds}
        if ended.returncode == 0:
            figures: Result = json.loads(Path(order["result"]).read_text(encoding="utf-8"))
            return {"status": "done"} | figures
    if ended.returncode == -signal.SIGXCPU:
        return {"status": "timed out", "limit_s": bench.limits.cpu_seconds}
    status = "absent" if ended.returncode == ABSENT else "failed"
    return {"status": status, "message": last_line(ended.stderr, ended.returncode)}


def last_line(text: str, code: int) -> str:
    """Return what the process said last, or how it ended where it said nothing."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = lines[-1][:300] if lines else ""
    return f"killed by {signal.Signals(-code).name}; {said}" if code < 0 else said
