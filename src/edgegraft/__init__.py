"""Networks of direct dependencies, and generative models, from tables of categorical columns.

The public names are loaded when they are first used, so that ``import edgegraft`` stays cheap.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0.dev0"

_HOME = {
    "GraftedMRF": "edgegraft.estimators",
    "GraftedMRFCV": "edgegraft.estimators",
    "PairCounts": "edgegraft.counts",
    "ClusterRows": "edgegraft.contrib.dask.cluster",
    "PackedTable": "edgegraft.table",
    "PairwiseMRF": "edgegraft.model",
    "Schema": "edgegraft.table",
    "Variable": "edgegraft.table",
    "fit_parameters": "edgegraft.optimize",
    "load": "edgegraft.model",
    "pack": "edgegraft.ingest",
    "read_details": "edgegraft.model",
}
_PACKAGES = (
    "core",
    "counts",
    "datasets",
    "errors",
    "estimators",
    "ingest",
    "inference",
    "io",
    "learn",
    "model",
    "objective",
    "optimize",
    "report",
    "search",
    "table",
)

__all__ = ["__version__", *_HOME, *_PACKAGES]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _PACKAGES:
        return importlib.import_module(f"edgegraft.{name}")
    raise AttributeError(f"module 'edgegraft' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME, *_PACKAGES])
