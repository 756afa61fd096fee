"""Names that commands take; light, so that the help is there at once."""

from __future__ import annotations

from enum import StrEnum


class Task(StrEnum):
    """What is asked: partition function, marginals, or the likeliest state."""

    PR = "PR"
    MAR = "MAR"
    MAP = "MAP"


class EngineName(StrEnum):
    """Engines that the command offers."""

    AUTO = "auto"
    EXACT = "exact"
    BP = "bp"
    TRW = "trw"
    GIBBS = "gibbs"


class Correction(StrEnum):
    """Corrections of edge strengths."""

    APC = "apc"


class Sampler(StrEnum):
    """Engines that draw rows."""

    AUTO = "auto"
    EXACT = "exact"
    GIBBS = "gibbs"


class Strategy(StrEnum):
    """How the search chooses what to activate."""

    BEST_CHOICE = "best-choice"
    FIRST_HIT = "first-hit"
    EXHAUSTIVE = "exhaustive"
    FEATURE = "feature"
    FEATURE_LIGHT = "feature-light"


class Loss(StrEnum):
    """What is minimised."""

    PSEUDOLIKELIHOOD = "pseudolikelihood"
    LIKELIHOOD = "likelihood"


class Completion(StrEnum):
    """How missing cells are filled."""

    MAP = "map"
    DRAW = "draw"


class Unseen(StrEnum):
    """What a category is that the model does not know."""

    ERROR = "error"
    MISSING = "missing"


class Graph(StrEnum):
    """Graphs to simulate from."""

    SCALE_FREE = "scale-free"
    CHAIN = "chain"
    STAR = "star"
    GRID = "grid"
    RANDOM = "random"
    REGULAR = "regular"
