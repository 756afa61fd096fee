"""Counts of states and of pairs of states: the sufficient statistics of a pairwise model."""

from edgegraft.counts.cache import CachedCounts, CacheInfo
from edgegraft.counts.information import mutual_information
from edgegraft.counts.local import LocalCounts
from edgegraft.counts.source import PairCounts

__all__ = ["CacheInfo", "CachedCounts", "LocalCounts", "PairCounts", "mutual_information"]
