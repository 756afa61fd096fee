"""Processes that compile kernels of a first fit while this one compiles others.

They are started when a kernel of the plan (:mod:`edgegraft.kernels.plan`) is missing, if several
are and the machine has more than one core. All share a folder of claims: who creates the file of a
kernel compiles it, others wait for the result or go on to the next. They are plain processes that
run a module: the program that uses the library is not imported again.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

MIN_KERNELS = 4  # missing ones that are worth another process
MAX_HELPERS = 3
MAX_WAIT = 60.0  # seconds for one kernel of another process


def no_check() -> None:
    """Raise nothing."""


before_compiling: Callable[[], None] = no_check  # what may raise if the user has pressed Ctrl-C


class Helpers:
    """The processes and what they have claimed; `claims` is given to helpers themselves."""

    def __init__(self, claims: Path | None = None) -> None:
        self._claims = claims
        self._processes: list[subprocess.Popen[bytes]] = []
        self._missing: list[Path] | None = None
        self._own: set[Path] = set()  # claimed by this process

    def bring(self, path: Path) -> bool:
        """Return whether another process has compiled the kernel of this file.

        Helpers are started if it is the first that is missing; a kernel that another process has
        claimed is waited for. If it returns False, the kernel is for this process to compile.
        """
        if self._claims is None:
            self._start(path)
        if self._claims is None or path in self._own:  # claimed before, and interrupted
            return False
        try:
            (self._claims / path.name).open("x").close()
            self._own.add(path)
        except FileExistsError:
            return self._wait(path)
        except OSError:  # the folder is gone: its owner has ended
            pass
        return False

    def is_claimed(self, path: Path) -> bool:
        """Return whether a process has claimed the kernel, or the folder of claims is gone."""
        claims = self._claims
        return claims is not None and (not claims.is_dir() or (claims / path.name).exists())

    def progress(self) -> str:
        """Return how many of the planned kernels are there, nothing if none was missing."""
        missing = self._missing or []
        done = sum(path.exists() for path in missing)
        return f"{done} of {len(missing)}" if done < len(missing) else ""

    def _wait(self, path: Path) -> bool:
        end = time.monotonic() + MAX_WAIT
        while not path.exists() and time.monotonic() < end:
            ended = [process.poll() is not None for process in self._processes]
            if ended and all(ended):
                break
            before_compiling()
            time.sleep(0.01)
        return path.exists()

    def _start(self, path: Path) -> None:
        if self._missing is not None:
            return
        from edgegraft.kernels.plan import planned

        paths = [each for _, _, each in planned()]
        if path not in paths:
            return
        self._missing = [each for each in paths if not each.exists()]
        n_helpers = min(MAX_HELPERS, cores() - 1)
        if len(self._missing) < MIN_KERNELS or n_helpers < 1 or not _may_start():
            return
        try:
            self._claims = Path(tempfile.mkdtemp(prefix="edgegraft-"))
            atexit.register(self._stop, os.getpid())
            self._processes = [_run(self._claims) for _ in range(n_helpers)]
        except OSError:
            self._claims = None

    def _stop(self, owner: int) -> None:
        """End the helpers with the process that started them, not with a fork of it."""
        if os.getpid() != owner:
            return
        for process in self._processes:
            process.terminate()
            process.wait()
        if self._claims is not None:
            shutil.rmtree(self._claims, ignore_errors=True)


def _may_start() -> bool:
    """Return whether this is an interpreter on its own.

    A program with Python in it cannot be asked to run a module, and in one of many processes each
    would start its helpers.
    """
    name = Path(sys.executable or "").name.lower()
    alone = multiprocessing.parent_process() is None
    return alone and name.startswith("python") and not getattr(sys, "frozen", False)


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _run(claims: Path) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "edgegraft.kernels.plan", str(claims)],
        env=os.environ | {"PYTHONPATH": path},
        stdin=quiet,
        stdout=quiet,
        stderr=quiet,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )


HELPERS = Helpers()
