"""What every package uses: pairs, the parameter layout, flat tables, threads, files."""

from edgegraft.core.layout import ActiveGraph, Layout
from edgegraft.core.pairs import FlatTables, PairTables, all_pairs, find_pairs, pair_ids

__all__ = [
    "ActiveGraph",
    "FlatTables",
    "Layout",
    "PairTables",
    "all_pairs",
    "find_pairs",
    "pair_ids",
]
