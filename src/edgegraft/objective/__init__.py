"""Losses of a model's parameters, and the penalties that make them sparse."""

from edgegraft.objective.likelihood import Likelihood
from edgegraft.objective.objective import Evaluation, Objective
from edgegraft.objective.penalty import Penalty
from edgegraft.objective.pseudolikelihood import Pseudolikelihood

__all__ = [
    "Evaluation",
    "Likelihood",
    "Objective",
    "Penalty",
    "Pseudolikelihood",
]
