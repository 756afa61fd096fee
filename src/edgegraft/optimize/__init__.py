"""Solvers that stop when the optimality conditions hold, and say so when they do not."""

from edgegraft.optimize.fit import fit_parameters
from edgegraft.optimize.info import FitInfo
from edgegraft.optimize.ridge import RidgeChoice, choose_ridge
from edgegraft.optimize.solver import Solution, Stopping, minimize

__all__ = [
    "FitInfo",
    "RidgeChoice",
    "Solution",
    "Stopping",
    "choose_ridge",
    "fit_parameters",
    "minimize",
]
