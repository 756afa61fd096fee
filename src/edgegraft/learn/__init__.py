"""Learning a network: the search, its events and certificate, edge tests, bootstrap."""

from edgegraft.config import Plan, Settings
from edgegraft.grafting.events import Event, Monitor, Observer, StopReason
from edgegraft.grafting.loop import grow, run_search
from edgegraft.grafting.problem import Problem
from edgegraft.grafting.state import SearchState
from edgegraft.learn.by_likelihood import Refit, refit_by_likelihood
from edgegraft.learn.certificate import Certificate, certify
from edgegraft.learn.discovery import Discovery, discover, resume_discovery
from edgegraft.learn.edge_tests import EdgeTests, edge_tests
from edgegraft.learn.last_fits import refit
from edgegraft.learn.prediction import Prediction, fit_for_prediction

__all__ = [
    "Certificate",
    "Discovery",
    "EdgeTests",
    "Event",
    "Monitor",
    "Observer",
    "Plan",
    "Prediction",
    "Problem",
    "Refit",
    "SearchState",
    "Settings",
    "StopReason",
    "certify",
    "discover",
    "edge_tests",
    "fit_for_prediction",
    "grow",
    "refit",
    "refit_by_likelihood",
    "resume_discovery",
    "run_search",
]
