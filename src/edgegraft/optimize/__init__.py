"""Solvers that stop when the optimality conditions hold, and report it when they do not."""

from edgegraft.optimize.fit import fit_parameters
from edgegraft.optimize.refit import Refit, refit_by_likelihood
from edgegraft.optimize.solver import FitInfo, Solution, Stopping, minimize

__all__ = [
    "FitInfo",
    "Refit",
    "Solution",
    "Stopping",
    "fit_parameters",
    "minimize",
    "refit_by_likelihood",
]
