"""Estimators in the manner of scikit-learn, thin over :mod:`edgegraft.learn`.

They are loaded when they are first used: reading a table for a fit does without scikit-learn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgegraft.estimators.cross_validated import GraftedMRFCV
    from edgegraft.estimators.grafted import GraftedMRF

__all__ = ["GraftedMRF", "GraftedMRFCV"]

_HOME = {"GraftedMRF": "grafted", "GraftedMRFCV": "cross_validated"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'edgegraft.estimators' has no attribute {name!r}")
    from edgegraft.estimators.deferred import deferring

    with deferring("scipy.stats", "pandas"):
        import sklearn.base  # noqa: F401
    return getattr(importlib.import_module(f"edgegraft.estimators.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
