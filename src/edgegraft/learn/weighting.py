"""What row weights mean: so many equal rows, or the share of a population that a row stands for.

Frequency weights add up to the number of rows. Sampling weights have no scale: they are scaled to
add up to the effective number of rows of Kish, ``(sum w)^2 / sum w^2``, and the variance of a sum
over rows is the sum of ``w^2`` times the squares, not of ``w`` times the squares.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from edgegraft.config import WeightMeaning
from edgegraft.core.types import Floats
from edgegraft.errors import EncodingWarning
from edgegraft.table.blocks import Rows, StoredRows, TableRows


class Weighting(NamedTuple):
    """Row weights with their meaning."""

    weights: Floats
    sampling: bool


def weigh(weights: Floats, meaning: WeightMeaning = "auto") -> Weighting:
    """Return row weights that add up to a number of rows; whole numbers are frequencies.

    >>> weigh(np.array([2.0, 1.0]))
    Weighting(weights=array([2., 1.]), sampling=False)
    >>> weigh(np.array([0.5, 0.5]))
    Weighting(weights=array([1., 1.]), sampling=True)
    """
    whole = bool((weights == np.rint(weights)).all())
    if meaning == "frequency" or (meaning == "auto" and whole):
        if not whole:
            row = int(np.argmax(weights != np.rint(weights)))
            warnings.warn(
                f"weights are said to be frequencies, but that of row {row} is {weights[row]:g}: "
                "tests take their sum for the number of rows; weights of a survey are "
                "weights_are='sampling'",
                EncodingWarning,
                stacklevel=2,
            )
        return Weighting(weights, False)
    return Weighting(weights * (weights.sum() / np.square(weights).sum()), True)


def weigh_rows(rows: Rows, meaning: WeightMeaning = "auto") -> tuple[Rows, bool]:
    """Return rows with weights that add up to their number, and whether they are a sample's.

    Rows on a cluster keep their weights, as frequencies.
    """
    if not isinstance(rows, TableRows | StoredRows) or rows.weights is None:
        return rows, False
    found = weigh(rows.weights, meaning)
    return (rows.weighted(found.weights) if found.sampling else rows), found.sampling
