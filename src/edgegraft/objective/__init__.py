"""Losses of a model's parameters, and the penalties that make them sparse."""

from edgegraft.objective.objective import Evaluation, Objective

__all__ = ["Evaluation", "Objective"]
