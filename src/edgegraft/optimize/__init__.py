"""Solvers that stop when the optimality conditions hold, and report it when they do not."""

from edgegraft.optimize.fit import fit_parameters
from edgegraft.optimize.solver import FitInfo, Solution, Stopping, minimize

__all__ = [
    "FitInfo",
    "Solution",
    "Stopping",
    "fit_parameters",
    "minimize",
]
