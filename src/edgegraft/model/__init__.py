"""The frozen model and the questions that it answers."""

from edgegraft.model.answers import (
    LogPartition,
    MapState,
    NodeMarginals,
    PairMarginal,
    RowLikelihood,
)
from edgegraft.model.mrf import PairwiseMRF

__all__ = [
    "LogPartition",
    "MapState",
    "NodeMarginals",
    "PairMarginal",
    "PairwiseMRF",
    "RowLikelihood",
]
