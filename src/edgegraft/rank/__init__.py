"""Pairs in an order before there is a model, and the structure of graphs."""

from edgegraft.rank.mean_fields import local_field, mean_field, rank_pairs
from edgegraft.rank.ranking import Partners, Ranking, screen
from edgegraft.rank.structure import closing_pairs, find_hubs

__all__ = [
    "Partners",
    "Ranking",
    "closing_pairs",
    "find_hubs",
    "local_field",
    "mean_field",
    "rank_pairs",
    "screen",
]
