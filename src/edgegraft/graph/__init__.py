"""The graph of a model and where its parameters lie in one flat vector."""

from edgegraft.graph.active import ActiveGraph
from edgegraft.graph.layout import Layout
from edgegraft.graph.neighbours import neighbours_of

__all__ = ["ActiveGraph", "Layout", "neighbours_of"]
