"""How kernels are compiled and kept: one decorator, and a cache that knows what a kernel calls.

numba checks a cached kernel against its own file only, so a kernel that calls one in another file
would keep the old callee compiled in after an upgrade. Here the stamp of a kernel is a hash of its
file and of every kernel file that it imports, directly or not. Nothing is ever deleted: a kernel
whose stamp differs is compiled again and replaces its own entry.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

_ROOT = Path(__file__).parent
_IMPORT = re.compile(r"^from (?:edgegraft\.kernels|(\.))([\w.]*) import", re.MULTILINE)


def kernel(function: Any = None, /, **options: Any) -> Any:
    """Compile a function when it is first called, without the GIL, and keep it on disk.

    Parameters
    ----------
    function : function
    **options
        Further options of ``numba.njit``, such as ``fastmath``.
    """
    if function is None:
        return lambda given: _compile(given, options)
    return _compile(function, options)


def _compile(function: Any, options: dict[str, Any]) -> Any:
    dispatcher = njit(nogil=True, **options)(function)
    try:
        dispatcher._cache = _StampedCache(function)
    except RuntimeError:  # numba found no folder that it may write to
        _warn_once()
    return dispatcher


class _StampedCache(FunctionCache):  # type: ignore[misc]
    """numba's cache of one function, fresh as long as all sources that it was compiled from are."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = _CacheFile(
            self._cache_path,
            self._impl.filename_base,
            stamp_of(Path(function.__code__.co_filename)),
        )


class _CacheFile(IndexDataCacheFile):  # type: ignore[misc]
    """numba's files of one function; an index that cannot be read is one that is not there.

    It may name classes that are gone since it was written, or be damaged.
    """

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except Exception:  # noqa: BLE001 - unpickling what is damaged may raise anything
            return {}


def stamp_of(path: Path, root: Path = _ROOT) -> str:
    """Return a hash of a kernel file and of all kernel files below `root` that it imports."""
    known, waiting = {path}, [path]
    while waiting:
        new = _imports(waiting.pop(), root) - known
        known |= new
        waiting.extend(new)
    digest = hashlib.sha256()
    for source in sorted(known, key=lambda each: each.name):
        digest.update(_read(source))
    return digest.hexdigest()


@cache
def _read(path: Path) -> bytes:
    return path.read_bytes()


@cache
def _imports(path: Path, root: Path) -> frozenset[Path]:
    found = set()
    for relative, name in _IMPORT.findall(_read(path).decode()):
        folder = path.parent if relative else root
        source = folder.joinpath(*name.strip(".").split(".")).with_suffix(".py")
        if source.exists():
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
