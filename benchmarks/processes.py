"""Run functions of benchmarks in separate processes, so that their memory can be measured."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any


def start(function: Callable[..., Any], *given: object) -> subprocess.Popen[str]:
    """Start a function of a module in a separate process."""
    module = sys.modules[function.__module__].__spec__
    assert module is not None
    call = json.dumps([module.name, function.__name__, *given])
    command = [sys.executable, "-m", "benchmarks.processes", call]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def answer(child: subprocess.Popen[str]) -> dict[str, Any]:
    """Wait for a process of `start` and return the result of its function."""
    out, _ = child.communicate()
    if child.returncode:
        raise RuntimeError(f"{child.args} failed with status {child.returncode}")
    return dict(json.loads(out.splitlines()[-1]))


if __name__ == "__main__":
    module, function, *given = json.loads(sys.argv[1])
    print(json.dumps(getattr(importlib.import_module(module), function)(*given)))
