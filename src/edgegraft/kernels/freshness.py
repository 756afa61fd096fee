"""Compiled kernels on disk are dropped when any kernel's source has changed.

numba checks a cached kernel against its own file only. A kernel that calls one in another file,
compiled in, would go on with the old callee after an upgrade. So the cache's folder has a stamp of
all sources, and is emptied when it differs.
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
    """Empty the folders that numba caches the kernels in, unless they are of these very sources."""
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for source in sorted(here.rglob("*.py")):
        digest.update(source.read_bytes())
    folder = Path(_probe._cache.cache_path)
    folders = [folder, *here.glob("*/__pycache__"), *folder.parent.glob(f"{folder.name}*")]
    stamp = folder / _STAMP
    # A folder that cannot be read or written is one that numba does not use either.
    with contextlib.suppress(OSError):
        if stamp.exists() and stamp.read_text() == digest.hexdigest():
            return
        for stale in [file for each in folders for file in each.glob("*.nb[ic]")]:
            stale.unlink(missing_ok=True)
        stamp.write_text(digest.hexdigest())
