"""How kernels are compiled and kept: one decorator, and a cache that knows what a kernel calls.

A compiled kernel is one file, named by a hash of everything that it depends on: the sources of its
own file and of every kernel file that it imports, the options and argument types, the versions of
Python and numba, and the processor that it was compiled for. Two places are searched: the kernels
that platform wheels ship, compiled for a level that many processors share, then a folder of the
user's, in which those that had to be compiled are kept. Importing writes and deletes nothing; a
kernel that is saved replaces its versions of other sources.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
import pickle
import re
import sys
import sysconfig
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding
from numba import njit
from numba.core import config, event, serialize
from numba.core.compiler import CompileResult
from numba.misc.appdirs import AppDirs

_ROOT = Path(__file__).parent
SHIPPED = _ROOT / "compiled"
_IMPORT = re.compile(r"^from (?:edgegraft\.kernels|(\.))([\w.]*) import", re.MULTILINE)

# What a processor must have to run kernels that were compiled for a level, best level first.
_V2 = frozenset({"cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"})
_V3 = _V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
LEVELS: dict[str, dict[str, frozenset[str]]] = {
    "x86_64": {"x86-64-v4": _V4, "x86-64-v3": _V3, "x86-64-v2": _V2},
    "aarch64": {"generic": frozenset()},
    "arm64": {"generic": frozenset()},
}


def kernel(function: Any = None, /, **options: Any) -> Any:
    """Compile a function when it is first called, without the GIL, and keep it on disk.

    Options are further ones of ``numba.njit``, such as ``fastmath``.
    """
    if function is None:
        return lambda given: _compile(given, options)
    return _compile(function, options)


def helper(function: Any = None, /, **options: Any) -> Any:
    """Compile a function that kernels alone call.

    Without an entry for Python, which a tenth of the time of a first fit was spent on.
    """
    return kernel(function, no_cpython_wrapper=True, **options)


def _compile(function: Any, options: dict[str, Any]) -> Any:
    dispatcher = njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
    dispatcher._cache = _KernelCache(function, dispatcher.targetoptions)
    return dispatcher


def no_check() -> None:
    """Raise nothing."""


class Compilation(event.Listener):  # type: ignore[misc]
    """What this process has had to compile, shown to a person who waits for it.

    A terminal or notebook gets one line that counts, unless `shown` is set: a display of its own,
    such as that of the command line, shows `line`. Before each, `check` may raise that the user has
    pressed Ctrl-C. Numba reports when a compilation begins and
    ends, also one that fails or is interrupted.
    """

    def __init__(self) -> None:
        self.shown = False
        self.check: Callable[[], None] = no_check
        self._count, self._depth, self._collects = 0, 0, True

    @property
    def line(self) -> str:
        """What is being compiled, nothing if nothing is."""
        return f"compiling kernels, once: {self._count}" if self._depth else ""

    def on_start(self, event: Any) -> None:
        """Count a kernel; those that it calls are compiled within it.

        Meanwhile no garbage is collected: it would take a tenth of the time.
        """
        if not _is_ours(event):
            return
        if not self._depth:
            self._collects = gc.isenabled()
            gc.disable()
        self._count += 1
        self._depth += 1
        self._show()

    def on_end(self, event: Any) -> None:
        """Note that it is done.

        What has gathered is not searched for garbage at once, but with all else that is old.
        """
        if not _is_ours(event):
            return
        self._depth -= 1
        if not self._depth and self._collects:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
        self._show()

    def _show(self) -> None:
        if self.shown or not sys.stderr or not (sys.stderr.isatty() or "ipykernel" in sys.modules):
            return
        sys.stderr.write(f"\r{self.line:40}\r")
        sys.stderr.flush()


def _is_ours(event: Any) -> bool:
    return isinstance(event.data["dispatcher"]._cache, _KernelCache)


COMPILATION = Compilation()
event.register("numba:compile", COMPILATION)


class _KernelCache:
    """The compiled versions of one kernel on disk, as a dispatcher of numba asks for them."""

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        self._options = sorted((name, _text(value)) for name, value in options.items())
        self._source = Path(function.__code__.co_filename)
        self._name = f"{self._source.stem}.{function.__qualname__}"

    @property
    def cache_path(self) -> str | None:
        folder = user_folder()
        return None if folder is None else str(folder)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the kernel compiled for these argument types, None if it is on no disk."""
        context.refresh()
        for path in self._places(signature, context.codegen()):
            parts = _load(path)
            with contextlib.suppress(Exception):  # a file may be damaged and still be unpickled
                if parts is not None:
                    return CompileResult._rebuild(context, *parts)
        COMPILATION.check()
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a kernel that has been compiled, in place of those of other sources."""
        folder = user_folder()
        if folder is None:
            _warn_once()
            return
        path = folder / self._file(signature, result.codegen.magic_tuple())
        library, *parts = result._reduce()
        parts[5] = ""  # annotated source, for people alone
        _write(path, serialize.dumps((library, *parts)))
        for old in folder.glob(f"{self._name}-*.nbc"):
            if not old.name.startswith(f"{self._name}-{self._stamp()}-"):
                old.unlink(missing_ok=True)

    def flush(self) -> None:
        """Do nothing: `recompile` overwrites."""

    def _places(self, signature: Any, codegen: Any) -> Iterator[Path]:
        magic = codegen.magic_tuple()
        level = shipped_level()
        if level is not None:
            yield SHIPPED / level / self._file(signature, (magic[0], level, ""))
        folder = user_folder()
        if folder is not None:
            yield folder / self._file(signature, magic)

    def _file(self, signature: Any, target: tuple[str, ...]) -> str:
        python = sysconfig.get_config_var("EXT_SUFFIX")
        parts = (python, numba.__version__, self._options, str(signature), target)
        return f"{self._name}-{self._stamp()}-{_digest(repr(parts).encode())}.nbc"

    def _stamp(self) -> str:
        return stamp_of(self._source)


def _text(option: Any) -> str:
    """Return an option as text that is the same in every process: sets have no order."""
    return str(sorted(option)) if isinstance(option, set | frozenset) else str(option)


def _load(path: Path) -> Any:
    """Return what a file holds; None if it is absent, damaged, or of classes that are gone."""
    try:
        return pickle.loads(path.read_bytes())
    except Exception:  # noqa: BLE001 - unpickling what is damaged may raise anything
        return None


def _write(path: Path, data: bytes) -> None:
    """Write a file at once: other processes see all of it or nothing."""
    part = path.with_suffix(f".{uuid.uuid4().hex}")
    part.write_bytes(data)
    part.replace(path)


@cache
def shipped_level() -> str | None:
    """Return the level of the shipped kernels that this processor runs, None if none does.

    The environment variable ``EDGEGRAFT_KERNELS`` chooses one of them by name, or ``native``, for
    which no kernels are shipped: all are then compiled for this processor.
    """
    if config.CPU_NAME is not None or not SHIPPED.is_dir():
        return None
    present = [name for name in supported_levels() if (SHIPPED / name).is_dir()]
    wanted = os.environ.get("EDGEGRAFT_KERNELS")
    if wanted:
        return wanted if wanted in present else None
    return next(iter(present), None)


def supported_levels() -> list[str]:
    """Return the levels whose kernels this processor runs, the best first."""
    features = {name for name, has in binding.get_host_cpu_features().items() if has}
    levels = LEVELS.get(binding.get_process_triple().split("-")[0], {})
    return [name for name, needed in levels.items() if needed <= features]


@cache
def user_folder() -> Path | None:
    """Return the folder in which compiled kernels are kept, None if none can be written."""
    chosen = [Path(config.CACHE_DIR) / "edgegraft"] if config.CACHE_DIR else []
    common = Path(AppDirs(appname="edgegraft", appauthor=False).user_cache_dir)
    for folder in [*chosen, _ROOT / "__pycache__", common]:
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            return folder
    return None


@cache
def stamp_of(path: Path, root: Path = _ROOT) -> str:
    """Return a hash of a kernel file and of all kernel files below `root` that it imports."""
    known, waiting = {path}, [path]
    while waiting:
        new = _imports(waiting.pop(), root) - known
        known |= new
        waiting.extend(new)
    sources = sorted(known, key=lambda each: each.name)
    return _digest(b"".join(source.read_bytes() for source in sources))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:20]


def _imports(path: Path, root: Path) -> frozenset[Path]:
    found = set()
    for relative, name in _IMPORT.findall(path.read_text()):
        folder = path.parent if relative else root
        source = folder.joinpath(*name.strip(".").split(".")).with_suffix(".py")
        if source.exists() and source != Path(__file__):
            found.add(source)
    return frozenset(found)


@cache
def _warn_once() -> None:
    warnings.warn(
        "compiled kernels cannot be kept, and every process compiles them again: neither the "
        "installed package nor the home directory can be written. Set the environment variable "
        "NUMBA_CACHE_DIR to a folder that can",
        RuntimeWarning,
        stacklevel=2,
    )
