"""How a fit went, in values that a caller can check."""

from __future__ import annotations

from typing import NamedTuple

from edgegraft.core.types import Floats


class FitInfo(NamedTuple):
    """The course and the end of a minimisation."""

    converged: bool  # whether the residual is at most the tolerance
    residual: float  # largest over the groups: Euclidean norm of the least subgradient
    objective: float  # loss plus penalty at the answer
    path: Floats  # loss plus penalty at the start and after every iteration
    n_iter: int
    n_evaluations: int  # losses computed: runs of inference, or passes over the rows
    message: str  # empty where there is nothing to say
    engine: str = ""  # what answered in the end, where the loss needs inference
    diverging: tuple[str, ...] = ()  # parameters whose best value is infinite
