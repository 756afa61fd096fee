"""What every package uses: pairs, the parameter layout, flat tables, threads, files."""

from edgegraft.core.layout import ActiveGraph, Layout
from edgegraft.core.pairs import FlatTables, PairTables

__all__ = ["ActiveGraph", "FlatTables", "Layout", "PairTables"]
