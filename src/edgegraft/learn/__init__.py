"""Growing a graph: the loop, what it tells, and what it certifies."""

from edgegraft.learn.loop import go_on, grow
from edgegraft.learn.settings import Settings
from edgegraft.learn.state import Growth

__all__ = ["Growth", "Settings", "go_on", "grow"]
