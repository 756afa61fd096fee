"""Compiled kernels on disk are dropped when any kernel's source has changed.

numba checks a cached kernel against its own file only. A kernel that calls one in another file,
compiled in, would go on with the old callee after an upgrade (files of a wheel all carry the same
time stamp). So the cache's folder has a stamp of all sources, and is emptied when it differs.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from numba import njit

_STAMP = "edgegraft-kernels.sha256"


@njit(cache=True)
def _probe():
    return 0


def discard_stale() -> None:
    """Empty the folder that numba caches the kernels in, unless it is of these very sources."""
    folder = Path(_probe._cache.cache_path)
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for source in sorted(here.glob("*.py")):
        digest.update(source.read_bytes())
    stamp = folder / _STAMP
    # A folder that cannot be read or written is one that numba does not use either.
    with contextlib.suppress(OSError):
        if stamp.exists() and stamp.read_text() == digest.hexdigest():
            return
        for stale in [*folder.glob("*.nbi"), *folder.glob("*.nbc")]:
            stale.unlink(missing_ok=True)
        stamp.write_text(digest.hexdigest())
