"""The frozen model, the questions that it answers, and its file.

Names are loaded when they are first used: what a model file holds can be asked without compiling
the model's kernels.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgegraft.model.answers import (
        LogPartition,
        MapState,
        NodeMarginals,
        PairMarginal,
        RowCodes,
        RowLikelihood,
    )
    from edgegraft.model.file import StoredModel, read_details
    from edgegraft.model.mrf import PairwiseMRF, load

__all__ = [
    "LogPartition",
    "MapState",
    "NodeMarginals",
    "PairMarginal",
    "PairwiseMRF",
    "RowCodes",
    "RowLikelihood",
    "StoredModel",
    "load",
    "read_details",
]

_HOME = dict.fromkeys(__all__, "answers") | {
    "PairwiseMRF": "mrf",
    "StoredModel": "file",
    "load": "mrf",
    "read_details": "file",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'edgegraft.model' has no attribute {name!r}")
    return getattr(importlib.import_module(f"edgegraft.model.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
