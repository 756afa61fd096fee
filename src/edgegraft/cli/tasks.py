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
