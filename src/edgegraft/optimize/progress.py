"""A fit on its way, so that one that was cut short resumes where it was, to the same bits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from edgegraft.core import Layout
from edgegraft.core.types import Floats


class FitProgress(NamedTuple):
    """A fit after some iterations."""

    key: str  # of the start and the settings of the fit, see key_of
    #: "theta", "inner" (the point in the solver's coordinates), "path" (loss plus penalty at the
    #: start and after every iteration), "guided" (whether steps go by way of a stand-in), and the
    #: curvature learned on the way
    arrays: Mapping[str, NDArray[Any]]


class FitWatch(Protocol):
    """Keeps the progress of fits, and hands it to the same fit of a later process."""

    def note(self, make: Callable[[], FitProgress]) -> None:
        """Receive the progress after an iteration; `make` copies it."""
        ...

    def recall(self, key: str) -> FitProgress | None:
        """Return the progress of a fit, if there is any."""
        ...


def key_of(theta: Floats, layout: Layout, *settings: float) -> str:
    """Return what identifies a fit among those of the same rows: its start and its settings."""
    found = hashlib.sha256(repr(settings).encode())
    for array in (theta, layout.states, layout.edges):
        found.update(np.ascontiguousarray(array).view(np.uint8).data)
    return found.hexdigest()
