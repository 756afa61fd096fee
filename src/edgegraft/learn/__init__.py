"""Growing a graph: the loop, what it tells, and what it certifies."""

from edgegraft.config import Plan, Settings
from edgegraft.learn.certificate import Certificate, certify
from edgegraft.learn.checkpoint import Checkpoints, resume
from edgegraft.learn.discovery import Discovery, discover, resume_discovery
from edgegraft.learn.edge_tests import EdgeTests, edge_tests
from edgegraft.learn.events import Event, Observer, StopReason
from edgegraft.learn.loop import go_on, grow
from edgegraft.learn.refit import refit
from edgegraft.learn.selection.held_out import PenaltyChoice, choose_penalty
from edgegraft.learn.selection.path import PathPoint, penalty_grid, penalty_path
from edgegraft.learn.selection.stability import instability, most_stable
from edgegraft.learn.state import Growth
from edgegraft.learn.trace import Monitor
from edgegraft.learn.warm import warm_start

__all__ = [
    "Certificate",
    "Checkpoints",
    "Discovery",
    "EdgeTests",
    "Event",
    "Growth",
    "Monitor",
    "Observer",
    "PathPoint",
    "PenaltyChoice",
    "Plan",
    "Settings",
    "StopReason",
    "certify",
    "choose_penalty",
    "discover",
    "edge_tests",
    "go_on",
    "grow",
    "instability",
    "most_stable",
    "penalty_grid",
    "penalty_path",
    "refit",
    "resume",
    "resume_discovery",
    "warm_start",
]
