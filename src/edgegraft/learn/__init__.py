"""Growing a graph: the loop, what it tells, and what it certifies."""

from edgegraft.learn.certificate import Certificate, certify
from edgegraft.learn.checkpoint import Checkpoints, resume
from edgegraft.learn.events import Event, Observer
from edgegraft.learn.loop import go_on, grow
from edgegraft.learn.refit import refit
from edgegraft.learn.settings import Settings
from edgegraft.learn.state import Growth
from edgegraft.learn.trace import Monitor

__all__ = [
    "Certificate",
    "Checkpoints",
    "Event",
    "Growth",
    "Monitor",
    "Observer",
    "Settings",
    "certify",
    "go_on",
    "grow",
    "refit",
    "resume",
]
