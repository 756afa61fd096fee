"""Counts of states and of pairs of states: the sufficient statistics of a pairwise model."""

from edgegraft.stats.cache import CachedCounts, CacheInfo
from edgegraft.stats.information import mutual_information
from edgegraft.stats.local import LocalCounts
from edgegraft.stats.source import PairCounts
from edgegraft.stats.tables import FlatTables, PairTables

__all__ = [
    "CacheInfo",
    "CachedCounts",
    "FlatTables",
    "LocalCounts",
    "PairCounts",
    "PairTables",
    "mutual_information",
]
