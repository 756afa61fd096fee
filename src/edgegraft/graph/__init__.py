"""The graph of a model and where its parameters lie in one flat vector."""

from edgegraft.graph.layout import Layout

__all__ = ["Layout"]
