"""What the machine has."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

_CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")


@cache
def physical_memory() -> int | None:
    """Return the memory of the machine, or of its container, in bytes; None if it is not known.

    Examples
    --------
    >>> physical_memory() is None or physical_memory() > 1 << 20
    True
    """
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
    try:
        return min(memory, int(_CONTAINER_LIMIT.read_text()))
    except (OSError, ValueError):  # no container, or one without a limit
        return memory
