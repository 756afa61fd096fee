"""A fit on its way, so that one that was cut short resumes where it was, to the same bits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from edgegraft.core import Layout
from edgegraft.core.types import Floats

Arrays = dict[str, NDArray[Any]]


class FitProgress(NamedTuple):
    """A fit after some iterations."""

    key: str  # of the start and the settings of the fit, see key_of
    theta: Floats
    inner: Floats  # the point in the solver's coordinates
    path: Floats  # loss plus penalty at the start and after every iteration
    guided: bool  # whether steps go by way of a stand-in
    metric: Mapping[str, NDArray[Any]]  # curvature learned on the way

    def arrays(self) -> Arrays:
        """Return all but the key as arrays, for :meth:`of_arrays`."""
        plain = {"theta": self.theta, "inner": self.inner, "path": self.path}
        guided = {"guided": np.array([self.guided])}
        return plain | guided | {f"metric.{name}": v for name, v in self.metric.items()}

    @classmethod
    def of_arrays(cls, key: str, arrays: Mapping[str, NDArray[Any]]) -> FitProgress:
        """Return the progress that :meth:`arrays` described."""
        metric = {n.removeprefix("metric."): v for n, v in arrays.items() if n[:7] == "metric."}
        theta, inner, path = (np.array(arrays[name]) for name in ("theta", "inner", "path"))
        return cls(key, theta, inner, path, bool(arrays["guided"][0]), metric)


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
