"""Networks of direct dependencies, and generative models, from tables of categorical columns.

The public names are loaded when they are first used, so that ``import edgegraft`` stays cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for editors and type checkers; `__getattr__` does the same at run time
    from edgegraft import (
        core,
        counts,
        datasets,
        errors,
        estimators,
        grafting,
        inference,
        ingest,
        io,
        learn,
        model,
        objective,
        optimize,
        rank,
        report,
        study,
        table,
    )
    from edgegraft.config import GraftingSettings, ReadingOptions
    from edgegraft.counts import PairCounts
    from edgegraft.estimators import GraftedMRF
    from edgegraft.ingest import pack
    from edgegraft.learn import refit_by_likelihood
    from edgegraft.model import PairwiseMRF, load, read_details
    from edgegraft.optimize import fit_parameters
    from edgegraft.scale.cluster import ClusterRows
    from edgegraft.study import compare, plan, read_network
    from edgegraft.table import PackedTable, Schema, Variable

__version__ = "0.1.0.dev0"

__all__ = [
    "ClusterRows",
    "GraftedMRF",
    "GraftingSettings",
    "PackedTable",
    "PairCounts",
    "PairwiseMRF",
    "ReadingOptions",
    "Schema",
    "Variable",
    "__version__",
    "compare",
    "core",
    "counts",
    "datasets",
    "errors",
    "estimators",
    "fit_parameters",
    "grafting",
    "inference",
    "ingest",
    "io",
    "learn",
    "load",
    "model",
    "objective",
    "optimize",
    "pack",
    "plan",
    "rank",
    "read_details",
    "read_network",
    "refit_by_likelihood",
    "report",
    "study",
    "table",
]

_HOME = {
    "ClusterRows": "scale.cluster",
    "GraftedMRF": "estimators",
    "GraftingSettings": "config",
    "PackedTable": "table",
    "PairCounts": "counts",
    "PairwiseMRF": "model",
    "ReadingOptions": "config",
    "Schema": "table",
    "Variable": "table",
    "compare": "study",
    "fit_parameters": "optimize",
    "load": "model",
    "pack": "ingest",
    "plan": "study",
    "read_details": "model",
    "read_network": "study",
    "refit_by_likelihood": "learn",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"edgegraft.{_HOME[name]}"), name)
    if name in __all__:
        return importlib.import_module(f"edgegraft.{name}")
    raise AttributeError(f"module 'edgegraft' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
