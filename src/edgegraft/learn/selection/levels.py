"""Levels of penalty and ridge: those that follow from the rows alone, and those that are given."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core.types import Floats
from edgegraft.errors import SettingError
from edgegraft.objective.objective import Objective

_MAX_PER_ROW = 0.01  # ridge per row that it weighs


def chance_level(objective: Objective) -> float:
    """Return the penalty that chance passes about once per variable, with noise weights.

    >>> from edgegraft.table import PackedTable
    >>> from edgegraft.objective.pseudolikelihood import Pseudolikelihood
    >>> chance_level(Pseudolikelihood(PackedTable.from_codes([[0, 0], [1, 1]] * 50)))
    0.2
    """
    return float(objective.terms / np.sqrt(objective.n_rows))


def ridge_of(rows: float, n_rows: float) -> float:
    """Return the ridge that weighs as `rows` of `n_rows` do; tables of few rows get a small one.

    >>> ridge_of(10, 1000), ridge_of(10, 20)
    (0.01, 0.1)
    """
    return float(rows) * min(_MAX_PER_ROW, 1.0 / n_rows)


def falling(name: str, values: ArrayLike) -> Floats:
    """Return the levels that a caller gave as `name`, the largest first, or refuse them.

    >>> falling("penalties", [0.1, 0.3])
    array([0.3, 0.1])
    """
    levels = np.sort(np.asarray(values, np.float64).ravel())[::-1]
    if not (np.isfinite(levels) & (levels >= 0)).all():
        raise SettingError(name, f"must be finite numbers of at least 0, found {values!r}")
    return levels
