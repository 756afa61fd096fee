"""Counts of states and of pairs of states: the sufficient statistics of a pairwise model."""

from edgegraft.counts.information import mutual_information
from edgegraft.counts.pair_counts import PairCounts

__all__ = ["PairCounts", "mutual_information"]
